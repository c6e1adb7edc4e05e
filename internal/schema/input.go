package schema

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/input"
)

// Input is the input of clients for each fixed step, with its type erased. A schema has at most
// one.
type Input struct {
	Schema *Schema
	InputCodec
}

// InputCodec encodes inputs, in the layout of this side or of another.
type InputCodec struct {
	codec Codec
	form  *input.Form
}

// AddInput declares the input. It panics if the schema already has an input, or if 16 inputs do not
// fit a datagram.
func (s *Schema) AddInput(c Codec) *Input {
	if s.input != nil {
		panic(fmt.Sprintf("netloop: NewInput: schema %q already has an input: use one struct for all actions", s.Name))
	}
	s.Claim("input", "input")
	if c.plan != nil {
		if size, largest := c.plan.MaxSize(); size > input.MaxSize {
			panic(fmt.Sprintf("netloop: NewInput: input has up to %d bytes, most of them in %s, more than %d: a datagram repeats up to %d inputs: use quant, range and max, or an RPC for rare actions",
				size, largest, input.MaxSize, input.MinRepeats))
		}
	}
	s.input = &Input{Schema: s, InputCodec: newInputCodec(c)}
	return s.input
}

// Input returns the declared input, or nil.
func (s *Schema) Input() *Input { return s.input }

func newInputCodec(c Codec) InputCodec {
	return InputCodec{c, input.NewForm(c.plan, func(b []byte) error { _, err := c.Decode(b); return err })}
}

// Form returns the form of inputs.
func (c *InputCodec) Form() *input.Form { return c.form }

// JSON returns an input in the form of a message as JSON: see Codec.
func (c *InputCodec) JSON(message []byte) ([]byte, error) { return c.codec.JSON(message) }

// Belongs returns an error for an input of another schema.
func (i *Input) Belongs(room *Schema) error {
	if i.Schema == room {
		return nil
	}
	return fmt.Errorf("Input.Handle: the input belongs to schema %q, but the room runs schema %q", i.Schema.Name, room.Name)
}

var errInputSize = errors.New("a protobuf message as an input has at most 48 bytes")

// CaptureInput stores an input in wire precision. A value that does not fit a plain struct is cut,
// as in replicated state; a protobuf message that is too large is an error.
func CaptureInput[M any](c *InputCodec, m *M, to *codec.Values) error {
	if c.codec.plan != nil {
		c.codec.plan.Capture(unsafe.Pointer(m), to)
		return nil
	}
	b, err := c.codec.Append(to.Blobs[0][:0], any(*m))
	if err != nil {
		return err
	}
	if len(b) > input.MaxSize {
		return errInputSize
	}
	to.Blobs[0] = b
	return nil
}

// ReadInput decodes the input from its message. It decodes a plain struct into scratch, so that it
// allocates memory only for strings, slices and a protobuf message.
func ReadInput[M any](c *InputCodec, message []byte, scratch *M) (m M, err error) {
	if c.codec.plan == nil {
		decoded, err := c.codec.Decode(message)
		if err != nil {
			return m, err
		}
		return decoded.(M), nil
	}
	err = c.codec.plan.Decode(message, unsafe.Pointer(scratch))
	return *scratch, err
}

// OpenInput decodes the input from its values. It decodes a plain struct into scratch, so that it
// allocates memory only for strings, slices and a protobuf message.
func OpenInput[M any](c *InputCodec, v *codec.Values, scratch *M) (m M, err error) {
	if c.codec.plan == nil {
		decoded, err := c.codec.Decode(v.Blobs[0])
		if err != nil {
			return m, err
		}
		return decoded.(M), nil
	}
	c.codec.plan.Restore(unsafe.Pointer(scratch), v, nil)
	return *scratch, nil
}
