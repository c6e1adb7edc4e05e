package schema

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"sync"

	"google.golang.org/protobuf/proto"
)

// Parcel is a value passed from one goroutine to another within a program, or into a recording,
// encoded as a message: opening it gives a copy. It begins with a digest of its type, so that it
// cannot be opened as another type. The empty Parcel holds nil.
type Parcel string

// parcelHead is the length of the digest.
const parcelHead = 8

// parcelType encodes values of a type.
type parcelType struct {
	head [parcelHead]byte
	Codec
	err error
}

// parcelTypes contains a *parcelType of each type that was ever packed or opened: types are the
// program's own, so they are few.
var parcelTypes sync.Map

// parcelTypeOf looks up a struct type, or a pointer to a protobuf message.
func parcelTypeOf(t reflect.Type) *parcelType {
	if known, ok := parcelTypes.Load(t); ok {
		return known.(*parcelType)
	}
	p := new(parcelType)
	if p.Codec, p.err = codecOf(t); p.err != nil {
		p.err = fmt.Errorf("%v: %w", t, p.err)
	} else {
		h := fnv.New64a()
		h.Write([]byte(p.signature())) // Never fails.
		binary.BigEndian.PutUint64(p.head[:], h.Sum64())
	}
	known, _ := parcelTypes.LoadOrStore(t, p)
	return known.(*parcelType)
}

// Packable returns why values of a type cannot be packed, or nil.
func Packable(t reflect.Type) error { return parcelTypeOf(t).err }

// packedType returns the type by which a value is packed: for a pointer to a struct the struct.
func packedType(v any) reflect.Type {
	t := reflect.TypeOf(v)
	if _, message := v.(proto.Message); !message && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// OpenLike opens a parcel packed from a value of the type of v.
func (p Parcel) OpenLike(v any) any {
	opened, _, err := p.OpenAs(packedType(v))
	if err != nil {
		panic(err) // It was packed.
	}
	return opened
}

// Pack encodes a struct, a pointer to one, or a protobuf message.
func Pack(v any) (Parcel, error) {
	if v == nil {
		return "", nil
	}
	t, rv := packedType(v), reflect.ValueOf(v)
	switch {
	case rv.Kind() != reflect.Pointer:
		at := reflect.New(t)
		at.Elem().Set(rv)
		v = at.Interface()
	case rv.IsNil():
		return "", errors.New("it is a nil pointer")
	}
	p := parcelTypeOf(t)
	if p.err != nil {
		return "", p.err
	}
	b, err := p.Append(p.head[:], v)
	if err != nil {
		return "", fmt.Errorf("%v: %w", t, err)
	}
	return Parcel(b), nil
}

// OpenAs decodes a parcel of a type: a struct, or a pointer to a protobuf message. The result is a
// pointer to the struct, or the message. It reports false for a parcel of another type. It returns
// an error for a type that cannot be packed, and for a damaged recording.
func (p Parcel) OpenAs(t reflect.Type) (v any, ok bool, err error) {
	typ := parcelTypeOf(t)
	if typ.err != nil {
		return nil, false, typ.err
	}
	if len(p) < parcelHead || string(p[:parcelHead]) != string(typ.head[:]) {
		return nil, false, nil
	}
	v, err = typ.Decode([]byte(p[parcelHead:]))
	return v, err == nil, err
}

// Into opens a parcel into the value at dst.
func (p Parcel) Into(dst any) error {
	t := reflect.TypeOf(dst)
	message, isMessage := dst.(proto.Message)
	switch {
	case t == nil || t.Kind() != reflect.Pointer || reflect.ValueOf(dst).IsNil():
		return fmt.Errorf("%T is not a pointer to a value", dst)
	case !isMessage:
		t = t.Elem()
	}
	v, ok, err := p.OpenAs(t)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("they are not a %v", t)
	case isMessage:
		proto.Reset(message)
		proto.Merge(message, v.(proto.Message))
	default:
		reflect.ValueOf(dst).Elem().Set(reflect.ValueOf(v).Elem())
	}
	return nil
}
