package e2e_test

import (
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/netloop/netloop"
)

// The classes of the simulation. Each has a count N that never decreases, but does not increase
// with each edit either, so values may go A, B, A. Quantisation changes none of the numbers.
var (
	simSchema = netloop.NewSchema("simulation", 1, 0)
	walkers   = netloop.NewClass[walker](simSchema, "walker", netloop.Weight(2))
	vaults    = netloop.NewClass[vault](simSchema, "vault")
	chests    = netloop.NewClass[chest](simSchema, "chest")
	boilers   = netloop.NewClass[boiler](simSchema, "boiler", netloop.Weight(0.5), netloop.MinRate(2))
	tomes     = netloop.NewClass[tome](simSchema, "tome")
)

// walker is on the grid.
type walker struct {
	N    uint32
	X, Y float32 `net:"quant=1/16"`
	Mood uint8
	Pack [2]int16 `net:"read=owner"`
}

// vault has fields that not every client may read.
type vault struct {
	N    uint32
	Side uint8 // the group that may read the plan
	Gold int32 `net:"read=owner"`
	Plan struct {
		Text string `net:"max=16"`
		Step uint8
		Open bool `net:"read=all"`
	} `net:"read=side"`
	Code uint16 `net:"read=guild"`
}

// chest has a field of each type that is encoded as a difference.
type chest struct {
	N     uint32
	Name  string           `net:"max=24"`
	Wares []ware           `net:"max=12,key=ID"`
	Marks map[uint8]int16  `net:"max=8"`
	Cards []string         `net:"max=6,each=8"`
	Rooms map[uint8]string `net:"max=4,each=6"`
}

type ware struct {
	ID    uint16
	Count int16
}

// boiler has fields with a threshold and an interval.
type boiler struct {
	N    uint32
	Slow uint32  `net:"interval=200ms"`
	Heat float32 `net:"quant=1/8,threshold=2"`
	Flip bool
}

// slowTicks are the ticks of boiler.Slow's interval.
const slowTicks = 12

// tome sometimes exceeds a packet.
type tome struct {
	N     uint32
	Pages []uint32 `net:"max=2000"`
}

// String abbreviates the pages.
func (t tome) String() string {
	sum := crc32.NewIEEE()
	for _, p := range t.Pages {
		_, _ = sum.Write([]byte{byte(p), byte(p >> 8), byte(p >> 16), byte(p >> 24)})
	}
	return fmt.Sprintf("{N:%d Pages:%d of %08x}", t.N, len(t.Pages), sum.Sum32())
}

func (w *walker) change(rng *rand.Rand) {
	switch rng.IntN(8) {
	case 0:
		w.Mood ^= 1
	case 1:
		w.Pack[rng.IntN(2)]++
	case 2: // far away
		w.X, w.Y = coordinate(rng), coordinate(rng)
	default:
		w.X = min(max(w.X+float32(rng.IntN(321)-160)/16, -150), 150)
		w.Y = min(max(w.Y+float32(rng.IntN(321)-160)/16, -150), 150)
	}
	w.N += rng.Uint32N(2)
}

func coordinate(rng *rand.Rand) float32 { return float32(rng.IntN(4801)-2400) / 16 }

func (v *vault) change(rng *rand.Rand) {
	switch rng.IntN(7) {
	case 0:
		v.Side = uint8(rng.IntN(numSides))
	case 1, 2:
		v.Gold = int32(rng.IntN(4))
	case 3:
		v.Plan.Text = fmt.Sprint("plan ", rng.IntN(4))
	case 4:
		v.Plan.Step++
		v.Plan.Open = !v.Plan.Open
	case 5:
		v.Code = uint16(1 + rng.IntN(3))
	default:
		v.N++
	}
}

// change works in place, so aliased older copies would change too.
func (c *chest) change(rng *rand.Rand) {
	switch rng.IntN(9) {
	case 0:
		c.Name = strings.Repeat("ab", rng.IntN(12))
	case 1, 2:
		if id := uint16(rng.IntN(40)); len(c.Wares) < 12 && !slices.ContainsFunc(c.Wares, func(w ware) bool { return w.ID == id }) {
			c.Wares = slices.Insert(c.Wares, rng.IntN(len(c.Wares)+1), ware{id, int16(id)})
		}
	case 3:
		if n := len(c.Wares); n > 0 {
			i := rng.IntN(n)
			c.Wares = slices.Delete(c.Wares, i, i+1)
		}
	case 4:
		if n := len(c.Wares); n > 0 {
			c.Wares[rng.IntN(n)].Count++
		}
	case 5:
		if c.Marks == nil {
			c.Marks = map[uint8]int16{}
		}
		c.Marks[uint8(rng.IntN(8))] = int16(rng.IntN(3))
	case 6:
		delete(c.Marks, uint8(rng.IntN(8)))
		clear(c.Rooms)
	case 7:
		if c.Cards = append(c.Cards, fmt.Sprint("card ", rng.IntN(5))); len(c.Cards) > 6 {
			c.Cards = c.Cards[:rng.IntN(6)]
		}
	case 8:
		if c.Rooms == nil {
			c.Rooms = map[uint8]string{}
		}
		c.Rooms[uint8(rng.IntN(4))] = fmt.Sprint("r", rng.IntN(3))
	}
	c.N += rng.Uint32N(2)
}

