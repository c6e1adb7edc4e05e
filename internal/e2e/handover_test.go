package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/netlooptest"
	"github.com/netloop/netloop/persist"
)

// The game of these tests: a room keeps a ledger of the commands of each player.
var (
	bookkeeping = netloop.NewSchema("books", 1, 0)
	enterBook   = netloop.NewCall[command, command](bookkeeping, "enterBook")
	handsTo     = netloop.NewRPC[text](bookkeeping, "hand to") // the id of a server
)

type command struct{ N int32 }

// book is the record of a room.
type book struct {
	Opened   int
	Commands map[string][]int32 // by the subject of the player
}

// bookServer is a server with the game. Its rooms note events.
type bookServer struct {
	*netlooptest.World
	id     string
	keeper *persist.Keeper
	events *[]string
	rooms  map[string]*netloop.Room // the newest of each name
	stays  bool                     // a duplicate ends without handing over
	stored func()                   // called once after a hand-over has stored the record; or nil
	during func()                   // called once while a room opens; or nil
}

func (*bookServer) Schema() *netloop.Schema { return bookkeeping }

func (s *bookServer) Open(r *netloop.Room) error {
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		if j.Subject == "" {
			j.Subject, j.Claims = j.Token, map[string]any{"role": 3}
		}
		return nil
	})
	if r.Spec().Name == "" {
		return nil
	}
	note := func(format string, a ...any) {
		*s.events = append(*s.events, s.id+" "+r.Spec().Name+": "+fmt.Sprintf(format, a...))
	}
	s.rooms[r.Spec().Name] = r
	if fn := s.during; fn != nil {
		s.during = nil
		fn()
	}
	state := book{Commands: map[string][]int32{}}
	saver, stored, err := persist.Keep(r, persist.Config[book]{Keeper: s.keeper, Save: func() *book { return &state }})
	if err != nil {
		return err
	}
	if stored != nil {
		state = *stored
	}
	r.OnHandOver(netloop.HandOver{Store: func(context.Context) error {
		if fn := s.stored; fn != nil {
			s.stored = nil
			fn()
		}
		return nil
	}})
	state.Opened++
	r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
		note("%s joins as %d", c.Join().Subject, c.Join().Role())
		return nil
	})
	r.OnLeave(func(t *netloop.Tick, c *netloop.Client, why *netloop.Closed) {
		note("%s leaves: %v", c.Join().Subject, why.Code)
		saver.Changed(t) // Too late: the other server has the record.
	})
	r.OnDuplicate(func(*netloop.Tick) bool { note("duplicate"); return !s.stays })
	handsTo.Handle(r, func(t *netloop.Tick, _ *netloop.Client, m text) error {
		r.HandOver(t, netloop.Place{Server: m.S}, func(_ *netloop.Tick, err error) { note("handed over: %v", err == nil) })
		return nil
	})
	enterBook.Handle(r, func(t *netloop.Tick, from *netloop.Client, m command) (command, error) {
		who := from.Join().Subject
		state.Commands[who] = append(state.Commands[who], m.N)
		saver.Changed(t)
		return m, nil
	})
	return nil
}

// handOverBed is a cluster of the servers x and y, which share a store.
type handOverBed struct {
	*testing.T
	hub    *cluster.Memory
	store  netlooptest.Store
	x, y   *bookServer
	events []string
	told   []string // outcomes of HandOver
}

func newHandOverBed(t *testing.T, o ...netlooptest.Option) *handOverBed {
	b := &handOverBed{T: t}
	b.hub = cluster.NewMemory(1000, func() time.Duration {
		if b.x == nil {
			return 0
		}
		return b.x.Now()
	})
	x, y := b.server("x", o...), b.server("y", o...)
	x.Connect("y:1", y.World)
	y.Connect("x:1", x.World)
	b.x, b.y = x, y
	b.advance(100 * time.Millisecond)
	return b
}

func (b *handOverBed) server(id string, o ...netlooptest.Option) *bookServer {
	s := &bookServer{id: id, keeper: persist.New(&b.store), events: &b.events, rooms: map[string]*netloop.Room{}}
	s.World = netlooptest.New(b.T, s, append([]netlooptest.Option{netlooptest.Configure(func(c *netloop.Config) {
		c.Cluster.Via, c.Cluster.ID, c.Cluster.Addr = b.hub.Member(), id, id+":1"
	})}, o...)...)
	return s
}

