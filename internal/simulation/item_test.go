package simulation

import (
	"fmt"
	"hash/crc32"
	"maps"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/netvar/state"
)

// rights say which fields of an object a client may read.
type rights struct{ owner, side, guild bool }

// item is an object of any class, with its audience.
type item interface {
	id() string
	alive() bool
	Owner() netloop.ClientID
	side() int                // the group that reads it; -1 is none
	marks() map[string]string // by field
	edit(t *netloop.Tick, n uint64)
	despawn(t *netloop.Tick)
	own(t *netloop.Tick, c netloop.ClientID)
	show(t *netloop.Tick, to netloop.Target)
	invalidate(t *netloop.Tick)
	text(r rights) string
	place() (x, y float64, ok bool)
	watchers() *audience
	core() *state.Object
	explain(t *netloop.Tick, c *netloop.Client) (netloop.Explanation, error)
	explainField(t *netloop.Tick, c *netloop.Client, n uint64) (netloop.Explanation, error)
}

// audience names the clients that see an item.
type audience uint8

const (
	everyone audience = iota
	itsOwner
	firstSide
	secondSide
	itsGuild
	nobody
	audiences
)

// kind is a class with functions of its states.
type kind[S any] struct {
	class  *netloop.Class[S]
	change func(s *S, n uint64)
	mask   func(s *S, r rights) // clears fields that a client may not read, or that differ
}

type typed[S any] struct {
	*kind[S]
	o  *netloop.Object[S]
	to audience
}

func (x *typed[S]) id() string              { return x.class.Name() + x.o.Ref().String() }
func (x *typed[S]) alive() bool             { return x.o.Alive() }
func (x *typed[S]) Owner() netloop.ClientID { return x.o.Owner() }
func (x *typed[S]) watchers() *audience     { return &x.to }
func (x *typed[S]) core() *state.Object     { return bridge.Netloop.Object(x.o) }

func (x *typed[S]) edit(t *netloop.Tick, n uint64)          { x.change(x.o.Edit(t), n) }
func (x *typed[S]) despawn(t *netloop.Tick)                 { x.o.Despawn(t) }
func (x *typed[S]) own(t *netloop.Tick, c netloop.ClientID) { x.o.SetOwner(t, c) }
func (x *typed[S]) show(t *netloop.Tick, to netloop.Target) { x.o.SetVisible(t, to) }
func (x *typed[S]) invalidate(t *netloop.Tick)              { x.o.Invalidate(t) }

func (x *typed[S]) explain(t *netloop.Tick, c *netloop.Client) (netloop.Explanation, error) {
	return x.o.Explain(t, c, "")
}

func (x *typed[S]) side() int {
	if v, ok := any(x.o.State()).(vault); ok {
		return int(v.Side)
	}
	return -1
}

func (x *typed[S]) marks() map[string]string {
	v, ok := any(x.o.State()).(vault)
	if !ok {
		return nil
	}
	all := map[string]string{"Name": v.Name, "Note": v.Note, "Plan": v.Plan, "Key": v.Key}
	maps.DeleteFunc(all, func(_, text string) bool { return text == "" })
	return all
}

func (x *typed[S]) place() (float64, float64, bool) {
	p, ok := any(x.o.State()).(pawn)
	return float64(p.X), float64(p.Y), ok
}

func (x *typed[S]) text(r rights) string { return x.textOf(x.o, r) }

// textOf is the state as a client with these rights has it.
func (k *kind[S]) textOf(o *netloop.Object[S], r rights) string {
	s := o.State()
	k.mask(&s, r)
	if b, ok := any(s).(tome); ok {
		return fmt.Sprintf("of %d: %d %d %x", o.Owner(), b.N, len(b.Pages), crc32.ChecksumIEEE(fmt.Append(nil, b.Pages)))
	}
	return fmt.Sprintf("of %d: %+v", o.Owner(), s)
}

// spawn makes an item.
func (k *kind[S]) spawn(t *netloop.Tick, n uint64, to audience, o ...netloop.SpawnOption) item {
	var s S
	k.change(&s, n)
	return &typed[S]{k, k.class.Spawn(t, s, o...), to}
}

// seen yields the objects of the class on a client, each with its text.
func (k *kind[S]) seen(t *netloop.Tick, all map[string]replica) {
	if k.class == nil {
		return
	}
	for o := range k.class.All(t) {
		all[k.class.Name()+o.Ref().String()] = replica{k.textOf(o, rights{true, true, true}), o.ChangedTick()}
	}
}

// replica is a client's copy of an object.
type replica struct {
	text string
	tick uint64 // of its last change
}

// kinds are the classes of a schema; those that it lacks have none.
type kinds struct {
	pawns   kind[pawn]
	vaults  kind[vault]
	tomes   kind[tome]
	boilers kind[boiler]
	chests  kind[chest]
	ships   kind[ship]
	boards  kind[board]
	hands   kind[hand]
}

