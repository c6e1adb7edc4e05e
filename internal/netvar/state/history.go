package state

import (
	"bytes"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// Horizon is the number of ticks for which an object keeps its versions: 2 s at 60 Hz. For longer
// round trips, deltas are not worthwhile.
const Horizon = 128

// maxVersions is the capacity of a history: one version per tick of the horizon, the newest older
// version, and the new version before the oldest version is dropped.
const maxVersions = Horizon + 2

// FirstCapacity is the capacity of a history's first array, in versions.
const FirstCapacity = 3

// MaxHistory bounds the bytes of the versions that a server keeps of one object: the whole horizon
// for numbers, and a second and a half for a list of 4 kB that changes in every tick. A dropped
// version is no longer a baseline, so a client that lags further behind is sent a full record.
const MaxHistory = 384 << 10

// History stores the versions of one object, oldest first, in a contiguous part of an array.
// Dropping versions advances the start of the part. When its end reaches the end of the array, the
// part is moved to the front. A short history therefore always touches little memory: a client has
// thousands of objects, and cache misses are most of the cost of a packet. Memory of dropped
// versions is reused, so an object with new words in every tick soon stops allocating. Versions
// share unchanged blobs, and a changed blob is allocated.
type History struct {
	data  []uint64 // stride words per version: its tick and its words
	blobs [][]byte // nb per version
	first int32
	n     int32
	room  int32 // capacity of data and blobs, in versions
	nw    int16
	nb    int16

	oldest  uint64 // tick of version 0
	Evicted bool   // fit has dropped versions that a client may have
}

func newHistory(c *Class) History {
	return History{nw: int16(c.Words()), nb: int16(c.plan.Blobs())}
}

// Len returns the number of versions.
func (h *History) Len() int { return int(h.n) }

func (h *History) stride() int { return int(h.nw) + 1 }

// Words returns the words of version i: 0 is the oldest, Len() the draft.
func (h *History) Words(i int) []uint64 {
	end := (int(h.first) + i + 1) * h.stride()
	return h.data[end-int(h.nw) : end]
}

// Tick returns the tick of version i, 0 being the oldest.
func (h *History) Tick(i int) uint64 { return h.data[(int(h.first)+i)*h.stride()] }

func (h *History) BlobsOf(i int) [][]byte {
	k, nb := int(h.first)+i, int(h.nb)
	return h.blobs[k*nb : (k+1)*nb]
}

// Values returns version i, 0 being the oldest. It is valid until the next draft or push.
func (h *History) Values(i int) codec.Values {
	return codec.Values{Words: h.Words(i), Blobs: h.BlobsOf(i)}
}

func (h *History) Newest() codec.Values { return h.Values(int(h.n) - 1) }

// Find returns the index of the version of exactly this tick, or -1; newest is the tick of the
// newest version. The search starts at the position of the tick in a history with a version for
// every tick, which is a lower bound. Baselines are recent, so the search is usually short.
func (h *History) Find(tick, newest uint64) int {
	last := int(h.n) - 1
	if last < 0 || tick > newest {
		return -1
	}
	i := last - int(min(newest-tick, uint64(last)))
	for h.Tick(i) < tick { // the newest version is not earlier, so the loop ends
		i++
	}
	if h.Tick(i) != tick {
		return -1
	}
	return i
}

// Floor returns the index of the version that was the newest at a tick, or -1 if that version was
// dropped. It is also the right version for a client that may read only some of the fields. The
// search starts at the same position as in Find.
func (h *History) Floor(tick, newest uint64) int {
	last := int(h.n) - 1
	if last < 0 || tick >= newest {
		return last
	}
	i := last - int(min(newest-tick, uint64(last)))
	switch found := h.Tick(i); {
	case found == tick: // the object changes in every tick
		return i
	case found > tick:
		return -1
	}
	for h.Tick(i+1) <= tick { // the newest version is later, so the loop ends
		i++
	}
	return i
}

// Fit drops the oldest versions until the others have at most the given number of bytes. It never
// drops the newest version. A shared blob counts once. Only servers call it: a client stores the
// versions that it was sent, and bounds them separately.
func (h *History) Fit(most int) {
	size := 0
	for i := int(h.n) - 1; i >= 0; i-- {
		size += 8 * h.stride()
		for j, b := range h.BlobsOf(i) {
			if i == int(h.n)-1 || !Shared(b, h.BlobsOf(i + 1)[j]) {
				size += len(b)
			}
		}
		if size > most && i < int(h.n)-1 {
			h.drop(i+1, h.Tick(i+1))
			h.Evicted = true
			return
		}
	}
}

// Capacity returns the number of versions that the array has room for.
func (h *History) Capacity() int { return int(h.room) }

// Draft returns the words of the next version. The caller writes the words and calls Commit, which
// saves a copy and cache misses. A draft without Commit has no effect.
func (h *History) Draft() []uint64 {
	if h.first+h.n == h.room {
		h.makeRoom()
	}
	return h.Words(int(h.n))
}

// Shared reports whether two blobs share memory: consecutive versions share unchanged blobs.
func Shared(a, b []byte) bool { return len(a) > 0 && &a[0] == unsafe.SliceData(b) }

// Push adds a deep copy of v: see Commit.
func (h *History) Push(tick uint64, v *codec.Values) (grown int) {
	copy(h.Draft(), v.Words)
	return h.Commit(tick, v.Blobs)
}

// Commit turns the draft, with copies of these blobs, into the version of tick, which must be later
// than all others. Then it drops the versions that are Horizon ticks or more older than tick,
// except the newest of these. It returns the growth of the blobs in bytes.
//
// Server and client drop versions by the ticks of versions, never by the current tick. The client's
// versions are a subset of the server's versions, without later ones. So if the server still has a
// version that the client once had, the client still has it too. The server may drop more: see Fit.
func (h *History) Commit(tick uint64, blobs [][]byte) (grown int) {
	last := int(h.n)
	h.n++
	h.data[(int(h.first)+last)*h.stride()] = tick
	if last == 0 {
		h.oldest = tick
	}
	grown = h.fillBlobs(last, blobs)
	for h.second(tick)+Horizon <= tick { // the newest version never satisfies this
		grown -= h.drop(1, h.second(tick))
	}
	return grown
}

// second returns the tick of version 1, the second oldest version, or an earlier tick if no version
// has to be dropped. It reads version 1 only if necessary: if an object changes in every tick the
// result can be computed, and old versions are seldom in the cache.
func (h *History) second(newest uint64) uint64 {
	if next := h.oldest + 1; next+Horizon > newest || newest-h.oldest == uint64(h.n)-1 {
		return next
	}
	return h.Tick(1)
}

// ReplaceNewest overwrites the newest version with a deep copy of v, and returns the growth of the
// blobs in bytes.
func (h *History) ReplaceNewest(v *codec.Values) (grown int) {
	last := int(h.n) - 1
	for j, b := range h.BlobsOf(last) {
		if last == 0 || !Shared(b, h.BlobsOf(last - 1)[j]) {
			grown -= codec.Allocated(len(b))
		}
	}
	copy(h.Words(last), v.Words)
	return grown + h.fillBlobs(last, v.Blobs)
}

// fillBlobs sets the blobs of version i and returns the bytes of new ones. Stored blobs are
// immutable, so a blob that is equal to the blob of the previous version is shared and not copied.
func (h *History) fillBlobs(i int, blobs [][]byte) (size int) {
	to := h.BlobsOf(i)
	for j, b := range blobs {
		if i > 0 && bytes.Equal(h.BlobsOf(i - 1)[j], b) {
			to[j] = h.BlobsOf(i - 1)[j]
		} else {
			to[j] = bytes.Clone(b)
			size += codec.Allocated(len(b))
		}
	}
	return size
}

// DropBefore drops the versions that a newer version had already replaced at a tick, and returns
// the freed bytes of blobs.
func (h *History) DropBefore(tick uint64) (bytes int) {
	old := 0
	for old < int(h.n)-1 && h.Tick(old+1) <= tick {
		old++
	}
	return h.drop(old, h.Tick(old))
}

// drop drops the oldest versions, so that a version of tick oldest is the first. It returns the
// bytes of the dropped blobs that the first remaining version does not share.
func (h *History) drop(old int, oldest uint64) (bytes int) {
	h.oldest = oldest
	nb := int(h.nb)
	from, to := int(h.first)*nb, (int(h.first)+old)*nb
	for k := from; k < to; k++ {
		if b := h.blobs[k]; k+nb >= to && old == int(h.n) || !Shared(b, h.blobs[k+nb]) {
			bytes += codec.Allocated(len(b))
		}
	}
	clear(h.blobs[from:to])
	h.first += int32(old)
	h.n -= int32(old)
	return bytes
}

// Clear drops all versions and returns the bytes of their blobs.
func (h *History) Clear() (bytes int) {
	bytes = h.drop(int(h.n), h.oldest)
	*h = History{}
	return bytes
}

// makeRoom moves the versions to the front of the array, or of a larger one if that would free
// little room.
func (h *History) makeRoom() {
	if h.canMove() {
		h.moveToFront()
		return
	}
	h.Resize(h.larger())
}

// Resize moves the versions to a new array with room for size versions.
func (h *History) Resize(size int) {
	end, nb := int(h.first+h.n), int(h.nb)
	data, blobs := h.data, h.blobs
	h.data = make([]uint64, size*h.stride())
	copy(h.data, data[int(h.first)*h.stride():end*h.stride()])
	h.blobs = make([][]byte, size*nb)
	copy(h.blobs, blobs[int(h.first)*nb:end*nb])
	h.first, h.room = 0, int32(size)
}

// canMove reports whether moving the versions to the front frees enough room.
func (h *History) canMove() bool { return h.first > h.n/4 }

// larger returns the capacity of the next larger array, in versions.
func (h *History) larger() int {
	n := int(h.n)
	return min(n+n/2+FirstCapacity, maxVersions+maxVersions/2)
}

// BlobBytes returns the bytes of all blobs. A shared blob counts once.
func (h *History) BlobBytes() (bytes int) {
	for i := range h.Len() {
		for j, b := range h.BlobsOf(i) {
			if i == 0 || !Shared(b, h.BlobsOf(i - 1)[j]) {
				bytes += codec.Allocated(len(b))
			}
		}
	}
	return bytes
}

// Growth returns by how many versions the next draft will enlarge the array.
func (h *History) Growth() int {
	if h.first+h.n < h.room || h.canMove() {
		return 0
	}
	return h.larger() - int(h.room)
}

func (h *History) moveToFront() {
	end := int(h.first + h.n)
	copy(h.data, h.data[int(h.first)*h.stride():end*h.stride()])
	copy(h.blobs, h.blobs[int(h.first)*int(h.nb):end*int(h.nb)])
	clear(h.blobs[int(h.n)*int(h.nb) : end*int(h.nb)])
	h.first = 0
}
