package netvar

import (
	"encoding/hex"
	"reflect"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/testing/golden"
)

// example returns an example of docs/WIRE.md in hex.
func example(t *testing.T, name string) string {
	t.Helper()
	return hex.EncodeToString(golden.Example(t, "../../docs/WIRE.md", name))
}

// The worked packets of docs/WIRE.md. Change one only together with the page's text, and raise the
// coder id if a reader of the old layout would misread the new one.
//
// The digest there was computed without this code: value = FNV-1a(00 07 8404 8002 00 02626f) =
// 04154a9b65d40ebb; digest = FNV-1a(0100000000000000 64000000 value), little endian.
func TestGoldenPackets(t *testing.T) {
	type pos struct {
		X     float32 `net:"quant=1/256"`
		Y     float32 `net:"quant=1/256"`
		Armed bool
		Name  string `net:"max=8"`
	}
	c := classOf[pos](t, "pos")
	table := state.NewTable(c)
	w := NewWorld(table)
	r := replica.New(table)
	p := w.NewPeer(100)
	r.StartAt(100)
	spawn := func(v pos, owner uint64) *state.Object { return w.Spawn(c, unsafe.Pointer(&v), owner, 100) }
	var a, b *state.Object
	for _, step := range []struct {
		name string
		tick uint64
		do   func()
	}{
		{"state-full", 100, func() {
			a = spawn(pos{X: 1, Y: -0.5, Armed: true, Name: "ann"}, 7)
			b = spawn(pos{}, 0)
		}},
		{"state-delta", 101, func() {
			w.Edit(a)
			v := live[pos](a)
			v.X, v.Armed, v.Name = 1.0078125, false, "bo"
			w.SetOwner(b, 2)
		}},
		{"state-repeat", 103, func() {
			for _, o := range []*state.Object{a, b} {
				w.Edit(o)
				live[pos](o).Y++
			}
		}},
		{"state-despawn", 104, func() { w.Despawn(b) }},
		{"state-digest", 105, func() { p.RequestDigest(1) }},
		{"state-older", 108, func() { // changed at 106, but first sent at 108
			w.Edit(a)
			live[pos](a).Y = 0
			w.Capture(106)
		}},
	} {
		step.do()
		w.Capture(step.tick)
		packets, _ := snap(p, step.tick, wide)
		if got, want := hex.EncodeToString(packets[0]), example(t, step.name); len(packets) != 1 || got != want {
			t.Errorf("%s:\n got %s\nwant %s", step.name, got, want)
		}
		mustApply(t, r, p, packets...)
		if d, _ := r.Digest(); step.name == "state-digest" && d != replica.DigestEqual {
			t.Errorf("digest %v", d)
		}
	}
}

// The worked packet of docs/WIRE.md with floats: one follows its bend, one swings, one jumps.
func TestGoldenFloats(t *testing.T) {
	type kite struct{ X, V, W float32 }
	c := classOf[kite](t, "kite")
	w, r := NewWorld(state.NewTable(c)), replica.New(state.NewTable(c))
	p := w.NewPeer(200)
	r.StartAt(200)
	o := w.Spawn(c, unsafe.Pointer(&kite{V: 8, W: 1}), 0, 200)
	for tick := uint64(200); ; tick++ {
		w.Capture(tick)
		packets, _ := snap(p, tick, wide)
		mustApply(t, r, p, packets...)
		if tick == 207 {
			if got, want := hex.EncodeToString(packets[0]), example(t, "state-bent"); len(packets) != 1 || got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			return
		}
		w.Edit(o)
		k, n := live[kite](o), float32(tick-199)
		if k.X, k.V = n*n/4, -k.V; tick == 206 {
			k.W = 1e30
		}
	}
}

