package simulation

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// clusterGame is the game of the servers of a cluster. It checks Config.Cluster. The documents:
// SCALING.md, ADR 68, and the comments of netloop.Cluster and netloop.RoomListing.
//
//   - The incarnation of a room is larger than those of all earlier rooms of its name.
//   - Once a newer room of the name exists, no client without a ticket joins an older one.
//   - Without troubles each live server lists each room after two seconds, once. No room that has
//     ended is listed for longer than three seconds, and half a second for the suspicion.
//   - After the troubles a newcomer plays in each room, a ticket from another server admits, and
//     each free name can be opened.
type clusterGame struct {
	b *clusterPlay
	s *clusterServer
}

func (clusterGame) Schema() *netloop.Schema { return declare(0).schema }

func (g clusterGame) Open(r *netloop.Room) error {
	g.s.server = r.Server()
	name, b := r.Spec().Name, g.b
	b.travels.open(b, g.s, r)
	r.OnLeave(func(_ *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { delete(b.travels.inside[r], c.ID()) })
	if name == "" {
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error { b.travels.joined(b, r, c); return nil })
		return nil
	}
	one := &clusterRoom{name: name, inc: r.Incarnation(), server: g.s}
	for _, other := range b.rooms {
		if other.name == name && other.inc >= one.inc {
			b.fail("room %q of server %s has the incarnation %d, after %d of server %s", name, g.s.id, one.inc, other.inc, other.server.id)
		}
	}
	b.rooms = append(b.rooms, one)
	b.touch(name)
	r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
		if b.travels.joined(b, r, c); botOf(c) > guestBots {
			return nil
		}
		bot := b.bots[botOf(c)-1]
		for _, other := range b.rooms {
			if other.name == name && other.inc > one.inc && !bot.ticket {
				b.fail("a newcomer joins room %q of server %s, incarnation %d, after server %s has opened incarnation %d", name, g.s.id, one.inc, other.server.id, other.inc)
			}
		}
		return nil
	})
	r.OnClose(func(context.Context, *netloop.Closed) error {
		if !g.s.dead {
			one.ends, one.ended = true, true
			b.touch(name)
		}
		return nil
	})
	return nil
}

const (
	listedWithin = 2 * time.Second
	staleAtMost  = 3*time.Second + 500*time.Millisecond
)

// check compares the listings of all servers with the rooms.
func (b *clusterPlay) check() {
	if b.now-b.trouble <= staleAtMost {
		return
	}
	want := map[string]int{}
	for _, r := range b.rooms {
		if !r.ended {
			want[r.name]++
		}
	}
	for _, s := range b.live() {
		have := map[string]int{}
		for _, l := range netloop.ListRooms(s.server, netloop.RoomFilter[struct{}]{Kind: "table"}) {
			have[l.Name]++
		}
		for name, since := range b.changed {
			if b.now-since > listedWithin && have[name] != want[name] {
				b.fail("server %s lists room %q %d times, and there are %d; the last change was %v ago, the last trouble %v", s.id, name, have[name], want[name], b.now-since, b.now-b.trouble)
			}
		}
	}
}

// rest ends the troubles, and checks promises that hold without troubles.
func (b *clusterPlay) rest() {
	b.heal()
	b.calm = true
	b.wait(11 * time.Second) // The names of a lost server are free.
	for _, r := range slices.Clone(b.rooms) {
		if !r.ended && b.finding == "" {
			b.plays(r, b.join(r.server, r.name, ""), "a newcomer")
		}
	}
	asker := b.live()[0]
	for _, r := range slices.Clone(b.rooms) {
		if r.ended || r.server == asker || b.finding != "" {
			continue
		}
		tickets, err := asker.server.Reserve(context.Background(), r.name, netloop.Reservation{TTL: 2 * time.Second})
		if err != nil && !strings.Contains(err.Error(), "full") && !r.ended {
			b.fail("server %s cannot reserve a seat of room %q of server %s: %v", asker.id, r.name, r.server.id, err)
		}
		if err == nil {
			b.plays(r, b.join(r.server, "", string(tickets[0])), "a client with a ticket of another server")
		}
	}
	for _, name := range []string{"oak", "elm", "ash", "fir"} {
		if b.holder(name) != nil || b.finding != "" {
			continue
		}
		if _, err := asker.server.OpenRoom(context.Background(), netloop.RoomSpec{Name: name, Kind: "table", Rate: netloop.Hz(20)}); err != nil {
			b.fail("server %s cannot open room %q, which no server has: %v", asker.id, name, err)
		}
	}
	b.wait(3 * time.Second)
	b.travels.rest(b)
}

// wait plays for a time.
func (b *clusterPlay) wait(d time.Duration) {
	for until := b.now + d; b.now < until && b.finding == ""; {
		b.step()
	}
}

// plays waits until a client plays in a room that exists, or is refused because that is full.
func (b *clusterPlay) plays(r *clusterRoom, g *clusterBot, who string) {
	for until := b.now + 3*time.Second; b.now < until && b.finding == "" && !r.ended; b.step() {
		if s := g.c.State(); s.Phase == client.Playing && g.c.Room() == r.name || s.Phase == client.Closed && s.Code == netloop.CodeFull {
			return
		}
	}
	if s := g.c.State(); b.finding == "" && !r.ended {
		b.fail("%s is %v in room %q of server %s: %v %s", who, s.Phase, r.name, r.server.id, s.Code, s.Text)
	}
}
