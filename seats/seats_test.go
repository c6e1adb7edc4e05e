package seats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/seats"
)

var (
	schema = netloop.NewSchema("seats", 1, 0)
	hands  = netloop.NewClass[hand](schema, "hand")
	finish = netloop.NewRPC[struct{}](schema, "finish") // of the match
)

type (
	hand struct {
		Presence seats.Presence
		Player   string `net:"max=32"`
		Card     uint8  `net:"read=owner"`
	}
	stored struct{ Players []string }
)

// table is a game with seats.
type table struct {
	cfg     seats.Config[hand]
	spec    netloop.RoomSpec
	refuses bool            // clients without a seat
	keeper  *persist.Keeper // if not nil, the players are stored
	saver   *persist.Saver[stored]
	panics  bool // Changed panics
	seats   *seats.Seats[hand]
	told    []string // the status of each changed seat
}

func (*table) Schema() *netloop.Schema { return schema }

func (g *table) RoomDefaults() netloop.RoomSpec {
	s := g.spec
	s.Name, s.CloseEmpty = "", 0
	return s
}

func (g *table) OpenFor(context.Context, string, *netloop.Join) (netloop.RoomSpec, error) {
	return g.spec, nil
}

func (g *table) Open(r *netloop.Room) error {
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Subject = j.Token; return nil })
	c := g.cfg
	c.Class, c.Presence, c.Changed = hands, func(h *hand) *seats.Presence { return &h.Presence }, g.changed
	if g.keeper != nil && r.Spec().Name != "" {
		saver, old, err := persist.Keep(r, persist.Config[stored]{Keeper: g.keeper, Every: -1, Save: func() *stored { return &stored{g.seats.Players()} }})
		if g.saver = saver; err != nil {
			return err
		}
		if old != nil {
			c.Stored = old.Players
		}
	}
	if g.spec.Name != r.Spec().Name { // The lobby.
		return nil
	}
	g.seats, g.told = seats.New(r, c), nil
	finish.Handle(r, func(t *netloop.Tick, _ *netloop.Client, _ struct{}) error { g.seats.Unlock(t); return nil })
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		if g.seats.Sit(t, c) == nil && !c.Spectator() && g.refuses {
			return netloop.Refuse(netloop.CodeFull, "all seats are taken")
		}
		return nil
	})
	return nil
}

func (g *table) changed(t *netloop.Tick, s *seats.Seat[hand]) {
	if s.Here() {
		h := s.Object.Edit(t)
		h.Player, h.Card = s.Player(), 7
	}
	g.told = append(g.told, fmt.Sprintf("%s %v", s.Player(), s.Status()))
	if g.saver != nil {
		g.saver.Changed(t)
	}
	if g.panics {
		panic("no")
	}
}

// played is a world with a table, at which clients have names.
type played struct {
	*netlooptest.World
	g  *table
	by map[string]*client.Client
}

// link makes a client's arrival take a few ticks.
var link = netlooptest.Link{Delay: 5 * time.Millisecond}

func play(t testing.TB, g *table, o ...netlooptest.Option) *played {
	g.spec.Rate, g.spec.Sleep = netloop.Hz(20), true
	return &played{netlooptest.New(t, g, o...), g, map[string]*client.Client{}}
}

// join makes a client by its device: the part of the name before a space is the player.
func (w *played) join(device string) { w.come(device, false) }

func (w *played) watch(device string) { w.come(device, true) }

func (w *played) come(device string, spectate bool) {
	player, _, _ := strings.Cut(device, " ")
	if player == "anonymous" {
		player = ""
	}
	w.by[device] = w.JoinAs(client.Config{Token: player, Spectate: spectate, Room: w.g.spec.Name}, link)
	w.Advance(time.Second)
	w.Settle()
	w.Advance(time.Second)
}

func (w *played) drop(device string) {
	w.Break(w.by[device])
	w.Freeze(w.by[device])
	w.Advance(6 * time.Second) // The server notices after 5 s.
}

