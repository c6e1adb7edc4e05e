package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/netloop/netloop"
)

// Limits of stories in real time.
const (
	realLength = 3 * time.Second // of the part with troubles
	realBots   = 8
)

// virtualOnly are the actions that a server in real time does not have.
var virtualOnly = []string{"crash", "forge", "jump", "suspend", "wall"}

// drawReal returns the story of a seed for a server in real time: the same draws, with shorter
// times and slower rooms, carriers, and clients that disappear during their handshake.
func drawReal(seed uint64) *Story {
	s := draw(seed)
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 290)), s: s}
	s.Events = slices.DeleteFunc(s.Events, func(e Event) bool {
		return slices.Contains(virtualOnly, e.Do) || e.Join != nil && e.Bot > realBots
	})
	for i := range s.Events {
		e := &s.Events[i]
		e.At = time.Duration(float64(e.At) * float64(realLength) / float64(s.Length)).Truncate(time.Millisecond)
		e.slow(d)
	}
	s.Length = realLength
	s.Drain = min(s.Drain, time.Second)
	s.Server.LostAfter = max(time.Second, min(s.Server.LostAfter, 2*time.Second))
	slowRoom(&s.Server.Room)
	for n := range 2 + d.IntN(5) {
		e := draw(seed + uint64(n)).firstJoin()
		e.Do, e.Bot, e.N, e.At, e.Room = vanish, realBots+1+n, d.Uint64(), d.between(300*time.Millisecond, s.Length), oneOf(d, "", "", s.someRoom(d))
		e.Join.Ticket, e.Join.Token, e.Join.Code, e.Join.Subject, e.Join.Vanish, e.Join.Breaks = 0, "valid", false, "", 0, 0
		e.Join.Carrier = oneOf(d, overWebSocket, overWebSocket, overWebSocket, overQUIC, overWebTransport)
		e.Join.Spectate = e.Join.Spectate && d.oneIn(4)
		s.Events = append(s.Events, e)
	}
	s.sort()
	return s
}

// slow limits the times of an event, and draws its carrier.
func (e *Event) slow(d *drawer) {
	switch e.Do {
	case "open":
		slowRoom(e.Spec)
	case "stop":
		e.For = min(e.For, 300*time.Millisecond)
	case "slow saves":
		e.For = min(e.For, time.Second)
	case "store":
		e.N %= 4 // No save hangs.
	case "reserve":
		e.For = min(e.For, 2*time.Second)
	case "command":
		e.For = min(e.For, 100*time.Millisecond)
	}
	if j := e.Join; j != nil {
		j.Carrier = oneOf(d, overQUIC, overQUIC, overWebTransport, overWebSocket, overWebSocket, inProcess)
		j.FPS, j.PPM, j.Offset, j.Vanish = min(j.FPS, 60), 0, 0, 0
		j.LostAfter = max(time.Second, min(j.LostAfter, 2*time.Second))
	}
}

// slowRoom limits the rates and the times of a room.
func slowRoom(s *netloop.RoomSpec) {
	limit := func(r netloop.Rate) netloop.Rate { return netloop.Hz(min(max(r.Num/max(r.Den, 1), 10), 60)) }
	s.Rate = limit(s.Rate)
	if s.FixedRate != (netloop.Rate{}) {
		s.FixedRate = limit(s.FixedRate)
	}
	s.KeepDropped, s.SpectatorDelay = min(s.KeepDropped, time.Second), min(s.SpectatorDelay, time.Second)
	if s.CloseEmpty > 0 {
		s.CloseEmpty = time.Second
	}
	if r, ok := s.Params.(rules); ok {
		r.Crowd = min(r.Crowd, 60)
		s.Params = r
	}
}

func (s *Story) firstJoin() Event {
	for _, e := range s.Events {
		if e.Do == "join" {
			j, l := *e.Join, *e.Link
			e.Join, e.Link = &j, &l
			return e
		}
	}
	panic("each story has a join")
}

func (s *Story) someRoom(d *drawer) string {
	names := []string{""}
	for _, e := range s.Events {
		if e.Spec != nil {
			names = append(names, e.Spec.Name)
		}
	}
	return names[d.IntN(len(names))]
}
