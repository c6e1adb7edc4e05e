package netvar

import "github.com/netloop/netloop/internal/codec"

// Horizon is the number of ticks for which an object keeps its versions: 2 s at 60 Hz, longer
// than any round trip that is worth a delta.
const Horizon = 128

// maxVersions is what a history can hold: one version per tick of the horizon, the newest
// older one, and the one being pushed before the oldest goes.
const maxVersions = Horizon + 2

// history holds the versions of one object, oldest first, in one stretch of an array. Dropping
// moves its beginning; when its end meets the array's, the stretch moves back to the front. Few
// versions therefore touch little memory, however many there once were: a client has thousands
// of objects, and what a packet costs there is mostly memory that is not in the cache. Memory of
// a dropped version is used again, so an object that changes every tick soon allocates nothing.
type history struct {
	data  []uint64 // per version its tick and then its words: stride
	blobs [][]byte // per version nb
	first int32
	n     int32
	room  int32 // versions that data and blobs have room for
	nw    int16
	nb    int16
}

func newHistory(c *Class) history {
	return history{nw: int16(c.words()), nb: int16(c.plan.Blobs())}
}

func (h *history) stride() int { return int(h.nw) + 1 }

// tick returns the tick of version i, 0 being the oldest.
func (h *history) tick(i int) uint64 { return h.data[(int(h.first)+i)*h.stride()] }

// at returns version i, 0 being the oldest. It stays valid until the next push.
func (h *history) at(i int) codec.Values {
	k, nb := int(h.first)+i, int(h.nb)
	end := (k + 1) * h.stride()
	return codec.Values{Words: h.data[end-int(h.nw) : end : end], Blobs: h.blobs[k*nb : (k+1)*nb : (k+1)*nb]}
}

func (h *history) newest() codec.Values { return h.at(int(h.n) - 1) }

// find returns which version is of exactly this tick, or -1. Baselines are recent, and what changes often
// has a version of every tick, so it looks first where that would be, and then further back:
// no version is nearer to the newest than their ticks are.
func (h *history) find(tick uint64) int {
	last := int(h.n) - 1
	if last < 0 || tick > h.tick(last) {
		return -1
	}
	back := min(h.tick(last)-tick, uint64(last))
	for i := last - int(back); i <= last; i++ {
		switch t := h.tick(i); {
		case t == tick:
			return i
		case t > tick:
			return -1
		}
	}
	return -1
}

// push adds a deep copy of v as the version of tick, which is later than all others, and then
// drops the versions that are Horizon ticks or more older than it, except the newest of those.
// It returns by how many bytes the history has grown.
//
// Server and client drop by the ticks of versions alone, never by the tick at which they look.
// A client has seen some of the server's versions and pushed no later one, so what the server
// still has and the client once had, the client still has.
func (h *history) push(tick uint64, v *codec.Values) (grown int) {
	if h.first+h.n == h.room {
		h.makeRoom()
	}
	h.data[int(h.first+h.n)*h.stride()] = tick
	h.n++
	grown = h.fill(v)
	for h.n >= 2 && h.tick(1)+Horizon <= tick {
		grown -= h.drop(1)
	}
	return grown
}

// replaceNewest makes the newest version a deep copy of v.
func (h *history) replaceNewest(v *codec.Values) (grown int) {
	now := h.newest()
	grown = -h.size(&now)
	return grown + h.fill(v)
}

func (h *history) fill(v *codec.Values) int {
	to := h.newest()
	copy(to.Words, v.Words)
	for i, b := range v.Blobs {
		to.Blobs[i] = append(to.Blobs[i][:0], b...)
	}
	return h.size(&to)
}

// dropBefore drops the versions that are older than tick, but not the newest, and returns
// their bytes.
func (h *history) dropBefore(tick uint64) (bytes int) {
	old := 0
	for old < int(h.n)-1 && h.tick(old) < tick {
		old++
	}
	return h.drop(old)
}

// drop drops the oldest versions and returns their bytes.
func (h *history) drop(old int) (bytes int) {
	bytes = old * 8 * h.stride()
	nb := int(h.nb)
	for _, b := range h.blobs[int(h.first)*nb : (int(h.first)+old)*nb] {
		bytes += len(b)
	}
	h.first += int32(old)
	h.n -= int32(old)
	return bytes
}

// clear gives up all versions and returns their bytes.
func (h *history) clear() (bytes int) {
	bytes = h.drop(int(h.n))
	*h = history{}
	return bytes
}

// size is about what a version takes, for the limit on a replica's memory.
func (h *history) size(v *codec.Values) int {
	n := 8 * h.stride()
	for _, b := range v.Blobs {
		n += len(b)
	}
	return n
}

// makeRoom moves the versions to the front, or, when that makes little room, to the front of a
// larger array.
func (h *history) makeRoom() {
	n, end := int(h.n), int(h.first+h.n)
	if free := int(h.first); free > n/4 {
		h.moveToFront()
		return
	}
	size := min(n+n/2+3, maxVersions+maxVersions/2)
	g := history{data: make([]uint64, size*h.stride()), n: h.n, room: int32(size), nw: h.nw, nb: h.nb}
	copy(g.data, h.data[int(h.first)*h.stride():end*h.stride()])
	if h.nb > 0 {
		g.blobs = make([][]byte, size*int(h.nb))
		copy(g.blobs, h.blobs[int(h.first)*int(h.nb):end*int(h.nb)])
	}
	*h = g
}

// moveToFront swaps the blobs rather than copying them: each place keeps memory of its own.
func (h *history) moveToFront() {
	end := int(h.first + h.n)
	copy(h.data, h.data[int(h.first)*h.stride():end*h.stride()])
	from := int(h.first) * int(h.nb)
	for i := range int(h.n) * int(h.nb) {
		h.blobs[i], h.blobs[from+i] = h.blobs[from+i], h.blobs[i]
	}
	h.first = 0
}