func (b *handOverBed) advance(d time.Duration) {
	for range d / time.Millisecond {
		b.x.Advance(time.Millisecond)
		b.y.Advance(time.Millisecond)
		b.hub.Settle()
		synctest.Wait()
	}
}

// until advances until a condition holds. In each millisecond the goroutines of all servers run
// until they wait: the test needs a bubble of testing/synctest.
func (b *handOverBed) until(what string, done func() bool) {
	b.Helper()
	for range 20_000 {
		if done() {
			return
		}
		b.advance(time.Millisecond)
	}
	b.Fatalf("not reached: %s; events %q, told %q", what, b.events, b.told)
}

// open opens a room on x.
func (b *handOverBed) open(spec netloop.RoomSpec) *netlooptest.PlayedRoom {
	b.Helper()
	return openRoom(b.T, b.x.World, spec)
}

// join joins players to a room of x.
func (b *handOverBed) join(room string, names ...string) (all []*client.Client) {
	b.Helper()
	for _, name := range names {
		all = append(all, b.x.JoinAs(client.Config{Room: room, Token: name}, netlooptest.Link{Delay: 5 * time.Millisecond}))
	}
	b.until("all play", func() bool {
		return !slices.ContainsFunc(all, func(c *client.Client) bool { return c.State().Phase != client.Playing })
	})
	return all
}

// handOver hands a room of x over, and waits for the outcome.
func (b *handOverBed) handOver(room string, to netloop.Place) string {
	b.Helper()
	b.told = nil
	b.x.Room(room).Tick(func(t *netloop.Tick) {
		t.Room().HandOver(t, to, func(_ *netloop.Tick, err error) { b.told = append(b.told, fmt.Sprint(err)) })
	})
	b.until("an outcome", func() bool { return len(b.told) > 0 })
	return b.told[0]
}

func (b *handOverBed) record(room string) (l book) {
	b.Helper()
	if text := b.store.Record(room); text != nil {
		if err := json.Unmarshal(text, &l); err != nil {
			b.Fatal(err)
		}
	}
	return l
}

func (b *handOverBed) noted(text string) (n int) {
	for _, e := range b.events {
		if strings.Contains(e, text) {
			n++
		}
	}
	return n
}

// players send a command in each round, and note the acknowledged ones.
type players struct {
	all   []*client.Client
	next  int32
	acked []map[int32]bool
}

func (p *players) send() {
	p.next++
	for i, c := range p.all {
		if len(p.acked) <= i {
			p.acked = append(p.acked, map[int32]bool{})
		}
		if c.Closed() == nil {
			client.Call(c, enterBook, command{p.next}, func(_ *netloop.Tick, m command, err error) {
				if err == nil {
					p.acked[i][m.N] = true
				}
			})
		}
	}
}

func bookRoom(name string) netloop.RoomSpec {
	return netloop.RoomSpec{Name: name, Kind: "book", MaxClients: 5, MaxSpectators: 1}
}

