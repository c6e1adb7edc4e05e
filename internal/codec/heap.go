package codec

import "github.com/netloop/netloop/internal/wire"

// Allocated is about what the allocator takes for n bytes: it rounds up to classes of sizes.
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

// Heap estimates how many bytes Restore allocates for blob i.
func (p *Plan) Heap(i int, b []byte) int {
	l := &p.leaves[p.byBlob[i]]
	r := wire.NewReader(b)
	if l.kind.list() && !l.absent && l.elem.blobs == 0 { // What follows the count adds nothing.
		return l.array(l.count(&r))
	}
	return l.heap(&r)
}

// DecodedSize estimates how many bytes Decode allocates, the struct included, without decoding:
// a few bytes may stand for much. Of a broken message it is what comes before the damage.
func (p *Plan) DecodedSize(b []byte) int {
	r := wire.NewReader(b)
	size := Allocated(int(p.typ.Size()))
	if p.blobs > 0 {
		size += p.heap(&r, 1)
	}
	return size
}

// heap reads past a blob, and estimates what it takes.
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

// array is what a slice or a map takes for n elements, without what those refer to.
func (l *leaf) array(n int) int {
	if l.kind == Map {
		return MapHeap(n, int(l.elem.size))
	}
	return Allocated(n * int(l.elem.size))
}

// heap reads past n elements, and adds up what their blobs take.
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

// MapHeap is about what a map of n entries of a size takes: groups of eight places with a control
// byte each, at most seven eighths of them in use, and their number a power of two. Large entries
// lie outside.
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