func (w *played) back(device string) {
	w.Thaw(w.by[device])
	w.Advance(2 * time.Second)
}

func (w *played) leave(device string) {
	_ = w.by[device].Close()
	w.Advance(time.Second)
}

func (w *played) tick(fn func(t *netloop.Tick)) { w.Room(w.g.spec.Name).Tick(fn) }

func (w *played) lock(keep time.Duration) {
	w.tick(func(t *netloop.Tick) { w.g.seats.Lock(t, keep) })
}

func (w *played) unlock() { w.tick(func(t *netloop.Tick) { w.g.seats.Unlock(t) }) }

// sees returns the seats as a client sees them, each with the seconds for which it is kept and the
// card.
func (w *played) sees(device string) string {
	w.Advance(time.Second)
	var all []string
	w.Look(w.by[device], func(t *netloop.Tick) {
		for o := range hands.All(t) {
			s := o.State()
			left := s.Presence.Until.Left(t).Round(time.Second)
			all = append(all, fmt.Sprintf("%s %v %v %d", s.Player, s.Presence.Status, left, s.Card))
		}
	})
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// A seat belongs to a player, from the first client to the end of the time for an absent player.
func TestSeatsBelongToPlayers(t *testing.T) {
	const minute = time.Minute
	for name, c := range map[string]struct {
		g    table
		play func(w *played)
		want string // changes of seats
		ends string // the remaining players
	}{
		"drops and resumes": {table{}, func(w *played) { w.join("ann"); w.drop("ann"); w.back("ann") }, "ann here, ann away, ann here", "ann"},
		"drops for too long": {table{spec: netloop.RoomSpec{KeepDropped: 10 * time.Second}}, func(w *played) { w.join("ann"); w.drop("ann"); w.Advance(10 * time.Second) },
			"ann here, ann away, ann gone", ""},
		"a dropped client keeps its seat": {table{cfg: seats.Config[hand]{Keep: time.Second}, spec: netloop.RoomSpec{KeepDropped: minute}}, func(w *played) {
			w.join("ann")
			w.drop("ann")
			w.Advance(50 * time.Second)
			w.back("ann")
		}, "ann here, ann away, ann here", "ann"},
		"leaves": {table{}, func(w *played) { w.join("ann"); w.join("bob"); w.leave("ann") }, "ann here, bob here, ann gone", "bob"},
		"leaves and comes back in time": {table{cfg: seats.Config[hand]{Keep: minute}}, func(w *played) {
			w.join("ann")
			w.leave("ann")
			w.Advance(50 * time.Second)
			w.join("ann")
			w.Advance(minute)
		}, "ann here, ann away, ann here", "ann"},
		"comes back too late": {table{cfg: seats.Config[hand]{Keep: minute}}, func(w *played) {
			w.join("ann")
			w.join("bob")
			w.leave("ann")
			w.Advance(minute)
			w.join("ann")
		}, "ann here, bob here, ann away, ann gone, ann here", "bob ann"},
		"comes back at any time": {table{cfg: seats.Config[hand]{Keep: -1}}, func(w *played) { w.join("ann"); w.leave("ann"); w.Advance(10 * minute); w.join("ann") },
			"ann here, ann away, ann here", "ann"},
		"leaves while it was dropped": {table{cfg: seats.Config[hand]{Keep: minute}, spec: netloop.RoomSpec{KeepDropped: 10 * time.Second}}, func(w *played) {
			w.join("ann")
			w.drop("ann")
			w.Advance(55 * time.Second)
			w.join("ann 2")
			w.Advance(minute)
		}, "ann here, ann away, ann here", "ann"},
		"the time begins with the drop": {table{cfg: seats.Config[hand]{Keep: 30 * time.Second}, spec: netloop.RoomSpec{KeepDropped: 20 * time.Second}}, func(w *played) {
			w.join("ann")
			w.drop("ann")
			w.Advance(30 * time.Second)
		}, "ann here, ann away, ann gone", ""},
		"another device":              {table{}, func(w *played) { w.join("ann"); w.join("ann 2") }, "ann here", "ann"},
		"another device after a drop": {table{}, func(w *played) { w.join("ann"); w.drop("ann"); w.join("ann 2") }, "ann here, ann away, ann here", "ann"},
		"becomes a spectator": {table{cfg: seats.Config[hand]{Keep: minute}}, func(w *played) { w.join("ann"); w.watch("ann 2"); w.Advance(minute) },
			"ann here, ann away, ann gone", ""},
		"watches and plays again": {table{cfg: seats.Config[hand]{Keep: minute}}, func(w *played) { w.join("ann"); w.watch("ann 2"); w.join("ann") },
			"ann here, ann away, ann here", "ann"},
		"only watches": {table{}, func(w *played) { w.watch("ann") }, "", ""},
		"one player twice": {table{spec: netloop.RoomSpec{Duplicate: netloop.DuplicateAllow}}, func(w *played) {
			w.join("ann")
			w.join("ann 2")
			w.leave("ann 2")
			w.join("ann 3")
			w.leave("ann")
			w.leave("ann 3")
		}, "ann here, ann gone", ""},
		"one player twice, both drop": {table{cfg: seats.Config[hand]{Keep: 2 * time.Second}, spec: netloop.RoomSpec{Duplicate: netloop.DuplicateAllow, KeepDropped: minute}}, func(w *played) {
			w.join("ann")
			w.join("ann 2")
			w.drop("ann 2")
			w.drop("ann")
			w.Advance(10 * time.Second)
			w.back("ann 2")
		}, "ann here, ann away, ann here", "ann"},
		"one player twice, one drops and one leaves": {table{cfg: seats.Config[hand]{Keep: 2 * time.Second}, spec: netloop.RoomSpec{Duplicate: netloop.DuplicateAllow, KeepDropped: minute}}, func(w *played) {
			w.join("ann")
			w.join("ann 2")
			w.drop("ann 2")
			w.leave("ann")
			w.Advance(10 * time.Second)
			w.back("ann 2")
		}, "ann here, ann away, ann here", "ann"},
		"one player twice, the dropped one sits": {table{cfg: seats.Config[hand]{Keep: minute}, spec: netloop.RoomSpec{Duplicate: netloop.DuplicateAllow, KeepDropped: minute}}, func(w *played) {
			w.join("ann")
			w.join("ann 2")
			w.drop("ann 2")
			w.tick(func(t *netloop.Tick) {
				c, _ := t.Client(w.by["ann 2"].ID())
				w.g.seats.Free(t, w.g.seats.Of(c))
				w.g.seats.Sit(t, c)
			})
			w.leave("ann")
		}, "ann here, ann gone, ann here, ann away", "ann"},
		"no subject": {table{cfg: seats.Config[hand]{Keep: -1}}, func(w *played) {
			w.join("anonymous")
			w.drop("anonymous")
			w.back("anonymous")
			w.join("anonymous 2")
			w.join("anonymous 3")
			w.leave("anonymous")
		}, " here,  away,  here,  here,  here,  gone", " "},
		"a full table": {table{cfg: seats.Config[hand]{Most: 2, Keep: minute}, refuses: true}, func(w *played) {
			w.join("ann")
			w.join("bob")
			w.leave("ann")
			w.join("cid") // Her seat is kept.
			w.join("ann")
			w.leave("ann")
			w.Advance(minute)
			w.join("cid")
		}, "ann here, bob here, ann away, ann here, ann away, ann gone, cid here", "bob cid"},
		"as many seats as clients": {table{spec: netloop.RoomSpec{MaxClients: 1}, cfg: seats.Config[hand]{Keep: minute}}, func(w *played) { w.join("ann"); w.leave("ann"); w.join("bob") },
			"ann here, ann away", "ann"},
		"a locked match": {table{}, func(w *played) {
			w.join("ann")
			w.join("bob")
			w.lock(minute)
			w.join("cid")
			w.leave("ann")
			w.Advance(minute)
			w.join("ann") // She may not return.
			w.unlock()
		}, "ann here, bob here, ann away, ann gone, ann gone", "bob"},
		"a match whose time is set again": {table{}, func(w *played) {
			w.join("ann")
			w.join("bob")
			w.lock(minute)
			w.leave("ann")
			w.Advance(minute)
			w.lock(minute) // It tells nothing about her.
			w.unlock()
		}, "ann here, bob here, ann away, ann gone, ann gone", "bob"},
		"a match without a time": {table{}, func(w *played) {
			w.join("ann")
			w.join("bob")
			w.lock(-1)
			w.leave("ann")
			w.leave("bob")
			w.Advance(10 * minute)
			w.join("bob")
			w.unlock()
			w.Advance(time.Second)
		}, "ann here, bob here, ann away, bob away, bob here, ann gone", "bob"},
		"a shorter time": {table{cfg: seats.Config[hand]{Keep: time.Hour}}, func(w *played) {
			w.join("ann")
			w.leave("ann")
			w.Advance(10 * time.Second)
			w.lock(20 * time.Second)
			w.Advance(8 * time.Second)
			w.join("ann")
			w.leave("ann")
			w.lock(time.Hour)
			w.Advance(minute)
			w.lock(time.Second)
		}, "ann here, ann away, ann here, ann away, ann gone", "ann"},
		"resigns": {table{cfg: seats.Config[hand]{Keep: -1}}, func(w *played) {
			w.join("ann")
			w.join("bob")
			free := func(i int) {
				w.tick(func(t *netloop.Tick) { s := w.g.seats.All()[i]; w.g.seats.Free(t, s); w.g.seats.Free(t, s) })
			}
			free(0)
			w.leave("ann")
			w.lock(-1)
			free(0)
			w.leave("bob")
		}, "ann here, bob here, ann gone, bob gone", "bob"},
		"a panic of the game": {table{panics: true}, func(w *played) { w.join("ann"); w.leave("ann") }, "ann here, ann gone", ""},
		"sits later": {table{cfg: seats.Config[hand]{Most: 1}}, func(w *played) {
			w.join("ann")
			w.join("bob")
			w.join("cid")
			w.drop("bob")
			w.leave("ann")
			w.tick(func(t *netloop.Tick) {
				for c := range t.Clients() {
					w.g.seats.Sit(t, c)
				}
			})
			w.back("bob")
		}, "ann here, ann gone, bob away, bob here", "bob"},
		"asleep": {table{cfg: seats.Config[hand]{Keep: minute}}, func(w *played) {
			w.join("ann")
			w.leave("ann")
			w.Advance(50 * time.Second)
			if !w.Room("").Asleep() {
				w.g.told = append(w.g.told, "awake")
			}
			w.Advance(20 * time.Second)
		}, "ann here, ann away, ann gone", ""},
		"a paused room": {table{cfg: seats.Config[hand]{Keep: minute}}, func(w *played) {
			w.join("ann")
			w.tick(func(t *netloop.Tick) { t.Room().SetTimeScale(t, 0, 1) })
			w.leave("ann")
			w.Advance(minute)
		}, "ann here, ann away, ann gone", ""},
		"a drain": {table{cfg: seats.Config[hand]{Keep: minute}}, func(w *played) { w.join("ann"); w.Drain(time.Second) }, "ann here, ann away", "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			g := c.g
			g.spec.MaxSpectators = 9
			var o []netlooptest.Option
			if g.panics {
				o = append(o, netlooptest.AllowPanics())
			}
			w := play(t, &g, o...)
			w.Step(1)
			c.play(w)
			if got := strings.Join(g.told, ", "); got != c.want {
				t.Errorf("the changes are %q, want %q", got, c.want)
			}
			if got := strings.Join(g.seats.Players(), " "); got != c.ends || len(g.seats.Players()) != len(g.seats.All()) {
				t.Errorf("the players are %q, want %q", got, c.ends)
			}
		})
	}
}

