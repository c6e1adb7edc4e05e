package schema

import (
	"errors"

	"github.com/netloop/netloop/internal/transport"
)

// The decoders of messages. Each decodes a message on the goroutine that read its bytes, so that a
// large message takes no time of a tick. The server's decoder also looks up the method, so that
// later code does not have to.

var errKind = errors.New("netloop: message kind does not match its method")

// Decode finds the *Method of a client's message, and decodes it. For a method that the schema does
// not have it returns nil, and the queue counts the message.
func (s *Schema) Decode(m *transport.Message) (declared, decoded any, err error) {
	method, ok := s.Method(m.Method)
	if !ok {
		m.Payload = nil // The payload is not read.
		return nil, nil, nil
	}
	if m.Call != 0 != method.Queue.Call || m.Reply {
		return nil, nil, errKind
	}
	decoded, err = method.In.Decode(m.Payload)
	return method, decoded, err
}

// Size estimates the allocations of Decode for a client's message, without decoding it.
func (s *Schema) Size(m *transport.Message) int {
	method, ok := s.Method(m.Method)
	if !ok {
		return 0
	}
	return method.In.Size(m.Payload)
}

// DecodeOnClient decodes a server's message: RPCs and answers to calls.
func (s *Schema) DecodeOnClient(m *transport.Message) (any, error) {
	method, ok := s.Method(m.Method)
	if !ok {
		return nil, ignored(m)
	}
	return decodeFromServer(m, method, &method.In, &method.Out)
}

// Decode is DecodeOnClient for a server of another build: it decodes, and replaces the server's id
// of the method by that of this side. The id of a method that this side lacks becomes 0, which is
// not the id of any method.
func (f *Foreign) Decode(m *transport.Message) (any, error) {
	if m.Method == 0 || uint64(m.Method) > uint64(len(f.methods)) || f.methods[m.Method-1].own == nil {
		return nil, ignored(m)
	}
	method := &f.methods[m.Method-1]
	m.Method = method.own.Queue.ID
	return decodeFromServer(m, method.own, &method.in, &method.out)
}

// decodeFromServer decodes a message of a known method by the given layouts.
func decodeFromServer(m *transport.Message, method *Method, in, out *Codec) (any, error) {
	switch {
	case m.Reply != method.Queue.Call:
		return nil, errKind
	case m.Reply && m.Code != 0:
		return nil, nil
	case m.Reply:
		return out.Decode(m.Payload)
	}
	return in.Decode(m.Payload)
}

// ignored makes m a message of method 0, which no method has, so that it is ignored. For an answer
// it returns an error, because this side cannot have called such a method.
func ignored(m *transport.Message) error {
	if m.Reply {
		return errKind
	}
	m.Method, m.Payload = 0, nil
	return nil
}
