package schema

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

type (
	number struct{ N uint64 }
	answer struct{ A, B uint64 }
)

// spoken is a schema of an RPC with id 2 and a call with id 1.
func spoken(t *testing.T) (s *Schema, tell, ask *Method) {
	t.Helper()
	s = New("spoken", 1, 0)
	in, err := NewCodec[number]()
	out, outErr := NewCodec[answer]()
	if err := errors.Join(err, outErr); err != nil {
		t.Fatal(err)
	}
	ask, tell = NewMethod(s, "ask", in, true), NewMethod(s, "tell", in, false)
	ask.Out = out
	tell.Queue.Stages = []loop.Stage{loop.PreUpdate}
	for _, m := range []*Method{ask, tell} {
		if err := m.Settle(nil); err != nil {
			t.Fatal(err)
		}
		s.Claim("method", m.Queue.Name)
		s.AddMethod(m)
	}
	s.Freeze()
	return s, tell, ask
}

// A client's message must be a call exactly if its method is one, and never an answer. A message
// for an unknown method is left to the queue.
func TestAServerDecodesClientMessages(t *testing.T) {
	s, tell, ask := spoken(t)
	for what, c := range map[string]struct {
		m    transport.Message
		want *Method // nil: an error
	}{
		"an RPC":             {transport.Message{Method: tell.Queue.ID, Payload: []byte{7}}, tell},
		"a call":             {transport.Message{Method: ask.Queue.ID, Call: 1, Payload: []byte{7}}, ask},
		"a call of an RPC":   {transport.Message{Method: tell.Queue.ID, Call: 1, Payload: []byte{7}}, nil},
		"no call of a call":  {transport.Message{Method: ask.Queue.ID, Payload: []byte{7}}, nil},
		"an answer":          {transport.Message{Method: ask.Queue.ID, Call: 1, Reply: true, Payload: []byte{7}}, nil},
		"an answer of a RPC": {transport.Message{Method: tell.Queue.ID, Reply: true, Payload: []byte{7}}, nil},
	} {
		method, decoded, err := s.Decode(&c.m)
		if c.want == nil {
			if !errors.Is(err, errKind) || decoded != nil {
				t.Errorf("%s is decoded to %v, %v", what, decoded, err)
			}
			continue
		}
		if m, ok := decoded.(*number); err != nil || method != c.want || !ok || m.N != 7 {
			t.Errorf("%s is decoded to %v, %v, %v", what, method, decoded, err)
		}
	}
	unknown := transport.Message{Method: 3, Call: 1, Payload: []byte{7}}
	if method, decoded, err := s.Decode(&unknown); method != nil || decoded != nil || err != nil || s.Size(&unknown) != 0 {
		t.Errorf("a message of no method is decoded to %v, %v, %v, of %d bytes", method, decoded, err, s.Size(&unknown))
	}
	if known := (transport.Message{Method: tell.Queue.ID, Payload: []byte{7}}); s.Size(&known) != tell.In.Size(known.Payload) || s.Size(&known) == 0 {
		t.Errorf("a message takes %d bytes", s.Size(&known))
	}
}