// Clients see the players who are here, away and gone, and read only their own cards.
func TestClientsSeeThePresence(t *testing.T) {
	w := play(t, &table{spec: netloop.RoomSpec{MaxSpectators: 1, KeepDropped: 10 * time.Second}})
	w.Step(1)
	see := func(device, want string) {
		t.Helper()
		if got := w.sees(device); got != want {
			t.Errorf("%s sees %q, want %q", device, got, want)
		}
	}
	w.join("ann")
	w.join("bob")
	w.watch("eve")
	see("ann", "ann here 0s 7, bob here 0s 0")
	see("eve", "ann here 0s 0, bob here 0s 0")
	w.lock(30 * time.Second)
	w.drop("ann")
	see("bob", "ann away 28s 0, bob here 0s 7")
	w.back("ann")
	see("ann", "ann here 0s 7, bob here 0s 0")
	w.leave("ann")
	see("bob", "ann away 28s 0, bob here 0s 7")
	w.join("ann")
	see("ann", "ann here 0s 7, bob here 0s 0")
	w.leave("ann")
	w.Advance(30 * time.Second)
	see("bob", "ann gone 0s 0, bob here 0s 7")
	w.unlock()
	see("bob", "bob here 0s 7")
	w.drop("bob")
	see("eve", "bob away 8s 0")
}

