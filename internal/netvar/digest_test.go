package netvar

import (
	stdfnv "hash/fnv"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// dossier is read by four kinds of clients.
type dossier struct {
	Page   int32
	Secret int32 `net:"read=secret"`
	Plan   int32 `net:"read=plan"`
}

type byKind struct{}

func (byKind) Ask(*state.Object) {}

func (byKind) Withheld(_ *state.Object, p *interest.Viewer) state.Rules {
	return state.Rules(p.Handle.(int) % 4 << 1)
}

// archive is a world of many objects, ten clients that have all of them, and some edits in each
// tick.
type archive struct {
	w       *World
	objects []*state.Object
	peers   []*Peer
	packets [][]byte
	tick    uint64
}

func newArchive(tb testing.TB) *archive {
	class := classOf[dossier](tb, "dossier")
	a := &archive{w: NewWorld(state.NewTable(class)), packets: make([][]byte, 0, packet.MaxPackets)}
	a.w.SetReaders(class, byKind{})
	for range 10_000 {
		a.objects = append(a.objects, a.w.Spawn(class, unsafe.Pointer(&dossier{Page: 1, Secret: 2, Plan: 3}), 0, 1))
	}
	for i := range 10 {
		p := a.w.NewPeer(1)
		p.Handle = i
		a.peers = append(a.peers, p)
	}
	for a.peers[0].pending.Count() > 10*4 {
		a.step()
	}
	a.w.stats = Stats{}
	return a
}

// step is a tick in which all packets arrive.
func (a *archive) step() {
	a.tick++
	for i := range 10 {
		o := a.objects[(int(a.tick)*10+i)%len(a.objects)]
		a.w.Edit(o)
		live[dossier](o).Page++
	}
	a.w.Capture(a.tick)
	for _, p := range a.peers {
		var first uint64
		a.packets, first = p.AppendSnapshot(a.packets[:0], a.tick, wide)
		p.Ack([]Range{{first, first + uint64(len(a.packets)) - 1}})
	}
}

// ask lets all clients ask for so many digests, every so many ticks, for so many ticks. It returns
// the maximum of slots that the digests of one tick have visited.
func (a *archive) ask(digests, every, ticks int) (most uint64) {
	for i := range ticks {
		if i%every == 0 {
			for _, p := range a.peers {
				p.RequestDigest(digests)
			}
		}
		before := a.w.stats.DigestSlots
		a.step()
		most = max(most, a.w.stats.DigestSlots-before)
	}
	return most
}

// The digests of ten clients that ask for four in every second, of 10 000 objects, cost a fraction
// of a pass in each tick. Clients with the same readable fields share the hashes.
func TestDigestsOfTenClientsCostLittle(t *testing.T) {
	a := newArchive(t)
	const ticks = 300
	most := a.ask(4, 60, ticks)
	s, want, slots := &a.w.stats, uint64(10*4*ticks/60), uint64(a.w.Slots())
	if s.Digests != want || s.DigestSlots != want*slots || s.DigestSlots/ticks > 9000 || most > 2*slots {
		t.Errorf("%d digests looked at %d slots, at most %d in a tick", s.Digests, s.DigestSlots, most)
	}
	if s.Hashed < 40_000 || s.Hashed > 4*(10_000+s.Versions) {
		t.Errorf("%d values were hashed, of %d that have changed", s.Hashed, s.Versions)
	}
}

// However often clients ask, the digests of a tick are bounded, and every client is served.
func TestDigestsTakeTurns(t *testing.T) {
	a := newArchive(t)
	const ticks = 100
	var got [10]int
	for range ticks {
		before := a.w.stats.Digests
		a.ask(MaxDigests, 1, 1)
		if n := a.w.stats.Digests - before; n > 2 {
			t.Fatalf("%d digests in one tick", n)
		}
		for i, p := range a.peers {
			if p.cut.header.HasDigest {
				got[i]++
			}
		}
	}
	if s := a.w.stats.DigestSlots; s > ticks*digestSlots+20_000 || s < ticks*digestSlots*9/10 {
		t.Errorf("the digests looked at %d slots in %d ticks", s, ticks)
	}
	if low, high := slices.Min(got[:]), slices.Max(got[:]); high-low > 2 {
		t.Errorf("the clients got from %d to %d digests", low, high)
	}
}

// A cached hash is that of the newest version, even with more sets of rules than the cache has room
// for.
func TestMaskedHashesAreOfTheNewestVersion(t *testing.T) {
	class := classOf[sealed](t, "sealed")
	w := NewWorld(state.NewTable(class))
	w.SetReaders(class, byNumber{})
	o := w.Spawn(class, unsafe.Pointer(&sealed{A: 1, B: 2, C: 3, D: 4}), 0, 1)
	const sets = 12
	for i := range sets {
		w.NewPeer(1).Handle = i
	}
	var scratch []byte
	for tick := uint64(1); tick < 20; tick++ {
		if w.Edit(o); tick%2 == 0 {
			live[sealed](o).D++
		}
		w.Capture(tick)
		w.stats.Hashed = 0
		for range 3 {
			for i, p := range w.peers {
				mask := o.WireClass().AppendMask(nil, state.Rules(i+1)<<1)
				if got, want := w.valueHash(p, 0), o.HashNewest(mask, &scratch); got != want {
					t.Fatalf("tick %d, client %d: the hash is %x, want %x", tick, i, got, want)
				}
			}
		}
		if n := w.stats.Hashed; len(w.masked[0]) != maxMaskedHashes || tick%2 == 0 && n > 3*sets-2*(maxMaskedHashes-1) {
			t.Fatalf("tick %d: %d of %d were hashed, and %d are remembered", tick, n, 3*sets, len(w.masked[0]))
		}
	}
}

// The cache fills up with hashes of any versions, and then that of the oldest version is evicted.
func TestTheOldestMaskedHashGoes(t *testing.T) {
	var cache maskedHashes
	ask := func(withheld state.Rules, version uint64) (known bool) {
		m := cache.of(withheld)
		if m.withheld != withheld || len(cache) > 8 {
			t.Fatalf("asked for %d: %+v of %d", withheld, m, len(cache))
		}
		known = m.version == version
		m.version, m.hash = version, version
		return known
	}
	for i, version := range []uint64{15, 14, 11, 13, 12, 17, 16, 18} {
		if ask(state.Rules(1<<i), version) {
			t.Errorf("the new set %d is known", i)
		}
	}
	for i, version := range []uint64{15, 14, 11, 13, 12, 17, 16, 18} {
		if !ask(state.Rules(1<<i), version) {
			t.Errorf("set %d of 8 is forgotten", i)
		}
	}
	for i, gone := range []state.Rules{1 << 2, 1 << 4, 1 << 3} {
		place := slices.IndexFunc(cache, func(m maskedHash) bool { return m.withheld == gone })
		ask(state.Rules(1<<(10+i)), 20)
		if place < 0 || cache[place].withheld != 1<<(10+i) || cache[place].hash != 20 {
			t.Errorf("new set %d does not take the place of %b: %+v", i, gone, cache)
		}
	}
}

// Digests are cut in the order of requests, at 16384 slots in a tick. After a pause a request waits
// for the next tick only.
func TestDigestsAreReservedInTheOrderOfRequests(t *testing.T) {
	w := &World{tick: 7}
	var turns []uint64
	reserve := func(slots int, tick uint64) {
		p := &Peer{w: w, entries: make([]entry, slots), tick: tick}
		w.reserve(p)
		turns = append(turns, p.turn)
	}
	for range 10 {
		reserve(10_000, 7)
	}
	w.tick = 40
	reserve(10_000, 39) // its snapshot of tick 40 is not cut yet
	reserve(6384, 40)
	reserve(1, 40)
	reserve(1, 50)
	if want := []uint64{8, 8, 9, 9, 10, 11, 11, 12, 12, 13, 40, 41, 41, 51}; !slices.Equal(turns, want) {
		t.Errorf("turns %v, want %v", turns, want)
	}
}

// The digest of the state is FNV-1a over the id and the value of each object in the order of slots.
func TestStateDigestIsOfAllThatWasCaptured(t *testing.T) {
	q := newPair(t, 0)
	a := q.spawnRock(q.w, rock{X: 3}, 1)
	gone := q.spawnRock(q.w, rock{}, 1)
	b := q.spawnShip(q.w, ship{Name: "b"}, 300, 1)
	q.deliver()
	q.w.Despawn(gone)
	q.deliver()
	q.edit(a).X = 4              // not captured
	q.spawnRock(q.w, rock{}, 99) // not captured either
	all := stdfnv.New64a()
	for _, o := range []*state.Object{a, b} {
		value, v := stdfnv.New64a(), o.Hist.Newest()
		_, _ = value.Write(o.Plan().AppendValues(wire.AppendUvarint(wire.AppendUvarint(nil, uint64(o.WireClass().Index())), o.Owner()), &v))
		_, _ = all.Write(wire.AppendUint64(wire.AppendUint64(nil, uint64(o.ID())), value.Sum64()))
	}
	q.w.stats.Hashed = 0
	for range 2 {
		if got := q.w.StateDigest(); got != all.Sum64() {
			t.Errorf("the digest is %x, want %x", got, all.Sum64())
		}
	}
	if n := q.w.stats.Hashed; n != 2 {
		t.Errorf("%d values were hashed twice over, want each of 2 once", n)
	}
}

// sealed has enough rules for many sets of them.
type sealed struct {
	A int32 `net:"read=a"`
	B int32 `net:"read=b"`
	C int32 `net:"read=c"`
	D int32 `net:"read=d"`
}

type byNumber struct{}

func (byNumber) Ask(*state.Object) {}

func (byNumber) Withheld(_ *state.Object, p *interest.Viewer) state.Rules {
	return state.Rules(p.Handle.(int)+1) << 1
}

// BenchmarkDigests is a tick of ten clients over 10 000 objects, with digests at the rate that a
// server grants, and without.
func BenchmarkDigests(b *testing.B) {
	for _, digests := range []int{0, 4} {
		b.Run([]string{"none", "", "", "", "asked for"}[digests], func(b *testing.B) {
			a := newArchive(b)
			for b.Loop() {
				if a.tick%60 == 0 {
					for _, p := range a.peers {
						p.RequestDigest(digests)
					}
				}
				a.step()
			}
		})
	}
}
