package packet

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

// Guard: a header or record field without an encoder fails, and so does one that the sample here
// does not set.
func TestGuardEveryHeaderAndRecordFieldIsEncoded(t *testing.T) {
	h := Header{Tick: 1<<40 + 5, Packet: 300, Index: 2, Count: 3, HasDigest: true, Complete: true, HasBehind: true, Behind: 200,
		HasLoading: true, Left: 3, Total: 70, Digest: math.MaxUint64 - 1, Padding: 5}
	unset(t, reflect.ValueOf(h), nil)
	b := AppendHeader(nil, &h)
	b[AtFlags] |= 5 << AtPadding // as cutter.close does
	r := wire.NewReader(b)
	var back Header
	ReadHeader(&r, 1<<40, &back)
	if err := r.Done(); err != nil || back != h {
		t.Errorf("header %+v became %+v, %v", h, back, err)
	}
	const tick = 1<<40 + 5
	covered := map[string]bool{}
	heads := []Head{
		{Kind: Delta, Slot: 9, Version: tick},
		{Kind: Delta, Slot: 9, Version: tick - 3},
		{Kind: Delta, Slot: 9, Version: tick, Base: tick - 300},
		{Kind: Delta, Slot: MaxSlots - 1, Version: tick - 2, Base: 1},
		{Kind: Full, Slot: 11, Version: tick - 1, Life: tick - 9, Class: 5, Gen: math.MaxUint32},
		{Kind: Full, Slot: 11, Version: tick, Life: tick, Class: 5, Gen: 1, Masked: true},
		{Kind: Despawn, Slot: 12},
	}
	for _, h := range heads {
		unset(t, reflect.ValueOf(h), covered)
		for _, prev := range []int{-1, 8} {
			out := Context{Tick: tick, Prev: prev, AsOf: tick - 7, TrendFrom: tick - 9}
			in := out
			var w wire.BitWriter
			out.PutHead(&w, &h)
			size := w.Len()
			padding := w.Flush()
			r, back := wire.NewBitReader(w.Bytes(), padding), Head{}
			in.TakeHead(&r, &back)
			if r.Err() != nil || r.Left() != 0 || back != h || in != out {
				t.Errorf("record %+v became %+v, %v", h, back, r.Err())
			}
			if size > 8*MaxHead {
				t.Errorf("%d bits, more than maxRecordHead", size)
			}
		}
	}
	for i := range reflect.TypeFor[Head]().NumField() {
		if name := reflect.TypeFor[Head]().Field(i).Name; !covered[name] {
			t.Errorf("no sample sets %s", name)
		}
	}
}

// unset reports the fields of v that are zero, and adds the others to covered.
func unset(t *testing.T, v reflect.Value, covered map[string]bool) {
	t.Helper()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if covered != nil {
			covered[name] = covered[name] || !v.Field(i).IsZero()
		} else if v.Field(i).IsZero() {
			t.Errorf("the sample does not set %s", name)
		}
	}
}

// TestHeadersOutsideTheirBoundsAreRefused changes a valid header.
func TestHeadersOutsideTheirBoundsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Header)
		patch  func([]byte)
		ok     bool
	}{
		"valid":                  {ok: true},
		"the most packets":       {change: func(h *Header) { h.Index, h.Count = 63, 64 }, ok: true},
		"too many packets":       {change: func(h *Header) { h.Count = 65 }},
		"no packets":             {change: func(h *Header) { h.Count = 0 }},
		"an index of the count":  {change: func(h *Header) { h.Index = h.Count }},
		"no tick":                {change: func(h *Header) { h.Tick = 0 }},
		"no id":                  {change: func(h *Header) { h.Packet = 0 }},
		"the largest id":         {change: func(h *Header) { h.Packet = 1<<53 - 1 }, ok: true},
		"an id of 54 bits":       {change: func(h *Header) { h.Packet = 1 << 53 }},
		"all objects left":       {change: func(h *Header) { h.HasLoading, h.Left, h.Total = true, 1<<16, 1<<16 }, ok: true},
		"more left than objects": {change: func(h *Header) { h.HasLoading, h.Left, h.Total = true, 4, 3 }},
		"too many objects":       {change: func(h *Header) { h.HasLoading, h.Total = true, 1<<16+1 }},
		"complete and a digest":  {change: func(h *Header) { h.Complete, h.HasDigest = true, true }, ok: true},
		"complete, no digest":    {change: func(h *Header) { h.Complete = true }},
		"padding":                {patch: func(b []byte) { b[AtFlags] |= 7 << AtPadding }, ok: true},
		"an unknown flag":        {patch: func(b []byte) { b[AtFlags] |= 16 }},
		"another coder":          {patch: func(b []byte) { b[0]++ }},
	} {
		h := Header{Tick: 5, Packet: 1, Index: 1, Count: 3}
		if c.change != nil {
			c.change(&h)
		}
		b := AppendHeader(nil, &h)
		if c.patch != nil {
			c.patch(b)
		}
		if n, err := RecordBytes(append(b, 1, 2, 3)); c.ok && (n != 3 || err != nil) || !c.ok && !errors.Is(err, ErrHeader) {
			t.Errorf("%s: %d bytes of records, %v", name, n, err)
		}
	}
}

