package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// drawer draws the story of a seed.
type drawer struct {
	*rand.Rand
	s       *Story
	names   []string // of rooms
	bots    int
	tickets uint64
}

// draw returns the story of a seed.
func draw(seed uint64) *Story {
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 29)), s: &Story{Seed: seed}, names: []string{""}}
	s := d.s
	s.Parts = parts(d.IntN(int(allParts) + 1))
	s.Length = d.between(3*time.Second, 12*time.Second)
	s.Drain = oneOf(d, 0, 0, time.Second, 3*time.Second)
	s.Server = server{
		Room: *d.spec(""), MaxRooms: oneOf(d, 2, 8, 100), MaxClients: oneOf(d, 0, 0, 8, 40), LostAfter: oneOf(d, 0, time.Second, 2*time.Second),
		Auth: d.oneIn(4), Opener: d.oneIn(3), Record: d.oneIn(3), CheckEdits: d.oneIn(4), Incarnation: 1 + d.Uint64N(1000),
		DrainTimeout: oneOf(d, 0, time.Second), RPC: netloop.RPCLimits{PerSecond: oneOf(d, 0, 0, 100.0), Burst: oneOf(d, 0, 0, 60), KickAfter: oneOf(d, 0, 100), Budget: oneOf(d, 0, 0, 64), Share: oneOf(d, 0, -1.0), ClientShare: oneOf(d, 0, -1.0)},
	}
	s.Server.Room.Private, s.Server.Room.Code, s.Server.Room.CloseEmpty = false, "", 0
	r := s.Server.Room.Params.(rules)
	r.Fails = false
	s.Server.Room.Params = r
	d.people()
	defer s.sort()
	defer s.afford()
	defer d.more()  // After the silence, in a stream of its own.
	if d.oneIn(6) { // A silence of minutes in the middle.
		d.pause(d.between(20*time.Second, 90*time.Second))
	}
	return s
}

// mostTicks is the number of ticks of all rooms from which a story becomes cheaper. Of the stories
// with more, one in a hundred would take as long as a third of the others.
const mostTicks = 10_000

// afford makes a story with too many ticks cheaper: its rooms have at most 60 ticks in a second
// during a silence of minutes, and are not recorded if they still have too many.
func (s *Story) afford() {
	specs := []*netloop.RoomSpec{&s.Server.Room}
	for _, e := range s.Events {
		if e.Spec != nil && e.Spec.Rate.Den > 0 { // Without a rate it is one of a reservation.
			specs = append(specs, e.Spec)
		}
	}
	ticks := func() (sum float64) {
		for _, spec := range specs {
			sum += s.Length.Seconds() * float64(spec.Rate.Num) / float64(spec.Rate.Den)
		}
		return sum
	}
	if ticks() > mostTicks && s.Length > 15*time.Second {
		for _, spec := range specs {
			if spec.Rate.Num > 60*spec.Rate.Den {
				spec.Rate = netloop.Hz(60)
			}
		}
	}
	if ticks() > mostTicks {
		s.Server.Record = false
	}
}

// people draws the first rooms and bots, and then actions.
func (d *drawer) people() {
	for range d.IntN(5) {
		d.add(Event{Do: "open", Spec: d.spec(d.newName())})
	}
	for range 1 + d.IntN(oneOf(d, 4, 4, 8, 25)) {
		e := d.join()
		e.At = d.between(0, time.Second)
		d.add(e)
	}
	if d.oneIn(3) {
		d.rush()
	}
	if d.oneIn(8) {
		d.school()
	}
	for range 10 + d.IntN(60) {
		row := pick(d.Rand)
		e := row.draw(d)
		e.Do = row.name
		e.At = d.between(time.Second/2, d.s.Length)
		d.add(e)
	}
}

// rush draws bots that join a room at once, while rights and objects change.
func (d *drawer) rush() {
	room, at, link := d.room(), d.between(0, d.s.Length), d.link()
	for range 2 + d.IntN(5) {
		e := d.join()
		e.Room, e.At, e.Link = room, at, link
		d.add(e)
	}
	for range 4 + d.IntN(8) {
		d.add(Event{Do: "command", Room: room, Command: oneOf(d, "regroup", "guild", "own", "spawn", "edit", "busy"), N: d.Uint64(), At: at + d.between(0, time.Second)})
	}
}

