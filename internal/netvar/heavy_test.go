package netvar

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// diary is a class of kilobytes that all change in every tick.
type diary struct {
	Page int32
	Text []byte `net:"max=4000"`
	Mood int32
}

// The bytes that a server keeps of an object are bounded, for any size. A client without a kept
// baseline is sent full records until it is nearer, and both agree in the end. A near client is not
// affected.
func TestVersionsAreBoundedInBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	class := classOf[diary](t, "diary")
	w := NewWorld(state.NewTable(class))
	o := w.Spawn(class, unsafe.Pointer(&diary{Text: make([]byte, 4000)}), 0, 1)
	type end struct {
		p     *Peer
		r     *replica.Replica
		delay uint64
		large []uint64
		acks  map[uint64][]Range
	}
	var ends []*end
	for _, delay := range []uint64{2, 120} {
		ends = append(ends, &end{p: w.NewPeer(1), r: replica.New(w.table), delay: delay, acks: map[uint64][]Range{}})
	}
	most := 0
	for tick := uint64(1); tick < 1200; tick++ {
		if w.Edit(o); tick < 500 {
			d := live[diary](o)
			d.Page++
			for range 40 { // a part of the text: small enough for a packet
				d.Text[rng.IntN(len(d.Text))]++
			}
			if tick%50 < 30 { // in the other ticks no change: then versions share the blob
				d.Text[0]++
			}
		}
		w.Capture(tick)
		size := 0
		for i := range o.Hist.Len() {
			size += 8 * (o.WireClass().Words() + 1)
			for _, b := range o.Hist.BlobsOf(i) {
				size += len(b)
			}
		}
		most = max(most, size)
		for _, e := range ends {
			if e.p.Ack(e.acks[tick]); len(e.large) > 0 && tick%e.delay == 0 {
				e.p.AckLarge(e.large[len(e.large)-1])
			}
			packets, _ := snap(e.p, tick, Limit{Packets: 10, PacketSize: packet.MaxSize, Reliable: true})
			for _, b := range e.p.Large() {
				id, err := e.r.ApplyLarge(b)
				if err != nil {
					t.Fatal(err)
				}
				e.large = append(e.large, id)
			}
			for _, b := range packets {
				a, err := e.r.Apply(b)
				if err != nil {
					t.Fatalf("tick %d, delay %d: %v", tick, e.delay, err)
				}
				if a.Ack {
					e.acks[tick+e.delay] = append(e.acks[tick+e.delay], Range{a.Packet, a.Packet})
				}
			}
			e.r.Events()
		}
	}
	if most > state.MaxHistory || most < state.MaxHistory/2 {
		t.Errorf("the versions take up to %d bytes, want at most %d, and nearly that", most, state.MaxHistory)
	}
	if w.stats.FullEvicted+w.stats.FullLarge == 0 || !o.Hist.Evicted {
		t.Errorf("no baseline was ever gone: %+v", w.stats)
	}
	for _, e := range ends {
		c, ok := e.r.Get(o.ID())
		if !ok || live[diary](c).Page != live[diary](o).Page || string(live[diary](c).Text) != string(live[diary](o).Text) || e.p.pending.Count() > 0 {
			t.Errorf("delay %d: the client has %v", e.delay, ok)
		}
	}
}

// ledger is a class of which a server keeps only 27 versions.
type ledger struct {
	X    int32
	Rows []int32 `net:"max=2900"`
}

// A server does not treat an evicted version as one that never existed: the client would apply a
// trend where the server has applied none. After a burst of large versions only a small field
// changes.
func TestTrendsNeverComeFromEvictedVersions(t *testing.T) {
	step := 8
	if os.Getenv("NETLOOP_VERIFY") != "" {
		step = 1
	}
	evicted := 0
	for edits := 27; edits <= 60; edits += step {
		for delay := 16; delay <= 35; delay += step {
			evicted += playLedger(t, edits, delay)
		}
	}
	if evicted == 0 {
		t.Error("no trend would ever have come from an evicted version")
	}
}

// playLedger edits a row in so many ticks, and then only X, for a client that acknowledges after so
// many ticks. It returns the number of snapshots with an existing baseline and a trend from an
// evicted version.
func playLedger(t *testing.T, edits, delay int) (evicted int) {
	t.Helper()
	const still = 200
	class := classOf[ledger](t, "ledger")
	w := NewWorld(state.NewTable(class))
	l := &ledger{Rows: make([]int32, 2900)}
	for i := range l.Rows {
		l.Rows[i] = 1<<30 + int32(i)
	}
	o := w.Spawn(class, unsafe.Pointer(l), 0, 1)
	p, r := w.NewPeer(1), replica.New(w.table)
	acks := map[uint64]Range{}
	for tick := uint64(1); tick < uint64(still+edits+2*delay); tick++ {
		if n := int(tick) - still; n >= 0 {
			if w.Edit(o); n < edits {
				l.Rows[n]++
			} else {
				l.X += 3
			}
		}
		w.Capture(tick)
		if g, ok := acks[tick]; ok {
			p.Ack([]Range{g})
		}
		packets, _ := snap(p, tick, wide)
		for _, b := range p.Large() {
			id, err := r.ApplyLarge(b)
			if err != nil {
				t.Fatal(err)
			}
			p.AckLarge(id)
		}
		for _, b := range packets {
			a, err := r.Apply(b)
			if err != nil {
				t.Fatalf("%d edits, acknowledged after %d ticks: tick %d: %v", edits, delay, tick, err)
			}
			acks[tick+uint64(delay)] = Range{a.Packet, a.Packet}
		}
		if from := p.cut.origin; o.Hist.Floor(from.AsOf, o.Changed()) >= 0 && o.Hist.Floor(from.TrendFrom, o.Changed()) < 0 {
			evicted++
		}
		if c, ok := r.Get(o.ID()); ok && len(p.Large()) == 0 && p.large.bytes == 0 {
			if has := live[ledger](c); has.X != l.X || !slices.Equal(has.Rows, l.Rows) {
				t.Fatalf("%d edits, acknowledged after %d ticks: tick %d: the client has X %d, want %d", edits, delay, tick, has.X, l.X)
			}
		}
	}
	return evicted
}
