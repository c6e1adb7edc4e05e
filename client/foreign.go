package client

import (
	"errors"
	"fmt"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// A server of another build uses its own schema, and the client adapts: see package netloop. This
// code has no effect while both have the same.

// encode makes the payload of a message and finds the server's id of its method. It counts and
// returns an error if the message exceeds the limits of its declaration or of the wire, or if the
// server, of another build, cannot accept it.
func (c *Client) encode(m *schema.Method, msg any) (id uint32, payload []byte, err error) {
	id, layout, known := m.Queue.ID, m.In.Append, true
	if c.served != nil {
		var to schema.ForeignMethod
		to, known = c.served.Method(id)
		id, layout = to.ID, to.Append
	}
	if known {
		if payload, err = c.payloadOf(m, layout, msg); err == nil {
			return id, payload, nil
		}
	}
	c.stats.Unsent++
	if _, own := c.payloadOf(m, m.In.Append, msg); own != nil { // Not a matter of builds.
		return id, nil, fmt.Errorf("client: sending %q: %w: %w", m.Queue.Name, ErrDoesNotFit, own)
	}
	if !known {
		err = &netloop.Refusal{Code: netloop.CodeUnknownMethod, Text: fmt.Sprintf("the server has no method %q", m.Queue.Name)}
	} else {
		err = &netloop.Refusal{Code: netloop.CodeInvalid, Text: fmt.Sprintf("the server's build cannot take this %q: %v", m.Queue.Name, err)}
	}
	c.warn(m, err)
	return id, nil, err
}

// warn logs, once for each method and connection, that the server cannot accept its messages.
func (c *Client) warn(m *schema.Method, err error) {
	if c.warned[m.Queue.ID] {
		return
	}
	if c.warned == nil {
		c.warned = map[uint32]bool{}
	}
	c.warned[m.Queue.ID] = true
	c.log.Warn("a message cannot be sent to this server; further ones of this method are only counted", "method", m.Queue.Name, "error", err)
}

// ErrDoesNotFit is wrapped by the error of a message that exceeds a limit of its declaration or of
// the wire: mostly a text that a player typed. [netloop.Truncate] shortens a text.
var ErrDoesNotFit = errors.New("the message does not fit")

// payloadOf makes the payload in one layout, valid until the next call.
func (c *Client) payloadOf(m *schema.Method, layout func([]byte, any) ([]byte, error), msg any) ([]byte, error) {
	payload, err := layout(c.payload[:0], msg)
	if err == nil {
		err = transport.CheckPayload(len(payload), m.Queue.Reliable)
	}
	if err != nil {
		return nil, err
	}
	c.payload = payload
	return payload, nil
}
