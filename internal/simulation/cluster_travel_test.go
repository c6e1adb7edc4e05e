package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// travelStep is the step of a story with travellers: the clocks of two servers differ by it at
// most.
const travelStep = 10 * time.Millisecond

// drawTravels adds clients that move between servers, rooms that move with their clients, and
// messages between rooms of different servers. It draws from a stream of its own.
func (s *clusterStory) drawTravels() {
	d := &drawer{Rand: rand.New(rand.NewPCG(s.Seed, 341))}
	if d.oneIn(2) {
		return
	}
	s.Travels = true
	rows := []string{"travel", "travel", "travel", "travel by ticket", "travel by ticket", "hand over", "hand over", "letter", "letter", "cut"}
	guests := 2 + d.IntN(5)
	add := func(at time.Duration, do string, n int) {
		s.Events = append(s.Events, clusterEvent{
			At: at, Do: do, Server: d.IntN(s.Servers), Room: oneOf(d, "oak", "elm", "ash", "fir"), Bot: n, N: d.Uint64(),
			For: oneOf(d, 200*time.Millisecond, time.Second, 3*time.Second),
		})
	}
	for n := range guests {
		add(d.between(0, 2*time.Second), "guest", n+1)
	}
	for range 10 + d.IntN(40) {
		add(d.between(time.Second, s.Length), rows[d.IntN(len(rows))], 1+d.IntN(guests))
	}
}

// guest is a client that may move between servers.
type guest struct {
	n    int
	home *clusterServer // its world runs the frames
	c    *client.Client
}

// letter is a message to a room of any server.
type letter struct {
	room string
	ran  int
	told bool
	err  error
}

// travels has the guests and the letters of a story.
type travels struct {
	guests  map[int]*guest
	letters []*letter
	inside  map[*netloop.Room]map[netloop.ClientID]int // guests by room and id
	opened  map[*netloop.Room]*clusterServer
	stored  map[string]uint64 // records of rooms: letters that have run in the rooms of a name
}

func newTravels() travels {
	return travels{guests: map[int]*guest{}, inside: map[*netloop.Room]map[netloop.ClientID]int{}, opened: map[*netloop.Room]*clusterServer{}, stored: map[string]uint64{}}
}

// connect lets clients of each server move to the others. A lost server has no address.
func (b *clusterPlay) connect() {
	for _, s := range b.servers {
		for _, other := range b.servers {
			if other.dead {
				s.w.Connect(other.id+":1", nil)
			} else if other != s {
				s.w.Connect(other.id+":1", other.w)
			}
		}
	}
}

// open registers the handlers of a room for guests and letters.
func (v *travels) open(b *clusterPlay, s *clusterServer, r *netloop.Room) {
	name, ran := r.Spec().Name, uint64(0)
	v.inside[r], v.opened[r] = map[netloop.ClientID]int{}, s
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		if j.Subject == "" { // Another server knows a client that moves.
			j.Subject = j.Token
		}
		return nil
	})
	if name != "" {
		ran = v.stored[name]
		r.OnHandOver(netloop.HandOver{Store: func(context.Context) error {
			v.stored[name] = ran
			return nil
		}})
		r.OnDuplicate(func(*netloop.Tick) bool { return ran%2 == 0 })
	}
	d := declare(0)
	d.talks.HandleRoom(r, func(_ *netloop.Tick, from *netloop.Sender, m talk) error {
		if m.Seq >= uint64(len(v.letters)) {
			b.fail("room %q gets letter %d, which has no sender", name, m.Seq)
			return nil
		}
		l := v.letters[m.Seq]
		ran++
		if l.ran++; l.ran > 1 || l.room != name || (from == nil) != (m.Room == 0) {
			b.fail("letter %d to room %q runs in room %q for the %d. time, from %+v", m.Seq, l.room, name, l.ran, from)
		}
		return nil
	})
}