// school draws bots that join a large room at once, over equal links, and change their rights while
// they load. The histories of the objects no longer have the first versions by then. A school that
// is far away is small: its acknowledgements come after more ticks than a history has.
func (d *drawer) school() {
	const name = "school"
	d.names = append(d.names, name)
	s, far := d.spec(name), d.oneIn(4)
	r := rules{Crowd: oneOf[uint16](d, 60, 300, 300), Plan: 1, Pulse: oneOf[uint16](d, 0, 100), Stir: d.oneIn(2)}
	link := &netlooptest.Link{Delay: oneOf(d, 0, 20*time.Millisecond, 60*time.Millisecond)}
	s.Rate, s.Budget = netloop.Hz(60), oneOf(d, 0, 40, 40, 80)
	if far {
		s.Rate, s.Budget, r = netloop.Hz(240), 0, rules{Crowd: 10, Plan: 1, Pulse: 100, Stir: true}
		link.Delay = 300 * time.Millisecond
	}
	s.MaxClients, s.Private, s.Code, s.CloseEmpty, s.SendEvery, s.Params = 8, false, "", netloop.NeverClose, 0, r
	d.s.Parts |= vaultPart
	at := d.between(0, d.s.Length-time.Second)
	d.add(Event{At: max(at-140*s.Rate.Period(), 0), Do: "open", Spec: s})
	for range 3 + d.IntN(3) {
		e := d.join()
		e.Room, e.At, e.Link = name, at, link
		e.Join.Subject, e.Join.Token, e.Join.Code, e.Join.Spectate, e.Join.FPS, e.Join.Vanish, e.Join.Breaks = "", "valid", false, false, 0, 0, 0
		d.add(e)
	}
	joined := at + 3*link.Delay
	for range 10 {
		d.add(Event{Do: "command", Room: name, Command: oneOf(d, "guild", "guild", "guild", "regroup"), N: d.Uint64(), At: joined + d.between(0, 400*time.Millisecond)})
	}
}

func (d *drawer) add(e Event) { d.s.Events = append(d.s.Events, e) }

// pause moves the second half of the story.
func (d *drawer) pause(by time.Duration) {
	half := d.s.Length / 2
	for i := range d.s.Events {
		if e := &d.s.Events[i]; e.At > half {
			e.At += by
		}
	}
	d.s.Length += by
}

// spec draws a room.
func (d *drawer) spec(name string) *netloop.RoomSpec {
	s := &netloop.RoomSpec{
		Name: name, Kind: oneOf(d, "", "table", "arena"), Rate: netloop.Hz(oneOf[uint64](d, 1, 5, 10, 10, 20, 20, 20, 30, 30, 30, 60, 60)),
		MaxClients: 1 + d.IntN(20), KeepDropped: oneOf(d, -1, time.Second, 2*time.Second, 5*time.Second), Sleep: d.oneIn(2),
		Duplicate: netloop.DuplicatePolicy(d.IntN(4)), CloseEmpty: oneOf(d, 0, netloop.NeverClose, time.Second, 4*time.Second),
		SendEvery: oneOf(d, 0, 0, 0, 2, 3), MaxRewind: oneOf(d, 0, -1, time.Second), Budget: oneOf(d, 0, 0, 0, 1200, 4000),
		Params: rules{Grid: d.oneIn(3), HideFromOwner: d.oneIn(3), Crowd: uint16(oneOf(d, 0, 3, 10, 10, 60, 300)), Plan: oneOf[uint16](d, 0, 0, 1, 20, 100), Pulse: oneOf[uint16](d, 0, 0, 0, 1, 5), Stir: d.oneIn(4), Often: d.oneIn(3), Watch: d.oneIn(2), List: d.oneIn(2), Keep: d.oneIn(3), Every: oneOf[int8](d, -1, 0, 0, 1, 3), Queue: d.oneIn(4), Tables: d.oneIn(4), Fails: d.oneIn(40),
			Seats: d.oneIn(3), Sit: d.oneIn(2), SeatsMost: oneOf[uint8](d, 0, 1, 2, 4), SeatKeep: oneOf[int8](d, -1, 0, 1, 4, 20)},
	}
	if d.oneIn(20) {
		s.Rate = netloop.Hz(oneOf[uint64](d, 128, 240, 1000))
	}
	if d.oneIn(4) {
		s.FixedRate = netloop.Hz(oneOf[uint64](d, 5, 10, 30, 60, 120))
	}
	if d.oneIn(3) {
		s.MaxSpectators = 1 + d.IntN(3)
		s.SpectatorDelay = oneOf(d, 0, 0, time.Second, maxDelay)
	}
	if d.oneIn(6) {
		s.Private, s.Code = true, oneOf(d, "", "code of "+name)
	}
	return s
}

