package codec

import (
	"reflect"
	"time"
	"unsafe"
)

// Ref is a reference to a replicated object; 0 refers to nothing. The codec also recognises a
// struct whose only field is an unexported Ref.
type Ref struct{ ID uint64 }

// Instant is a point in game time. The codec also recognises a struct whose only field is an
// unexported Instant.
type Instant struct{ At time.Duration }

// FieldInfo describes one field for the class table and the fingerprint.
type FieldInfo struct{ Name, Type string }

// Plan is the compiled form of one struct type: immutable, shared by all goroutines.
type Plan struct{}

// Compile makes the plan of a struct type.
func Compile(t reflect.Type) (*Plan, error) { panic("not written") }

// Append appends a whole message.
func (p *Plan) Append(dst []byte, v unsafe.Pointer) ([]byte, error) { panic("not written") }

// Decode reads a whole message into v.
func (p *Plan) Decode(b []byte, v unsafe.Pointer) error { panic("not written") }

// Describe lists the fields.
func (p *Plan) Describe() []FieldInfo { panic("not written") }