// joined notes a client of a room.
func (v *travels) joined(b *clusterPlay, r *netloop.Room, c *netloop.Client) {
	n := botOf(c) - guestBots
	if n <= 0 {
		return
	}
	if want := guestName(n); c.Join().Subject != want {
		b.fail("guest %d is %q in room %q of server %s, want %q", n, c.Join().Subject, r.Spec().Name, v.opened[r].id, want)
	}
	v.inside[r][c.ID()] = n
}

// guestBots is the number of bots that are no guests, at most.
const guestBots = 1000

func guestName(n int) string { return fmt.Sprint("guest ", n) }

// guest lets a guest join: the default room of a server, or a room of any server by its name.
func (b *clusterPlay) guest(s *clusterServer, e clusterEvent) {
	if s.stands || s.side || b.down || b.travels.guests[e.Bot] != nil {
		return
	}
	cfg := client.Config{Token: guestName(e.Bot), Join: hello{guestBots + e.Bot}, Reconnect: client.Reconnect{GiveUp: 5 * time.Second}}
	if e.N%3 == 0 {
		cfg.Room = e.Room
	}
	g := &guest{n: e.Bot, home: s}
	g.c = s.w.JoinAs(cfg, netlooptest.Link{Delay: 10 * time.Millisecond}, netlooptest.FPS(30))
	b.travels.guests[e.Bot] = g
}

// unblock lets the time of the cluster pass while a world waits for the answer of another server,
// as it does in a handshake, until the story is over.
func (b *clusterPlay) unblock() {
	const every = 200 * time.Millisecond
	for last := int64(-1); !b.over.Load(); last = b.steps.Load() {
		if time.Sleep(every); b.steps.Load() == last {
			b.waited.Add(int64(every))
			b.hub.Settle()
		}
	}
}

// of returns the server and the room of a guest, or nil.
func (b *clusterPlay) of(g *guest) (*clusterServer, *netloop.Room, netloop.ClientID) {
	for _, s := range b.servers { // In an order that repeats.
		for r, in := range b.travels.inside {
			for id, n := range in {
				if b.travels.opened[r] == s && !s.dead && !s.stands && n == g.n && id == g.c.ID() {
					return s, r, id
				}
			}
		}
	}
	return nil, nil, 0
}

// travel lets the room of a guest send it to a room of any server.
func (b *clusterPlay) travel(_ *clusterServer, e clusterEvent) {
	g := b.travels.guests[e.Bot]
	if g == nil {
		return
	}
	s, r, id := b.of(g)
	if r == nil || s.w.Room(r.Spec().Name).Ended() != nil {
		return
	}
	s.w.Room(r.Spec().Name).Tick(func(t *netloop.Tick) {
		t.Reserve(e.Room, netloop.Reservation{TTL: 3 * time.Second}, func(t *netloop.Tick, all []netloop.Ticket, err error) {
			if c, ok := t.Client(id); ok && err == nil {
				c.Move(t, all[0])
			}
		})
	})
}

// travelByTicket lets a guest move with a ticket that another part of its program has asked for.
func (b *clusterPlay) travelByTicket(s *clusterServer, e clusterEvent) {
	g := b.travels.guests[e.Bot]
	if g == nil || g.home.dead || s.stands {
		return
	}
	var tickets []netloop.Ticket
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		tickets, _ = s.server.Reserve(ctx, e.Room, netloop.Reservation{TTL: e.For})
	}()
	synctest.Wait()
	if len(tickets) == 0 {
		return
	}
	switch ticket := tickets[0]; e.N % 4 {
	case 0: // No server has issued it: the guest stays in its room.
		_ = g.c.Move("x" + ticket)
	case 1: // Twice: the second one is too early.
		_ = g.c.Move(ticket)
		fallthrough
	default:
		_ = g.c.Move(ticket) // It may be in no room.
	}
}

