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
func (p *Plan) Heap(i int, b []byte) int { return p.leaves[p.byBlob[i]].heap(b) }

func (l *leaf) heap(b []byte) int {
	if l.absent || l.kind == ByteArray {
		return 0
	}
	r := wire.NewReader(b)
	switch l.kind {
	case String, Bytes:
		return Allocated(len(r.Block(l.max)))
	case Slice:
		n := l.count(&r)
		return Allocated(n*int(l.elem.size)) + l.elem.heap(&r, n)
	case Map:
		n := l.count(&r)
		return MapHeap(n, int(l.elem.size)) + l.elem.heap(&r, n)
	default:
		if b, there := l.proto(&r); there {
			return l.encoding.Heap(b)
		}
		return 0
	}
}

// heap adds up what the blobs of n elements take.
func (p *Plan) heap(r *wire.Reader, n int) (bytes int) {
	if p.blobs == 0 {
		return 0
	}
	for range n {
		for i := range p.leaves {
			if l := &p.leaves[i]; l.kind.Blob() {
				bytes += l.heap(l.readBlob(r))
			} else {
				l.skip(r)
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
