package recording

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/internal/wire"
)

// maxDepth limits the nesting of a value. A value that refers to itself exceeds it and is rejected.
const maxDepth = 64

// ValueError names the part of a value that cannot be recorded, and the reason.
type ValueError struct {
	Path string // for instance Player.Conn
	Type reflect.Type
	Why  string
}

// Error describes the part and the reason.
func (e *ValueError) Error() string {
	return fmt.Sprintf("%s of type %v %s", e.Path, e.Type, e.Why)
}

// AppendValue appends the value that v, a pointer, points to: exactly, with unexported fields, and
// nil distinct from empty. A value that is bound to this process (a function, a channel, an
// interface with more than plain data) is a *ValueError. Two pointers to one value are decoded as
// pointers to two values.
//
//	bool         0, 1
//	int, uint    varint, zigzag for signed
//	float        its bits
//	string       length, bytes
//	slice, map   0 for nil, else length + 1, elements; a map's in the order of encoded keys
//	pointer      0 for nil, else 1, value
//	struct       its fields, also those that are not exported
//	any          a tag of the table below, value
//	proto        length, deterministic bytes
//	time.Time    length, MarshalBinary
//
// v may also be a protobuf message itself.
func AppendValue(dst []byte, v any) ([]byte, error) {
	e := encoder{b: dst}
	if _, ok := v.(proto.Message); ok {
		if err := e.proto(reflect.ValueOf(v)); err != nil {
			return dst, err
		}
		return e.b, nil
	}
	rv := reflect.ValueOf(v).Elem()
	if err := e.value(rv, 0); err != nil {
		err.Path = rv.Type().String() + err.Path
		return dst, err
	}
	return e.b, nil
}

// ReadValue decodes an encoded value into the zero value that v, a pointer, points to. It never
// panics, and the memory that it allocates is bounded by the size of the input.
func ReadValue(b []byte, v any) error {
	d := decoder{wire.NewReader(b)}
	if m, ok := v.(proto.Message); ok {
		if d.flag() {
			d.message(m)
		}
		return d.r.Done()
	}
	d.value(reflect.ValueOf(v).Elem(), 0)
	return d.r.Done()
}

var (
	timeType  = reflect.TypeFor[time.Time]()
	protoType = reflect.TypeFor[proto.Message]()
	bytesType = reflect.TypeFor[[]byte]()
)

// plain are the permitted types in an any; the tag is the position plus 1, so the order is part of
// the format.
var plain = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[string](), bytesType,
	reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](),
	reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](),
	reflect.TypeFor[time.Duration](), timeType,
	reflect.TypeFor[[]any](), reflect.TypeFor[[]string](), reflect.TypeFor[map[string]any](), reflect.TypeFor[map[string]string](),
}

// open returns the value as readable and settable, also for an unexported field. v must be
// addressable, as all values below a pointer are.
func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// copyOf returns an addressable copy of a value from a map or an interface.
func copyOf(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

type encoder struct{ b []byte }

func refuse(v reflect.Value, why string) *ValueError { return &ValueError{Type: v.Type(), Why: why} }

func within(err *ValueError, path string) *ValueError {
	err.Path = path + err.Path
	return err
}

func (e *encoder) value(v reflect.Value, depth int) *ValueError {
	if depth > maxDepth {
		return refuse(v, "is nested too deeply, or refers to itself")
	}
	switch t := v.Type(); {
	case t == timeType:
		b, err := v.Interface().(time.Time).MarshalBinary()
		if err != nil {
			return refuse(v, err.Error())
		}
		e.b = wire.AppendBytes(e.b, b)
		return nil
	case t == bytesType && !v.IsNil():
		e.b = append(wire.AppendUvarint(e.b, uint64(v.Len())+1), v.Bytes()...)
		return nil
	case t.Kind() == reflect.Pointer && t.Implements(protoType):
		return e.proto(v)
	}
	switch v.Kind() {
	case reflect.Bool:
		e.b = append(e.b, b2u(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.b = wire.AppendZigzag(e.b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.b = wire.AppendUvarint(e.b, v.Uint())
	case reflect.Float32:
		e.b = wire.AppendUint32(e.b, math.Float32bits(float32(v.Float())))
	case reflect.Float64:
		e.b = wire.AppendUint64(e.b, math.Float64bits(v.Float()))
	case reflect.String:
		e.b = wire.AppendString(e.b, v.String())
	default:
		return e.composite(v, depth)
	}
	return nil
}

func (e *encoder) composite(v reflect.Value, depth int) *ValueError {
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice {
			if v.IsNil() {
				e.b = append(e.b, 0)
				return nil
			}
			e.b = wire.AppendUvarint(e.b, uint64(v.Len())+1)
		}
		for i := range v.Len() {
			if err := e.value(v.Index(i), depth+1); err != nil {
				return within(err, fmt.Sprintf("[%d]", i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := e.value(open(v.Field(i)), depth+1); err != nil {
				return within(err, "."+v.Type().Field(i).Name)
			}
		}
	case reflect.Pointer:
		if v.IsNil() {
			e.b = append(e.b, 0)
			return nil
		}
		e.b = append(e.b, 1)
		return e.value(v.Elem(), depth+1)
	case reflect.Map:
		return e.dict(v, depth)
	case reflect.Interface:
		return e.dynamic(v, depth)
	default:
		return refuse(v, "refers to a resource of this process")
	}
	return nil
}

// dict writes a map in the order of its encoded keys, so that equal maps have equal bytes.
func (e *encoder) dict(v reflect.Value, depth int) *ValueError {
	if v.IsNil() {
		e.b = append(e.b, 0)
		return nil
	}
	var entries [][]byte
	for it := v.MapRange(); it.Next(); {
		one := encoder{}
		if err := one.value(copyOf(it.Key()), depth+1); err != nil {
			return within(err, "[key]")
		}
		if err := one.value(copyOf(it.Value()), depth+1); err != nil {
			return within(err, fmt.Sprintf("[%v]", it.Key()))
		}
		entries = append(entries, one.b)
	}
	slices.SortFunc(entries, bytes.Compare)
	e.b = wire.AppendUvarint(e.b, uint64(len(entries))+1)
	for _, b := range entries {
		e.b = append(e.b, b...)
	}
	return nil
}

func (e *encoder) dynamic(v reflect.Value, depth int) *ValueError {
	if v.IsNil() {
		e.b = append(e.b, 0)
		return nil
	}
	tag := slices.Index(plain, v.Elem().Type())
	if tag < 0 || v.Type().NumMethod() > 0 {
		return refuse(v.Elem(), "is not plain data, and its type cannot be restored")
	}
	e.b = wire.AppendUvarint(e.b, uint64(tag)+1)
	return e.value(copyOf(v.Elem()), depth+1)
}

func (e *encoder) proto(v reflect.Value) *ValueError {
	if v.IsNil() {
		e.b = append(e.b, 0)
		return nil
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(v.Interface().(proto.Message))
	if err != nil {
		return refuse(v, err.Error())
	}
	e.b = wire.AppendBytes(append(e.b, 1), b)
	return nil
}

func b2u(b bool) byte {
	if b {
		return 1
	}
	return 0
}
