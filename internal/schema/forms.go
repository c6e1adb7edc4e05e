package schema

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/rpcqueue"
)

// Forms describes the messages of a schema, for a page that makes forms of them.
type Forms struct {
	Methods []MethodForm `json:"methods"` // as declared
	// Input is the type of inputs, or nil.
	Input *TypeForm `json:"input"` // of a fixed step; null without inputs
	// Messages are the fields of the protobuf messages that occur, by their full names.
	Messages map[string][]ProtoForm `json:"messages"`
}

// MethodForm describes a method.
type MethodForm struct {
	Name       string      `json:"name"`        // as declared
	Call       bool        `json:"call"`        // it has an answer
	ServerOnly bool        `json:"server_only"` // clients may not send it
	Handled    bool        `json:"handled"`     // by the room
	Secret     bool        `json:"secret"`      // its messages are not shown
	Stages     []StageForm `json:"stages"`      // the default first
	Message    *TypeForm   `json:"message"`     // of the message
	Answer     *TypeForm   `json:"answer"`      // of a call
	Timeout    int64       `json:"timeout_ms"`  // of a call, in milliseconds
}

// StageForm is a stage by its name and its number on the wire.
type StageForm struct {
	Name   string `json:"name"`   // of the stage
	Number uint32 `json:"number"` // on the wire
}

// TypeForm describes a type.
type TypeForm struct {
	Kind   string      `json:"kind"`             // of codec.Kind
	Text   string      `json:"text"`             // the type text of docs/WIRE.md
	Max    int         `json:"max,omitempty"`    // limit, length or bits
	Of     string      `json:"of,omitempty"`     // of a protobuf message, its full name
	Elem   *TypeForm   `json:"elem,omitempty"`   // of a list or map
	Fields []FieldForm `json:"fields,omitempty"` // of a struct
}

// FieldForm is a field of a struct.
type FieldForm struct {
	Name string    `json:"name"` // of the field
	Type *TypeForm `json:"type"` // of the field
}

// ProtoForm is a field of a protobuf message, as the client's decoder reads it.
type ProtoForm struct {
	No       int      `json:"no"`                // number of the field
	Name     string   `json:"name"`              // of the field
	Kind     string   `json:"kind"`              // type of the field
	Repeated bool     `json:"repeated"`          // it is a list
	Optional bool     `json:"optional"`          // it may be absent
	Of       string   `json:"of"`                // full name of a message or enum
	Oneof    string   `json:"oneof,omitempty"`   // name of its oneof; left out without one
	Values   []string `json:"values,omitempty"`  // names of an enum, and their numbers
	Numbers  []int    `json:"numbers,omitempty"` // of the values
}

// Forms returns the description of the schema's messages, for a room that handles some methods.
func (s *Schema) Forms(handled func(*Method) bool) *Forms {
	f := &Forms{Methods: []MethodForm{}, Messages: map[string][]ProtoForm{}}
	for _, m := range s.methods {
		form := MethodForm{
			Name: m.Queue.Name, Call: m.Queue.Call, ServerOnly: m.ServerOnly, Handled: handled(m), Secret: m.Secret,
			Message: f.message(&m.In), Timeout: m.Timeout.Milliseconds(),
		}
		if m.Queue.Call {
			form.Answer = f.message(&m.Out)
		}
		for _, stage := range m.Queue.Stages {
			form.Stages = append(form.Stages, StageForm{stage.String(), rpcqueue.WireStage(stage)})
		}
		f.Methods = append(f.Methods, form)
	}
	if s.input != nil {
		f.Input = f.message(&s.input.codec)
	}
	return f
}

func (f *Forms) message(c *Codec) *TypeForm {
	if c.plan != nil {
		layout := c.plan.Layout()
		return f.typeOf(&layout)
	}
	f.proto(c.New().(proto.Message).ProtoReflect().Descriptor())
	return &TypeForm{Kind: codec.Proto.String(), Text: c.signature(), Of: c.Name}
}

func (f *Forms) typeOf(t *codec.Type) *TypeForm {
	form := &TypeForm{Kind: t.Kind.String(), Text: t.String(), Max: t.Max, Of: t.Proto}
	if t.Elem != nil {
		form.Elem = f.typeOf(t.Elem)
	}
	for i := range t.Fields {
		form.Fields = append(form.Fields, FieldForm{t.Fields[i].Name, f.typeOf(&t.Fields[i].Type)})
	}
	if m, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(t.Proto)); t.Proto != "" && err == nil {
		f.proto(m.Descriptor())
	}
	return form
}

// proto adds a protobuf message and its parts.
func (f *Forms) proto(d protoreflect.MessageDescriptor) {
	full := string(d.FullName())
	if _, known := f.Messages[full]; known {
		return
	}
	f.Messages[full] = nil // It may contain itself.
	fields := make([]ProtoForm, d.Fields().Len())
	for i := range fields {
		field := d.Fields().Get(i)
		fields[i] = protoForm(field)
		if field.Message() != nil {
			f.proto(field.Message())
		}
	}
	f.Messages[full] = fields
}

func protoForm(d protoreflect.FieldDescriptor) ProtoForm {
	p := ProtoForm{
		No: int(d.Number()), Name: d.JSONName(), Kind: d.Kind().String(),
		Repeated: d.IsList() || d.IsMap(), Optional: d.HasPresence(),
	}
	if m := d.Message(); m != nil {
		p.Kind, p.Of = "message", string(m.FullName())
	}
	if o := d.ContainingOneof(); o != nil && !o.IsSynthetic() {
		p.Oneof = string(o.Name())
	}
	if e := d.Enum(); e != nil {
		for i := range e.Values().Len() {
			v := e.Values().Get(i)
			p.Values, p.Numbers = append(p.Values, string(v.Name())), append(p.Numbers, int(v.Number()))
		}
	}
	return p
}
