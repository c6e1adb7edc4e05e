package schema

import (
	"errors"

	"github.com/netloop/netloop/internal/transport"
)

// The decoders of messages. Each turns a message's bytes into the message on the goroutine
// that read them, so that a large one costs no tick. The server's finds the method there too,
// so that nobody has to look it up again.

var errKind = errors.New("netloop: a message of the wrong kind for its method")

// Decode finds the *Method of what a client sends, and decodes it. A method that the schema
// does not have is nil, and left to the queue, which counts it.
func (s *Schema) Decode(m *transport.Message) (declared, decoded any, err error) {
	method, ok := s.Method(m.Method)
	if !ok {
		m.Payload = nil // Nobody will read it.
		return nil, nil, nil
	}
	if m.Call != 0 != method.Queue.Call || m.Reply {
		return nil, nil, errKind
	}
	decoded, err = method.In.Decode(m.Payload)
	return method, decoded, err
}

// Size estimates what Decode allocates for what a client sends, without decoding it.
func (s *Schema) Size(m *transport.Message) int {
	method, ok := s.Method(m.Method)
	if !ok {
		return 0
	}
	return method.In.Size(m.Payload)
}

// DecodeOnClient decodes what a server sends: RPCs and answers to calls.
func (s *Schema) DecodeOnClient(m *transport.Message) (any, error) {
	method, ok := s.Method(m.Method)
	if !ok {
		return nil, ignored(m)
	}
	return decodeFromServer(m, method, &method.In, &method.Out)
}

// Decode is DecodeOnClient for what a server of another build sends: it decodes, and puts
// the method's id on this side in place of the server's. A method that this side has
// not becomes 0, which no method has.
func (f *Foreign) Decode(m *transport.Message) (any, error) {
	if m.Method == 0 || uint64(m.Method) > uint64(len(f.methods)) || f.methods[m.Method-1].own == nil {
		return nil, ignored(m)
	}
	method := &f.methods[m.Method-1]
	m.Method = method.own.Queue.ID
	return decodeFromServer(m, method.own, &method.in, &method.out)
}

// decodeFromServer decodes a message of a known method by the layouts given.
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

// ignored makes m a message of a method that this side has not. What cannot be the
// answer to anything that was asked is an error.
func ignored(m *transport.Message) error {
	if m.Reply {
		return errKind
	}
	m.Method, m.Payload = 0, nil
	return nil
}
