package codec

import (
	"reflect"
	"unicode/utf8"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

// report collects the errors of an encoder: the number of values that it changed to fit, and the
// first field over its limit.
type report struct {
	clamped int
	over    *leaf
	err     error // of an Encoding
}

func (r *report) cut(l *leaf) {
	r.clamped++
	if r.over == nil {
		r.over = l
	}
}

// appendBlob writes the string, byte string, slice or map of the struct at v in its wire form, cut
// to its limit.
func (l *leaf) appendBlob(dst []byte, v unsafe.Pointer, rep *report) []byte {
	q := unsafe.Add(v, l.off)
	switch l.kind {
	case String:
		s := *(*string)(q)
		if len(s) > l.max {
			rep.cut(l)
			s = Clip(s, l.max)
		}
		return wire.AppendString(dst, s)
	case Bytes:
		b := *(*[]byte)(q)
		if len(b) > l.max {
			rep.cut(l)
			b = b[:l.max]
		}
		return wire.AppendBytes(dst, b)
	case ByteArray:
		return append(dst, unsafe.Slice((*byte)(q), l.max)...)
	case Slice:
		h := *(*[]struct{})(q) // length and pointer of any slice
		n := len(h)
		if n > l.max {
			rep.cut(l)
			n = l.max
		}
		dst = wire.AppendUvarint(dst, uint64(n))
		first := unsafe.Pointer(unsafe.SliceData(h))
		for i := range n {
			dst = l.elem.append(dst, unsafe.Add(first, uintptr(i)*l.elem.size), rep)
		}
		return dst
	case Map:
		return l.appendMap(dst, q, rep)
	case Proto:
		return l.appendProto(dst, q, rep)
	default:
		panic("codec: no blob form for " + l.kind.String())
	}
}

// Clip shortens s to at most n bytes without splitting a character.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// skipBlob reads one blob and validates it completely, so that storeBlob cannot fail on it.
func (l *leaf) skipBlob(r *wire.Reader) {
	switch l.kind {
	case String, Bytes:
		r.Block(l.max)
	case ByteArray:
		r.Bytes(l.max)
	case Slice:
		for range r.Count(l.max, l.elem.least) {
			l.elem.skip(r)
			if r.Err() != nil {
				return
			}
		}
	case Map:
		l.skipMap(r)
	case Proto:
		l.skipProto(r)
	}
}

// storeBlob reads one blob into the struct at v. The new value shares no memory with the input and
// none with the old value of the field.
func (l *leaf) storeBlob(v unsafe.Pointer, r *wire.Reader) {
	q := unsafe.Add(v, l.off)
	switch l.kind {
	case String:
		*(*string)(q) = string(r.Block(l.max))
	case Bytes:
		*(*[]byte)(q) = append([]byte(nil), r.Block(l.max)...)
	case ByteArray:
		if b := r.Bytes(l.max); len(b) == l.max {
			copy(unsafe.Slice((*byte)(q), l.max), b)
		}
	case Slice:
		n := r.Count(l.max, l.elem.least)
		if n == 0 {
			*(*[]byte)(q) = nil // as any slice
			return
		}
		s := reflect.MakeSlice(l.typ, n, n)
		first := s.UnsafePointer()
		for i := range n {
			l.elem.read(r, unsafe.Add(first, uintptr(i)*l.elem.size))
			if r.Err() != nil {
				return
			}
		}
		reflect.NewAt(l.typ, q).Elem().Set(s)
	case Map:
		l.storeMap(q, r)
	case Proto:
		l.storeProto(q, r)
	}
}

// cloneBlob replaces the blob in the struct at dst, which is a shallow copy of another struct, by a
// deep copy.
func (l *leaf) cloneBlob(dst unsafe.Pointer) {
	q := unsafe.Add(dst, l.off)
	switch l.kind {
	case Bytes:
		*(*[]byte)(q) = append([]byte(nil), *(*[]byte)(q)...)
	case Map:
		l.cloneMap(q)
	case Proto:
		if *(*unsafe.Pointer)(q) != nil {
			l.encoding.Clone(q)
		}
	case Slice:
		field := reflect.NewAt(l.typ, q).Elem()
		if field.Len() == 0 {
			return
		}
		s := reflect.MakeSlice(l.typ, field.Len(), field.Len())
		reflect.Copy(s, field)
		if l.elem.local {
			first := s.UnsafePointer()
			for i := range s.Len() {
				l.elem.cloneBlobs(unsafe.Add(first, uintptr(i)*l.elem.size))
			}
		}
		field.Set(s)
	}
}
