package netvar

import (
	"slices"
	"testing"
	"unsafe"
)

// dossier is read by four kinds of clients.
type dossier struct {
	Page   int32
	Secret int32 `net:"read=secret"`
	Plan   int32 `net:"read=plan"`
}

type byKind struct{}

func (byKind) Ask(*Object) {}

func (byKind) Withheld(_ *Object, p *Peer) Rules { return Rules(p.Handle.(int) % 4 << 1) }

// archive is a world of many objects, ten clients that have all of them, and some edits in each
// tick.
type archive struct {
	w       *World
	objects []*Object
	peers   []*Peer
	packets [][]byte
	tick    uint64
}

func newArchive(tb testing.TB) *archive {
	class := classOf[dossier](tb, "dossier")
	a := &archive{w: NewWorld(NewTable(class)), packets: make([][]byte, 0, MaxPackets)}
	a.w.SetReaders(class, byKind{})
	for range 10_000 {
		a.objects = append(a.objects, a.w.Spawn(class, unsafe.Pointer(&dossier{Page: 1, Secret: 2, Plan: 3}), 0, 1))
	}
	for i := range 10 {
		p := a.w.NewPeer(1)
		p.Handle = i
		a.peers = append(a.peers, p)
	}
	for a.peers[0].owed.count() > 10*4 {
		a.step()
	}
	a.w.stats = Stats{}
	return a
}

// step is a tick in which all that is sent arrives.
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
// the most slots that the digests of one tick have looked at.
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

// Ten clients that ask for four digests in every second, of 10 000 objects, cost a fraction of a
// pass in each tick, and what some of them may not read is hashed once for all who may read the
// same.
func TestDigestsOfTenClientsCostLittle(t *testing.T) {
	a := newArchive(t)
	const ticks = 300
	most := a.ask(4, 60, ticks)
	s, want := &a.w.stats, uint64(10*4*ticks/60)
	if s.Digests != want || s.DigestSlots != want*10_000 || s.DigestSlots/ticks > 7000 || most > 20_000 {
		t.Errorf("%d digests looked at %d slots, at most %d in a tick", s.Digests, s.DigestSlots, most)
	}
	if s.Hashed < 40_000 || s.Hashed > 4*(10_000+s.Versions) {
		t.Errorf("%d values were hashed, of %d that have changed", s.Hashed, s.Versions)
	}
}

// However often clients ask, the digests of a tick have a bound, and every client gets its share.
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
	if low, high := slices.Min(got[:]), slices.Max(got[:]); high-low > 1 {
		t.Errorf("the clients got from %d to %d digests", low, high)
	}
}

// What is remembered of an object is that of its newest version, for more sets of rules than it
// remembers too.
func TestMaskedHashesAreOfTheNewestVersion(t *testing.T) {
	class := classOf[sealed](t, "sealed")
	w := NewWorld(NewTable(class))
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
				mask := o.class.appendMask(nil, Rules(i+1)<<1)
				if got, want := w.valueHash(p, 0), o.hashNewest(mask, &scratch); got != want {
					t.Fatalf("tick %d, client %d: the hash is %x, want %x", tick, i, got, want)
				}
			}
		}
		if n := w.stats.Hashed; len(o.masked) != maxMaskedHashes || tick%2 == 0 && n > 3*sets-2*(maxMaskedHashes-1) {
			t.Fatalf("tick %d: %d of %d were hashed, and %d are remembered", tick, n, 3*sets, len(o.masked))
		}
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

func (byNumber) Ask(*Object) {}

func (byNumber) Withheld(_ *Object, p *Peer) Rules { return Rules(p.Handle.(int)+1) << 1 }

// BenchmarkDigests is a tick of ten clients over 10 000 objects, with what their digests cost at
// the rate that a server grants, and without.
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
