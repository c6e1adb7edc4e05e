package state

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/codec"
)

// A history agrees with a plain list with the rules of commit and fit, for versions of any ticks.
func TestAHistoryKeepsTheHorizon(t *testing.T) {
	c, err := NewClass("c", reflect.TypeFor[struct{ X, Y int32 }]())
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := newHistory(c)
		var list []uint64
		evicted := false
		sparse, tick := rng.IntN(4), uint64(1<<33)
		for range 600 {
			if rng.IntN(100) == 0 {
				sparse = rng.IntN(4)
			}
			tick++
			if sparse > 0 {
				tick += rng.Uint64N(uint64(1) << (2 * sparse))
			}
			draft := h.Draft()
			for i := range draft {
				draft[i] = tick
			}
			h.Commit(tick, nil)
			for list = append(list, tick); len(list) >= 2 && list[1]+Horizon <= tick; {
				list = list[1:]
			}
			if rng.IntN(50) == 0 {
				before := tick - rng.Uint64N(Horizon)
				h.DropBefore(before)
				for len(list) > 1 && list[1] <= before {
					list = list[1:]
				}
			}
			if rng.IntN(100) == 0 && len(list) > 1 {
				keep := 1 + rng.IntN(len(list)-1)
				h.Fit(keep*8*h.stride() + rng.IntN(8*h.stride()))
				list, evicted = list[len(list)-keep:], true
			}
			if h.Evicted != evicted {
				t.Fatalf("seed %d: it says that versions were evicted: %v, want %v", seed, h.Evicted, evicted)
			}
			if int(h.n) >= maxVersions || int(h.room) > maxVersions*3/2 {
				t.Fatalf("seed %d: %d versions, and room for %d", seed, h.n, h.room)
			}
			if int(h.n) != len(list) || h.oldest != list[0] {
				t.Fatalf("seed %d: %d versions from %d on, want %d from %d on", seed, h.n, h.oldest, len(list), list[0])
			}
			then := list[0] - 2 + rng.Uint64N(tick-list[0]+5)
			if i, _ := slices.BinarySearch(list, then+1); h.Floor(then, tick) != i-1 {
				t.Fatalf("seed %d: version %d was the newest at %d, want %d", seed, h.Floor(then, tick), then, i-1)
			}
			if i, ok := slices.BinarySearch(list, then); h.Find(then, tick) != i && ok || !ok && h.Find(then, tick) != -1 {
				t.Fatalf("seed %d: version %d is of %d, want %d: %v", seed, h.Find(then, tick), then, i, ok)
			}
			for i, at := range list {
				if h.Tick(i) != at || h.Values(i).Words[0] != at || h.Find(at, tick) != i {
					t.Fatalf("seed %d: version %d is of %d, want %d", seed, i, h.Tick(i), at)
				}
			}
		}
	}
}

// blobHistory is a history with some blobs in each version, and the equivalent plain list.
type blobHistory struct {
	History
	list []blobVersion
	size int // of all blobs, as the history counts them
}

type blobVersion struct {
	tick  uint64
	word  uint64
	blobs [][]byte
}

// bytes counts the blobs from a version on; a blob that consecutive versions share counts once.
func (h *blobHistory) bytes(from int, size func(int) int) (n int) {
	for i := from; i < len(h.list); i++ {
		for j, b := range h.list[i].blobs {
			if i == from || !bytes.Equal(b, h.list[i-1].blobs[j]) {
				n += size(len(b))
			}
		}
	}
	return n
}

// mustBe compares the history with the list: its versions, the counted bytes, and that it keeps no
// other memory alive.
func (h *blobHistory) mustBe(t *testing.T, after string) {
	t.Helper()
	if int(h.n) != len(h.list) || h.size != h.bytes(0, codec.Allocated) {
		t.Fatalf("%s: %d versions with %d bytes, want %d with %d", after, h.n, h.size, len(h.list), h.bytes(0, codec.Allocated))
	}
	for i, want := range h.list {
		v := h.Values(i)
		if h.Tick(i) != want.tick || v.Words[0] != want.word || !slices.EqualFunc(v.Blobs, want.blobs, bytes.Equal) {
			t.Fatalf("%s: version %d is of %d: %v, want %v", after, i, h.Tick(i), v, want)
		}
	}
	for k, b := range h.blobs {
		if b != nil && (k < int(h.first)*int(h.nb) || k >= int(h.first+h.n)*int(h.nb)) {
			t.Fatalf("%s: blob %d is kept of a version that is gone", after, k)
		}
	}
}

