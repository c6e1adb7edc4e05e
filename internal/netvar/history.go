package netvar

import "github.com/netloop/netloop/internal/codec"

// Horizon is the number of ticks for which an object keeps its versions: 2 s at 60 Hz, longer
// than any round trip that is worth a delta.
const Horizon = 128

// maxVersions is what a history can hold: one version per tick of the horizon, the newest
// older one, and the one being pushed before the oldest goes.
const maxVersions = Horizon + 2

// history is a ring of the versions of one object, oldest first. Memory of a dropped version
// is used again, so an object that changes every tick allocates only until its ring is full.
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

func (h *history) ring(i int) int {
	if i += h.first; i >= len(h.ticks) {
		i -= len(h.ticks)
	}
	return i
}

// at returns version i, 0 being the oldest. It stays valid until the version is dropped.
func (h *history) at(i int) codec.Values {
	k := h.ring(i)
	return codec.Values{Words: h.words[k*h.nw : (k+1)*h.nw : (k+1)*h.nw], Blobs: h.blobs[k*h.nb : (k+1)*h.nb : (k+1)*h.nb]}
}

func (h *history) newest() codec.Values { return h.at(h.n - 1) }

// find returns the version of exactly this tick. Baselines are recent, so it looks from the
// newest back.
func (h *history) find(tick uint64) (codec.Values, bool) {
	for i := h.n - 1; i >= 0; i-- {
		switch t := h.ticks[h.ring(i)]; {
		case t == tick:
			return h.at(i), true
		case t < tick:
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
	if h.n == len(h.ticks) {
		h.grow()
	}
	h.n++
	h.ticks[h.ring(h.n-1)] = tick
	grown = h.fill(v)
	for h.n >= 2 && h.ticks[h.ring(1)]+Horizon <= tick {
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
	for h.n > 1 && h.ticks[h.first] < tick {
		bytes += h.dropFirst()
	}
	return bytes
}

func (h *history) dropFirst() int {
	v := h.at(0)
	h.first = h.ring(1)
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

// grow doubles the ring, up to maxVersions, and puts the oldest version first.
func (h *history) grow() {
	size := min(max(4, 2*len(h.ticks)), maxVersions)
	g := history{
		ticks: make([]uint64, size), words: make([]uint64, size*h.nw), blobs: make([][]byte, size*h.nb),
		nw: h.nw, nb: h.nb, n: h.n,
	}
	for i := range h.n {
		k := h.ring(i)
		g.ticks[i] = h.ticks[k]
		copy(g.words[i*g.nw:(i+1)*g.nw], h.words[k*h.nw:])
		copy(g.blobs[i*g.nb:(i+1)*g.nb], h.blobs[k*h.nb:])
	}
	*h = g
}
