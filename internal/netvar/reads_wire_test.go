package netvar

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// Records that violate their mask are rejected.
func TestRecordsThatDoNotRespectTheMaskAreRefused(t *testing.T) {
	q := newSquad(t, 0)
	o := q.spawn(whole(), 1)
	full := q.next()
	h := packet.Header{Tick: q.tick, Packet: 1, Count: 1}
	var w wire.BitWriter
	w.Reset(packet.AppendHeader(nil, &h))
	var x packet.Context
	x.Begin(q.tick, packet.Origin{})
	x.Put(&w)
	x.PutHead(&w, &packet.Head{Kind: packet.Full, Version: q.tick, Life: q.tick, Gen: 1, Masked: true})
	q.class.PutMask(&w, ownerRule|teamRule)
	v := o.Hist.Newest()
	q.class.Plan().PutDelta(&w, &v, &q.class.Zero, new(codec.Trend))
	padding := w.Flush()
	bad := w.Bytes()
	bad[packet.AtFlags] |= byte(padding << packet.AtPadding)
	if _, err := q.r[2].Apply(bad); !errors.Is(err, packet.ErrRecord) {
		t.Errorf("a full record with more than its mask says: %v", err)
	}
	for i := 1; i < 3; i++ {
		mustApply(t, q.r[i], q.p[i], full[i])
	}
	q.p[2].Set(0, 0) // a server that forgets the mask
	q.edit(o).Ammo = 3
	if _, err := q.r[2].Apply(q.next()[2]); !errors.Is(err, packet.ErrRecord) {
		t.Errorf("a delta of what may not be read: %v", err)
	}
}

// Rule 15: the digest is that of the readable state, the mask included.
func TestDigestHoldsTheMask(t *testing.T) {
	q := newSquad(t, 0)
	var nothing agent
	nothing.Heat = 20 // all values as if absent, with mask and without
	q.spawn(nothing, 0)
	q.w.Capture(1)
	digest := q.w.Digest(q.p[1])
	q.p[1].Set(0, 0)
	if q.w.Digest(q.p[1]) == digest {
		t.Error("the digest does not tell a field that is zero from one that may not be read")
	}
}

func TestRulesOfAClassAreBounded(t *testing.T) {
	var fields []reflect.StructField
	for i := range state.MaxRules + 1 {
		name := string(rune('A' + i))
		fields = append(fields, reflect.StructField{Name: name, Type: reflect.TypeFor[int32](), Tag: reflect.StructTag(`net:"read=` + name + `"`)})
	}
	if _, err := state.NewClass("most", reflect.StructOf(fields[:state.MaxRules])); err != nil {
		t.Error(err)
	}
	_, err := state.NewClass("many", reflect.StructOf(fields))
	if err == nil || !strings.Contains(err.Error(), "field P has read=P") {
		t.Error(err)
	}
}

// The worked packet of docs/WIRE.md.
func TestGoldenMaskedPacket(t *testing.T) {
	type scout struct {
		X    int32
		Ammo int32  `net:"read=owner"`
		Name string `net:"max=8,read=owner"`
		Y    int8
	}
	c := classOf[scout](t, "scout")
	w := NewWorld(state.NewTable(c))
	p := w.NewPeer(100)
	o := w.Spawn(c, unsafe.Pointer(&scout{5, 9, "ann", -2}), 7, 100)
	w.Capture(100)
	packets, _ := snap(p, 100, wide)
	if got, want := hex.EncodeToString(packets[0]), example(t, "state-masked"); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	v := o.Hist.Newest()
	hashed := c.AppendMasked([]byte{0}, &v, c.AppendMask(nil, p.View(0).Withheld))
	if want := example(t, "digest-masked"); hex.EncodeToString(hashed) != want {
		t.Errorf("the digest is of %x, want %s", hashed, want)
	}
	h := state.HashUint64(state.HashUint32(state.HashUint64(state.HashStart, uint64(o.ID())), 100), state.HashBytes(state.HashStart, hashed))
	if w.Digest(p) != h {
		t.Errorf("digest %x, want %x", w.Digest(p), h)
	}
}

