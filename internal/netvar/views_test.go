package netvar

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// captains is a fleet in which each object has a field that only its owner reads.
func captains(tb testing.TB, crates, clients int) *fleet {
	return newFleetOf(tb, classOf[captain](tb, "captain"), crates, clients, twoBaselines, 0)
}

// A withheld field does not make objects unsteady: neither those that a client does not own, nor
// its own.
func TestAnOwnersFieldKeepsObjectsSteady(t *testing.T) {
	const crates, clients = 256, 32
	play := func(f *fleet, moving int) Stats {
		for range 20 {
			f.step(moving)
		}
		f.begin()
		for range 8 {
			for i, o := range f.crates {
				if i%8 == 0 && o.WireClass().Rules() != nil { // only its owner reads the change
					f.w.Edit(o)
					live[captain](o).Ammo++
				}
			}
			f.step(moving)
		}
		st := *f.w.Stats()
		st.Encoded -= f.counts.Encoded
		st.Records -= f.counts.Records
		st.InRuns -= f.counts.InRuns
		st.Bytes -= f.counts.Bytes
		return st
	}
	for _, moving := range []int{crates, 8} {
		f := captains(t, crates, clients)
		open, own := play(newFleet(t, crates, clients, twoBaselines, 0), moving), play(f, moving)
		if n := len(f.w.runs[0].by); moving == crates && n > 4 {
			t.Errorf("%d runs of 64 slots have a place, though nobody asks for most of them again", n)
		}
		t.Logf("%d move: %d records, %d in runs, %d encoded, %d bytes; with a field for owners %d, %d, %d, %d", moving, open.Records, open.InRuns, open.Encoded, open.Bytes,
			own.Records, own.InRuns, own.Encoded, own.Bytes)
		if open.InRuns != open.Records || own.InRuns != own.Records {
			t.Errorf("%d of %d records go in runs, and with a field for owners %d of %d", open.InRuns, open.Records, own.InRuns, own.Records)
		}
		// Owners are sent their ammunition, twice.
		if own.Records < open.Records || own.Records > open.Records+8*2*crates/8 {
			t.Errorf("%d records, with a field for owners %d", open.Records, own.Records)
		}
		// Each once more for its owner, and the fields that only the owner reads.
		if most := 2*open.Encoded + 8*2*crates/8; own.Encoded > most {
			t.Errorf("%d records are encoded, with a field for owners %d, want at most %d", open.Encoded, own.Encoded, most)
		}
	}
}

// BenchmarkOwnersField: 1 000 objects that all move, to 200 clients, with and without one field for
// owners only, in turn. The ratio should be at most 2.
func BenchmarkOwnersField(b *testing.B) {
	open, own := newFleet(b, 1000, 200, twoBaselines, 0), captains(b, 1000, 200)
	open.begin()
	own.begin()
	b.ReportAllocs()
	for b.Loop() {
		open.step(1000)
		own.step(1000)
	}
	whole := func(f *fleet) float64 {
		return (f.spent.capture + f.spent.encode + f.spent.ack).Seconds() * 1000 / float64(f.spent.ticks)
	}
	b.ReportMetric(whole(open), "open-ms/tick")
	b.ReportMetric(whole(own), "owners-ms/tick")
	b.ReportMetric(whole(own)/whole(open), "owners/open")
	b.ReportMetric(own.spent.encode.Seconds()/open.spent.encode.Seconds(), "encode-owners/open")
	b.ReportMetric(own.spent.ack.Seconds()/open.spent.ack.Seconds(), "ack-owners/open")
	b.ReportMetric(own.spent.capture.Seconds()/open.spent.capture.Seconds(), "capture-owners/open")
}

// barge has records of a hundred bytes and more.
type barge struct {
	X, Y, Z float32 `net:"quant=1/512,range=-32:32"`
	Yaw     float32 `net:"quant=1/256"`
	Log     [16]int64
}

