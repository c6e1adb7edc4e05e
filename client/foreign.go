package client

import (
	"fmt"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// A server of another build speaks its own schema, and the client adapts: see package
// netloop. Everything here does nothing while both have the same.

// adapt matches the server's tables with Config.Schema, before the client is let in.
func (c *Client) adapt(t *netloopv1.SchemaTables) error {
	f, err := c.schema.Adapt(t)
	if err != nil {
		return err
	}
	c.served = f
	c.replica.Adapt(f.Classes)
	return nil
}

// decode decodes a message on the goroutine that has read it.
func (c *Client) decode(m *transport.Message) (any, error) {
	if c.served != nil {
		return c.served.Decode(m)
	}
	return c.schema.Decode(m)
}

// encode makes the payload of a message and finds the server's id of its method. It
// panics if the message exceeds what its declaration or the wire allows; the error
// is one of the server's, of another build.
func (c *Client) encode(m inside.Method, msg any) (id uint32, payload []byte, err error) {
	if c.served == nil {
		return m.Queue.ID, c.mustEncode(m, msg), nil
	}
	to, known := c.served.Method(m.Queue.ID)
	if known {
		payload, err = to.Append(c.payload[:0], msg)
	}
	if known && err == nil {
		if err = transport.CheckPayload(len(payload), m.Queue.Reliable); err == nil {
			c.payload = payload
			return to.ID, payload, nil
		}
	}
	c.mustEncode(m, msg) // What is wrong on both sides is the game's mistake, as ever.
	c.stats.Unsent++
	if !known {
		err = inside.Netloop.Refusal(netloop.CodeUnknownMethod, fmt.Sprintf("the server has no method %q", m.Queue.Name))
	} else {
		err = inside.Netloop.Refusal(netloop.CodeInvalid, fmt.Sprintf("the server's build cannot take this %q: %v", m.Queue.Name, err))
	}
	if !c.warned[m.Queue.ID] {
		if c.warned == nil {
			c.warned = map[uint32]bool{}
		}
		c.warned[m.Queue.ID] = true
		c.log.Warn("a message cannot be sent to a server of this build; further ones of this method are only counted", "method", m.Queue.Name, "error", err)
	}
	return 0, nil, err
}

// mustEncode makes the payload in the client's own layout.
func (c *Client) mustEncode(m inside.Method, msg any) []byte {
	payload, err := m.Queue.Append(c.payload[:0], msg)
	if err == nil {
		err = transport.CheckPayload(len(payload), m.Queue.Reliable)
	}
	if err != nil {
		panic(fmt.Sprintf("client: sending %q: %v", m.Queue.Name, err))
	}
	c.payload = payload
	return payload
}
