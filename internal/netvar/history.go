package netvar

import (
	"bytes"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// Horizon is the number of ticks for which an object keeps its versions: 2 s at 60 Hz, longer
// than any round trip that is worth a delta.
const Horizon = 128

// maxVersions is what a history can hold: one version per tick of the horizon, the newest
// older one, and the one being pushed before the oldest goes.
const maxVersions = Horizon + 2

// firstRoom is how many versions the first array of a history has room for.
const firstRoom = 3

// maxHistory bounds the bytes of the versions that a server keeps of one object: all of the horizon
// of what is numbers, and a second and a half of a list of 4 kB that changes in every tick. What is
// gone is no baseline any more, so the next record of a client that far behind is a full one.
const maxHistory = 384 << 10

// history holds the versions of one object, oldest first, in one stretch of an array. Dropping
// moves its beginning; when its end meets the array's, the stretch moves back to the front. Few
// versions therefore touch little memory, however many there once were: a client has thousands
// of objects, and what a packet costs there is mostly memory that is not in the cache. Memory of
// a dropped version is used again, so an object whose words change every tick soon allocates
// nothing; blobs are shared between versions, and a new one is allocated.
type history struct {
	data  []uint64 // per version its tick and then its words: stride
	blobs [][]byte // per version nb
	first int32
	n     int32
	room  int32 // versions that data and blobs have room for
	nw    int16
	nb    int16

	oldest  uint64 // tick of version 0
	evicted bool   // some are gone that a client may have: see fit
}

func newHistory(c *Class) history {
	return history{nw: int16(c.words()), nb: int16(c.plan.Blobs())}
}

func (h *history) stride() int { return int(h.nw) + 1 }

// words returns those of version i, 0 being the oldest; n means the draft.
func (h *history) words(i int) []uint64 {
	end := (int(h.first) + i + 1) * h.stride()
	return h.data[end-int(h.nw) : end]
}

// tick returns the tick of version i, 0 being the oldest.
func (h *history) tick(i int) uint64 { return h.data[(int(h.first)+i)*h.stride()] }

func (h *history) blobsOf(i int) [][]byte {
	k, nb := int(h.first)+i, int(h.nb)
	return h.blobs[k*nb : (k+1)*nb]
}

// at returns version i, 0 being the oldest. It stays valid until the next draft or push.
func (h *history) values(i int) codec.Values {
	return codec.Values{Words: h.words(i), Blobs: h.blobsOf(i)}
}

func (h *history) newest() codec.Values { return h.values(int(h.n) - 1) }

// find returns which version is of exactly this tick, or -1; newest is the newest one's tick.
// Baselines are recent, and what changes often has a version of every tick, so it looks first where
// that would be: no version is nearer to the newest than their ticks are.
func (h *history) find(tick, newest uint64) int {
	last := int(h.n) - 1
	if last < 0 || tick > newest {
		return -1
	}
	i := last - int(min(newest-tick, uint64(last)))
	for h.tick(i) < tick { // which the newest is not
		i++
	}
	if h.tick(i) != tick {
		return -1
	}
	return i
}

// floor returns which version was the newest at a tick, or -1 if it is gone: what a reader of some
// of the fields has as the version of that tick. It looks where find does.
func (h *history) floor(tick, newest uint64) int {
	last := int(h.n) - 1
	if last < 0 || tick >= newest {
		return last
	}
	i := last - int(min(newest-tick, uint64(last)))
	switch found := h.tick(i); {
	case found == tick: // of what changes in every tick
		return i
	case found > tick:
		return -1
	}
	for h.tick(i+1) <= tick { // which the newest is not
		i++
	}
	return i
}

// fit drops the oldest versions until the others take at most so many bytes, but never the newest.
// A blob that versions share counts once. A client keeps what it has: it stores what it was sent
// alone, and bounds that by itself.
func (h *history) fit(most int) {
	size := 0
	for i := int(h.n) - 1; i >= 0; i-- {
		size += 8 * h.stride()
		for j, b := range h.blobsOf(i) {
			if i == int(h.n)-1 || !same(b, h.blobsOf(i + 1)[j]) {
				size += len(b)
			}
		}
		if size > most && i < int(h.n)-1 {
			h.drop(i+1, h.tick(i+1))
			h.evicted = true
			return
		}
	}
}

// draft returns the words of the version that comes next, for the caller to fill before commit:
// it saves a copy, and with it memory that is not in the cache. A draft that is not committed
// does no harm.
func (h *history) draft() []uint64 {
	if h.first+h.n == h.room {
		h.makeRoom()
	}
	return h.words(int(h.n))
}

// same tells whether two blobs are one: versions that follow each other share what has not changed.
func same(a, b []byte) bool { return len(a) > 0 && &a[0] == unsafe.SliceData(b) }

// push adds a deep copy of v: see commit.
func (h *history) push(tick uint64, v *codec.Values) (grown int) {
	copy(h.draft(), v.Words)
	return h.commit(tick, v.Blobs)
}

// commit makes the draft, with a copy of these blobs, the version of tick, which is later than
// all others, and then drops the versions that are Horizon ticks or more older than it, except
// the newest of those. It returns by how many bytes its blobs have grown.
//
// Server and client drop by the ticks of versions alone, never by the tick at which they look; see
// fit for what a server alone does.
// A client has seen some of the server's versions and pushed no later one, so what the server
// still has and the client once had, the client still has.
func (h *history) commit(tick uint64, blobs [][]byte) (grown int) {
	last := int(h.n)
	h.n++
	h.data[(int(h.first)+last)*h.stride()] = tick
	if last == 0 {
		h.oldest = tick
	}
	grown = h.fillBlobs(last, blobs)
	for h.second(tick)+Horizon <= tick { // the newest is not
		grown -= h.drop(1, h.second(tick))
	}
	return grown
}

// second returns the tick of version 1, or one that is no later when neither has reached the
// horizon. It looks there only if it must: an object that changes in every tick has a version of
// every tick, and the oldest of them is seldom in the cache.
func (h *history) second(newest uint64) uint64 {
	if next := h.oldest + 1; next+Horizon > newest || newest-h.oldest == uint64(h.n)-1 {
		return next
	}
	return h.tick(1)
}

// replaceNewest makes the newest version a deep copy of v, and returns by how many bytes its blobs
// have grown.
func (h *history) replaceNewest(v *codec.Values) (grown int) {
	last := int(h.n) - 1
	for j, b := range h.blobsOf(last) {
		if last == 0 || !same(b, h.blobsOf(last - 1)[j]) {
			grown -= codec.Allocated(len(b))
		}
	}
	copy(h.words(last), v.Words)
	return grown + h.fillBlobs(last, v.Blobs)
}

// fillBlobs gives version i these blobs and returns the bytes of those that are new. A blob never
// changes once it is here, and mostly it is that of the version before, which is then kept instead
// of a copy.
func (h *history) fillBlobs(i int, blobs [][]byte) (size int) {
	to := h.blobsOf(i)
	for j, b := range blobs {
		if i > 0 && bytes.Equal(h.blobsOf(i - 1)[j], b) {
			to[j] = h.blobsOf(i - 1)[j]
		} else {
			to[j] = bytes.Clone(b)
			size += codec.Allocated(len(b))
		}
	}
	return size
}

// dropBefore drops the versions that were no longer the newest at a tick, and returns the bytes
// that frees.
func (h *history) dropBefore(tick uint64) (bytes int) {
	old := 0
	for old < int(h.n)-1 && h.tick(old+1) <= tick {
		old++
	}
	return h.drop(old, h.tick(old))
}

// drop drops the oldest versions, so that one of tick oldest comes first, and returns the bytes
// that frees: those of their blobs, but not of what the first one that stays has too.
func (h *history) drop(old int, oldest uint64) (bytes int) {
	h.oldest = oldest
	nb := int(h.nb)
	from, to := int(h.first)*nb, (int(h.first)+old)*nb
	for k := from; k < to; k++ {
		if b := h.blobs[k]; k+nb >= to && old == int(h.n) || !same(b, h.blobs[k+nb]) {
			bytes += codec.Allocated(len(b))
		}
	}
	clear(h.blobs[from:to])
	h.first += int32(old)
	h.n -= int32(old)
	return bytes
}

// clear gives up all versions and returns the bytes of their blobs.
func (h *history) clear() (bytes int) {
	bytes = h.drop(int(h.n), h.oldest)
	*h = history{}
	return bytes
}

// makeRoom moves the versions to the front, or, when that makes little room, to the front of a
// larger array.
func (h *history) makeRoom() {
	if h.canMove() {
		h.moveToFront()
		return
	}
	h.renew(h.larger())
}

// renew moves the versions to the front of another array, with room for so many.
func (h *history) renew(size int) {
	end, nb := int(h.first+h.n), int(h.nb)
	data, blobs := h.data, h.blobs
	h.data = make([]uint64, size*h.stride())
	copy(h.data, data[int(h.first)*h.stride():end*h.stride()])
	h.blobs = make([][]byte, size*nb)
	copy(h.blobs, blobs[int(h.first)*nb:end*nb])
	h.first, h.room = 0, int32(size)
}

// canMove tells whether moving the versions to the front makes room enough.
func (h *history) canMove() bool { return h.first > h.n/4 }

// larger is how many versions the next larger array has room for.
func (h *history) larger() int {
	n := int(h.n)
	return min(n+n/2+firstRoom, maxVersions+maxVersions/2)
}

// drafts tells how many versions more there will be room for after the next draft.
func (h *history) drafts() int {
	if h.first+h.n < h.room || h.canMove() {
		return 0
	}
	return h.larger() - int(h.room)
}

func (h *history) moveToFront() {
	end := int(h.first + h.n)
	copy(h.data, h.data[int(h.first)*h.stride():end*h.stride()])
	copy(h.blobs, h.blobs[int(h.first)*int(h.nb):end*int(h.nb)])
	clear(h.blobs[int(h.n)*int(h.nb) : end*int(h.nb)])
	h.first = 0
}