// Runs have fewer records if these are too large for a run of 64, down to one: all are encoded once
// for all clients, in about as many packets as individual records.
func TestLargeRecordsGoInShorterRuns(t *testing.T) {
	const crates, clients = 192, 8
	for _, logged := range []int{1, 3, 9, 16} { // number of changing fields
		f := newFleetOf(t, classOf[barge](t, "barge"), crates, clients, []uint64{3}, 0)
		step := func() {
			for _, o := range f.crates {
				f.w.Edit(o)
				for i := range logged {
					live[barge](o).Log[i] += int64(f.random.Uint64()>>16) - 1<<47
				}
			}
			f.tick++
			f.acknowledge()
			f.w.Capture(f.tick)
			for i := range f.clients {
				c := &f.clients[i]
				before := f.w.stats.Encoded
				packets, first := c.peer.AppendSnapshot(c.packets[:0], f.tick, Limit{Packets: packet.MaxPackets, PacketSize: packet.MaxSize})
				c.packets, c.encoded = packets, c.encoded+f.w.stats.Encoded-before
				c.sent[f.tick%uint64(len(c.sent))] = Range{first, first + uint64(len(packets)) - 1}
			}
		}
		for f.tick%widthTicks != 5 {
			step()
		}
		f.begin()
		for range 4 {
			step()
		}
		st := f.w.Stats()
		records := st.Records - f.counts.Records
		if inRuns := st.InRuns - f.counts.InRuns; inRuns != records || records != 4*crates*clients {
			t.Errorf("%d numbers: %d of %d records go in runs", logged, inRuns, records)
		}
		if encoded := st.Encoded - f.counts.Encoded; encoded > 4*crates*5/4 {
			t.Errorf("%d numbers: %d records are encoded, want %d", logged, encoded, 4*crates)
		}
		most := float64(st.Bytes-f.counts.Bytes) / packet.MaxSize
		if packets := float64(st.Packets - f.counts.Packets); packets > most*1.6 {
			t.Errorf("%d numbers: %v packets of what fits %.0f", logged, packets, most)
		} else {
			t.Logf("%d numbers: %d bytes a record, %d slots a run, %d encoded for %d, %v packets of what fits %.0f", logged, (st.Bytes-f.counts.Bytes)/records, f.w.runs[0].width,
				st.Encoded-f.counts.Encoded, 4*crates, packets, most)
		}
	}
}

// With any sharing, each client has exactly the fields that it may read: in runs, and in parts of
// other clients' runs, if clients own some of the moving objects, a whole block, or none.
func TestClientsShareWithoutReadingMore(t *testing.T) {
	for _, set := range []struct{ crates, clients, owners, moving int }{{128, 12, 12, 128}, {128, 12, 12, 8}, {128, 12, 2, 8}, {70, 66, 66, 70}, {140, 2, 2, 140}} {
		f := newFleetOf(t, classOf[captain](t, "captain"), set.crates, set.clients, []uint64{3}, 0)
		for i, o := range f.crates {
			f.w.SetOwner(o, uint64(1+i%set.owners))
		}
		var replicas []*replica.Replica
		for i := range f.clients {
			f.clients[i].peer.RequestFull()
			r := replica.New(f.w.table)
			r.StartAt(f.tick)
			replicas = append(replicas, r)
		}
		inRuns := f.w.Stats().InRuns
		for tick := range 16 {
			for i, o := range f.crates {
				if (i+tick)%5 == 0 && tick%3 > 0 {
					f.w.Edit(o)
					live[captain](o).Ammo += int32(1 + i)
				}
			}
			f.step(set.moving)
			for i, r := range replicas {
				c := &f.clients[i]
				for _, b := range c.packets {
					if _, err := r.Apply(b); err != nil {
						t.Fatalf("%+v, tick %d, client %d: %v", set, tick, i, err)
					}
				}
				r.Events()
				for _, o := range f.crates {
					var want codec.Values
					f.w.permit(&want, o, o.Hist.Len()-1, ownersRead{}.Withheld(o, &c.peer.Viewer)&ownerRule, 0)
					got, ok := r.Get(o.ID())
					if !ok {
						t.Fatalf("%+v, tick %d: client %d lacks %v", set, tick, i, o.ID())
					}
					if has := got.Hist.Newest(); !o.WireClass().Equal(&has, &want) || got.Changed() != c.peer.View(o.Slot()).Version(o) {
						t.Fatalf("%+v, tick %d: client %d has %v of %v, version %d, want %v", set, tick, i, has, o.ID(), got.Changed(), want)
					}
				}
			}
		}
		if f.w.Stats().InRuns == inRuns {
			t.Errorf("%+v: nothing goes in runs", set)
		}
	}
}