// A room that moves to another server keeps its record: each acknowledged command is there exactly
// once. Its clients play there with their seats, subjects, claims and roles.
func TestARoomMovesToAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHandOverBed(t)
		old := b.open(bookRoom("oak"))
		names := []string{"ann", "bob", "cid"}
		p := &players{all: b.join("oak", names...)}
		watcher := b.x.JoinAs(client.Config{Room: "oak", Token: "eve", Spectate: true}, netlooptest.Link{})
		before := b.x.rooms["oak"].Incarnation()
		moving := func() bool {
			return slices.ContainsFunc(p.all, func(c *client.Client) bool { return c.State().Phase != client.Playing })
		}
		for range 20 {
			p.send()
			b.advance(17 * time.Millisecond)
		}
		if got := b.handOver("oak", netloop.Place{}); got != "<nil>" {
			t.Fatal(got)
		}
		for range 30 {
			p.send()
			b.advance(17 * time.Millisecond)
		}
		b.until("all play on y", func() bool { return !moving() && watcher.State().Phase == client.Playing })
		if why := old.Ended(); why == nil || why.Code != netloop.CodeClosing {
			t.Errorf("the old room: %v", why)
		}
		m := clusterOf(t, b.x.rooms["oak"].Server(), "").Moves
		if len(m) != 1 || m[0].Client != 0 || m[0].State != inspect.MoveArrived || m[0].ToRoom != "oak" || m[0].ToServer != "y" ||
			m[0].Text != "clients: 4 with a seat on server y, 0 without" {
			t.Errorf("the inspector of the old server shows %+v", m)
		}
		m = clusterOf(t, b.y.rooms["oak"].Server(), "").Moves
		if len(m) != 1 || m[0].Out || m[0].Client != 0 || m[0].State != inspect.MoveArrived || m[0].FromServer != "x" || m[0].Text != "clients: 4 with a seat here" {
			t.Errorf("the inspector of the new server shows %+v", m)
		}
		if got := b.y.rooms["oak"].Incarnation(); got <= before {
			t.Errorf("incarnation %d after %d", got, before)
		}
		for _, name := range append(names, "eve") {
			if b.noted("x oak: "+name+" leaves: "+netloop.CodeMoved.String()) != 1 || b.noted("y oak: "+name+" joins as 3") != 1 {
				t.Errorf("%s did not move: %q", name, b.events)
			}
		}
		last := p.next
		p.send()
		b.until("commands on y", func() bool { return p.acked[0][last+1] && p.acked[1][last+1] && p.acked[2][last+1] })
		b.y.Room("oak").Drain(0, netloop.CodeClosing, "over")
		b.until("the end of the room", func() bool { return b.y.Room("oak").Ended() != nil })
		r := b.record("oak")
		if r.Opened != 2 {
			t.Errorf("the record was loaded %d times", r.Opened)
		}
		for i, name := range names {
			got := r.Commands[name]
			if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Errorf("the commands of %s are %v", name, got)
			}
			for n := range p.acked[i] {
				if !slices.Contains(got, n) {
					t.Errorf("command %d of %s is lost", n, name)
				}
			}
			if len(p.acked[i]) < 20 {
				t.Errorf("%s has %d acknowledged commands", name, len(p.acked[i]))
			}
		}
		if n := sumOf(t, serverOf(b.x.World), "netloop_rooms_handed_over_total", `result="ok"`); n != 1 {
			t.Errorf("%d hand-overs are counted", n)
		}
	})
}

// A room whose hand-over fails continues on its server, with its clients and its name, and stores
// its state.
func TestARoomThatCannotMoveContinues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(*handOverBed)
		heals func(*handOverBed)
		to    netloop.Place
		want  string
		label string
	}{
		"store": {
			fault: func(b *handOverBed) { b.store.Fail(true) }, heals: func(b *handOverBed) { b.store.Fail(false) },
			want: "the store fails", label: "save",
		},
		"name taken there": {
			fault: func(b *handOverBed) {
				if _, err := b.y.OpenRoom(netloop.RoomSpec{Name: "fir", Private: true, Code: "ABC"}); err != nil {
					b.Fatal(err)
				}
			},
			want: "there is a room of that code", label: "refused",
		},
		"server cut off": { // Its late answer opens no second room.
			fault: func(b *handOverBed) { b.hub.Partition("y", 1) }, heals: func(b *handOverBed) { b.hub.Partition("y", 0) },
			to: netloop.Place{Server: "y"}, want: cluster.ErrBusy.Error(), label: "refused",
		},
		"server gone":  {to: netloop.Place{Server: "z"}, want: cluster.ErrGone.Error(), label: "refused"},
		"no place":     {to: netloop.Place{Region: "mars"}, want: "no other server has a place"},
		"to itself":    {to: netloop.Place{Server: "x"}, want: "no other server has a place"},
		"default room": {want: "no name"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newHandOverBed(t)
				spec := bookRoom("oak")
				spec.Private, spec.Code = true, "ABC"
				b.open(spec)
				joined := b.x.JoinAs(client.Config{Room: "oak", Ticket: "ABC", Token: "ann"}, netlooptest.Link{})
				b.until("ann plays", func() bool { return joined.State().Phase == client.Playing })
				p := &players{all: []*client.Client{joined}}
				before := b.x.rooms["oak"].Incarnation()
				if c.fault != nil {
					c.fault(b)
				}
				which := "oak"
				if name == "default room" {
					which = ""
				}
				if got := b.handOver(which, c.to); !strings.Contains(got, c.want) {
					t.Fatalf("%q, want %q", got, c.want)
				}
				if c.heals != nil {
					c.heals(b)
				}
				p.send()
				b.until("a command", func() bool { return p.acked[0][1] })
				if got := b.x.rooms["oak"].Incarnation(); got < before || (got > before) != (c.label == "refused") {
					t.Errorf("incarnation %d after %d", got, before)
				}
				if c.label != "" {
					if n := sumOf(t, serverOf(b.x.World), "netloop_rooms_handed_over_total", `result="`+c.label+`"`); n != 1 {
						t.Errorf("%d failures are counted", n)
					}
				}
				late := b.x.JoinAs(client.Config{Room: "oak", Ticket: "ABC", Token: "bob"}, netlooptest.Link{})
				b.until("bob plays", func() bool { return late.State().Phase == client.Playing })
				if b.y.rooms["oak"] != nil && c.label != "refused" || b.noted("y oak") > 0 {
					t.Errorf("a room on the other server: %q", b.events)
				}
				b.x.Room("oak").Drain(0, netloop.CodeClosing, "over")
				b.until("the record", func() bool { return len(b.record("oak").Commands["ann"]) == 1 })
			})
		})
	}
}

