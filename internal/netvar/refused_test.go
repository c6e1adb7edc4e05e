package netvar

import (
	"errors"
	"math"
	"testing"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// forger writes packets that no server would send. Its replica has one rock, in slot 0: versions
// 80, 90, 95 and 97 to 100 of the lifetime of tick 80. They fill the history, which grows before
// the next one.
type forger struct {
	schema
	t *testing.T
	r *replica.Replica
}

// forged is a packet: its header, its context, and its records.
type forged struct {
	packet.Header
	at, span uint64 // as on the wire
	bent     bool
	records  []func(*wire.BitWriter, *packet.Context)
}

func newForger(t *testing.T) *forger {
	t.Helper()
	f := &forger{schema: newSchema(t), t: t}
	f.r = replica.New(f.table)
	f.must(80, f.head(packet.Head{Kind: packet.Full, Version: 80, Life: 80, Class: uint64(f.rock.Index()), Gen: 1}))
	f.must(90, f.head(packet.Head{Kind: packet.Delta, Version: 90, Base: 80}))
	f.must(95, f.head(packet.Head{Kind: packet.Delta, Version: 95, Base: 90}))
	for tick := uint64(97); tick <= 100; tick++ {
		f.must(tick, f.head(packet.Head{Kind: packet.Delta, Version: tick, Base: 95}))
	}
	if c, _ := f.r.Get(state.MakeID(0, 1)); c.Hist.Len() != 7 || c.Hist.Growth() == 0 {
		t.Fatalf("the history has %d versions and room for more", c.Hist.Len())
	}
	return f
}

func (f *forger) must(tick uint64, records ...func(*wire.BitWriter, *packet.Context)) {
	f.t.Helper()
	p := f.packet(tick)
	p.records = records
	if _, err := f.r.Apply(p.bytes()); err != nil {
		f.t.Fatal(err)
	}
}

// packet returns a packet of a tick without records.
func (f *forger) packet(tick uint64) *forged {
	return &forged{Header: packet.Header{Tick: tick, Packet: 1, Count: 1}}
}

func (p *forged) bytes() []byte {
	var w wire.BitWriter
	w.Reset(packet.AppendHeader(nil, &p.Header))
	x := packet.Context{Tick: p.Tick, Prev: -1}
	if w.PutLen(p.at); p.at > 0 {
		if w.PutLen(p.span); p.span > 0 {
			w.Bit(p.bent)
		}
		x.AsOf = p.Tick - p.at
	}
	for _, put := range p.records {
		put(&w, &x)
	}
	padding := w.Flush()
	b := w.Bytes()
	b[packet.AtFlags] |= byte(padding << packet.AtPadding)
	return b
}

// head is a record with any head, and with a delta without changes.
func (f *forger) head(h packet.Head) func(*wire.BitWriter, *packet.Context) {
	return func(w *wire.BitWriter, x *packet.Context) {
		x.PutHead(w, &h)
		switch c := f.table.Class(h.Class); {
		case h.Kind == packet.Delta:
			putNothing(w, f.rock)
		case h.Kind == packet.Full && c != nil:
			putNothing(w, c)
		}
	}
}

// putNothing writes a delta without changes.
func putNothing(w *wire.BitWriter, c *state.Class) {
	c.Plan().PutDelta(w, &c.Zero, &c.Zero, new(codec.Trend))
}

// raw is a record of slot 0 that begins with these bits and numbers.
func (f *forger) raw(kind uint64, numbers ...uint64) func(*wire.BitWriter, *packet.Context) {
	return func(w *wire.BitWriter, _ *packet.Context) {
		packet.PutGap(w, 0)
		w.Put(kind, 3)
		for _, n := range numbers {
			w.PutLen(n)
		}
		putNothing(w, f.rock)
	}
}

// A packet is rejected for its first error, from the first invalid value on; then no state has
// changed, and no memory is allocated for the rejected data. Values that are just valid are
// accepted.
func TestPacketsAreRefusedFromTheFirstWrongValueOn(t *testing.T) {
	type edit = func(*forger, *forged)
	const now = 101
	at := func(age, span uint64) edit { return func(_ *forger, p *forged) { p.at, p.span = age, span } }
	bent := func(age, span uint64) edit {
		return func(_ *forger, p *forged) { p.at, p.span, p.bent = age, span, true }
	}
	head := func(h packet.Head) edit {
		return func(f *forger, p *forged) { p.records = append(p.records, f.head(h)) }
	}
	full := func(life, version uint64, gen uint32, change func(*packet.Head)) edit {
		return func(f *forger, p *forged) {
			h := packet.Head{Kind: packet.Full, Version: version, Life: life, Class: uint64(f.rock.Index()), Gen: gen}
			if change != nil {
				change(&h)
			}
			p.records = append(p.records, f.head(h))
		}
	}
	raw := func(kind uint64, numbers ...uint64) edit {
		return func(f *forger, p *forged) { p.records = append(p.records, f.raw(kind, numbers...)) }
	}
	slot := func(n int) func(*packet.Head) { return func(h *packet.Head) { h.Slot = n } }
	class := func(n uint64) func(*packet.Head) { return func(h *packet.Head) { h.Class = n } }
	says := func(change func(*packet.Header)) edit { return func(_ *forger, p *forged) { change(&p.Header) } }
	all := func(edits ...edit) edit {
		return func(f *forger, p *forged) {
			for _, e := range edits {
				e(f, p)
			}
		}
	}
	delta := func(slot int, version, base uint64) edit {
		return head(packet.Head{Kind: packet.Delta, Slot: slot, Version: version, Base: base})
	}
	despawn := head(packet.Head{Kind: packet.Despawn})
	valueless := func(f *forger, p *forged) {
		p.records = append(p.records, func(w *wire.BitWriter, x *packet.Context) {
			x.PutHead(w, &packet.Head{Kind: packet.Full, Version: now, Life: 80, Class: uint64(f.rock.Index()), Gen: 2})
		})
	}
	for _, c := range []struct {
		what string
		edit edit
		want error
	}{
		{"nothing", all(), nil},
		{"as of tick 1", at(now-1, 0), nil},
		{"as of tick 0", at(now, 0), packet.ErrRecord},
		{"a trend from tick 1", at(now-codec.MaxTrend, 37), nil},
		{"a trend from tick 0", at(now-codec.MaxTrend, 38), nil},
		{"the longest trend", at(1, codec.MaxTrend), nil},
		{"a longer trend", at(1, codec.MaxTrend+1), packet.ErrHeader},
		{"the trend that leads ahead furthest", at(codec.MaxTrend, 1), nil},
		{"a trend that leads ahead further", at(codec.MaxTrend+1, 1), packet.ErrHeader},
		{"no trend from before that", at(codec.MaxTrend+1, 0), nil},
		{"a trend from before all ticks", at(now-20, 20), packet.ErrHeader},
		{"a trend that is bent since tick 1", bent(62, 19), nil},
		{"a trend that is bent since tick 0", bent(63, 19), packet.ErrHeader},
		{"the same trend without a bend", at(63, 19), nil},

		{"the last slot", full(now, now, 1, slot(packet.MaxSlots-1)), nil},
		{"a slot behind it", full(now, now, 1, slot(packet.MaxSlots)), packet.ErrSlot},
		{"the last slot after another", all(despawn, full(now, now, 1, slot(packet.MaxSlots-1))), nil},
		{"a slot behind it after another", all(despawn, full(now, now, 1, slot(packet.MaxSlots))), packet.ErrSlot},

		{"a delta from the newest version", all(at(1, 0), delta(0, now, 0)), nil},
		{"a delta from the oldest version", all(at(now-80, 0), delta(0, now, 0)), nil},
		{"a delta from before it", all(at(now-79, 0), delta(0, now, 0)), replica.ErrBaseline},
		{"a delta of no object", all(at(1, 0), delta(1, now, 0)), replica.ErrBaseline},
		{"a delta without a mark", delta(0, now, 0), packet.ErrRecord},
		{"an older delta without a mark", raw(0b001, 1), packet.ErrRecord},
		{"a delta of the newest version again", all(at(now-95, 0), raw(0b001, 1)), nil},
		{"a delta of an older version", all(at(now-95, 0), raw(0b001, 2)), replica.ErrOrder},
		{"a delta that leads to where it begins", all(at(1, 0), raw(0b001, 1)), packet.ErrRecord},
		{"a delta of tick 0", all(at(now-80, 0), raw(0b001, now)), packet.ErrRecord},

		{"a delta from a version", delta(0, now, 95), nil},
		{"a delta from a version that is not there", delta(0, now, 94), replica.ErrBaseline},
		{"a delta from tick 1", raw(0b101, 0, now-2), replica.ErrBaseline},
		{"a delta from tick 0", raw(0b101, 0, now-1), packet.ErrRecord},
		{"a delta from no tick", raw(0b101, 0, math.MaxUint64), packet.ErrRecord},
		{"the newest version from another", raw(0b101, 1, 4), nil},
		{"an older version from another", raw(0b101, 2, 3), replica.ErrOrder},

		{"a full record of a new object", full(now-1, now, 1, slot(1)), nil},
		{"a full record of the first tick", full(1, 1, 1, slot(1)), nil},
		{"a lifetime from tick 0", raw(0b011, now), packet.ErrRecord},
		{"a full version of tick 0", raw(0b011, 0, now), packet.ErrRecord},
		{"the last class", full(now, now, 1, class(2)), nil},
		{"a class behind it", full(now, now, 1, class(3)), replica.ErrClass},
		{"the last generation", full(now, now, math.MaxUint32, slot(1)), nil},
		{"the newest version in full", full(80, 100, 1, nil), nil},
		{"an older version in full", full(80, 99, 1, nil), replica.ErrOrder},
		{"an older lifetime", full(79, now, 1, nil), replica.ErrOrder},
		{"a later lifetime", full(81, 90, 1, nil), nil},
		{"a later lifetime of another class", full(81, 90, 2, class(0)), nil},
		{"another class of this lifetime", full(80, now, 1, class(0)), packet.ErrRecord},
		{"another generation of this lifetime", full(80, now, 2, nil), packet.ErrRecord},
		{"another generation, and no values", valueless, packet.ErrRecord},
		{"a despawn", despawn, nil},
		{"a single bit behind the records", func(_ *forger, p *forged) {
			p.records = append(p.records, func(w *wire.BitWriter, _ *packet.Context) { w.Bit(true) })
		}, wire.ErrShort},
		{"a despawn of nothing", head(packet.Head{Kind: packet.Despawn, Slot: 5}), nil},

		{"no count", says(func(h *packet.Header) { h.Count = 0 }), packet.ErrHeader},
		{"the largest count", says(func(h *packet.Header) { h.Count, h.Index = packet.MaxPackets, packet.MaxPackets-1 }), nil},
		{"a larger count", says(func(h *packet.Header) { h.Count = packet.MaxPackets + 1 }), packet.ErrHeader},
		{"an index behind the last", says(func(h *packet.Header) { h.Count, h.Index = 3, 3 }), packet.ErrHeader},
		{"packet 0", says(func(h *packet.Header) { h.Packet = 0 }), packet.ErrHeader},
		{"the last packet that there may be", says(func(h *packet.Header) { h.Packet = 1<<53 - 1 }), nil},
		{"a packet behind it", says(func(h *packet.Header) { h.Packet = 1 << 53 }), packet.ErrHeader},
		{"complete without a digest", says(func(h *packet.Header) { h.Complete = true }), packet.ErrHeader},
		{"all is left", says(func(h *packet.Header) { h.HasLoading, h.Left, h.Total = true, 9, 9 }), nil},
		{"more than all is left", says(func(h *packet.Header) { h.HasLoading, h.Left, h.Total = true, 10, 9 }), packet.ErrHeader},
		{"as many as there are slots", says(func(h *packet.Header) { h.HasLoading, h.Total = true, packet.MaxSlots }), nil},
		{"more than there are slots", says(func(h *packet.Header) { h.HasLoading, h.Total = true, packet.MaxSlots+1 }), packet.ErrHeader},
	} {
		f := newForger(t)
		p := f.packet(now)
		c.edit(f, p)
		size, tick := f.r.Size(), f.r.Tick()
		a, err := f.r.Apply(p.bytes())
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
		switch st := f.r.Stats(); {
		case c.want == nil && (!a.Ack || st.Refused != 0 || f.r.Tick() != now || st.Records != uint64(7+len(p.records))):
			t.Errorf("%s: %+v, %+v", c.what, a, *st)
		case c.want != nil && (a != replica.Applied{} || st.Refused != 1 || f.r.Tick() != tick || f.r.Size() != size || ids(f.r)[0] != state.MakeID(0, 1)):
			t.Errorf("%s: %+v, %+v: %d bytes, want %d", c.what, a, *st, f.r.Size(), size)
		}
	}
}
