package schema

import (
	"bytes"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// ProtocolVersion is the version of the wire protocol (docs/WIRE.md).
const ProtocolVersion = 1

// Hello describes the schema to the other side.
func (s *Schema) Hello() *netloopv1.Hello {
	return &netloopv1.Hello{
		Protocol:    ProtocolVersion,
		Schema:      s.Name,
		Major:       uint32(s.Major),
		Minor:       uint32(s.Minor),
		Fingerprint: s.fingerprint[:],
	}
}

// tables lists the declarations in the order of their ids.
func (s *Schema) tables() *netloopv1.SchemaTables {
	t := new(netloopv1.SchemaTables)
	for _, c := range s.classes {
		layout := c.Layout()
		t.Classes = append(t.Classes, &netloopv1.ClassTable{Name: c.Name(), Fields: tableOf(&layout).GetFields()})
	}
	for _, m := range s.methods {
		method := &netloopv1.MethodTable{
			Name: m.Queue.Name, Kind: netloopv1.MethodKind_METHOD_KIND_RPC, Reliable: m.Queue.Reliable, Message: m.In.table(),
		}
		if m.Queue.Call {
			method.Kind, method.Reply = netloopv1.MethodKind_METHOD_KIND_CALL, m.Out.table()
		}
		for _, stage := range m.Queue.Stages {
			method.Stages = append(method.Stages, netloopv1.Stage(rpcqueue.WireStage(stage)))
		}
		t.Methods = append(t.Methods, method)
	}
	if s.input != nil {
		t.Input = s.input.codec.table()
	}
	return t
}

// Accepts returns why a client with this hello cannot play on this schema: the error is a
// *transport.Refusal.
func (s *Schema) Accepts(h *netloopv1.Hello) error {
	switch {
	case h.GetProtocol() != ProtocolVersion:
		return transport.Refuse(transport.CodeBadVersion, "server has protocol version %d, client %d", ProtocolVersion, h.GetProtocol())
	case h.GetSchema() != s.Name:
		return transport.Refuse(transport.CodeSchemaMismatch, "server has schema %q, client %q", s.Name, h.GetSchema())
	case h.GetMajor() != uint32(s.Major):
		return transport.Refuse(transport.CodeSchemaMismatch, "server has major version %d of %q, client %d", s.Major, s.Name, h.GetMajor())
	}
	return nil
}

// TablesFor returns the frames that a client needs before it can play on this schema: none for a
// client with the same fingerprint.
func (s *Schema) TablesFor(h *netloopv1.Hello) []byte {
	if bytes.Equal(h.GetFingerprint(), s.fingerprint[:]) {
		return nil
	}
	return s.frames
}

// table describes the message's type.
func (c *Codec) table() *netloopv1.Type {
	if c.plan == nil {
		return &netloopv1.Type{Kind: netloopv1.TypeKind_TYPE_KIND_PROTO, Proto: c.Name}
	}
	layout := c.plan.Layout()
	return tableOf(&layout)
}

// wireKinds are the kinds on the wire, by codec.Kind. Quant32 and Quant64 have the wire kinds of
// Float32 and Float64: only they have a step.
var wireKinds = [...]netloopv1.TypeKind{
	codec.Bool:        netloopv1.TypeKind_TYPE_KIND_BOOL,
	codec.Int8:        netloopv1.TypeKind_TYPE_KIND_INT8,
	codec.Int16:       netloopv1.TypeKind_TYPE_KIND_INT16,
	codec.Int32:       netloopv1.TypeKind_TYPE_KIND_INT32,
	codec.Int64:       netloopv1.TypeKind_TYPE_KIND_INT64,
	codec.Uint8:       netloopv1.TypeKind_TYPE_KIND_UINT8,
	codec.Uint16:      netloopv1.TypeKind_TYPE_KIND_UINT16,
	codec.Uint32:      netloopv1.TypeKind_TYPE_KIND_UINT32,
	codec.Uint64:      netloopv1.TypeKind_TYPE_KIND_UINT64,
	codec.Float32:     netloopv1.TypeKind_TYPE_KIND_FLOAT32,
	codec.Float64:     netloopv1.TypeKind_TYPE_KIND_FLOAT64,
	codec.Quant32:     netloopv1.TypeKind_TYPE_KIND_FLOAT32,
	codec.Quant64:     netloopv1.TypeKind_TYPE_KIND_FLOAT64,
	codec.Range32:     netloopv1.TypeKind_TYPE_KIND_RANGE32,
	codec.Range64:     netloopv1.TypeKind_TYPE_KIND_RANGE64,
	codec.Quat:        netloopv1.TypeKind_TYPE_KIND_QUAT,
	codec.RefKind:     netloopv1.TypeKind_TYPE_KIND_REF,
	codec.InstantKind: netloopv1.TypeKind_TYPE_KIND_INSTANT,
	codec.String:      netloopv1.TypeKind_TYPE_KIND_STRING,
	codec.Bytes:       netloopv1.TypeKind_TYPE_KIND_BYTES,
	codec.ByteArray:   netloopv1.TypeKind_TYPE_KIND_BYTE_ARRAY,
	codec.Array:       netloopv1.TypeKind_TYPE_KIND_ARRAY,
	codec.Slice:       netloopv1.TypeKind_TYPE_KIND_SLICE,
	codec.Map:         netloopv1.TypeKind_TYPE_KIND_MAP,
	codec.Proto:       netloopv1.TypeKind_TYPE_KIND_PROTO,
	codec.Struct:      netloopv1.TypeKind_TYPE_KIND_STRUCT,
}

// tableOf describes a type to the other side.
func tableOf(t *codec.Type) *netloopv1.Type {
	w := &netloopv1.Type{Kind: wireKinds[t.Kind], Max: uint32(t.Max), StepNum: t.Num, StepDen: t.Den, Low: t.Low, High: t.High, Proto: t.Proto}
	if t.Elem != nil {
		w.Element = tableOf(t.Elem)
	}
	for i := range t.Fields {
		f := &t.Fields[i]
		w.Fields = append(w.Fields, &netloopv1.FieldTable{Name: f.Name, Type: tableOf(&f.Type)})
	}
	return w
}

// typeOf is the inverse of tableOf. An invalid kind becomes codec.Invalid; other errors are found
// when the type is bound.
func typeOf(w *netloopv1.Type) codec.Type {
	t := codec.Type{Num: w.GetStepNum(), Den: w.GetStepDen(), Low: w.GetLow(), High: w.GetHigh(), Proto: w.GetProto(), Max: int(w.GetMax())}
	for k, wire := range wireKinds {
		if codec.Kind(k).Steps() == (t.Den != 0) && wire == w.GetKind() {
			t.Kind = codec.Kind(k)
			break
		}
	}
	if w.GetElement() != nil {
		e := typeOf(w.GetElement())
		t.Elem = &e
	}
	t.Fields = fieldsOf(w.GetFields())
	return t
}

func fieldsOf(w []*netloopv1.FieldTable) (fields []codec.Field) {
	for _, f := range w {
		fields = append(fields, codec.Field{Name: f.GetName(), Type: typeOf(f.GetType())})
	}
	return fields
}