// handOver lets a room move to another server.
func (b *clusterPlay) handOver(to *clusterServer, e clusterEvent) {
	s := b.holder(e.Room)
	if s == nil || s.dead || s.stands || s.w.Room(e.Room).Ended() != nil {
		return
	}
	var from *clusterRoom
	for _, one := range b.rooms {
		if one.name == e.Room && one.server == s && !one.ended {
			from = one
		}
	}
	for r, at := range b.travels.opened {
		if at == s && r.Spec().Name == e.Room && r.Incarnation() == from.inc {
			place := netloop.Place{Server: to.id}
			if e.N%3 == 0 {
				place.Server = ""
			}
			s.w.Room(e.Room).Tick(func(t *netloop.Tick) {
				r.HandOver(t, place, func(_ *netloop.Tick, err error) {
					if err == nil {
						from.ends = true
					}
				})
			})
		}
	}
}

// write sends a letter from the default room of a server, or from its program.
func (b *clusterPlay) write(s *clusterServer, e clusterEvent) {
	if s.stands {
		return
	}
	l := &letter{room: e.Room}
	b.travels.letters = append(b.travels.letters, l)
	m := talk{Room: e.N % 2, Seq: uint64(len(b.travels.letters) - 1)}
	told := func(err error) {
		if l.told {
			b.fail("letter %d has two outcomes: %v and %v", m.Seq, l.err, err)
		}
		l.told, l.err = true, err
		posted := m.Room == 0 && err == nil // A post to a room of this server runs later.
		if (err == nil) != (l.ran == 1) && !posted && !b.down && b.now-b.trouble > time.Second {
			b.fail("letter %d to room %q has run %d times, and its sender is told %v", m.Seq, l.room, l.ran, err)
		}
	}
	if d := declare(0); m.Room == 1 {
		s.w.Room("").Tick(func(t *netloop.Tick) {
			d.talks.SendRoom(t, e.Room, m, func(_ *netloop.Tick, err error) { told(err) }, netloop.RunAt(netloop.PreUpdate))
		})
	} else {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			if err := d.talks.PostRoom(ctx, s.server, e.Room, m); !errors.Is(err, context.DeadlineExceeded) {
				told(err)
			}
		}()
	}
}

// cutGuest makes the network of a guest a black hole.
func (b *clusterPlay) cutGuest(_ *clusterServer, e clusterEvent) {
	if g := b.travels.guests[e.Bot]; g != nil && !g.home.dead {
		g.home.w.Cut(g.c)
		b.later(e.For, func() { g.home.w.Heal(g.c) })
	}
}

// rest looks for guests that are in no room, or in two.
func (v *travels) rest(b *clusterPlay) {
	for n := range v.guests {
		g := v.guests[n]
		if g.home.dead || b.finding != "" {
			continue // It has no frames any more.
		}
		if s := g.c.State(); s.Phase != client.Playing && s.Phase != client.Closed {
			b.fail("guest %d of server %s is %v: %v %s", n, g.home.id, s.Phase, s.Code, s.Text)
		}
		if s := g.c.State(); s.Phase == client.Closed && slices.Contains([]netloop.Code{netloop.CodeProtocol, netloop.CodeInternal}, s.Code) {
			b.fail("guest %d is closed: %v %s", n, s.Code, s.Text)
		}
		seats := 0
		for r, in := range v.inside {
			for id, other := range in {
				if s := v.opened[r]; !s.dead && other == n {
					if seats++; !(g.c.State().Phase == client.Playing && id == g.c.ID() && r.Spec().Name == g.c.Room()) {
						b.fail("guest %d has a seat in room %q of server %s, and is %v in %q", n, r.Spec().Name, s.id, g.c.State().Phase, g.c.Room())
					}
				}
			}
		}
		if seats != 1 && g.c.State().Phase == client.Playing {
			b.fail("guest %d plays in room %q, and has %d seats", n, g.c.Room(), seats)
		}
	}
	for n, l := range v.letters {
		if l.ran > 1 {
			b.fail("letter %d to room %q has run %d times", n, l.room, l.ran)
		}
	}
}
