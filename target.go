package netloop

import "slices"

// Target is a set of clients: the receivers of a message, or the clients that may see an object
// ([VisibleTo]). The zero Target is empty. Targets combine: Observers(ship).Except(from.ID()) is
// every client that sees the ship except the sender.
type Target struct {
	all      bool
	to       []ClientID
	matches  func(*Client) bool
	observed interface{ observedBy(*Client) bool }
	owned    interface{ Owner() ClientID }
	groups   []*ClientGroup // that it names: when their members change, so does the target

	except []ClientID // removed from all of these
}

// Everyone is the target of all clients that have joined.
func Everyone() Target { return Target{all: true} }

// To is the target of the given clients. An empty list is no client.
func To(ids ...ClientID) Target { return Target{to: ids} }

// Except is the target of all clients except the given ones.
func Except(ids ...ClientID) Target { return Target{all: true, except: ids} }

// OwnerOf is the target of the client that owns an object when the target is used; it may be empty.
func OwnerOf(o interface{ Owner() ClientID }) Target { return Target{owned: o} }

// Observers is the target of the clients that have an [Object], or will have it with their next
// snapshot. A despawned object has no observers.
func Observers(o interface{ observedBy(*Client) bool }) Target { return Target{observed: o} }

// Where is the target of the clients for which the function returns true.
func Where(fn func(*Client) bool) Target { return Target{matches: fn} }

// Except returns the target without the given clients.
func (g Target) Except(ids ...ClientID) Target {
	g.except = append(slices.Clip(g.except), ids...)
	return g
}

// And returns the target of the clients that are in both targets.
func (g Target) And(other Target) Target {
	return Target{
		matches: func(c *Client) bool { return g.includes(c) && other.includes(c) },
		groups:  slices.Concat(g.groups, other.groups),
	}
}

// Or returns the target of the clients that are in at least one of both targets. Each gets the
// message once.
func (g Target) Or(other Target) Target {
	return Target{
		matches: func(c *Client) bool { return g.includes(c) || other.includes(c) },
		groups:  slices.Concat(g.groups, other.groups),
	}
}

// everyone reports whether the target includes all clients, also future ones.
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
