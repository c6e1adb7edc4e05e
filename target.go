package netloop

import "slices"

// Target says which clients a message goes to. The zero Target is nobody.
// Targets combine: Observers(ship).Except(from.ID()) is everyone who sees the ship
// but the one who asked.
type Target struct {
	all      bool
	to       []ClientID
	matches  func(*Client) bool
	observed interface{ observedBy(*Client) bool }

	except []ClientID // of all of these
}

// Everyone is every client that has joined.
func Everyone() Target { return Target{all: true} }

// To is the clients named. An empty list is nobody.
func To(ids ...ClientID) Target { return Target{to: ids} }

// Except is everyone but the clients named.
func Except(ids ...ClientID) Target { return Target{all: true, except: ids} }

// OwnerOf is the client that owns an object, or nobody.
func OwnerOf(o interface{ Owner() ClientID }) Target { return To(o.Owner()) }

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
	return Where(func(c *Client) bool { return g.includes(c) && other.includes(c) })
}

// Or is the clients that are in at least one of both targets. Each gets the
// message once.
func (g Target) Or(other Target) Target {
	return Where(func(c *Client) bool { return g.includes(c) || other.includes(c) })
}

func (g *Target) includes(c *Client) bool {
	switch {
	case slices.Contains(g.except, c.id):
		return false
	case g.all:
		return true
	case g.matches != nil:
		return g.matches(c)
	case g.observed != nil:
		return g.observed.observedBy(c)
	}
	return slices.Contains(g.to, c.id)
}
