package netloop

import (
	"errors"
	"fmt"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// A client adapts to its server: the server speaks its own schema alone, and the
// client reads and writes that one. Here the server's tables are matched with the
// schema of this side, by names.

// adapter is a client's schema while it is matched with a server's.
type adapter struct {
	schema *Schema
	budget codec.Budget
}

// foreign is a server's schema as a client with another one sees it.
type foreign struct {
	classes *netvar.Table
	methods []foreignMethod  // in the order of the server's ids
	byOwn   []*foreignMethod // in the order of this side's ids; nil: the server has none
}

// foreignMethod is a method of the server's.
type foreignMethod struct {
	id      uint32  // the server's
	own     *method // nil: this side has none of that name
	in, out messageCodec
}

// adapt matches the tables of a server with the schema. The error of what cannot be
// matched is a *transport.Refusal that names it, that of tables which make no sense a
// *transport.Closed.
func (s *Schema) adapt(t *netloopv1.SchemaTables) (*foreign, error) {
	if len(t.GetClasses())+len(t.GetMethods()) > maxDeclarations {
		return nil, unsound(fmt.Errorf("more than %d classes and methods", maxDeclarations))
	}
	a := adapter{schema: s}
	classes, err := a.classes(t.GetClasses())
	if err != nil {
		return nil, err
	}
	f := &foreign{classes: classes, methods: make([]foreignMethod, len(t.GetMethods())), byOwn: make([]*foreignMethod, len(s.methods))}
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
			f.byOwn[m.own.rq.ID-1] = m
		}
	}
	return f, nil
}

// unsound is the error of tables that no server of ours sends.
func unsound(err error) error {
	return &transport.Closed{Code: transport.CodeProtocol, Text: "the server's tables make no sense: " + err.Error()}
}

// checkName refuses names that a schema cannot have.
func checkName(seen map[string]bool, name string) error {
	if name == "" || len(name) > maxName || seen[name] {
		return unsound(fmt.Errorf("the name %.*q, or two of them", maxName, name))
	}
	seen[name] = true
	return nil
}

// mismatch is the error of one thing that is not the same on both sides.
func mismatch(format string, a ...any) error {
	return &transport.Refusal{Code: CodeSchemaMismatch, Text: fmt.Sprintf(format, a...)}
}

// classes binds the server's classes to those of this side.
func (a *adapter) classes(tables []*netloopv1.ClassTable) (*netvar.Table, error) {
	own := make(map[string]*netvar.Class, len(a.schema.classes))
	for _, c := range a.schema.classes {
		own[c.nv.Name()] = c.nv
	}
	seen := make(map[string]bool, len(tables))
	bound := make([]*netvar.Class, len(tables))
	for i, table := range tables {
		name := table.GetName()
		if err := checkName(seen, name); err != nil {
			return nil, err
		}
		layout := codec.Type{Kind: codec.Struct, Fields: fieldsOf(table.GetFields())}
		c, err := netvar.BindClass(name, own[name], layout, &a.budget)
		var m *codec.Mismatch
		if errors.As(err, &m) {
			return nil, mismatch("class %q: field %s is %s on the server, but %s on the client", name, m.Field, m.There, m.Here)
		}
		if err != nil {
			return nil, unsound(fmt.Errorf("class %q: %w", name, err))
		}
		bound[i] = c
	}
	return netvar.NewTable(bound...), nil
}

// method matches one method of the server's.
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
	if m.in, err = a.message(own.Name, "message", &m.own.in, table.GetMessage()); err != nil || !own.Call {
		return err
	}
	m.out, err = a.message(own.Name, "answer", &m.own.out, table.GetReply())
	return err
}

func kindText(call bool) string {
	if call {
		return "a call"
	}
	return "an RPC"
}

// message binds the type of a message, or of an answer.
func (a *adapter) message(method, what string, own *messageCodec, t *netloopv1.Type) (messageCodec, error) {
	if there, here := typeText(t), typeText(own.table()); own.plan == nil || t.GetKind() == netloopv1.TypeKind_TYPE_KIND_PROTO {
		if there != here {
			return messageCodec{}, mismatch("method %q: its %s is %s on the server, but %s on the client", method, what, there, here)
		}
		return *own, nil
	}
	bound, err := own.bind(typeOf(t), &a.budget)
	var m *codec.Mismatch
	switch {
	case errors.As(err, &m):
		return messageCodec{}, mismatch("method %q: field %s of its %s is %s on the server, but %s on the client", method, m.Field, what, m.There, m.Here)
	case err != nil:
		return messageCodec{}, unsound(fmt.Errorf("method %q: %w", method, err))
	case bound.plan.MinSize() > transport.MaxPayload:
		return messageCodec{}, unsound(fmt.Errorf("method %q: a message of at least %d bytes", method, bound.plan.MinSize()))
	}
	return bound, nil
}

// typeText is the text of a type for people.
func typeText(t *netloopv1.Type) string {
	if t.GetKind() == netloopv1.TypeKind_TYPE_KIND_PROTO {
		return "proto " + t.GetProto()
	}
	layout := typeOf(t)
	return layout.String()
}

// decode is Schema.decodeOnClient for what such a server sends: it decodes, and puts
// the method's id on this side in place of the server's. A method that this side has
// not becomes 0, which no method has.
func (f *foreign) decode(m *transport.Message) (any, error) {
	if m.Method == 0 || uint64(m.Method) > uint64(len(f.methods)) || f.methods[m.Method-1].own == nil {
		return nil, ignored(m)
	}
	method := &f.methods[m.Method-1]
	m.Method = method.own.rq.ID
	return decodeFromServer(m, method.own, &method.in, &method.out)
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

// inside opens the foreign schema for package client.
func (f *foreign) inside() *inside.Foreign {
	return &inside.Foreign{
		Classes: f.classes,
		Decode:  f.decode,
		Method: func(own uint32) (inside.ForeignMethod, bool) {
			m := f.byOwn[own-1]
			if m == nil {
				return inside.ForeignMethod{}, false
			}
			return inside.ForeignMethod{ID: m.id, Append: m.in.append}, true
		},
	}
}
