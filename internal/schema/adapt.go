package schema

import (
	"errors"
	"fmt"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// A client adapts to its server: the server only uses its own schema, and the client reads and
// writes the layouts of the server's schema. This file matches the server's tables with the schema
// of this side, by names.

// adapter holds a client's schema while it is matched with a server's.
type adapter struct {
	schema *Schema
	budget codec.Budget
}

// Foreign is the schema of a server of another build, matched with the schema of this client.
type Foreign struct {
	classes *state.Table
	methods []foreignMethod  // in the order of the server's ids
	byOwn   []*foreignMethod // in the order of this side's ids; nil: the server has none
	input   *InputCodec      // nil: one side has no input
}

// foreignMethod is a method of the server.
type foreignMethod struct {
	id      uint32  // the server's id
	own     *Method // nil: this side has no method of that name
	in, out Codec
}

// Adapt matches the tables of a server with the schema. A mismatch is a *transport.Refusal that
// names it; invalid tables are a *transport.Closed.
func (s *Schema) Adapt(t *netloopv1.SchemaTables) (*Foreign, error) {
	if len(t.GetClasses())+len(t.GetMethods()) > maxDeclarations {
		return nil, unsound(fmt.Errorf("more than %d classes and methods", maxDeclarations))
	}
	a := adapter{schema: s}
	classes, err := a.classes(t.GetClasses())
	if err != nil {
		return nil, err
	}
	f := &Foreign{classes: classes, methods: make([]foreignMethod, len(t.GetMethods())), byOwn: make([]*foreignMethod, len(s.methods))}
	seen := make(map[string]bool, len(f.methods))
	for i, table := range t.GetMethods() {
		m := &f.methods[i]
		m.id = uint32(i) + 1
		if err := checkName(seen, table.GetName()); err != nil {
			return nil, err
		}
		if err := a.method(m, table); err != nil {
			return nil, err
		}
		if m.own != nil {
			f.byOwn[m.own.Queue.ID-1] = m
		}
	}
	if s.input != nil && t.GetInput() != nil {
		c, err := a.input(t.GetInput())
		if err != nil {
			return nil, err
		}
		f.input = c
	}
	return f, nil
}

// unsound returns the error of invalid tables, which no netloop server sends.
func unsound(err error) error {
	return &transport.Closed{Code: transport.CodeProtocol, Text: "server's schema is malformed: " + err.Error()}
}

// checkName returns an error for a name that is empty, too long or already seen, and adds other
// names to seen.
func checkName(seen map[string]bool, name string) error {
	if name == "" || len(name) > MaxName || seen[name] {
		return unsound(fmt.Errorf("name %.*q is invalid or repeated", MaxName, name))
	}
	seen[name] = true
	return nil
}

// mismatch returns the error of a difference between the two sides.
func mismatch(format string, a ...any) error {
	return transport.Refuse(transport.CodeSchemaMismatch, format, a...)
}

// classes binds the server's classes to the classes of this side.
func (a *adapter) classes(tables []*netloopv1.ClassTable) (*state.Table, error) {
	own := make(map[string]*state.Class, len(a.schema.classes))
	for _, c := range a.schema.classes {
		own[c.Name()] = c
	}
	seen := make(map[string]bool, len(tables))
	bound := make([]*state.Class, len(tables))
	for i, table := range tables {
		name := table.GetName()
		if err := checkName(seen, name); err != nil {
			return nil, err
		}
		layout := codec.Type{Kind: codec.Struct, Fields: fieldsOf(table.GetFields())}
		c, err := state.BindClass(name, own[name], layout, &a.budget)
		if m, ok := errors.AsType[*codec.Mismatch](err); ok {
			return nil, mismatch("class %q: field %s is %s on the server, but %s on the client", name, m.Field, m.There, m.Here)
		}
		if err != nil {
			return nil, unsound(fmt.Errorf("class %q: %w", name, err))
		}
		bound[i] = c
	}
	return state.NewTable(bound...), nil
}

// method matches one method of the server.
func (a *adapter) method(m *foreignMethod, table *netloopv1.MethodTable) error {
	own, ok := a.schema.rpcs.ByName(table.GetName())
	if !ok {
		return nil
	}
	m.own = a.schema.methods[own.ID-1]
	if call := table.GetKind() == netloopv1.MethodKind_METHOD_KIND_CALL; call != own.Call {
		return mismatch("method %q is %s on the server, but %s on the client", own.Name, kindText(call), kindText(own.Call))
	}
	var err error
	method := fmt.Sprintf("method %q: ", own.Name)
	if m.in, err = a.message(method, "its message", &m.own.In, table.GetMessage()); err != nil || !own.Call {
		return err
	}
	m.out, err = a.message(method, "its answer", &m.own.Out, table.GetReply())
	return err
}

// input binds the server's input. An input over the size limit is cut when it is sent.
func (a *adapter) input(t *netloopv1.Type) (*InputCodec, error) {
	bound, err := a.message("", "the input", &a.schema.input.codec, t)
	if err != nil {
		return nil, err
	}
	c := newInputCodec(bound)
	return &c, nil
}

func kindText(call bool) string {
	if call {
		return "a call"
	}
	return "an RPC"
}

// message returns the codec of a message or an answer of this side in the server's layout t.
func (a *adapter) message(of, what string, own *Codec, t *netloopv1.Type) (Codec, error) {
	if there, here := typeText(t), typeText(own.table()); own.plan == nil || t.GetKind() == netloopv1.TypeKind_TYPE_KIND_PROTO {
		if there != here {
			return Codec{}, mismatch("%s%s is %s on the server, but %s on the client", of, what, there, here)
		}
		return *own, nil
	}
	bound, err := own.bind(typeOf(t), &a.budget)
	var m *codec.Mismatch
	switch {
	case errors.As(err, &m):
		return Codec{}, mismatch("%sfield %s of %s is %s on the server, but %s on the client", of, m.Field, what, m.There, m.Here)
	case err != nil:
		return Codec{}, unsound(fmt.Errorf("%s%w", of, err))
	case bound.plan.MinSize() > transport.MaxPayload:
		return Codec{}, unsound(fmt.Errorf("%sa message of at least %d bytes", of, bound.plan.MinSize()))
	}
	return bound, nil
}

// typeText returns the text of a type for people.
func typeText(t *netloopv1.Type) string {
	if t.GetKind() == netloopv1.TypeKind_TYPE_KIND_PROTO {
		return "proto " + t.GetProto()
	}
	layout := typeOf(t)
	return layout.String()
}

// ForeignMethod is the encoding of a method for a server of another build.
type ForeignMethod struct {
	ID     uint32 // the server's id
	Append func(dst []byte, m any) ([]byte, error)
}

// Method finds a method by this side's id. It reports false if the server does not have it.
func (f *Foreign) Method(own uint32) (ForeignMethod, bool) {
	m := f.byOwn[own-1]
	if m == nil {
		return ForeignMethod{}, false
	}
	return ForeignMethod{ID: m.id, Append: m.in.Append}, true
}

// Input returns the encoding of this side's input for the server, or nil if one side has none.
func (f *Foreign) Input() *InputCodec { return f.input }

// Classes returns the server's classes, bound to the classes of this side.
func (f *Foreign) Classes() *state.Table { return f.classes }
