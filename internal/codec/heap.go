package codec

import "github.com/netloop/netloop/internal/wire"

// Allocated returns the approximate number of bytes that the allocator uses for n bytes, because it
// rounds up to size classes.
func Allocated(n int) int {
	switch {
	case n == 0:
		return 0
	case n <= 8:
		return 8
	case n <= 1024:
		return (n + 15) &^ 15
	default:
		return n + n/16
	}
}

// Heap estimates the number of bytes that Restore allocates for blob i.
func (p *Plan) Heap(i int, b []byte) int {
	l := &p.leaves[p.byBlob[i]]
	r := wire.NewReader(b)
	if l.kind.list() && !l.absent && l.elem.blobs == 0 { // The elements have no blobs.
		return l.array(l.count(&r))
	}
	return l.heap(&r)
}

// DecodedSize estimates the number of bytes that Decode would allocate, including the struct,
// without decoding, because few bytes may decode to a large value. For an invalid message it counts
// the part before the error.
func (p *Plan) DecodedSize(b []byte) int {
	r := wire.NewReader(b)
	size := Allocated(int(p.typ.Size()))
	if p.blobs > 0 {
		size += p.heap(&r, 1)
	}
	return size
}

// heap skips a blob in r, and estimates the number of bytes that are allocated to store it.
func (l *leaf) heap(r *wire.Reader) int {
	if l.absent {
		l.skip(r)
		return 0
	}
	switch l.kind {
	case ByteArray:
		r.Bytes(l.max)
		return 0
	case String, Bytes:
		return Allocated(len(r.Block(l.max)))
	case Slice, Map:
		n := l.count(r)
		return l.array(n) + l.elem.heap(r, n)
	default:
		if b, there := l.proto(r); there {
			return l.encoding.Heap(b)
		}
		return 0
	}
}

// array returns the allocation of a slice or a map for n elements, without their blobs.
func (l *leaf) array(n int) int {
	if l.kind == Map {
		return MapHeap(n, int(l.elem.size))
	}
	return Allocated(n * int(l.elem.size))
}

// heap skips n elements, and adds up the allocations of their blobs.
func (p *Plan) heap(r *wire.Reader, n int) (bytes int) {
	for range n {
		if r.Err() != nil {
			return bytes
		}
		for i := range p.leaves {
			if l := &p.leaves[i]; l.kind.Blob() {
				bytes += l.heap(r)
			} else {
				l.readWord(r)
			}
		}
	}
	return bytes
}

// MapHeap estimates the number of bytes that a Go map with n entries of entry bytes each allocates:
// groups of eight slots with a control byte each, at most seven eighths of them in use, and their
// number a power of two. Large entries are allocated separately.
func MapHeap(n, entry int) (bytes int) {
	if n == 0 {
		return 0
	}
	const header, table, largest = 48, 32, 256
	if entry > largest {
		bytes, entry = n*Allocated(entry), 16
	}
	places := 8
	for places > 8 && places*7 < n*8 || places < n {
		places *= 2
	}
	return bytes + header + table + places*(entry+1)
}
