package recording

import (
	"errors"
	"math"
	"reflect"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/internal/wire"
)

// The errors of a value that AppendValue cannot have written.
var (
	errDepth = errors.New("value is nested too deeply")
	errRange = errors.New("number does not fit its field")
	errTag   = errors.New("unknown tag")
)

type decoder struct{ r wire.Reader }

func (d *decoder) value(v reflect.Value, depth int) {
	if depth > maxDepth {
		d.r.Fail(errDepth) // After this the reader returns zeros, and the value ends.
	}
	switch t := v.Type(); {
	case t == timeType:
		var at time.Time
		if err := at.UnmarshalBinary(d.r.Block(MaxRecord)); err != nil {
			d.r.Fail(err)
		}
		v.Set(reflect.ValueOf(at))
		return
	case t == bytesType:
		if n, ok := d.length(); ok {
			v.SetBytes(append([]byte{}, d.r.Bytes(n)...))
		}
		return
	case t.Kind() == reflect.Pointer && t.Implements(protoType):
		d.proto(v)
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.flag())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.signed(v)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.unsigned(v)
	case reflect.Float32:
		v.SetFloat(float64(math.Float32frombits(d.r.Uint32())))
	case reflect.Float64:
		v.SetFloat(math.Float64frombits(d.r.Uint64()))
	case reflect.String:
		v.SetString(string(d.r.Block(MaxRecord)))
	default:
		d.composite(v, depth)
	}
}

func (d *decoder) flag() bool {
	b := d.r.Byte()
	if b > 1 {
		d.r.Fail(errTag)
	}
	return b == 1
}

func (d *decoder) signed(v reflect.Value) {
	n := d.r.Zigzag()
	if v.OverflowInt(n) {
		d.r.Fail(errRange)
	}
	v.SetInt(n)
}

func (d *decoder) unsigned(v reflect.Value) {
	n := d.r.Uvarint()
	if v.OverflowUint(n) {
		d.r.Fail(errRange)
	}
	v.SetUint(n)
}

// length decodes the length of a slice or a map; it reports false for nil.
func (d *decoder) length() (int, bool) {
	n := d.r.Uvarint()
	if n == 0 || d.r.Err() != nil {
		return 0, false
	}
	if n--; n > MaxRecord {
		d.r.Fail(wire.ErrShort)
		return 0, false
	}
	return int(n), true
}

func (d *decoder) composite(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Slice:
		d.slice(v, depth)
	case reflect.Array:
		for i := range v.Len() {
			d.value(v.Index(i), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			d.value(open(v.Field(i)), depth+1)
		}
	case reflect.Pointer:
		if d.flag() {
			v.Set(reflect.New(v.Type().Elem()))
			d.value(v.Elem(), depth+1)
		}
	case reflect.Map:
		d.dict(v, depth)
	case reflect.Interface:
		d.dynamic(v, depth)
	default:
		d.r.Fail(errTag)
	}
}

// slice decodes a slice element by element, because its length is not trusted.
func (d *decoder) slice(v reflect.Value, depth int) {
	n, ok := d.length()
	if !ok {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for i := 0; i < n && d.r.Err() == nil; i++ {
		v.Grow(1)
		v.SetLen(i + 1)
		d.value(v.Index(i), depth+1)
	}
}

func (d *decoder) dict(v reflect.Value, depth int) {
	n, ok := d.length()
	if !ok {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i < n && d.r.Err() == nil; i++ {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		d.value(key, depth+1)
		d.value(value, depth+1)
		switch {
		case d.r.Err() != nil:
		case !key.Comparable(): // A damaged any may hold a slice, which is not a valid key.
			d.r.Fail(errTag)
		default:
			v.SetMapIndex(key, value)
		}
	}
}

func (d *decoder) dynamic(v reflect.Value, depth int) {
	tag := d.r.Uvarint()
	switch {
	case tag == 0:
		return
	case tag > uint64(len(plain)) || v.Type().NumMethod() > 0:
		d.r.Fail(errTag)
		return
	}
	held := reflect.New(plain[tag-1]).Elem()
	d.value(held, depth+1)
	v.Set(held)
}

func (d *decoder) proto(v reflect.Value) {
	if d.flag() {
		m := reflect.New(v.Type().Elem())
		d.message(m.Interface().(proto.Message))
		v.Set(m)
	}
}

// protoDepth limits the nesting of a protobuf message, as for messages of the network.
const protoDepth = 32

func (d *decoder) message(m proto.Message) {
	if err := (proto.UnmarshalOptions{RecursionLimit: protoDepth}).Unmarshal(d.r.Block(MaxRecord), m); err != nil {
		d.r.Fail(err)
	}
}
