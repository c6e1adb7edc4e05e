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
	ticks []uint64
	words []uint64 // stride nw
	blobs [][]byte // stride nb
	first int
	n     int
	nw    int
	nb    int
}

func newHistory(c *Class) history { return history{nw: c.words(), nb: c.plan.Blobs()} }

// tick returns the tick of version i, 0 being the oldest.
func (h *history) tick(i int) uint64 { return h.ticks[h.first+i] }

// at returns version i, 0 being the oldest. It stays valid until the next push.
func (h *history) at(i int) codec.Values {
	k := h.first + i
	return codec.Values{Words: h.words[k*h.nw : (k+1)*h.nw : (k+1)*h.nw], Blobs: h.blobs[k*h.nb : (k+1)*h.nb : (k+1)*h.nb]}
}

func (h *history) newest() codec.Values { return h.at(h.n - 1) }

// find returns the version of exactly this tick. Baselines are recent, and what changes often
// has a version of every tick, so it looks first where that would be, and then further back:
// no version is nearer to the newest than their ticks are.
func (h *history) find(tick uint64) (codec.Values, bool) {
	if h.n == 0 || tick > h.tick(h.n-1) {
		return codec.Values{}, false
	}
	back := min(h.tick(h.n-1)-tick, uint64(h.n-1))
	for i := h.n - 1 - int(back); i < h.n; i++ {
		switch t := h.tick(i); {
		case t == tick:
			return h.at(i), true
		case t > tick:
			return codec.Values{}, false
		}
	}
	return codec.Values{}, false
}

// push adds a deep copy of v as the version of tick, which is later than all others, and then
// drops the versions that are Horizon ticks or more older than it, except the newest of those.
// It returns by how many bytes the history has grown.
//
// Server and client drop by the ticks of versions alone, never by the tick at which they look.
// A client has seen some of the server's versions and pushed no later one, so what the server
// still has and the client once had, the client still has.
func (h *history) push(tick uint64, v *codec.Values) (grown int) {
	if h.first+h.n == len(h.ticks) {
		h.makeRoom()
	}
	h.n++
	h.ticks[h.first+h.n-1] = tick
	grown = h.fill(v)
	for h.n >= 2 && h.tick(1)+Horizon <= tick {
		grown -= h.dropFirst()
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

// dropBefore drops the versions that are older than tick and returns their bytes.
func (h *history) dropBefore(tick uint64) (bytes int) {
	for h.n > 1 && h.tick(0) < tick {
		bytes += h.dropFirst()
	}
	return bytes
}

func (h *history) dropFirst() int {
	v := h.at(0)
	h.first++
	h.n--
	return h.size(&v)
}

// clear gives up all versions and returns their bytes.
func (h *history) clear() (bytes int) {
	for h.n > 0 {
		bytes += h.dropFirst()
	}
	*h = history{}
	return bytes
}

// size is about what a version takes, for the limit on a replica's memory.
func (h *history) size(v *codec.Values) int {
	n := 8 * (h.nw + 1)
	for _, b := range v.Blobs {
		n += len(b)
	}
	return n
}

// makeRoom moves the versions to the front, if that makes room for as many again, or else to
// the front of a larger array.
func (h *history) makeRoom() {
	if h.first > h.n {
		h.moveToFront()
		return
	}
	size := min(max(4, 2*(h.n+1)), 2*maxVersions)
	g := history{
		ticks: make([]uint64, size), words: make([]uint64, size*h.nw), blobs: make([][]byte, size*h.nb),
		nw: h.nw, nb: h.nb, n: h.n,
	}
	end := h.first + h.n
	copy(g.ticks, h.ticks[h.first:end])
	copy(g.words, h.words[h.first*h.nw:end*h.nw])
	copy(g.blobs, h.blobs[h.first*h.nb:end*h.nb])
	*h = g
}

// moveToFront swaps the blobs rather than copying them: each place keeps memory of its own.
func (h *history) moveToFront() {
	end := h.first + h.n
	copy(h.ticks, h.ticks[h.first:end])
	copy(h.words, h.words[h.first*h.nw:end*h.nw])
	from := h.first * h.nb
	for i := range h.n * h.nb {
		h.blobs[i], h.blobs[from+i] = h.blobs[from+i], h.blobs[i]
	}
	h.first = 0
}