// A server that ends hands its rooms over first: their matches go on elsewhere.
func TestAServerThatEndsHandsItsRoomsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHandOverBed(t, netlooptest.Configure(func(c *netloop.Config) { c.Cluster.HandOver = true }))
		spec := bookRoom("oak")
		spec.Sleep = true
		b.open(spec)
		b.open(bookRoom("elm"))
		p := &players{all: append(b.join("oak", "ann"), b.join("elm", "bob")...)}
		p.send()
		b.until("commands", func() bool { return p.acked[0][1] && p.acked[1][1] })
		b.advance(2 * time.Second)
		if !b.x.Room("oak").Asleep() {
			t.Error("the room does not sleep")
		}
		b.x.Drain(time.Second)
		if b.x.Ended() == nil {
			t.Error("the server has not ended")
		}
		b.until("both play on y", func() bool {
			return b.noted("y oak: ann joins as 3") == 1 && b.noted("y elm: bob joins as 3") == 1 &&
				p.all[0].State().Phase == client.Playing && p.all[1].State().Phase == client.Playing
		})
		for _, name := range []string{"oak", "elm"} {
			if b.y.Room(name).Ended() != nil {
				t.Errorf("room %s has ended", name)
			}
		}
		p.send()
		b.until("commands on y", func() bool { return p.acked[0][2] && p.acked[1][2] })
	})
}

// The room of the older claim of a name moves its clients to the newer one, or ends at once.
func TestTheOlderRoomMovesItsClientsToTheNewer(t *testing.T) {
	for _, stays := range []bool{false, true} {
		t.Run(fmt.Sprint(stays), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newHandOverBed(t)
				b.x.stays = stays
				old := b.open(bookRoom("oak"))
				c := b.join("oak", "ann")[0]
				b.hub.Partition("x", 1)
				b.advance((cluster.LeaseBeats + 1) * cluster.Beat)
				openRoom(t, b.y.World, bookRoom("oak"))
				if c.State().Phase != client.Playing {
					t.Error("the room does not continue while it is alone")
				}
				b.hub.Partition("x", 0)
				b.until("the end of the older room", func() bool { return old.Ended() != nil })
				if b.noted("x oak: duplicate") != 1 {
					t.Errorf("events %q", b.events)
				}
				if !stays {
					b.until("ann plays on y", func() bool { return b.noted("y oak: ann joins as 3") == 1 && c.State().Phase == client.Playing })
					return
				}
				b.until("ann is closed", func() bool { return c.Closed() != nil })
				if why := c.Closed(); why.Code != netloop.CodeClosing || b.noted("y oak: ann") > 0 {
					t.Errorf("%v, events %q", why, b.events)
				}
			})
		})
	}
}