// A client that may not read the changes has an old version, which the history has dropped: it is
// the newest that the client may read, from its exact tick on.
func TestTheNewestReadableVersionIsKnownHoweverOld(t *testing.T) {
	class := classOf[captain](t, "captain")
	w := NewWorld(state.NewTable(class))
	var value captain
	o := w.Spawn(class, unsafe.Pointer(&value), 1, 1)
	w.Capture(1)
	const last = 5 // the last change that all clients may read
	for tick := uint64(2); tick <= 3*state.Horizon; tick++ {
		w.Edit(o)
		if value.Ammo++; tick == last {
			value.X++
		}
		w.Capture(tick)
		for _, asOf := range []uint64{last, last + 1, tick - 1, tick} {
			if asOf < last || asOf > tick {
				continue
			}
			if got := (state.View{Withheld: ownerRule}).AsOf(o, asOf); got != last {
				t.Fatalf("tick %d: who may not read the ammunition has version %d as of %d, want %d", tick, got, asOf, last)
			}
		}
	}
}

// For dropped versions the object stores the tick since which the readable fields equal those of
// the oldest kept version: the last change of the owner or of a field that the client may read.
func TestTheOldestVersionIsFoundByReadableFields(t *testing.T) {
	const first, second = 5, 100
	class := classOf[captain](t, "captain")
	for name, change := range map[string]func(*World, *state.Object, *captain){
		"a field":   func(_ *World, _ *state.Object, c *captain) { c.X++ },
		"the owner": func(w *World, o *state.Object, _ *captain) { w.SetOwner(o, o.Owner()+1) },
	} {
		w := NewWorld(state.NewTable(class))
		var value captain
		o := w.Spawn(class, unsafe.Pointer(&value), 1, 1)
		w.Capture(1)
		for tick := uint64(2); tick <= 3*state.Horizon; tick++ {
			w.Edit(o)
			if value.Ammo++; tick == first || tick == second {
				change(w, o, &value)
			}
			w.Capture(tick)
			if tick < second {
				continue
			}
			want := uint64(first)
			if tick > second+state.Horizon {
				want = 0 // unknown
			}
			if got := (state.View{Withheld: ownerRule}).AsOf(o, second-1); got != want && tick != second+state.Horizon {
				t.Fatalf("%s, tick %d: who may not read the ammunition had version %d as of %d, want %d", name, tick, got, second-1, want)
			}
		}
	}
}

// Of versions with equal readable fields the client's version as of a tick is the first.
func TestTheVersionAsOfATickIsTheFirstThatLooksTheSame(t *testing.T) {
	class := classOf[captain](t, "captain")
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 44))
		w := NewWorld(state.NewTable(class))
		const ticks = 40
		var value captain
		o := w.Spawn(class, unsafe.Pointer(&value), 1, 1)
		// by tick, for a client that reads all fields and for another one
		open, some := [ticks + 1]uint64{}, [ticks + 1]uint64{}
		for tick := uint64(1); tick <= ticks; tick++ {
			open[tick], some[tick] = open[tick-1], some[tick-1]
			what := rng.IntN(5)
			if tick == 1 {
				what = 0
			}
			switch w.Edit(o); what {
			case 0:
				value.X = float32(tick) / 512
				open[tick], some[tick] = tick, tick
			case 1:
				w.SetOwner(o, o.Owner()+1)
				open[tick], some[tick] = tick, tick
			case 2, 3:
				value.Ammo++
				open[tick] = tick
			}
			w.Capture(tick)
			for t0 := uint64(1); t0 <= tick; t0++ {
				if got := (state.View{}).AsOf(o, t0); got != open[t0] {
					t.Fatalf("seed %d, tick %d: who reads all has version %d as of %d, want %d", seed, tick, got, t0, open[t0])
				}
				if got := (state.View{Withheld: ownerRule}).AsOf(o, t0); got != some[t0] {
					t.Fatalf("seed %d, tick %d: who does not has version %d as of %d, want %d", seed, tick, got, t0, some[t0])
				}
			}
		}
	}
}