// A server's message must be an answer exactly if its method is a call, and has no value if it has
// a code. A message for a method that this side lacks is ignored; an answer to a call that cannot
// have been made is an error. The same holds for a server of another build, by the server's ids.
func TestAClientDecodesServerMessages(t *testing.T) {
	s, tell, ask := spoken(t)
	tables := s.tables()
	strange := &netloopv1.MethodTable{Name: "strange", Message: tables.GetMethods()[0].GetMessage()}
	tables.Methods = append([]*netloopv1.MethodTable{strange}, tables.GetMethods()...)
	foreign, err := s.Adapt(tables)
	if err != nil {
		t.Fatal(err)
	}
	for side, c := range map[string]struct {
		decode func(*transport.Message) (any, error)
		shift  uint32 // of the ids
	}{"the same build": {s.DecodeOnClient, 0}, "another build": {foreign.Decode, 1}} {
		said := func(m transport.Message, method *Method) (any, uint32, error) {
			m.Method, m.Payload = method.Queue.ID+c.shift, []byte{7, 8}[:1+b2i(m.Reply)]
			v, err := c.decode(&m)
			return v, m.Method, err
		}
		if v, id, err := said(transport.Message{}, tell); err != nil || id != tell.Queue.ID || *v.(*number) != (number{7}) {
			t.Errorf("%s: an RPC is %v of method %d, %v", side, v, id, err)
		}
		if v, id, err := said(transport.Message{Reply: true}, ask); err != nil || id != ask.Queue.ID || *v.(*answer) != (answer{7, 8}) {
			t.Errorf("%s: an answer is %v of method %d, %v", side, v, id, err)
		}
		if v, _, err := said(transport.Message{Reply: true, Code: uint32(transport.CodeRefused)}, ask); err != nil || v != nil {
			t.Errorf("%s: a refusal is %v, %v", side, v, err)
		}
		if v, _, err := said(transport.Message{Reply: true}, tell); !errors.Is(err, errKind) || v != nil {
			t.Errorf("%s: an answer to an RPC is %v, %v", side, v, err)
		}
		if v, _, err := said(transport.Message{}, ask); !errors.Is(err, errKind) || v != nil {
			t.Errorf("%s: a call of a server is %v, %v", side, v, err)
		}
		unknown := []uint32{0, 4, 1 << 31}
		if c.shift > 0 {
			unknown = append(unknown, 1) // The strange one.
		}
		for _, id := range unknown {
			m := transport.Message{Method: id, Payload: []byte{7}}
			if v, err := c.decode(&m); v != nil || err != nil || m.Method != 0 || m.Payload != nil {
				t.Errorf("%s: method %d is %v, %v, and its message %+v", side, id, v, err, m)
			}
			m = transport.Message{Method: id, Reply: true}
			if v, err := c.decode(&m); v != nil || !errors.Is(err, errKind) {
				t.Errorf("%s: an answer of method %d is %v, %v", side, id, v, err)
			}
		}
	}
	if m, ok := foreign.Method(tell.Queue.ID); !ok || m.ID != tell.Queue.ID+1 {
		t.Errorf("the method is sent as %+v, %v", m, ok)
	} else if b, err := m.Append(nil, &number{7}); err != nil || !bytes.Equal(b, []byte{7}) {
		t.Errorf("its message is sent as %x, %v", b, err)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A message is sent for the stages of its declaration, or for none in particular.
func TestASendNamesAStageOfItsMethod(t *testing.T) {
	_, tell, _ := spoken(t)
	for stage, want := range map[loop.Stage]bool{0: true, loop.PreUpdate: true, loop.Update: false} {
		if got := (&Send{Stage: stage}).AllowedBy(tell); got != want {
			t.Errorf("at %v: %v, want %v", stage, got, want)
		}
	}
}

// The names in a server's tables follow the rules of declarations: 1 to 64 bytes, and unique. Any
// other table is refused.
func TestTablesHaveTheNamesOfDeclarations(t *testing.T) {
	long := strings.Repeat("n", MaxName)
	for what, c := range map[string]struct {
		names []string
		sound bool
	}{
		"all kinds": {[]string{"x", "y", long}, true},
		"none":      {[]string{"x", ""}, false},
		"too long":  {[]string{long + "n"}, false},
		"twice":     {[]string{"x", "y", "x"}, false},
	} {
		classes, methods := new(netloopv1.SchemaTables), new(netloopv1.SchemaTables)
		for _, name := range c.names {
			classes.Classes = append(classes.Classes, &netloopv1.ClassTable{Name: name})
			methods.Methods = append(methods.Methods, &netloopv1.MethodTable{Name: name})
		}
		s, _, _ := spoken(t)
		for kind, tables := range map[string]*netloopv1.SchemaTables{"classes": classes, "methods": methods} {
			_, err := s.Adapt(tables)
			var closed *transport.Closed
			if (err == nil) != c.sound || !c.sound && (!errors.As(err, &closed) || closed.Code != transport.CodeProtocol) {
				t.Errorf("names of %s, %s: %v", kind, what, err)
			}
		}
	}
	s, _, _ := spoken(t)
	tables := new(netloopv1.SchemaTables)
	for range maxDeclarations {
		tables.Methods = append(tables.Methods, &netloopv1.MethodTable{})
	}
	if _, err := s.Adapt(tables); err == nil || strings.Contains(err.Error(), "more than") {
		t.Errorf("as many as a schema has: %v", err)
	}
	tables.Classes = append(tables.Classes, &netloopv1.ClassTable{})
	if _, err := s.Adapt(tables); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("one more than a schema has: %v", err)
	}
}

// A method with another kind or type on the server is an error that names it.
func TestOtherMethodsAreNamed(t *testing.T) {
	s, _, _ := spoken(t)
	for want, change := range map[string]func(ask, tell *netloopv1.MethodTable){
		`method "ask" is an RPC on the server, but a call on the client`: func(ask, _ *netloopv1.MethodTable) {
			ask.Kind = netloopv1.MethodKind_METHOD_KIND_RPC
		},
		`method "tell" is a call on the server, but an RPC on the client`: func(_, tell *netloopv1.MethodTable) {
			tell.Kind = netloopv1.MethodKind_METHOD_KIND_CALL
		},
		`method "tell": its message is proto p.M on the server, but `: func(_, tell *netloopv1.MethodTable) {
			tell.Message = &netloopv1.Type{Kind: netloopv1.TypeKind_TYPE_KIND_PROTO, Proto: "p.M"}
		},
		`method "ask": field A of its answer is `: func(ask, _ *netloopv1.MethodTable) {
			ask.Reply.Fields[0].Type.Kind = netloopv1.TypeKind_TYPE_KIND_INT8
		},
	} {
		tables := s.tables()
		change(tables.GetMethods()[0], tables.GetMethods()[1])
		_, err := s.Adapt(tables)
		var refusal *transport.Refusal
		if !errors.As(err, &refusal) || refusal.Code != transport.CodeSchemaMismatch || !strings.HasPrefix(refusal.Text, want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// A declaration is completed, or refused with an error about its options.
func TestADeclarationIsSettled(t *testing.T) {
	type one struct{ N uint8 }
	type two struct{ N uint8 }
	message := reflect.TypeFor[one]()
	bucket := rpcqueue.Bucket{PerSecond: 1, Burst: 1}
	for name, c := range map[string]struct {
		m    Method
		want string
	}{
		"nothing said":                   {},
		"a stage":                        {m: Method{Queue: rpcqueue.Method{Stages: []loop.Stage{loop.PreUpdate, loop.PostLateUpdate}, Limit: bucket}}},
		"a check of any message":         {m: Method{Checks: []Check{{Option: "MinRole"}}}},
		"a check of the message":         {m: Method{Checks: []Check{{Option: "MinRole"}, {Option: "Validate", Message: message}}}},
		"a check of another":             {Method{Checks: []Check{{Option: "Validate", Message: reflect.TypeFor[two]()}}}, "Validate takes a schema.two, but the message is a schema.one"},
		"a limit that cannot be":         {Method{Queue: rpcqueue.Method{Limit: rpcqueue.Bucket{PerSecond: -1, Burst: 1}}}, "Limit: "},
		"a stage that is none":           {Method{Queue: rpcqueue.Method{Stages: []loop.Stage{9}}}, "AtStage(9)"},
		"a stage twice":                  {Method{Queue: rpcqueue.Method{Stages: []loop.Stage{loop.Update, loop.PreUpdate, loop.Update}}}, "AtStage names Update twice"},
		"an RPC of the server":           {m: Method{ServerOnly: true}},
		"a call of the server":           {Method{ServerOnly: true, Queue: rpcqueue.Method{Call: true, Reliable: true}}, "ServerOnly is for RPCs"},
		"an unreliable RPC":              {m: Method{}},
		"an unreliable call":             {Method{Queue: rpcqueue.Method{Call: true}}, "a call is always reliable"},
		"an RPC with a time for answers": {Method{Timeout: time.Second}, "Timeout is for calls"},
		"a call":                         {m: Method{Queue: rpcqueue.Method{Call: true, Reliable: true}}},
		"a call with a time of its own":  {m: Method{Timeout: time.Second, Queue: rpcqueue.Method{Call: true, Reliable: true}}},
	} {
		m := c.m
		err := m.Settle(message)
		if c.want != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
			continue
		}
		stages, timeout := c.m.Queue.Stages, c.m.Timeout
		if stages == nil {
			stages = []loop.Stage{loop.Update}
		}
		if c.m.Queue.Call && timeout == 0 {
			timeout = 10 * time.Second
		}
		if err != nil || !slices.Equal(m.Queue.Stages, stages) || m.Timeout != timeout {
			t.Errorf("%s: %v; it runs at %v and waits for %v", name, err, m.Queue.Stages, m.Timeout)
		}
	}
}