// An empty room closes with its kept seats. The room that opens with the stored players shows them
// as away, and lets nobody else sit down until the match ends.
func TestStoredSeatsAreAway(t *testing.T) {
	g := &table{keeper: persist.New(new(netlooptest.Store)), spec: netloop.RoomSpec{Name: "oak", CloseEmpty: 5 * time.Second}, refuses: true}
	files := map[string]*bytes.Buffer{}
	record := netlooptest.RecordRoom(func(info netloop.RoomInfo) (io.WriteCloser, error) {
		files[info.Spec.Name] = new(bytes.Buffer)
		return nopCloser{files[info.Spec.Name]}, nil
	})
	w := play(t, g, record)
	w.Step(1)
	w.join("ann")
	w.join("bob")
	w.lock(-1)
	w.leave("bob")
	_ = w.by["ann"].Close()
	w.Advance(6 * time.Second)
	w.Settle()
	first := g.seats
	w.join("cid")
	if why := w.by["cid"].Closed(); why == nil || why.Code != netloop.CodeFull || g.seats == first {
		t.Fatalf("another player gets a seat of a stored match: %v", why)
	}
	w.join("bob")
	if got, want := w.sees("bob"), " away 0s 0, bob here 0s 7"; got != want {
		t.Errorf("bob sees %q, want %q", got, want)
	}
	if got := fmt.Sprint(g.seats.Players(), g.told, g.seats.AnyHere()); got != "[ann bob] [bob here] true" {
		t.Errorf("the seats are %s", got)
	}
	w.Look(w.by["bob"], func(*netloop.Tick) { _ = client.Send(w.by["bob"], finish, struct{}{}) })
	w.Advance(time.Second)
	if got := g.seats.Players(); !slices.Equal(got, []string{"bob"}) {
		t.Errorf("after the match %q have seats", got)
	}
	told := g.told
	w.Drain(time.Second)
	p, err := netloop.NewReplay(netloop.Config{}, g, bytes.NewReader(files["oak"].Bytes()))
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) || !slices.Equal(g.told, told) {
		t.Errorf("the replay told %q, and the room %q: %v", g.told, told, err)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// New refuses a Config without a class or a presence.
func TestAConfigIsChecked(t *testing.T) {
	for name, c := range map[string]seats.Config[hand]{
		"no class":    {Presence: func(h *hand) *seats.Presence { return &h.Presence }},
		"no presence": {Class: hands},
		"seats":       {Class: hands, Presence: func(h *hand) *seats.Presence { return &h.Presence }, Most: -1},
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "seats: New: ") {
					t.Errorf("%s: New panics with %q", name, text)
				}
			}()
			seats.New(nil, c)
		}()
	}
}