// kindsOf returns the kinds of a schema; mark returns a new secret.
func kindsOf(d *declared, mark func() string) *kinds {
	return &kinds{
		kind[pawn]{d.pawns, changePawn, func(s *pawn, r rights) {
			s.Memo, s.Face = "", [4]float32{}
			if !r.owner {
				s.Ammo = 0
			}
		}},
		kind[vault]{d.vaults, func(s *vault, n uint64) { changeVault(s, n, mark) }, func(s *vault, r rights) {
			if !r.owner {
				s.Gold, s.Note = 0, ""
			}
			if !r.side {
				s.Plan = ""
			}
			if !r.guild {
				s.Code, s.Key = 0, ""
			}
		}},
		kind[tome]{d.tomes, changeTome, func(*tome, rights) {}},
		kind[boiler]{d.boilers, func(s *boiler, n uint64) {
			s.N++
			s.Slow += uint32(n % 3)
			s.Heat += float32(int(n%17)-8) / 8
		}, func(s *boiler, _ rights) { s.Heat = 0 }},
		kind[chest]{d.chests, changeChest, func(*chest, rights) {}},
		kind[ship]{d.ships, func(s *ship, n uint64) { s.X += int32(n % 100) }, func(*ship, rights) {}},
		kind[board]{d.boards, func(*board, uint64) {}, func(*board, rights) {}},
		kind[hand]{d.hands, func(*hand, uint64) {}, func(s *hand, r rights) {
			if !r.owner {
				s.Card = 0
			}
		}},
	}
}

// crowd makes an item that changes cheaply.
func (k *kinds) crowd(t *netloop.Tick, n uint64) item {
	if k.vaults.class != nil && n%3 == 0 {
		return k.vaults.spawn(t, n>>4, everyone)
	}
	return k.pawns.spawn(t, n>>4, everyone)
}

// spawn makes an item of the n-th class of those that exist.
func (k *kinds) spawn(t *netloop.Tick, class, n uint64, to audience, o ...netloop.SpawnOption) item {
	for {
		switch class % 5 {
		case 0:
			return k.pawns.spawn(t, n, to, o...)
		case 1:
			if k.vaults.class != nil {
				return k.vaults.spawn(t, n, to, o...)
			}
		case 2:
			if k.tomes.class != nil {
				return k.tomes.spawn(t, n, to, o...)
			}
		case 3:
			if k.boilers.class != nil {
				return k.boilers.spawn(t, n, to, o...)
			}
		case 4:
			if k.chests.class != nil {
				return k.chests.spawn(t, n, to, o...)
			}
		}
		class++
	}
}

// seen returns all objects that a client has, by id.
func (k *kinds) seen(t *netloop.Tick) map[string]replica {
	all := map[string]replica{}
	k.pawns.seen(t, all)
	k.vaults.seen(t, all)
	k.tomes.seen(t, all)
	k.boilers.seen(t, all)
	k.chests.seen(t, all)
	k.ships.seen(t, all)
	k.boards.seen(t, all)
	k.hands.seen(t, all)
	return all
}

func changePawn(s *pawn, n uint64) {
	s.N++
	switch n % 8 {
	case 0:
		s.X, s.Y, s.Hops = float32(n>>4%600)-300, float32(n>>20%600)-300, s.Hops+1
	case 1:
		s.Ammo++
	case 2:
		s.Life, s.Face = int32(n>>8%100), [4]float32{1, float32(n % 3), 0, 1}
	case 3:
		s.Yaw, s.Pace = float32(n%7), float32(n%50)
	default:
		s.X, s.Y = min(max(s.X+float32(int(n>>4%33)-16)/16, -300), 300), min(max(s.Y+float32(int(n>>12%33)-16)/16, -300), 300)
	}
	s.Memo = "local"
}

func changeVault(s *vault, n uint64, mark func() string) {
	switch n % 9 {
	case 0:
		s.Side = uint8(n >> 4 % 2)
	case 1, 2:
		s.Gold = int32(1 + n>>4%1000)
	case 3:
		s.Plan = mark()
	case 5:
		s.Name = mark()
	case 6:
		s.Note = mark()
	case 7:
		s.Key = mark()
	case 4:
		s.Code = uint16(1 + n>>4%1000)
	}
	s.N++
}

func changeTome(s *tome, n uint64) {
	s.N++
	if n%4 > 0 && len(s.Pages) > 0 {
		s.Pages[n>>4%uint64(len(s.Pages))]++
		return
	}
	s.Pages = make([]uint32, []int{5, 40, 300, 600}[n>>2%4])
	for i := range s.Pages {
		s.Pages[i] = uint32(n) * uint32(i+1)
	}
}

// changeChest makes new lists, so that copies of the state are never changed.
func changeChest(s *chest, n uint64) {
	s.N++
	switch n % 4 {
	case 0:
		if len(s.Wares) < 12 {
			s.Wares = append(s.Wares[:len(s.Wares):len(s.Wares)], ware{uint16(s.N), int16(n >> 4 % 100)})
		} else {
			s.Wares = nil
		}
	case 1:
		s.Cards = append(s.Cards[:min(len(s.Cards), 5):min(len(s.Cards), 5)], fmt.Sprint("card ", n>>4%9))
	case 2:
		marks := map[uint8]int16{}
		maps.Copy(marks, s.Marks)
		marks[uint8(n>>4%8)] = int16(n >> 8 % 9)
		s.Marks = marks
	default:
		for i := range s.Wares {
			s.Wares = append([]ware(nil), s.Wares...)
			s.Wares[i].Count++
			break
		}
	}
}
