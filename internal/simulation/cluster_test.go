package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// TestClusterStories plays the stories of several servers of a cluster in memory.
func TestClusterStories(t *testing.T) {
	seeds.OneGoroutine(t)
	var all []uint64
	for seed := range seeds.Of(t, 30) {
		all = append(all, seed)
	}
	if n := *count; n > 0 {
		all = all[:0]
		for seed := *from; seed < *from+n; seed++ {
			all = append(all, seed)
		}
	}
	for _, seed := range all {
		s := drawCluster(seed)
		found := playCluster(t, s)
		if found == "" {
			continue
		}
		t.Errorf("%s\nrerun: make simulate CLUSTER=1 SEEDS=1 FROM=%d", found, seed)
		for i := 0; i < len(s.Events) && *most > 0; {
			shorter := *s
			shorter.Events = slices.Delete(slices.Clone(s.Events), i, i+1)
			if again := playCluster(t, &shorter); again == "" {
				i++
			} else {
				s, found = &shorter, again
			}
		}
		t.Logf("shortened: %s\n%v", found, s)
	}
}

// clusterPlay plays one story: a world for each server, which advance in step, and a cluster.Memory
// between them.
type clusterPlay struct {
	story   *clusterStory
	tb      testing.TB
	hub     *cluster.Memory
	now     time.Duration
	servers []*clusterServer
	rooms   []*clusterRoom           // in the order of opening
	changed map[string]time.Duration // last change of the rooms of a name
	noStore time.Duration            // until then the store answers nobody
	down    bool
	trouble time.Duration // time of the last trouble
	calm    bool
	bots    []*clusterBot
	travels travels
	timers  []timer
	finding string

	steps, waited atomic.Int64 // waited: time in which no world could advance, in nanoseconds
	over          atomic.Bool
}

// clusterServer is a server of the cluster.
type clusterServer struct {
	id            string
	w             *netlooptest.World
	server        *netloop.Server
	frozen, apart time.Duration // until then it is frozen, or on another side of the network
	stands, side  bool          // it is so now
	dead          bool
}

// clusterRoom is a room of any server.
type clusterRoom struct {
	name   string
	inc    uint64
	server *clusterServer
	ends   bool // it has ended, or was told to
	ended  bool
}

type clusterBot struct {
	c      *client.Client
	ticket bool
}

// playCluster returns the first broken promise of a story, or "".
func playCluster(t *testing.T, s *clusterStory) (found string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(&Story{Seed: s.Seed})
		b := &clusterPlay{story: s, tb: &quiet{TB: t, p: p}, changed: map[string]time.Duration{}, travels: newTravels()}
		b.hub = cluster.NewMemory(1000, func() time.Duration { return b.now + time.Duration(b.waited.Load()) })
		if s.Travels {
			go b.unblock()
		}
		for i := range s.Servers {
			b.serve(fmt.Sprint("s", i))
		}
		b.connect()
		func() {
			defer b.tb.(*quiet).stopped()
			b.run()
		}()
		b.heal()
		b.tb.(*quiet).clean()
		b.over.Store(true)
		time.Sleep(2 * cluster.StoreTime) // Calls without an answer end.
		if found = b.finding; found == "" && p.finding != nil {
			found = p.finding.Text
		}
	})
	return found
}

// serve adds a server.
func (b *clusterPlay) serve(id string) {
	s := &clusterServer{id: id}
	b.servers = append(b.servers, s)
	joined := netlooptest.Configure(func(c *netloop.Config) {
		c.Cluster = netloop.Cluster{Via: b.hub.Member(), ID: id, Addr: id + ":1", Duplicate: b.story.Duplicate}
		c.Room = netloop.RoomSpec{Rate: netloop.Hz(20), MaxClients: 4}
		c.MaxRooms = 8
	})
	s.w = netlooptest.New(b.tb, clusterGame{b, s}, netlooptest.Seed(b.story.Seed), joined)
}

func (b *clusterPlay) run() {
	for _, e := range b.story.Events {
		for b.now < e.At && b.finding == "" {
			b.step()
		}
		b.act(e)
	}
	for b.now < b.story.Length && b.finding == "" {
		b.step()
	}
	b.rest()
}

// act plays an event.
func (b *clusterPlay) act(e clusterEvent) {
	s := b.servers[e.Server]
	for _, row := range clusterActions {
		if row.name == e.Do && !s.dead {
			row.play(b, s, e)
		}
	}
	synctest.Wait()
	b.troubles()
}

// step advances all servers, and the clock of the bubble.
func (b *clusterPlay) step() {
	nap := nap
	if b.story.Travels {
		nap = travelStep
	}
	b.now += nap
	b.steps.Add(1)
	b.troubles()
	for len(b.timers) > 0 && b.timers[0].at <= b.now {
		b.timers[0].do()
		b.timers = b.timers[1:]
	}
	for _, s := range b.servers {
		switch {
		case s.dead:
		case s.stands:
			s.w.Spend(nap)
		default:
			s.w.Advance(nap)
		}
	}
	b.hub.Settle()
	time.Sleep(nap)
	synctest.Wait()
	b.check()
}