func (g *boiler) change(rng *rand.Rand) {
	switch rng.IntN(4) {
	case 0:
		g.Slow++
	case 1:
		g.Flip = !g.Flip
		g.N++
	default: // drifts
		g.Heat += float32(rng.IntN(17)-8) / 8
	}
}

func (t *tome) change(rng *rand.Rand) {
	if rng.IntN(8) == 0 {
		t.Pages = make([]uint32, rng.IntN([]int{5, 40, 40, 400, 400, 2000}[rng.IntN(6)]))
		for i := range t.Pages {
			t.Pages[i] = rng.Uint32()
		}
	} else if n := len(t.Pages); n > 0 && rng.IntN(2) == 0 {
		t.Pages[rng.IntN(n)]++
	}
	t.N += rng.Uint32N(2)
}

// rights are the readers of an object to which a client belongs.
type rights struct{ owner, side, guild bool }

// allows reports whether a field with the tag read=rule may be read.
func (r rights) allows(rule string) bool {
	return rule == "" || rule == "all" || rule == "owner" && r.owner || rule == "side" && r.side || rule == "guild" && r.guild
}

// The kinds of the simulation: the model's view of each class.
var kinds = []kind{
	kindOf[walker]{class: walkers, change: (*walker).change, clone: func(w walker) walker { return w },
		fresh: func(rng *rand.Rand) walker { return walker{X: coordinate(rng), Y: coordinate(rng)} },
		count: func(w *walker) *uint32 { return &w.N },
		place: func(w *walker) (x, y float64) { return float64(w.X), float64(w.Y) },
		hide: func(w *walker, r rights) {
			if !r.owner {
				w.Pack = [2]int16{}
			}
		}},
	kindOf[vault]{class: vaults, change: (*vault).change, clone: func(v vault) vault { return v },
		fresh: func(rng *rand.Rand) vault { return vault{Side: uint8(rng.IntN(numSides)), Gold: 7, Code: 9} },
		count: func(v *vault) *uint32 { return &v.N },
		side:  func(v *vault) int { return int(v.Side) },
		hide: func(v *vault, r rights) {
			if !r.owner {
				v.Gold = 0
			}
			if !r.side {
				v.Plan.Text, v.Plan.Step = "", 0
			}
			if !r.guild {
				v.Code = 0
			}
		}},
	kindOf[chest]{class: chests, change: (*chest).change,
		fresh: func(rng *rand.Rand) chest { return chest{Name: "new", Marks: map[uint8]int16{uint8(rng.IntN(8)): 1}} },
		count: func(c *chest) *uint32 { return &c.N },
		clone: func(c chest) chest {
			c.Wares, c.Cards = slices.Clone(c.Wares), slices.Clone(c.Cards)
			c.Marks, c.Rooms = maps.Clone(c.Marks), maps.Clone(c.Rooms)
			return c
		}},
	kindOf[boiler]{class: boilers, change: (*boiler).change, clone: func(g boiler) boiler { return g },
		fresh: func(rng *rand.Rand) boiler { return boiler{Heat: float32(rng.IntN(80)) / 8} },
		count: func(g *boiler) *uint32 { return &g.N },
		hold:  holdBoiler},
	kindOf[tome]{class: tomes, change: (*tome).change,
		fresh: func(rng *rand.Rand) tome { return tome{Pages: make([]uint32, rng.IntN(60))} },
		count: func(t *tome) *uint32 { return &t.N },
		size:  func(t *tome) int { return 5 * len(t.Pages) },
		clone: func(t tome) tome { t.Pages = slices.Clone(t.Pages); return t }},
}

// holdBoiler returns the captured state of a boiler with the last captured one: a drift beyond
// its threshold, and Slow after its interval.
func holdBoiler(it *item, last, now *boiler, tick uint64) {
	if d := now.Heat - last.Heat; d > -2 && d < 2 {
		now.Heat = last.Heat
	}
	if now.Slow != last.Slow && tick < it.slow+slowTicks {
		now.Slow = last.Slow
	} else if now.Slow != last.Slow {
		it.slow = tick
	}
}