// TestHeaderFieldsArePatchedAtTheirOffsets changes bytes at the named offsets and reads them back.
func TestHeaderFieldsArePatchedAtTheirOffsets(t *testing.T) {
	for _, behind := range []bool{false, true} {
		h := Header{Tick: 5, Packet: 9, Index: 1, Count: 3, HasBehind: behind, HasLoading: true, Left: 1, Total: 300}
		b := AppendHeader(nil, &h)
		b[AtCount], b[h.AtLeft()] = 7, 200
		if h.Count, h.Left = 7, 200; behind {
			b[AtBehind], h.Behind = 50, 50
		}
		var got Header
		in := wire.NewReader(b)
		if ReadHeader(&in, 5, &got); got != h || in.Done() != nil {
			t.Errorf("got  %+v, %v\nwant %+v", got, in.Done(), h)
		}
		want := h
		if want.Packet, want.Index = 0, 0; got.Common() != want {
			t.Errorf("packets of a snapshot share %+v", got.Common())
		}
	}
	if got := AppendHeader(nil, &Header{Tick: 5, Packet: 1, Count: 1}); !bytes.Equal(got, []byte{Coder, 0, 0, 1, 5, 0, 0, 0, 1}) {
		t.Errorf("the least header is % x", got)
	}
}

// The header of a packet, with the longest fields that can be written, has at most MaxHeader bytes.
func TestTheLongestHeaderFitsItsBound(t *testing.T) {
	const longest = math.MaxUint64
	h := Header{Tick: longest, Packet: longest, HasBehind: true, HasLoading: true, HasDigest: true}
	x := Context{Tick: longest, AsOf: codec.MaxTrend + 1, TrendFrom: 1}
	var w wire.BitWriter
	x.Put(&w)
	w.Flush()
	if n := len(AppendHeader(nil, &h)) + len(w.Bytes()); n > MaxHeader {
		t.Errorf("it has %d bytes, want %d at most", n, MaxHeader)
	}
}

// TestAnOriginIsReadBack writes the origins that a packet can have, and some that are refused.
func TestAnOriginIsReadBack(t *testing.T) {
	const tick = 200
	for _, c := range []struct {
		from Origin
		err  error
	}{
		{Origin{}, nil},
		{Origin{AsOf: 199, TrendFrom: 199}, nil},
		{Origin{AsOf: 1, TrendFrom: 1}, nil},
		{Origin{AsOf: tick - codec.MaxTrend, TrendFrom: tick - 2*codec.MaxTrend}, nil},
		{Origin{AsOf: tick - codec.MaxTrend, TrendFrom: tick - 2*codec.MaxTrend - 1}, ErrHeader},
		{Origin{AsOf: tick - codec.MaxTrend - 1, TrendFrom: tick - codec.MaxTrend - 2}, ErrHeader},
		{Origin{AsOf: tick - codec.MaxTrend - 1, TrendFrom: tick - codec.MaxTrend - 1}, nil},
		{Origin{AsOf: 195, TrendFrom: 194, Bent: true}, nil},
	} {
		x := Context{Tick: 7, Prev: 7}
		x.Begin(tick, c.from)
		if x.Prev != -1 || x.Origin() != c.from {
			t.Errorf("%+v begins as %+v", c.from, x)
		}
		takeOrigin(t, x, c.err)
	}
	// Early ticks: no version is older than tick 1.
	takeOrigin(t, Context{Tick: 9, Prev: -1, AsOf: 5, TrendFrom: 1}, nil)
	takeOrigin(t, Context{Tick: 9, Prev: -1, AsOf: 5, TrendFrom: 0}, ErrHeader)
	takeOrigin(t, Context{Tick: 9, Prev: -1, AsOf: 5, TrendFrom: 3, Bent: true}, nil)
	takeOrigin(t, Context{Tick: 9, Prev: -1, AsOf: 6, TrendFrom: 3, Bent: true}, ErrHeader)
	var w wire.BitWriter
	w.PutLen(9)
	w.PutLen(0)
	padding := w.Flush()
	in, x := wire.NewBitReader(w.Bytes(), padding), Context{}
	if x.Take(&in, 9); !errors.Is(in.Err(), ErrRecord) {
		t.Errorf("an origin before tick 1: %v", in.Err())
	}
}

