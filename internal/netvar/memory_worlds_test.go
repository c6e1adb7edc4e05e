package netvar

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Classes of different shapes, for measuring a client's count.
type (
	manyTexts struct {
		Step  int32
		Texts [250]string `net:"max=16"`
	}
	bagged struct {
		X   int32
		Bag []byte `net:"max=10240"`
	}
	numbered struct{ A [16]int32 }
	listed   struct {
		Step int32
		List []struct{ A, B, C int64 } `net:"max=200"`
	}
	named struct {
		Step  int32
		Names []string `net:"max=100,each=20"`
	}
	mapped struct {
		Step int32
		Map  map[string]int32 `net:"max=100,each=20"`
	}
	lit    struct{ On bool }
	closed struct {
		On  bool
		Own [100]bool `net:"read=owner"`
	}
	mails struct {
		Step int32
		Mail *chest `net:"max=100"`
	}
)

// chest is far larger in memory than on the wire, as a protobuf message can be.
type chest struct{ content []byte }

func chestsOf(t reflect.Type) *codec.Encoding {
	if t != reflect.TypeFor[*chest]() {
		return nil
	}
	const times = 100
	return &codec.Encoding{
		Name: "test.Chest",
		Append: func(dst []byte, field unsafe.Pointer) ([]byte, error) {
			p := *(**chest)(field)
			return append(dst, p.content[:len(p.content)/times]...), nil
		},
		Check: func([]byte) error { return nil },
		Store: func(field unsafe.Pointer, b []byte) error {
			*(**chest)(field) = &chest{make([]byte, times*len(b))}
			return nil
		},
		Heap:  func(b []byte) int { return codec.Allocated(24) + codec.Allocated(times*len(b)) },
		Clone: func(field unsafe.Pointer) { *(**chest)(field) = &chest{slices.Clone((*(**chest)(field)).content)} },
	}
}

// crop is a set of objects to measure: so many of one class, which then change in so many ticks.
type crop struct {
	name           string
	class          *state.Class
	objects, ticks int
	survivor       int // only objects with a multiple of this number survive; 0 = all
	watched        bool
	owned          bool // each by a different owner
	value          func(i int) unsafe.Pointer
	edit           func(live unsafe.Pointer, tick int)
}

func text(i, n int) string { return fmt.Sprintf("%0*d", n, i) }

