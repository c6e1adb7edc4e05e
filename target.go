package netloop

import "slices"

// Target says which clients a message goes to. The zero Target is nobody.
type Target struct {
	to      []ClientID
	except  []ClientID
	all     bool
	matches func(*Client) bool
}

// Everyone is every client that has joined.
func Everyone() Target { return Target{all: true} }

// To is the clients named. An empty list is nobody.
func To(ids ...ClientID) Target { return Target{to: ids} }

// Except is everyone but the clients named.
func Except(ids ...ClientID) Target { return Target{all: true, except: ids} }

// OwnerOf is the client that owns an object, or nobody.
func OwnerOf(o interface{ Owner() ClientID }) Target { return To(o.Owner()) }

// Where is the clients for which the function says true.
func Where(fn func(*Client) bool) Target { return Target{matches: fn} }

func (g Target) includes(c *Client) bool {
	switch {
	case g.matches != nil:
		return g.matches(c)
	case g.all:
		return !slices.Contains(g.except, c.id)
	default:
		return slices.Contains(g.to, c.id)
	}
}
