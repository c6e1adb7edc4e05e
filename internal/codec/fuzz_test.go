package codec

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

// Append can write any value that Decode accepts, and it decodes to itself.
func FuzzDecode(f *testing.F) {
	p := mustPlan[every](f)
	for _, s := range []every{{}, sampleEvery()} {
		b, err := p.Append(nil, unsafe.Pointer(&s))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v, w every
		if p.Decode(b, unsafe.Pointer(&v)) != nil {
			return
		}
		again, err := p.Append(nil, unsafe.Pointer(&v))
		if err != nil {
			t.Fatalf("decoded, but not writable: %v", err)
		}
		if err := p.Decode(again, unsafe.Pointer(&w)); err != nil {
			t.Fatalf("written, but not readable: %v", err)
		}
		if third, _ := p.Append(nil, unsafe.Pointer(&w)); string(third) != string(again) {
			t.Fatalf("%+v and %+v differ", v, w)
		}
		if size, _ := p.MaxSize(); len(again) > size {
			t.Fatalf("%d bytes, more than MaxSize %d", len(again), size)
		}
	})
}

// A state and a message are read alike: both accept or refuse the same bytes.
func FuzzReadValues(f *testing.F) {
	p := mustPlan[every](f)
	s := sampleEvery()
	b, _ := p.Append(nil, unsafe.Pointer(&s))
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, v := wire.NewReader(b), p.newValues()
		p.ReadSome(&r, v, nil)
		var out, twin every
		err := p.Decode(b, unsafe.Pointer(&twin))
		if (r.Done() == nil) != (err == nil) {
			t.Fatalf("state: %v, message: %v", r.Err(), err)
		}
		if err != nil {
			return
		}
		p.Restore(unsafe.Pointer(&out), v, nil)
		if !reflect.DeepEqual(out, twin) {
			t.Fatalf("state %+v, message %+v", out, twin)
		}
	})
}