// Rule 9 with a mask: a late record on the stream, for the former owner, does not count after the
// change of owner, and until then no other record is sent to it. For other clients the same value
// fits a packet.
func TestLargeRecordFromBeforeTheMaskChanged(t *testing.T) {
	type vault struct {
		Gold int32
		Loot []loot `net:"max=800,read=owner"`
	}
	c := classOf[vault](t, "vault")
	q := &squad{t: t, class: c, table: state.NewTable(c), rules: new(rules)}
	q.w = NewWorld(q.table)
	q.w.SetReaders(c, q.rules)
	q.join(1)
	q.join(2)
	o := q.w.Spawn(c, unsafe.Pointer(&vault{Gold: 1, Loot: list4k()}), 1, 1)
	q.deliver()
	if len(q.p[1].Large()) != 1 || len(q.p[2].Large()) != 0 {
		t.Fatalf("%d and %d records on the streams", len(q.p[1].Large()), len(q.p[2].Large()))
	}
	record := bytes.Clone(q.p[1].Large()[0])
	q.w.SetOwner(o, 0)
	q.deliver()
	if _, ok := q.r[1].Get(o.ID()); ok {
		t.Fatal("something of the object overtook its record")
	}
	id, err := q.r[1].ApplyLarge(record)
	if err != nil {
		t.Fatal(err)
	}
	q.p[1].AckLarge(id)
	if q.p[1].detailed(0).base != 0 || !q.p[1].pending.Has(0) {
		t.Fatal("the record of the owner pays for what others read")
	}
	q.deliver()
	for i := 1; i < 3; i++ {
		got, ok := q.r[i].Get(o.ID())
		if !ok || live[vault](got).Gold != 1 || live[vault](got).Loot != nil || len(q.p[i].Large()) != 0 {
			t.Errorf("client %d shows %+v", i, got)
		}
	}
	q.settled()
}

// The inspector finds the leak of a server with corrupted masks: in a full record, zeros included,
// and in a delta.
func TestTheInspectorFindsLeaksOfACorruptedMask(t *testing.T) {
	q := newSquad(t, 0)
	told := map[string]bool{}
	q.r[2].Inspect(func(c *replica.Carried) {
		if c.Tick != q.tick || c.Class != q.class || c.ID != state.MakeID(0, 1) {
			t.Errorf("tick %d, %x of %s", c.Tick, uint64(c.ID), c.Class.Name())
		}
		for i := range c.Class.Leaves() {
			told[c.Class.Plan().LeafName(i)] = c.Tells(i)
		}
	})
	want := func(what string, fields ...string) {
		t.Helper()
		got := 0
		for _, yes := range told {
			if yes {
				got++
			}
		}
		for _, f := range fields {
			if !told[f] {
				t.Errorf("%s: nothing is told of %s", what, f)
			}
		}
		if got != len(fields) {
			t.Errorf("%s: %v is told of", what, told)
		}
		clear(told)
	}
	a := whole()
	a.Ammo = 0
	o := q.spawn(a, 1)
	q.deliver()
	want("a full record", "X", "Gear.Hat", "Y")
	q.edit(o).Ammo = 5
	q.deliver()
	want("nothing")
	q.edit(o).X = 9
	q.deliver()
	want("a delta", "X", "Gear.Hat", "Y") // the others by their values
	q.p[2].Set(0, teamRule)
	q.p[2].detailed(0).base = 0
	q.edit(o).Ammo = 0
	q.deliver()
	want("a full record with too much", "X", "Gear.Hat", "Y", "Heat", "Ammo")
	q.edit(o).Ammo = 6
	q.deliver()
	want("a delta with too much", "X", "Gear.Hat", "Y", "Heat", "Ammo")
}