// The worked record of docs/WIRE.md, of a value that fits no packet because packets are small.
func TestGoldenRecord(t *testing.T) {
	type page struct {
		Text string `net:"max=2000"`
	}
	c := classOf[page](t, "page")
	w, r := NewWorld(state.NewTable(c)), replica.New(state.NewTable(c))
	p := w.NewPeer(300)
	w.Spawn(c, unsafe.Pointer(&page{}), 0, 300)
	w.Spawn(c, unsafe.Pointer(&page{"the quick brown fox jumps"}), 7, 300)
	w.Capture(301)
	snap(p, 301, Limit{Packets: 1, PacketSize: 100, Reliable: true})
	if len(p.Large()) != 1 {
		t.Fatalf("%d records", len(p.Large()))
	}
	if got, want := hex.EncodeToString(p.Large()[0]), example(t, "state-record"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if id, err := r.ApplyLarge(p.Large()[0]); id != 1 || err != nil {
		t.Errorf("id %d, %v", id, err)
	}
}

// The worked message of docs/WIRE.md.
func TestGoldenMessage(t *testing.T) {
	type hit struct {
		Target codec.Ref
		At     codec.Instant
		Damage int16
		Angle  float32
		Force  float64 `net:"quant=0.01"`
		Crit   bool
		Tag    [2]byte
		Path   []struct{ X, Y int8 }
		Note   string
	}
	p, err := codec.Compile(reflect.TypeFor[hit]())
	if err != nil {
		t.Fatal(err)
	}
	m := hit{codec.Ref{ID: 1<<32 | 3}, codec.Instant{At: 1500}, -3, 0.5, 12.34, true, [2]byte{0xca, 0xfe},
		[]struct{ X, Y int8 }{{1, -1}, {2, 0}}, "hé"}
	got, err := p.Append(nil, unsafe.Pointer(&m))
	if err != nil {
		t.Fatal(err)
	}
	if want := example(t, "message-plain"); hex.EncodeToString(got) != want {
		t.Errorf("got  %x\nwant %s", got, want)
	}
}

// The worked message of quantised floats.
func TestGoldenSteps(t *testing.T) {
	type pose struct {
		X    float32    `net:"quant=1/8,range=-100:100"`
		Heat float64    `net:"quant=0.1,range=20:90"`
		Q    [4]float32 `net:"quat=10"`
		None [4]float32 `net:"quat=4"`
	}
	p, err := codec.Compile(reflect.TypeFor[pose]())
	if err != nil {
		t.Fatal(err)
	}
	m := pose{X: -99.5, Heat: 36.6, Q: [4]float32{-0.5, 0.5, 0.1, -0.7}}
	got, err := p.Append(nil, unsafe.Pointer(&m))
	if err != nil {
		t.Fatal(err)
	}
	if want := example(t, "message-steps"); hex.EncodeToString(got) != want {
		t.Errorf("got  %x\nwant %s", got, want)
	}
}

// The worked message of lists.
func TestGoldenLists(t *testing.T) {
	type item struct {
		ID    uint16
		Count int8
	}
	type bag struct {
		Items []item `net:"key=ID"`
		Ammo  map[string]uint8
		Seen  map[int16]struct{}
	}
	p, err := codec.Compile(reflect.TypeFor[bag]())
	if err != nil {
		t.Fatal(err)
	}
	old := &codec.Values{Blobs: make([][]byte, 3)}
	p.Capture(unsafe.Pointer(&bag{
		Items: []item{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}},
		Ammo:  map[string]uint8{"arrow": 20, "bolt": 5, "stone": 9},
		Seen:  map[int16]struct{}{-4: {}, 3: {}},
	}), old)
	if want, got := example(t, "message-lists"), p.AppendValues(nil, old); hex.EncodeToString(got) != want {
		t.Errorf("got  %x\nwant %s", got, want)
	}
}

// The digest covers id, lifetime, owner and every field.
func TestTheGuardDigestCoversAllFields(t *testing.T) {
	s := newSchema(t)
	full := ship{X: 1, Y: 2, Angle: 3, Armed: true, Name: "n", Bag: []item{{"x", 1}}, Foe: codec.Ref{ID: 3}, Until: codec.Instant{At: 4}}
	digest := func(v ship, owner, tick uint64, before int) uint64 {
		w := NewWorld(s.table)
		for range before {
			w.Despawn(s.spawnRock(w, rock{}, 1))
			w.Capture(w.tick + 1)
		}
		p := w.NewPeer(tick)
		s.spawnShip(w, v, owner, tick)
		w.Capture(tick)
		return w.Digest(p)
	}
	seen := map[uint64]string{digest(full, 0, 10, 0): "as it is"}
	note := func(what string, d uint64) {
		if other, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", what, other)
		}
		seen[d] = what
	}
	note("another owner", digest(full, 1, 10, 0))
	note("another lifetime", digest(full, 0, 11, 0))
	note("another generation", digest(full, 0, 10, 1))
	for i := range reflect.TypeFor[ship]().NumField() {
		f := reflect.TypeFor[ship]().Field(i)
		v := full
		reflect.ValueOf(&v).Elem().Field(i).SetZero()
		if f.Name == "Local" {
			continue
		}
		note("without "+f.Name, digest(v, 0, 10, 0))
	}
}
