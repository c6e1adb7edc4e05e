package schema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
)

// Method is the declaration of an RPC or a call, with its types erased.
type Method struct {
	Schema *Schema
	Queue  rpcqueue.Method
	// Checks run on a message of a client just before its handler, in order.
	Checks []Check
	// ServerOnly means that clients do not send it.
	ServerOnly bool
	// Secret means that the inspector does not show its payloads.
	Secret bool
	// Spectators means that spectators may send it too.
	Spectators bool
	// Timeout is how long the client waits for the answer of a call.
	Timeout time.Duration
	In      Codec
	Out     Codec // of a call's answer
}

// Check is one condition on a message of a client. It applies to clients only: messages that the
// server sends or posts are the game's own.
type Check struct {
	Option  string
	Message reflect.Type // the message type of the check; nil is any
	// Ask returns why the message must not run, or nil. tick and from are a *netloop.Tick and a
	// *netloop.Client.
	Ask func(tick, from, msg any) error
}

// The limits of Method.Timeout.
const (
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = time.Hour
)

// NewMethod returns a method before its options are applied; [Method.Settle] completes it.
func NewMethod(s *Schema, name string, in Codec, call bool) *Method {
	return &Method{Schema: s, In: in, Queue: rpcqueue.Method{Name: name, Call: call, Reliable: true}}
}

// Settle completes a declaration after its options were applied, or returns an error for invalid
// options. The message is the type that the method is declared with.
func (m *Method) Settle(message reflect.Type) error {
	if len(m.Queue.Stages) == 0 {
		m.Queue.Stages = []loop.Stage{loop.Update}
	}
	for _, c := range m.Checks {
		if c.Message != nil && c.Message != message {
			return fmt.Errorf("%s takes a %v, but the message is a %v", c.Option, c.Message, message)
		}
	}
	if err := m.Queue.Limit.Check(); err != nil {
		return fmt.Errorf("Limit: %w", err) //nolint:staticcheck // It is the name of the option.
	}
	for i, s := range m.Queue.Stages {
		switch {
		case !s.Valid():
			return fmt.Errorf("AtStage(%d): use the seven stages, Initialization to PostLateUpdate", s)
		case slices.Contains(m.Queue.Stages[:i], s):
			return fmt.Errorf("AtStage names %v twice", s)
		}
	}
	switch {
	case m.Queue.Call && m.ServerOnly:
		return errors.New("ServerOnly is for RPCs: only clients make calls")
	case m.Queue.Call && !m.Queue.Reliable:
		return errors.New("a call is always reliable: leave Unreliable out")
	case !m.Queue.Call && m.Timeout != 0:
		//nolint:staticcheck // It is the name of the option.
		return errors.New("Timeout is for calls: an RPC has no answer")
	case m.Queue.Call && m.Timeout == 0:
		m.Timeout = DefaultTimeout
	}
	return nil
}

// Belongs returns an error for a method of another schema than the room's: its id would name
// another method there.
func (m *Method) Belongs(room *Schema) error {
	if m.Schema == room {
		return nil
	}
	return fmt.Errorf("method %q belongs to schema %q, but the room runs schema %q", m.Queue.Name, m.Schema.Name, room.Name)
}

func (m *Method) kind() string {
	delivery := "unreliable"
	if m.Queue.Reliable {
		delivery = "reliable"
	}
	if m.Queue.Call {
		return "call " + delivery
	}
	return "rpc " + delivery
}

func (m *Method) signature() string {
	if m.Queue.Call {
		return m.In.signature() + " -> " + m.Out.signature()
	}
	return m.In.signature()
}

// Send holds the options of one send.
type Send struct {
	Stage     loop.Stage // 0 is the method's default
	WithState bool       // hold the message on the client until it has the state of this tick
}

// AllowedBy reports whether the method may run at the requested stage.
func (s *Send) AllowedBy(m *Method) bool { return s.Stage == 0 || m.Queue.Allows(s.Stage) }