func takeOrigin(t *testing.T, x Context, want error) {
	t.Helper()
	var w wire.BitWriter
	x.Put(&w)
	padding := w.Flush()
	in, back := wire.NewBitReader(w.Bytes(), padding), Context{}
	back.Take(&in, x.Tick)
	if !errors.Is(in.Err(), want) || want == nil && (back != x || in.Left() > 0) {
		t.Errorf("%+v became %+v, %v; want %v", x, back, in.Err(), want)
	}
}

// TestAnOriginNamesItsVersions has origins with a trend, with a bent one, and close to tick 0.
func TestAnOriginNamesItsVersions(t *testing.T) {
	for _, c := range []struct {
		from         Origin
		oldest, kept uint64
	}{
		{Origin{}, 0, 0},
		{Origin{AsOf: 10, TrendFrom: 10}, 10, 10},
		{Origin{AsOf: 10, TrendFrom: 8}, 8, 6},
		{Origin{AsOf: 10, TrendFrom: 8, Bent: true}, 6, 6},
		{Origin{AsOf: 10, TrendFrom: 3}, 3, 0},
	} {
		if c.from.Oldest() != c.oldest || c.from.Kept() != c.kept {
			t.Errorf("%+v: oldest %d, kept since %d; want %d and %d", c.from, c.from.Oldest(), c.from.Kept(), c.oldest, c.kept)
		}
	}
}

// TestRecordsOutsideTheirBoundsAreRefused writes the parts of a record's head one by one. The
// packet is of tick 100; its origin is tick 90.
func TestRecordsOutsideTheirBoundsAreRefused(t *testing.T) {
	type part func(*wire.BitWriter)
	length := func(v uint64) part { return func(w *wire.BitWriter) { w.PutLen(v) } }
	kind := func(bits uint64, n uint) part { return func(w *wire.BitWriter) { w.Put(bits, n) } }
	gap := func(n int) part { return func(w *wire.BitWriter) { PutGap(w, n) } }
	delta, older, exact, full := kind(0, 1), kind(0b001, 3), kind(0b101, 3), kind(0b011, 3)
	class := func(w *wire.BitWriter) { w.PutRice(0, classRice) }
	known, unknown := Origin{AsOf: 90, TrendFrom: 90}, Origin{}
	for name, c := range map[string]struct {
		from  Origin
		parts []part
		err   error
	}{
		"a delta":                         {known, []part{gap(0), delta}, nil},
		"a delta without an origin":       {unknown, []part{gap(0), delta}, ErrRecord},
		"an older delta":                  {known, []part{gap(0), older, length(9)}, nil},
		"a delta to its own origin":       {known, []part{gap(0), older, length(10)}, ErrRecord},
		"a delta before tick 1":           {known, []part{gap(0), older, length(100)}, ErrRecord},
		"a delta from one version":        {unknown, []part{gap(0), exact, length(50), length(48)}, nil},
		"a delta from tick 0":             {unknown, []part{gap(0), exact, length(50), length(49)}, ErrRecord},
		"a delta from the largest number": {unknown, []part{gap(0), exact, length(50), length(math.MaxUint64)}, ErrRecord},
		"a full record":                   {unknown, []part{gap(0), full, length(99), length(99), class, length(math.MaxUint32 - 1), kind(0, 1)}, nil},
		"a life before tick 1":            {unknown, []part{gap(0), full, length(100), length(0), class, length(0), kind(0, 1)}, ErrRecord},
		"a full record before tick 1":     {unknown, []part{gap(0), full, length(0), length(100), class, length(0), kind(0, 1)}, ErrRecord},
		"a generation of 33 bits":         {unknown, []part{gap(0), full, length(0), length(0), class, length(math.MaxUint32), kind(0, 1)}, ErrRecord},
		"a generation of 65 bits":         {unknown, []part{gap(0), full, length(0), length(0), class, length(math.MaxUint64), kind(0, 1)}, ErrRecord},
		"the last slot":                   {known, []part{gap(MaxSlots - 1), delta}, nil},
		"a slot out of range":             {known, []part{gap(MaxSlots), delta}, ErrSlot},
		"the largest gap":                 {known, []part{gap(math.MaxInt), delta}, ErrSlot},
	} {
		var w wire.BitWriter
		for _, put := range c.parts {
			put(&w)
		}
		padding := w.Flush()
		in, h := wire.NewBitReader(w.Bytes(), padding), Head{}
		var x Context
		x.Begin(100, c.from)
		if x.TakeHead(&in, &h); !errors.Is(in.Err(), c.err) || in.Left() > 0 && c.err == nil {
			t.Errorf("%s: %v, want %v", name, in.Err(), c.err)
		}
		if c.err == nil && (h.Version > 100 || h.Slot != x.Prev || h.Kind == Full && (h.Version != 1 || h.Life != 1)) {
			t.Errorf("%s was read as %+v", name, h)
		}
	}
}