// An older room that has lost its name with unsaved changes does not fail: the newer room has the
// state.
func TestAnOlderRoomWithUnsavedChangesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHandOverBed(t)
		old := b.open(bookRoom("oak"))
		p := players{all: b.join("oak", "ann")}
		b.hub.Partition("x", 1)
		b.advance((cluster.LeaseBeats + 1) * cluster.Beat)
		p.send()
		b.until("a save", func() bool { return len(b.record("oak").Commands["ann"]) == 1 })
		openRoom(t, b.y.World, bookRoom("oak"))
		p.send() // The next save begins 5 s after the first one.
		b.until("an answer", func() bool { return p.acked[0][2] })
		b.hub.Partition("x", 0)
		b.until("the end of the older room", func() bool { return old.Ended() != nil })
		// A world reports a failed OnClose.
		if why := old.Ended(); why.Code != netloop.CodeClosing {
			t.Errorf("the older room has ended: %v", why)
		}
		if got := b.record("oak").Commands["ann"]; !slices.Equal(got, []int32{1}) {
			t.Errorf("the record has %v", got)
		}
	})
}

// During a partition the store of the state knows first that a newer room exists: the older one
// ends as after the loss of its name, which is told once, and not with an internal error.
func TestTheStoreKnowsTheNewerRoomFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHandOverBed(t)
		old := b.open(bookRoom("oak"))
		c := b.join("oak", "ann")[0]
		b.hub.Partition("x", 1)
		b.advance((cluster.LeaseBeats + 1) * cluster.Beat)
		openRoom(t, b.y.World, bookRoom("oak"))
		p := players{all: []*client.Client{c}}
		p.send() // Its save is refused.
		b.until("the end of the older room", func() bool { return old.Ended() != nil })
		b.until("ann is closed", func() bool { return c.Closed() != nil })
		if why := c.Closed(); why.Code != netloop.CodeClosing || !strings.Contains(why.Text, "continues on another server") {
			t.Errorf("ann is closed: %v", why)
		}
		b.hub.Partition("x", 0)
		b.advance(100 * time.Millisecond)
		if b.noted("x oak: duplicate") != 1 {
			t.Errorf("events %q", b.events)
		}
		if got := b.record("oak").Commands["ann"]; len(got) != 0 {
			t.Errorf("the older room has stored %v", got)
		}
	})
}

// A recording of a room ends with its hand-over, and that of a room whose hand-over has failed
// continues; both replay.
func TestARecordingEndsWithTheHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var files []*bytes.Buffer
		b := newHandOverBed(t, netlooptest.RecordRoom(func(netloop.RoomInfo) (io.WriteCloser, error) {
			f := new(bytes.Buffer)
			files = append(files, f)
			return nopCloser{f}, nil
		}))
		b.open(bookRoom("oak"))
		p := &players{all: b.join("oak", "ann")}
		send := func() {
			for range 10 {
				p.send()
				b.advance(20 * time.Millisecond)
			}
		}
		send()
		client.Send(p.all[0], handsTo, text{S: "z"})
		b.until("a failure", func() bool { return b.noted("x oak: handed over: false") == 1 })
		send()
		client.Send(p.all[0], handsTo, text{S: "y"})
		b.until("a hand-over", func() bool { return b.noted("y oak: ann joins as 3") == 1 })
		send()
		b.y.Room("oak").Drain(0, netloop.CodeClosing, "over")
		b.until("the end of the room", func() bool { return b.y.Room("oak").Ended() != nil })
		if len(files) != 2 {
			t.Fatalf("%d recordings", len(files))
		}
		for i, f := range files {
			var events []string
			g := &bookServer{events: &events, rooms: map[string]*netloop.Room{}}
			r, err := netloop.NewReplay(netloop.Config{}, g, f)
			ticks := 0
			for ; err == nil; ticks++ {
				_, err = r.Step()
			}
			if !errors.Is(err, io.EOF) || ticks < 10 {
				t.Errorf("recording %d: %v after %d ticks", i, err, ticks)
			}
		}
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
