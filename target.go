package netloop

import "slices"

// Target says which clients a message goes to, or which may see an object
// ([VisibleTo]). The zero Target is nobody.
// Targets combine: Observers(ship).Except(from.ID()) is everyone who sees the ship
// but the one who asked.
type Target struct {
	all      bool
	to       []ClientID
	matches  func(*Client) bool
	observed interface{ observedBy(*Client) bool }
	owned    interface{ Owner() ClientID }
	groups   []*ClientGroup // that it names: when their members change it says something else

	except []ClientID // of all of these
}

// Everyone is every client that has joined.
func Everyone() Target { return Target{all: true} }

// To is the clients named. An empty list is nobody.
func To(ids ...ClientID) Target { return Target{to: ids} }

// Except is everyone but the clients named.
func Except(ids ...ClientID) Target { return Target{all: true, except: ids} }

// OwnerOf is the client that owns an object when the target is used, or nobody.
func OwnerOf(o interface{ Owner() ClientID }) Target { return Target{owned: o} }

// Observers is the clients that have an [Object], or will have it with the next
// snapshot that they get. Nobody observes what is despawned.
func Observers(o interface{ observedBy(*Client) bool }) Target { return Target{observed: o} }

// Where is the clients for which the function says true.
func Where(fn func(*Client) bool) Target { return Target{matches: fn} }

// Except is the target without the clients named.
func (g Target) Except(ids ...ClientID) Target {
	g.except = append(slices.Clip(g.except), ids...)
	return g
}

// And is the clients that are in both targets.
func (g Target) And(other Target) Target {
	return Target{
		matches: func(c *Client) bool { return g.includes(c) && other.includes(c) },
		groups:  slices.Concat(g.groups, other.groups),
	}
}

// Or is the clients that are in at least one of both targets. Each gets the
// message once.
func (g Target) Or(other Target) Target {
	return Target{
		matches: func(c *Client) bool { return g.includes(c) || other.includes(c) },
		groups:  slices.Concat(g.groups, other.groups),
	}
}

// everyone reports whether the target is everybody, whoever may join.
func (g *Target) everyone() bool { return g.all && len(g.except) == 0 }

func (g *Target) includes(c *Client) bool {
	switch {
	case slices.Contains(g.except, c.ID()):
		return false
	case g.all:
		return true
	case g.matches != nil:
		return g.matches(c)
	case g.observed != nil:
		return g.observed.observedBy(c)
	case g.owned != nil:
		return g.owned.Owner() == c.ID()
	}
	return slices.Contains(g.to, c.ID())
}
