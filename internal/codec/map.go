package codec

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

// A map is sent as its entries in ascending order of the keys: integers by value, strings by bytes.
// So equal maps are equal bytes, and an entry is a struct like any other.

// The fields of an entry, in Go and on the wire.
const (
	entryKey   = "Key"
	entryValue = "Value"
)

// entryOf returns the struct type of a map's entries.
func entryOf(t reflect.Type) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: entryKey, Type: t.Key()}, {Name: entryValue, Type: t.Elem()}})
}

// entries provides scratch for reading maps of one type, because a plan itself never changes. It
// stores one scratch; if a second goroutine needs scratch at the same time, it allocates its own.
type entries struct {
	typ  reflect.Type
	idle atomic.Pointer[entryScratch]
}

func (e *entries) borrow() *entryScratch {
	if s := e.idle.Swap(nil); s != nil {
		return s
	}
	v := reflect.New(e.typ)
	s := &entryScratch{at: v.UnsafePointer(), entry: v.Elem()}
	s.key, s.value = s.entry.Field(0), s.entry.Field(1)
	return s
}

// giveBack clears the references of s to the map, and stores s for the next borrow.
func (e *entries) giveBack(s *entryScratch) {
	s.entry.SetZero()
	s.iter.Reset(reflect.Value{})
	s.buf, s.list = s.buf[:0], s.list[:0]
	e.idle.Store(s)
}

type entryScratch struct {
	entry, key, value reflect.Value // one entry, and its fields
	at                unsafe.Pointer
	iter              reflect.MapIter
	buf               []byte // entries in the order of Go's iteration
	list              []entry
}

// entry is a part of the scratch.
type entry struct {
	order      uint64 // of an integer key: ascending with it
	from, to   int    // the whole entry
	text, stop int    // of a string key: its bytes
}

func (s *entryScratch) compare(a, b entry) int {
	if c := cmp.Compare(a.order, b.order); c != 0 {
		return c
	}
	return bytes.Compare(s.buf[a.text:a.stop], s.buf[b.text:b.stop])
}

// rising maps the word of a key of kind k to a number with the same order as the keys.
func (k Kind) rising(w uint64) uint64 {
	switch k {
	case Int8, Int16, Int32, Int64, Int:
		return w ^ 1<<63
	default:
		return w
	}
}

// appendMap writes the map at q. If the map has too many entries, it leaves out the last ones. It
// leaves out entries with too long keys, because shortened keys could be equal.
func (l *leaf) appendMap(dst []byte, q unsafe.Pointer, rep *report) []byte {
	m := reflect.NewAt(l.typ, q).Elem()
	if m.Len() == 0 {
		return append(dst, 0)
	}
	s := l.entries.borrow()
	defer l.entries.giveBack(s)
	key := &l.elem.leaves[l.key]
	for s.iter.Reset(m); s.iter.Next(); {
		s.key.SetIterKey(&s.iter)
		s.value.SetIterValue(&s.iter)
		e := entry{from: len(s.buf)}
		if key.kind == String {
			n := s.key.Len()
			if n > key.max {
				rep.cut(key)
				continue
			}
			e.text = e.from + wire.UvarintLen(uint64(n))
			e.stop = e.text + n
		} else {
			w, _ := key.load(s.at)
			e.order = key.kind.rising(w)
		}
		s.buf = l.elem.append(s.buf, s.at, rep)
		e.to = len(s.buf)
		s.list = append(s.list, e)
	}
	slices.SortFunc(s.list, s.compare)
	if len(s.list) > l.max {
		rep.cut(l)
		s.list = s.list[:l.max]
	}
	dst = wire.AppendUvarint(dst, uint64(len(s.list)))
	for _, e := range s.list {
		dst = append(dst, s.buf[e.from:e.to]...)
	}
	return dst
}

// compareKeys compares the keys of the elements at the two readers.
func (l *leaf) compareKeys(a, b wire.Reader) int {
	for i := range l.key {
		l.elem.leaves[i].skip(&a)
		l.elem.leaves[i].skip(&b)
	}
	key := &l.elem.leaves[l.key]
	if key.kind == String {
		return bytes.Compare(a.Block(key.max), b.Block(key.max))
	}
	return cmp.Compare(key.kind.rising(key.readWord(&a)), key.kind.rising(key.readWord(&b)))
}

// skipMap skips a map and validates it.
func (l *leaf) skipMap(r *wire.Reader) {
	var last wire.Reader
	for i := range r.Count(l.max, l.elem.least) {
		at := *r
		l.elem.skip(r)
		if r.Err() != nil {
			return
		}
		if i > 0 && l.compareKeys(last, at) >= 0 {
			r.Fail(ErrOrder)
			return
		}
		last = at
	}
}

// storeMap reads a map into a new one, so that holders of the old map see no change.
func (l *leaf) storeMap(q unsafe.Pointer, r *wire.Reader) {
	at := *r
	n := r.Count(l.max, l.elem.least)
	if n == 0 {
		*(*unsafe.Pointer)(q) = nil // as for any map
		return
	}
	*r = at
	l.skipMap(r)
	if r.Err() != nil {
		return
	}
	at.Count(l.max, l.elem.least)
	m := reflect.MakeMapWithSize(l.typ, n)
	s := l.entries.borrow()
	defer l.entries.giveBack(s)
	for range n {
		s.entry.SetZero()
		l.elem.read(&at, s.at)
		m.SetMapIndex(s.key, s.value)
	}
	reflect.NewAt(l.typ, q).Elem().Set(m)
}

// cloneMap replaces the map of the field at q, whose struct is a shallow copy of another, by a deep
// copy.
func (l *leaf) cloneMap(q unsafe.Pointer) {
	field := reflect.NewAt(l.typ, q).Elem()
	if field.IsNil() {
		return
	}
	m := reflect.MakeMapWithSize(l.typ, field.Len())
	s := l.entries.borrow()
	defer l.entries.giveBack(s)
	for s.iter.Reset(field); s.iter.Next(); {
		s.key.SetIterKey(&s.iter)
		s.value.SetIterValue(&s.iter)
		if l.elem.local {
			l.elem.cloneBlobs(s.at)
		}
		m.SetMapIndex(s.key, s.value)
	}
	field.Set(m)
}
