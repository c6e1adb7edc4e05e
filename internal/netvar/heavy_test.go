package netvar

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// diary changes all of its kilobytes in every tick.
type diary struct {
	Page int32
	Text []byte `net:"max=4000"`
	Mood int32
}

// What a server keeps of an object is bounded in bytes, whatever its size. A client whose baseline is gone gets full
// records until it is nearer, and both agree in the end; one that is near notices nothing.
func TestVersionsAreBoundedInBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	class := classOf[diary](t, "diary")
	w := NewWorld(NewTable(class))
	o := w.Spawn(class, unsafe.Pointer(&diary{Text: make([]byte, 4000)}), 0, 1)
	type end struct {
		p     *Peer
		r     *Replica
		delay uint64
		large []uint64
		acks  map[uint64][]Range
	}
	var ends []*end
	for _, delay := range []uint64{2, 120} {
		ends = append(ends, &end{p: w.NewPeer(1), r: NewReplica(w.table), delay: delay, acks: map[uint64][]Range{}})
	}
	most := 0
	for tick := uint64(1); tick < 1200; tick++ {
		if w.Edit(o); tick < 500 {
			d := live[diary](o)
			d.Page++
			for range 40 { // a part of the text: small enough for a packet
				d.Text[rng.IntN(len(d.Text))]++
			}
			if tick%50 < 30 { // and in between none: then the blob is shared by versions
				d.Text[0]++
			}
		}
		w.Capture(tick)
		size := 0
		for i := range int(o.hist.n) {
			size += 8 * o.hist.stride()
			for _, b := range o.hist.blobsOf(i) {
				size += len(b)
			}
		}
		most = max(most, size)
		for _, e := range ends {
			if e.p.Ack(e.acks[tick]); len(e.large) > 0 && tick%e.delay == 0 {
				e.p.AckLarge(e.large[len(e.large)-1])
			}
			packets, _ := snap(e.p, tick, Limit{Packets: 10, PacketSize: MaxPacket, Reliable: true})
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
	if most > maxHistory || most < maxHistory/2 {
		t.Errorf("the versions take up to %d bytes, want at most %d, and nearly that", most, maxHistory)
	}
	if w.stats.FullEvicted+w.stats.FullLarge == 0 || !o.hist.evicted {
		t.Errorf("no baseline was ever gone: %+v", w.stats)
	}
	for _, e := range ends {
		c, ok := e.r.Get(o.ID())
		if !ok || live[diary](c).Page != live[diary](o).Page || string(live[diary](c).Text) != string(live[diary](o).Text) || e.p.owed.count() > 0 {
			t.Errorf("delay %d: the client has %v", e.delay, ok)
		}
	}
}
