package netloop

import (
	"bytes"
	"fmt"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"

	"github.com/netloop/netloop/internal/rpcqueue"
)

// protocolVersion is the version of the wire protocol (docs/WIRE.md).
const protocolVersion = 1

// hello describes the schema to the other side.
func (s *Schema) hello() *netloopv1.Hello {
	return &netloopv1.Hello{
		Protocol:    protocolVersion,
		Schema:      s.name,
		Major:       uint32(s.major),
		Minor:       uint32(s.minor),
		Fingerprint: s.fingerprint[:],
		Tables:      s.tables(),
	}
}

// tables lists the declarations in the order of their ids.
func (s *Schema) tables() *netloopv1.SchemaTables {
	t := new(netloopv1.SchemaTables)
	for _, c := range s.classes {
		class := &netloopv1.ClassTable{Name: c.nv.Name()}
		for _, f := range c.nv.Describe() {
			class.Fields = append(class.Fields, &netloopv1.FieldTable{Name: f.Name, Type: f.Type})
		}
		t.Classes = append(t.Classes, class)
	}
	for _, m := range s.methods {
		method := &netloopv1.MethodTable{
			Name: m.rq.Name, Kind: netloopv1.MethodKind_METHOD_KIND_RPC, Reliable: m.rq.Reliable, Message: m.in.signature(),
		}
		if m.rq.Call {
			method.Kind, method.Reply = netloopv1.MethodKind_METHOD_KIND_CALL, m.out.signature()
		}
		for _, stage := range m.rq.Stages {
			method.Stages = append(method.Stages, netloopv1.Stage(rpcqueue.WireStage(stage)))
		}
		t.Methods = append(t.Methods, method)
	}
	return t
}

// accepts reports why a client with this hello cannot play on this schema.
func (s *Schema) accepts(h *netloopv1.Hello) error {
	switch {
	case h.GetProtocol() != protocolVersion:
		return Refuse(CodeBadVersion, "the server speaks protocol version %d, the client %d", protocolVersion, h.GetProtocol())
	case h.GetSchema() != s.name:
		return Refuse(CodeSchemaMismatch, "the server runs %q, the client %q", s.name, h.GetSchema())
	case h.GetMajor() != uint32(s.major):
		return Refuse(CodeSchemaMismatch, "the server runs major version %d of %q, the client %d", s.major, s.name, h.GetMajor())
	case !bytes.Equal(h.GetFingerprint(), s.fingerprint[:]):
		return Refuse(CodeSchemaMismatch, "schema %q differs: %s", s.name, difference(s.tables(), h.GetTables()))
	}
	return nil
}

// difference names the first thing in which two tables differ.
func difference(here, there *netloopv1.SchemaTables) string {
	if there == nil {
		return "the client did not say in what"
	}
	for i, c := range here.GetClasses() {
		if i >= len(there.GetClasses()) {
			return fmt.Sprintf("the client lacks class %q", c.GetName())
		}
		if d := classDifference(c, there.GetClasses()[i]); d != "" {
			return d
		}
	}
	if n := len(here.GetClasses()); len(there.GetClasses()) > n {
		return fmt.Sprintf("the server lacks class %q", there.GetClasses()[n].GetName())
	}
	for i, m := range here.GetMethods() {
		if i >= len(there.GetMethods()) {
			return fmt.Sprintf("the client lacks method %q", m.GetName())
		}
		if other := there.GetMethods()[i]; m.String() != other.String() {
			return fmt.Sprintf("method %q of the server is not method %q of the client", m.GetName(), other.GetName())
		}
	}
	if n := len(here.GetMethods()); len(there.GetMethods()) > n {
		return fmt.Sprintf("the server lacks method %q", there.GetMethods()[n].GetName())
	}
	return "the fingerprints were made by different rules"
}

func classDifference(here, there *netloopv1.ClassTable) string {
	if here.GetName() != there.GetName() {
		return fmt.Sprintf("class %q of the server is class %q of the client", here.GetName(), there.GetName())
	}
	for i, f := range here.GetFields() {
		if i >= len(there.GetFields()) {
			return fmt.Sprintf("class %q: the client lacks field %s", here.GetName(), f.GetName())
		}
		g := there.GetFields()[i]
		if f.GetName() != g.GetName() || f.GetType() != g.GetType() {
			return fmt.Sprintf("class %q: field %s is %s on the server, but %s %s on the client", here.GetName(), f.GetName(), f.GetType(), g.GetName(), g.GetType())
		}
	}
	if n := len(here.GetFields()); len(there.GetFields()) > n {
		return fmt.Sprintf("class %q: the server lacks field %s", here.GetName(), there.GetFields()[n].GetName())
	}
	return ""
}