// troubles begins and ends the troubles.
func (b *clusterPlay) troubles() {
	for _, s := range b.servers {
		if s.dead {
			continue
		}
		if stands := s.frozen > b.now; stands != s.stands {
			s.stands = stands
			b.hub.Freeze(s.id, stands)
		}
		if side := s.apart > b.now; side != s.side {
			s.side = side
			b.hub.Partition(s.id, map[bool]int{true: 1}[side])
		}
		if s.stands || s.side {
			b.trouble = b.now
		}
	}
	if down := b.noStore > b.now; down != b.down {
		b.down = down
		b.hub.StoreGone(down)
	}
	if b.down {
		b.trouble = b.now
	}
	synctest.Wait()
}

// later calls a function at a time.
func (b *clusterPlay) later(d time.Duration, do func()) {
	b.timers = append(b.timers, timer{b.now + d, do})
	slices.SortStableFunc(b.timers, func(x, y timer) int { return cmp.Compare(x.at, y.at) })
}

// heal ends all troubles.
func (b *clusterPlay) heal() {
	for _, t := range b.timers {
		t.do()
	}
	b.timers = nil
	for _, s := range b.servers {
		s.frozen, s.apart = 0, 0
	}
	b.noStore = 0
	b.troubles()
}

// live yields the servers that answer.
func (b *clusterPlay) live() (all []*clusterServer) {
	for _, s := range b.servers {
		if !s.dead && !s.stands {
			all = append(all, s)
		}
	}
	return all
}

func (b *clusterPlay) fail(format string, a ...any) {
	if b.finding == "" {
		b.finding = fmt.Sprintf("at %v: ", b.now) + fmt.Sprintf(format, a...)
	}
}

// touch notes a change of the rooms of a name.
func (b *clusterPlay) touch(name string) { b.changed[name] = b.now }

// open opens a room on a server, or on the least loaded one.
func (b *clusterPlay) open(s *clusterServer, e clusterEvent, place bool) {
	if s.stands {
		return
	}
	spec := netloop.RoomSpec{Name: e.Room, Kind: "table", Rate: netloop.Hz(20), MaxClients: 3, KeepDropped: -1, CloseEmpty: e.For}
	if e.For > 5*time.Second {
		spec.CloseEmpty = netloop.NeverClose
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if place {
			_, _ = s.server.PlaceRoom(ctx, spec) // The name may be taken, or the cluster busy.
		} else {
			_, _ = s.server.OpenRoom(ctx, spec)
		}
	}()
}

// close ends a room of any server.
func (b *clusterPlay) close(s *clusterServer, e clusterEvent) {
	if s.stands {
		return
	}
	if s.server.CloseRoom(e.Room, 0, netloop.CodeGame, "the story ends it") == nil {
		b.touch(e.Room)
		for _, r := range b.rooms {
			r.ends = r.ends || r.name == e.Room
		}
	}
}

// reserve reserves a seat of a room of any server, for a client that joins at once.
func (b *clusterPlay) reserve(s *clusterServer, e clusterEvent) {
	if s.stands {
		return
	}
	var tickets []netloop.Ticket
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		tickets, _ = s.server.Reserve(ctx, e.Room, netloop.Reservation{TTL: 2 * time.Second})
	}()
	synctest.Wait()
	if len(tickets) > 0 {
		b.join(b.holder(e.Room), e.Room, string(tickets[0]))
	}
}

// holder returns the server with the newest room of a name, or nil.
func (b *clusterPlay) holder(name string) *clusterServer {
	for _, r := range slices.Backward(b.rooms) {
		if r.name == name && !r.ended {
			return r.server
		}
	}
	return nil
}

// newcomer lets a client join a room of the server by its name. A hello for a room of another
// server may wait for that, and the world waits with it.
func (b *clusterPlay) newcomer(s *clusterServer, e clusterEvent) {
	if slices.ContainsFunc(b.rooms, func(r *clusterRoom) bool { return r.server == s && r.name == e.Room && !r.ends }) {
		b.join(s, e.Room, "")
	}
}

// join lets a client join a room of a server.
func (b *clusterPlay) join(s *clusterServer, room, ticket string) *clusterBot {
	if s == nil || s.dead || s.stands {
		return nil
	}
	g := &clusterBot{ticket: ticket != ""}
	b.bots = append(b.bots, g)
	cfg := client.Config{Room: room, Ticket: ticket, Join: hello{len(b.bots)}, Reconnect: client.Reconnect{Off: true}}
	g.c = s.w.JoinAs(cfg, netlooptest.Link{Delay: 10 * time.Millisecond})
	return g
}

// kill ends a server without a message. At least one remains.
func (b *clusterPlay) kill(s *clusterServer, _ clusterEvent) {
	alive := 0
	for _, other := range b.servers {
		if !other.dead {
			alive++
		}
	}
	if alive < 2 {
		return
	}
	b.hub.Freeze(s.id, true)
	s.dead, b.trouble = true, b.now
	b.connect()
	for _, r := range b.rooms {
		if r.server == s {
			r.ended = true
			b.touch(r.name)
		}
	}
}