func (d *drawer) newName() string {
	d.names = append(d.names, string(rune('a'+d.IntN(6))))
	return d.names[len(d.names)-1]
}

// room names a room, which may be unknown.
func (d *drawer) room() string {
	if d.oneIn(20) {
		return oneOf(d, "x", "y", "o")
	}
	return d.names[d.IntN(len(d.names))]
}

func (d *drawer) bot() int { return 1 + d.IntN(max(d.bots, 1)) }

func (d *drawer) ticket() uint64 { return 1 + d.Uint64N(max(d.tickets, 1)) }

// join draws a bot.
func (d *drawer) join() Event {
	d.bots++
	return Event{Do: "join", Bot: d.bots, Room: d.room(), Link: d.link(), Join: &joining{
		Subject: oneOf(d, "", fmt.Sprint("p", d.bots), fmt.Sprint("p", 1+d.IntN(6))), Token: oneOf(d, "valid", "valid", "valid", "valid", "own", "own", "own", "spent", "expired", "elsewhere", "forged"),
		Code: d.oneIn(8), Spectate: d.oneIn(6), FPS: oneOf(d, 0, 0, 0, 0, 0, 10, 15, 24, 30, 30, 60, oneOf(d, 60, 144, 240)), PPM: oneOf(d, 0, 0, 0, 200, -200),
		Offset: oneOf(d, 0, 0, time.Second, time.Hour), Off: d.oneIn(10), GiveUp: oneOf(d, 0, time.Second, 5*time.Second),
		LostAfter: oneOf(d, 0, 0, time.Second, 10*time.Second), Predict: d.oneIn(2), Keys: oneOf[uint64](d, 0, 0, 3, 40), FromTokens: d.oneIn(2),
		Newer: d.oneIn(8), Look: d.oneIn(3),
		Addr: oneOf(d, "", "", "", "10.0.0.1:1", "10.0.0.2:1"), Vanish: oneOf(d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1+d.IntN(400)), Breaks: oneOf(d, 0, 0, 0, 0, 0, 0, 0, d.between(0, 400*time.Millisecond)),
	}}
}

// link draws a network.
func (d *drawer) link() *netlooptest.Link {
	l := &netlooptest.Link{Delay: oneOf(d, 0, 5*time.Millisecond, 20*time.Millisecond, 60*time.Millisecond, 150*time.Millisecond)}
	if d.oneIn(2) {
		l.Jitter, l.Loss = oneOf(d, 0, 5*time.Millisecond, 40*time.Millisecond), oneOf(d, 0, 0.02, 0.1, 0.3)
		l.Duplicate, l.Reorder = oneOf(d, 0, 0, 0.1), oneOf(d, 0, 0, 0.1)
	}
	if d.oneIn(6) {
		l.Bandwidth, l.Buffer = oneOf(d, 200_000, 1_000_000), 200*time.Millisecond
	}
	return l
}

func (d *drawer) oneIn(n int) bool { return d.IntN(n) == 0 }

func (d *drawer) between(a, b time.Duration) time.Duration {
	return (a + time.Duration(d.Int64N(int64(b-a)+1))).Truncate(time.Millisecond)
}

func oneOf[T any](d *drawer, all ...T) T { return all[d.IntN(len(all))] }