func crops(tb testing.TB) []crop {
	texts := func(n int) func(int) unsafe.Pointer {
		return func(i int) unsafe.Pointer {
			v := &manyTexts{}
			for k := range v.Texts {
				v.Texts[k] = text(i+k, n)[:n]
			}
			return unsafe.Pointer(v)
		}
	}
	mail, err := state.NewClass("m", reflect.TypeFor[mails](), chestsOf)
	if err != nil {
		tb.Fatal(err)
	}
	stepTexts := func(p unsafe.Pointer, tick int) { (*manyTexts)(p).Step++ }
	return []crop{
		{name: "empty texts", class: classOf[manyTexts](tb, "t"), objects: 500, value: func(int) unsafe.Pointer { return unsafe.Pointer(new(manyTexts)) }},
		{name: "many texts", class: classOf[manyTexts](tb, "t"), objects: 200, value: texts(9)},
		{name: "many texts that change", class: classOf[manyTexts](tb, "t"), objects: 40, ticks: 60, watched: true, value: texts(9),
			edit: func(p unsafe.Pointer, tick int) { (*manyTexts)(p).Texts[tick%250] = text(tick, 9) }},
		{name: "texts beside a number", class: classOf[manyTexts](tb, "t"), objects: 40, ticks: 60, value: texts(16), edit: stepTexts},
		{name: "one survives of 16", class: classOf[manyTexts](tb, "t"), objects: 480, survivor: 16, value: texts(9)},
		{name: "shared bags", class: classOf[bagged](tb, "b"), objects: 300, ticks: 60,
			value: func(i int) unsafe.Pointer { return unsafe.Pointer(&bagged{Bag: make([]byte, 10_000)}) },
			edit:  func(p unsafe.Pointer, tick int) { (*bagged)(p).X++ }},
		{name: "numbers", class: classOf[numbered](tb, "n"), objects: 4000, value: func(int) unsafe.Pointer { return unsafe.Pointer(new(numbered)) }},
		{name: "numbers that change", class: classOf[numbered](tb, "n"), objects: 500, ticks: 60, watched: true,
			value: func(int) unsafe.Pointer { return unsafe.Pointer(new(numbered)) },
			edit:  func(p unsafe.Pointer, tick int) { (*numbered)(p).A[tick%16]++ }},
		{name: "lists", class: classOf[listed](tb, "l"), objects: 200, ticks: 20, watched: true,
			value: func(i int) unsafe.Pointer { return unsafe.Pointer(&listed{List: make([]struct{ A, B, C int64 }, 150)}) },
			edit:  func(p unsafe.Pointer, tick int) { (*listed)(p).List[tick].A++ }},
		{name: "lists of texts", class: classOf[named](tb, "t"), objects: 300,
			value: func(i int) unsafe.Pointer {
				v := &named{}
				for k := range 50 {
					v.Names = append(v.Names, text(i+k, 5+k%10))
				}
				return unsafe.Pointer(v)
			}},
		{name: "next to nothing", class: classOf[lit](tb, "l"), objects: 20_000, value: func(int) unsafe.Pointer { return unsafe.Pointer(new(lit)) }},
		{name: "next to nothing of many owners", class: classOf[lit](tb, "l"), objects: 20_000, owned: true, value: func(int) unsafe.Pointer { return unsafe.Pointer(new(lit)) }},
		{name: "next to nothing that may be read", class: classOf[closed](tb, "c"), objects: 5000, owned: true, value: func(int) unsafe.Pointer { return unsafe.Pointer(new(closed)) }},
		{name: "messages", class: mail, objects: 300, ticks: 30, watched: true,
			value: func(int) unsafe.Pointer { return unsafe.Pointer(&mails{Mail: &chest{make([]byte, 5000)}}) },
			edit:  func(p unsafe.Pointer, tick int) { (*mails)(p).Mail.content[0] = byte(tick) }},
		{name: "maps", class: classOf[mapped](tb, "m"), objects: 500,
			value: func(i int) unsafe.Pointer {
				v := &mapped{Map: map[string]int32{}}
				for k := range 50 {
					v.Map[text(k, 10)] = int32(i)
				}
				return unsafe.Pointer(v)
			}},
	}
}

// grow returns the data sent to a client of a crop, by tick: packets, and records on the stream.
// After the last arrival there are no acknowledgements, so the client keeps the versions of all
// ticks.
func (c *crop) grow(tb testing.TB) (packets, large [][][]byte) {
	w := NewWorld(state.NewTable(c.class))
	if len(c.class.Rules()) > 0 {
		w.SetReaders(c.class, ownersRead{})
	}
	p, r := w.NewPeer(1), replica.New(w.table)
	p.Handle = 1
	var all []*state.Object
	for i := range c.objects {
		owner := uint64(0)
		if c.owned {
			owner = uint64(i + 1)
		}
		all = append(all, w.Spawn(c.class, c.value(i), owner, 1))
	}
	end := 0
	for tick := 1; end == 0 || tick < end; tick++ {
		if tick > 2000 {
			tb.Fatal("the first state never arrives")
		}
		if end > 0 {
			for i, o := range all {
				switch {
				case c.survivor > 0 && i%c.survivor != 0:
					w.Despawn(o)
				case c.edit != nil:
					w.Edit(o)
					c.edit(o.Live(), tick)
				}
			}
		}
		w.Capture(uint64(tick))
		of, _ := snap(p, uint64(tick), Limit{Packets: 64, PacketSize: packet.MaxSize, Reliable: true})
		packets = append(packets, of)
		large = append(large, nil)
		for _, b := range p.Large() {
			b = append([]byte(nil), b...)
			large[tick-1] = append(large[tick-1], b)
			id, err := r.ApplyLarge(b)
			if err != nil {
				tb.Fatal(err)
			}
			p.AckLarge(id)
		}
		if end == 0 {
			mustApply(tb, r, p, of...)
			if r.Len(c.class) == c.objects && p.pending.Count() == 0 {
				end = tick + 1 + max(c.ticks, 1)
			}
		}
	}
	if mustCount(tb, r); len(c.class.Rules()) > 0 && len(r.Mask(c.objects-1)) == 0 {
		tb.Fatal("a client may read all of what it does not own")
	}
	return packets, large
}