// push adds a version, and checks that the array grows as drafts has predicted.
func (h *blobHistory) push(t *testing.T, v blobVersion) {
	t.Helper()
	room := int(h.room) + h.Growth()
	h.size += h.History.Push(v.tick, &codec.Values{Words: []uint64{v.word}, Blobs: v.blobs})
	if int(h.room) != room {
		t.Fatalf("room for %d versions, drafts said %d", h.room, room)
	}
	for h.list = append(h.list, v); len(h.list) >= 2 && h.list[1].tick+Horizon <= v.tick; {
		h.list = h.list[1:]
	}
}

// replace overwrites the newest version. A blob that equals that of the version before is shared.
func (h *blobHistory) replace(v blobVersion) {
	h.size += h.ReplaceNewest(&codec.Values{Words: []uint64{v.word}, Blobs: v.blobs})
	v.tick = h.list[len(h.list)-1].tick
	h.list[len(h.list)-1] = v
}

// cut drops versions by their age or by their bytes.
func (h *blobHistory) cut(rng *rand.Rand) {
	last := len(h.list) - 1
	if rng.IntN(2) == 0 {
		before := h.list[last].tick - rng.Uint64N(Horizon)
		h.size -= h.DropBefore(before)
		for len(h.list) > 1 && h.list[1].tick <= before {
			h.list = h.list[1:]
		}
		return
	}
	most, from := rng.IntN(3000), last
	for from > 0 && 8*2*(last-from+2)+h.bytes(from-1, func(n int) int { return n }) <= most {
		from--
	}
	h.Evicted = false
	h.Fit(most)
	if h.Evicted != (from > 0) {
		from = -1 // which fails below
	}
	h.list = h.list[max(from, 0):]
	h.size = h.bytes(0, codec.Allocated) // fit does not return the freed bytes
}

// In an empty history no version is found, for any tick.
func TestNothingIsFoundInAnEmptyHistory(t *testing.T) {
	h := History{nw: 1}
	for tick := range uint64(3) {
		if i, j := h.Find(tick, 1), h.Floor(tick, 1); i >= 0 || j >= 0 {
			t.Errorf("of tick %d are versions %d and %d", tick, i, j)
		}
	}
}

// A shared blob is counted once, whichever functions add and drop the versions.
func TestHistoryCountsItsBlobs(t *testing.T) {
	texts := [][]byte{nil, []byte("a"), []byte("b"), bytes.Repeat([]byte("c"), 20), bytes.Repeat([]byte("d"), 90)}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		h := blobHistory{History: History{nw: 1, nb: int16(seed % 4)}}
		tick := uint64(1)
		for range 400 {
			v := blobVersion{tick: tick, word: rng.Uint64(), blobs: make([][]byte, h.nb)}
			for j := range v.blobs {
				v.blobs[j] = texts[rng.IntN(1+rng.IntN(len(texts)))]
			}
			switch what := rng.IntN(30); {
			case what == 0 && tick > 1:
				h.cut(rng)
				h.mustBe(t, "cut")
			case what < 4 && tick > 1:
				h.replace(v)
				h.mustBe(t, "replace")
			default:
				h.push(t, v)
				h.mustBe(t, "push")
				tick += 1 + rng.Uint64N(1<<rng.IntN(6))
			}
		}
		if freed := h.Clear(); freed != h.size || h.n != 0 || h.blobs != nil {
			t.Fatalf("seed %d: %d bytes are freed of %d", seed, freed, h.size)
		}
	}
}

// The array of versions grows by half and a few, up to one and a half times the horizon. It does
// not grow if the number of dropped versions at its front is at least a quarter of the others.
func TestHistoryGrowsByHalf(t *testing.T) {
	var rooms []int32
	h := History{nw: 1}
	for tick := uint64(1); tick <= 400; tick++ {
		if h.Push(tick, &codec.Values{Words: []uint64{0}}); len(rooms) == 0 || rooms[len(rooms)-1] != h.room {
			rooms = append(rooms, h.room)
		}
	}
	if want := []int32{3, 7, 13, 22, 36, 57, 88, 135, 195}; !slices.Equal(rooms, want) {
		t.Errorf("room for %v versions, want %v", rooms, want)
	}
	for _, c := range []struct{ gone, room int32 }{{0, 33}, {3, 28}, {4, 27}, {5, 20}, {19, 20}} {
		h := History{nw: 1}
		h.Resize(20)
		h.first, h.n = c.gone, 20-c.gone
		if h.Draft(); h.room != c.room || h.first != 0 {
			t.Errorf("after %d of 20 are gone there is room for %d, want %d; the first is at %d", c.gone, h.room, c.room, h.first)
		}
	}
}
