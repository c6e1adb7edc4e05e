package netvar

import (
	"errors"
	"math"
	"testing"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

// forger writes packets that no server would send. Its replica has one rock, in slot 0: versions
// 80, 90, 95 and 97 to 100 of the lifetime of tick 80. They fill the history, which grows before
// the next one.
type forger struct {
	schema
	t *testing.T
	r *Replica
}

// forged is a packet: its header, its context, and its records.
type forged struct {
	header
	at, span uint64 // as on the wire
	bent     bool
	records  []func(*wire.BitWriter, *context)
}

func newForger(t *testing.T) *forger {
	t.Helper()
	f := &forger{schema: newSchema(t), t: t}
	f.r = NewReplica(f.table)
	f.must(80, f.head(recordHead{Kind: recordFull, Version: 80, Life: 80, Class: uint64(f.rock.index), Gen: 1}))
	f.must(90, f.head(recordHead{Kind: recordDelta, Version: 90, Base: 80}))
	f.must(95, f.head(recordHead{Kind: recordDelta, Version: 95, Base: 90}))
	for tick := uint64(97); tick <= 100; tick++ {
		f.must(tick, f.head(recordHead{Kind: recordDelta, Version: tick, Base: 95}))
	}
	if c, _ := f.r.Get(makeID(0, 1)); c.hist.n != 7 || c.hist.drafts() == 0 {
		t.Fatalf("the history has %d versions and room for more", c.hist.n)
	}
	return f
}

func (f *forger) must(tick uint64, records ...func(*wire.BitWriter, *context)) {
	f.t.Helper()
	p := f.packet(tick)
	p.records = records
	if _, err := f.r.Apply(p.bytes()); err != nil {
		f.t.Fatal(err)
	}
}

// packet returns a packet of a tick without records.
func (f *forger) packet(tick uint64) *forged {
	return &forged{header: header{Tick: tick, Packet: 1, Count: 1}}
}

func (p *forged) bytes() []byte {
	var w wire.BitWriter
	w.Reset(appendHeader(nil, &p.header))
	x := context{tick: p.Tick, prev: -1}
	if w.PutLen(p.at); p.at > 0 {
		if w.PutLen(p.span); p.span > 0 {
			w.Bit(p.bent)
		}
		x.asOf = p.Tick - p.at
	}
	for _, put := range p.records {
		put(&w, &x)
	}
	padding := w.Flush()
	b := w.Bytes()
	b[atFlags] |= byte(padding << atPadding)
	return b
}

// head is a record with any head, and with a delta without changes.
func (f *forger) head(h recordHead) func(*wire.BitWriter, *context) {
	return func(w *wire.BitWriter, x *context) {
		x.putHead(w, &h)
		switch c := f.table.class(h.Class); {
		case h.Kind == recordDelta:
			putNothing(w, f.rock)
		case h.Kind == recordFull && c != nil:
			putNothing(w, c)
		}
	}
}

// putNothing writes a delta without changes.
func putNothing(w *wire.BitWriter, c *Class) {
	c.plan.PutDelta(w, &c.zero, &c.zero, new(codec.Trend))
}

// raw is a record of slot 0 that begins with these bits and numbers.
func (f *forger) raw(kind uint64, numbers ...uint64) func(*wire.BitWriter, *context) {
	return func(w *wire.BitWriter, _ *context) {
		putGap(w, 0)
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
	head := func(h recordHead) edit {
		return func(f *forger, p *forged) { p.records = append(p.records, f.head(h)) }
	}
	full := func(life, version uint64, gen uint32, change func(*recordHead)) edit {
		return func(f *forger, p *forged) {
			h := recordHead{Kind: recordFull, Version: version, Life: life, Class: uint64(f.rock.index), Gen: gen}
			if change != nil {
				change(&h)
			}
			p.records = append(p.records, f.head(h))
		}
	}
	raw := func(kind uint64, numbers ...uint64) edit {
		return func(f *forger, p *forged) { p.records = append(p.records, f.raw(kind, numbers...)) }
	}
	slot := func(n int) func(*recordHead) { return func(h *recordHead) { h.Slot = n } }
	class := func(n uint64) func(*recordHead) { return func(h *recordHead) { h.Class = n } }
	says := func(change func(*header)) edit { return func(_ *forger, p *forged) { change(&p.header) } }
	all := func(edits ...edit) edit {
		return func(f *forger, p *forged) {
			for _, e := range edits {
				e(f, p)
			}
		}
	}
	delta := func(slot int, version, base uint64) edit {
		return head(recordHead{Kind: recordDelta, Slot: slot, Version: version, Base: base})
	}
	despawn := head(recordHead{Kind: recordDespawn})
	for _, c := range []struct {
		what string
		edit edit
		want error
	}{
		{"nothing", all(), nil},
		{"as of tick 1", at(now-1, 0), nil},
		{"as of tick 0", at(now, 0), ErrRecord},
		{"a trend from tick 1", at(now-codec.MaxTrend, 37), nil},
		{"a trend from tick 0", at(now-codec.MaxTrend, 38), nil},
		{"the longest trend", at(1, codec.MaxTrend), nil},
		{"a longer trend", at(1, codec.MaxTrend+1), ErrHeader},
		{"the trend that leads ahead furthest", at(codec.MaxTrend, 1), nil},
		{"a trend that leads ahead further", at(codec.MaxTrend+1, 1), ErrHeader},
		{"no trend from before that", at(codec.MaxTrend+1, 0), nil},
		{"a trend from before all ticks", at(now-20, 20), ErrHeader},
		{"a trend that is bent since tick 1", bent(62, 19), nil},
		{"a trend that is bent since tick 0", bent(63, 19), ErrHeader},
		{"the same trend without a bend", at(63, 19), nil},

		{"the last slot", full(now, now, 1, slot(MaxSlots-1)), nil},
		{"a slot behind it", full(now, now, 1, slot(MaxSlots)), ErrSlot},
		{"the last slot after another", all(despawn, full(now, now, 1, slot(MaxSlots-1))), nil},
		{"a slot behind it after another", all(despawn, full(now, now, 1, slot(MaxSlots))), ErrSlot},

		{"a delta from the newest version", all(at(1, 0), delta(0, now, 0)), nil},
		{"a delta from the oldest version", all(at(now-80, 0), delta(0, now, 0)), nil},
		{"a delta from before it", all(at(now-79, 0), delta(0, now, 0)), ErrBaseline},
		{"a delta of no object", all(at(1, 0), delta(1, now, 0)), ErrBaseline},
		{"a delta without a mark", delta(0, now, 0), ErrRecord},
		{"an older delta without a mark", raw(0b001, 1), ErrRecord},
		{"a delta of the newest version again", all(at(now-95, 0), raw(0b001, 1)), nil},
		{"a delta of an older version", all(at(now-95, 0), raw(0b001, 2)), ErrOrder},
		{"a delta that leads to where it begins", all(at(1, 0), raw(0b001, 1)), ErrRecord},
		{"a delta of tick 0", all(at(now-80, 0), raw(0b001, now)), ErrRecord},

		{"a delta from a version", delta(0, now, 95), nil},
		{"a delta from a version that is not there", delta(0, now, 94), ErrBaseline},
		{"a delta from tick 1", raw(0b101, 0, now-2), ErrBaseline},
		{"a delta from tick 0", raw(0b101, 0, now-1), ErrRecord},
		{"a delta from no tick", raw(0b101, 0, math.MaxUint64), ErrRecord},
		{"the newest version from another", raw(0b101, 1, 4), nil},
		{"an older version from another", raw(0b101, 2, 3), ErrOrder},

		{"a full record of a new object", full(now-1, now, 1, slot(1)), nil},
		{"a full record of the first tick", full(1, 1, 1, slot(1)), nil},
		{"a lifetime from tick 0", raw(0b011, now), ErrRecord},
		{"a full version of tick 0", raw(0b011, 0, now), ErrRecord},
		{"the last class", full(now, now, 1, class(2)), nil},
		{"a class behind it", full(now, now, 1, class(3)), ErrClass},
		{"the last generation", full(now, now, math.MaxUint32, slot(1)), nil},
		{"the newest version in full", full(80, 100, 1, nil), nil},
		{"an older version in full", full(80, 99, 1, nil), ErrOrder},
		{"an older lifetime", full(79, now, 1, nil), ErrOrder},
		{"a later lifetime", full(81, 90, 1, nil), nil},
		{"a later lifetime of another class", full(81, 90, 2, class(0)), nil},
		{"another class of this lifetime", full(80, now, 1, class(0)), ErrRecord},
		{"another generation of this lifetime", full(80, now, 2, nil), ErrRecord},
		{"a despawn", despawn, nil},
		{"a despawn of nothing", head(recordHead{Kind: recordDespawn, Slot: 5}), nil},

		{"no count", says(func(h *header) { h.Count = 0 }), ErrHeader},
		{"the largest count", says(func(h *header) { h.Count, h.Index = MaxPackets, MaxPackets-1 }), nil},
		{"a larger count", says(func(h *header) { h.Count = MaxPackets + 1 }), ErrHeader},
		{"an index behind the last", says(func(h *header) { h.Count, h.Index = 3, 3 }), ErrHeader},
		{"packet 0", says(func(h *header) { h.Packet = 0 }), ErrHeader},
		{"the last packet that there may be", says(func(h *header) { h.Packet = 1<<53 - 1 }), nil},
		{"a packet behind it", says(func(h *header) { h.Packet = 1 << 53 }), ErrHeader},
		{"complete without a digest", says(func(h *header) { h.Complete = true }), ErrHeader},
		{"all is left", says(func(h *header) { h.HasLoading, h.Left, h.Total = true, 9, 9 }), nil},
		{"more than all is left", says(func(h *header) { h.HasLoading, h.Left, h.Total = true, 10, 9 }), ErrHeader},
		{"as many as there are slots", says(func(h *header) { h.HasLoading, h.Total = true, MaxSlots }), nil},
		{"more than there are slots", says(func(h *header) { h.HasLoading, h.Total = true, MaxSlots+1 }), ErrHeader},
	} {
		f := newForger(t)
		p := f.packet(now)
		c.edit(f, p)
		size, tick := f.r.size(), f.r.Tick()
		a, err := f.r.Apply(p.bytes())
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
		switch st := f.r.Stats(); {
		case c.want == nil && (!a.Ack || st.Refused != 0 || f.r.Tick() != now || st.Records != uint64(7+len(p.records))):
			t.Errorf("%s: %+v, %+v", c.what, a, *st)
		case c.want != nil && (a != Applied{} || st.Refused != 1 || f.r.Tick() != tick || f.r.size() != size || f.r.ids()[0] != makeID(0, 1)):
			t.Errorf("%s: %+v, %+v: %d bytes, want %d", c.what, a, *st, f.r.size(), size)
		}
	}
}
