package match_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/match"
	"github.com/netloop/netloop/netlooptest"
)

var (
	schema = netloop.NewSchema("matching", 1, 0)
	rows   = netloop.NewClass[row](schema, "row")
	play   = netloop.NewCall[want, got](schema, "play")
	start  = netloop.NewRPC[struct{}](schema, "start")
)

type (
	row  struct{ Players uint8 }
	info struct{ Started bool }
	want struct{ Seats uint8 }
	got  struct {
		Room, Ticket string `net:"max=279"`
		Opened       bool
	}
)

// matching is a game with a lobby and tables of four seats.
type matching struct {
	tables *match.Rooms[info]
	server *netloop.Server
	late   bool          // tables do not publish
	rival  func(string)  // if not nil, the Open of the next table starts it
	opens  chan struct{} // if not nil, tables open once it is closed
	fails  error         // of the Open of tables
	errs   []error       // of Join
}

func newGame(change func(*match.Config[info])) *matching {
	c := match.Config[info]{
		Spec:  netloop.RoomSpec{Name: "table/", Kind: "table", MaxClients: 4, CloseEmpty: time.Second},
		Where: func(l netloop.RoomListing[info]) bool { return !l.Info.Started },
	}
	if change != nil {
		change(&c)
	}
	return &matching{tables: match.NewRooms(c)}
}

func (*matching) Schema() *netloop.Schema { return schema }

func (g *matching) OpenServer(s *netloop.Server) error { g.server = s; return nil }

func (*matching) CloseServer(context.Context) error { return nil }

// OpenFor sends a client that asks for the room "any table" to one.
func (g *matching) OpenFor(ctx context.Context, name string, j *netloop.Join) (netloop.RoomSpec, error) {
	if name != "any table" {
		return netloop.RoomSpec{}, netloop.Refuse(netloop.CodeRoomUnknown, "ask for any table")
	}
	p, err := g.tables.Find(ctx, g.server, j.Token, netloop.Reservation{})
	if err != nil {
		return netloop.RoomSpec{}, err
	}
	return netloop.RoomSpec{}, netloop.GoTo(p.Tickets[0])
}

func (g *matching) Open(r *netloop.Room) error {
	r.AllowMoves()
	if r.Spec().Kind == "table" {
		if g.opens != nil {
			<-g.opens
		}
		if g.fails != nil {
			return g.fails
		}
		if rival := g.rival; rival != nil {
			g.rival = nil
			go rival(r.Spec().Name)
			for range 100 { // It waits for the table, so that it usually comes first.
				runtime.Gosched()
			}
		}
		if !g.late {
			r.Publish(nil, info{})
		}
		start.Handle(r, func(t *netloop.Tick, _ *netloop.Client, _ struct{}) error {
			t.Room().Publish(t, info{Started: true})
			return nil
		})
		return nil
	}
	match.List(r, rows, netloop.RoomFilter[info]{Kind: "table"}, func(s *row, l netloop.RoomListing[info]) { s.Players = uint8(l.Players) })
	play.HandleLater(r, func(t *netloop.Tick, from *netloop.Client, q want, reply netloop.Reply[got]) {
		g.tables.Join(t, from.Join().Token, netloop.Reservation{Seats: int(q.Seats)}, func(t *netloop.Tick, p match.Place, err error) {
			answer := got{Room: p.Room, Opened: p.Opened}
			if err == nil {
				answer.Ticket = string(p.Tickets[0])
			}
			g.errs = append(g.errs, err)
			reply.Send(t, answer, err)
		})
	})
	return nil
}

// ask sends one request of each client at once, and returns the answers.
func ask(t *testing.T, w *netlooptest.World, seats int, all ...*client.Client) (answers []got, errs []error) {
	t.Helper()
	answers, errs = make([]got, len(all)), make([]error, len(all))
	left := len(all)
	for i, c := range all {
		w.Look(c, func(*netloop.Tick) {
			client.Call(c, play, want{uint8(seats)}, func(_ *netloop.Tick, a got, err error) { answers[i], errs[i] = a, err; left-- })
		})
	}
	for range 100 {
		w.Step(1)
		w.Settle()
		if left == 0 {
			return answers, errs
		}
	}
	t.Fatalf("%d of %d requests have no answer", left, len(all))
	return nil, nil
}

func join(w *netlooptest.World, names ...string) (all []*client.Client) {
	for _, name := range names {
		all = append(all, w.Join(name, nil, netlooptest.Link{}))
	}
	w.Step(10)
	return all
}

// rooms counts the answers by room.
func rooms(answers []got) map[string]int {
	by := map[string]int{}
	for _, a := range answers {
		by[a.Room]++
	}
	return by
}

// Players who ask at once fill rooms before the next one opens, also if a new room publishes late.
func TestRoomsFillUp(t *testing.T) {
	for _, late := range []bool{false, true} {
		g := newGame(nil)
		g.late = late
		w := netlooptest.New(t, g)
		var names []string
		for i := range 22 {
			names = append(names, fmt.Sprint("player ", i))
		}
		answers, errs := ask(t, w, 1, join(w, names...)...)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		by := rooms(answers)
		opened := 0
		for _, a := range answers {
			if a.Opened {
				opened++
			}
		}
		if len(by) != 6 || opened != 6 {
			t.Errorf("late %v: 22 players are in the rooms %v, of which %d were opened", late, by, opened)
		}
	}
}

// The fullest room that fits is taken, never a started or a locked one, and a party stays together.
func TestTheFullestRoomThatFits(t *testing.T) {
	w := netlooptest.New(t, newGame(nil))
	all := join(w, "a", "b", "c", "d", "e")
	one := func(seats, who int) string {
		t.Helper()
		answers, errs := ask(t, w, seats, all[who])
		if errs[0] != nil {
			t.Fatal(errs[0])
		}
		w.Step(10)
		return answers[0].Room
	}
	three := one(3, 0)
	two := one(2, 1)
	if three == two {
		t.Fatal("five players are in a room of four")
	}
	if got := one(1, 2); got != three {
		t.Errorf("a single player is in %s, and not in the fullest room %s", got, three)
	}
	if got := one(1, 3); got != two {
		t.Errorf("a single player is in %s, and not in %s", got, two)
	}
	w.Room(two).Tick(func(tick *netloop.Tick) { tick.Room().Publish(tick, info{Started: true}) })
	w.Step(10)
	next := one(1, 4)
	if next == two || next == three {
		t.Errorf("a player is in a room that has started, or is full: %s", next)
	}
	w.Room(next).Tick(func(tick *netloop.Tick) { tick.Room().Lock(tick, true) })
	if got := one(1, 0); got == next {
		t.Error("a player is in a room that was locked before it was listed")
	}
}

// A player who asks again while a request runs gets the same place.
func TestAPlayerIsMatchedOnce(t *testing.T) {
	g := newGame(nil)
	w := netlooptest.New(t, g)
	twins := join(w, "ann", "ann")
	release := make(chan struct{})
	hold := make(chan match.Place, 2)
	for range 2 {
		go func() {
			<-release
			p, err := g.tables.Find(context.Background(), g.server, "bob", netloop.Reservation{})
			if err != nil {
				t.Error(err)
			}
			hold <- p
		}()
	}
	answers, errs := ask(t, w, 1, twins...)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if answers[0].Room != answers[1].Room {
		t.Errorf("one player is in %v", answers)
	}
	close(release)
	if a, b := <-hold, <-hold; a.Room != b.Room {
		t.Errorf("one player is in %v and %v", a, b)
	}
}

// While a room opens for a player, a second request of the player waits for the same place.
// Requests for no player get a place each.
func TestAPlayerGetsOneSeat(t *testing.T) {
	for _, player := range []string{"ann", ""} {
		synctest.Test(t, func(t *testing.T) { askTwice(t, player) })
	}
}

func askTwice(t *testing.T, player string) {
	g := newGame(nil)
	g.opens = make(chan struct{})
	s, err := netloop.New(netloop.Config{Offline: true, Watchdog: -1}, g)
	if err != nil {
		t.Fatal(err)
	}
	places := make(chan match.Place, 2)
	for range 2 {
		go func() {
			p, err := g.tables.Find(t.Context(), s, player, netloop.Reservation{})
			if err != nil {
				t.Error(err)
			}
			places <- p
		}()
	}
	synctest.Wait()
	close(g.opens)
	if a, b := <-places, <-places; a.Room != b.Room || slices.Equal(a.Tickets, b.Tickets) != (player != "") {
		t.Errorf("player %q has the places %v and %v", player, a, b)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// An Open that hangs blocks the requests of its kind for their time, and not longer.
func TestAHangingOpenIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGame(func(c *match.Config[info]) { c.Timeout = 3 * time.Second })
		g.opens = make(chan struct{})
		s, err := netloop.New(netloop.Config{Offline: true, Watchdog: -1}, g)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		errs := make(chan error, 2)
		for _, player := range []string{"ann", "bob"} {
			go func() {
				_, err := g.tables.Find(t.Context(), s, player, netloop.Reservation{})
				errs <- err
			}()
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, match.ErrTimeout) || time.Since(begun) != 3*time.Second {
				t.Errorf("after %v: %v", time.Since(begun), err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.tables.Find(ctx, s, "cid", netloop.Reservation{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a canceled request: %v", err)
		}
		close(g.opens)
		if p, err := g.tables.Find(t.Context(), s, "cid", netloop.Reservation{}); err != nil || !p.Opened {
			t.Errorf("the next request gets %+v: %v", p, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A room is opened by its name once. Each asker gets a seat there, or the reason for none.
func TestOpenByName(t *testing.T) {
	g := newGame(nil)
	w := netlooptest.New(t, g)
	for i, want := range []string{"true ", "false ", "false full", "false internal"} {
		seats := 2
		if i == 3 { // Another room.
			seats, g.fails = 1, errors.New("no deck")
		}
		got, answered := "", false
		w.Tick(func(tick *netloop.Tick) {
			spec := netloop.RoomSpec{Name: fmt.Sprint("table/", i/3), Kind: "table", MaxClients: 4}
			match.Open(tick, spec, netloop.Reservation{Seats: seats}, func(_ *netloop.Tick, p match.Place, err error) {
				code := ""
				if refused := (*netloop.Refusal)(nil); errors.As(err, &refused) {
					code = refused.Code.String()
				} else if err != nil {
					code = "internal"
				}
				got, answered = fmt.Sprint(p.Opened, " ", code), true
			})
		})
		for range 10 {
			w.Settle()
			w.Step(1)
		}
		if !answered || got != want {
			t.Errorf("request %d: %q, want %q", i, got, want)
		}
	}
}

// A reservation that no room accepts opens none.
func TestAnInvalidReservationOpensNoRoom(t *testing.T) {
	g := newGame(nil)
	netlooptest.New(t, g)
	for _, ttl := range []time.Duration{0, 2 * time.Hour} {
		_, err := g.tables.Find(t.Context(), g.server, "", netloop.Reservation{TTL: ttl})
		if rooms := len(slices.Collect(g.server.Rooms())); rooms != 2 || (err == nil) != (ttl == 0) {
			t.Errorf("a TTL of %v: %d rooms, %v", ttl, rooms, err)
		}
	}
}

// If another program takes the seats of the opened room, one more is opened, but not for a party
// that is larger than a room.
func TestOneMoreRoomIsOpened(t *testing.T) {
	g := newGame(nil)
	netlooptest.New(t, g, netlooptest.MaxRooms(200))
	rooms := func() int { return len(slices.Collect(g.server.Rooms())) }
	won := 0
	for range 50 {
		before, done := rooms(), make(chan error)
		g.rival = func(name string) {
			_, err := g.server.Reserve(t.Context(), name, netloop.Reservation{Seats: 4})
			done <- err
		}
		p, err := g.tables.Find(t.Context(), g.server, "", netloop.Reservation{Seats: 4})
		want := before + 1
		if <-done == nil {
			won++
			want++
		}
		if err != nil || len(p.Tickets) != 4 || rooms() != want {
			t.Fatalf("%+v, %v, with %d rooms, want %d", p, err, rooms(), want)
		}
	}
	t.Logf("the other program has won %d times", won)
	before := rooms()
	if _, err := g.tables.Find(t.Context(), g.server, "", netloop.Reservation{Seats: 5}); err == nil || rooms() != before+1 {
		t.Errorf("a party of five: %v, with %d rooms, want %d", err, rooms(), before+1)
	}
}

// Each reason why there is no place reaches the asker.
func TestNoPlace(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*match.Config[info])
		seats  int
		option netlooptest.Option
		want   error
	}{
		"no room opens":  {func(c *match.Config[info]) { c.Spec.Name = "" }, 1, netlooptest.MaxRooms(9), match.ErrNoRoom},
		"too many rooms": {nil, 1, netlooptest.MaxRooms(1), netloop.ErrTooManyRooms},
		"large party":    {nil, 5, netlooptest.MaxRooms(9), &netloop.Refusal{Code: netloop.CodeFull, Text: "the room is full: 4 clients"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGame(c.change)
			w := netlooptest.New(t, g, c.option)
			_, errs := ask(t, w, c.seats, join(w, "ann")...)
			if errs[0] == nil || !errors.Is(g.errs[0], c.want) && !reflect.DeepEqual(g.errs[0], c.want) {
				t.Errorf("the error is %v, want %v", g.errs[0], c.want)
			}
		})
	}
	for _, spec := range []netloop.RoomSpec{{Name: "a"}, {Kind: "a", Private: true}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewRooms accepts %+v", spec)
				}
			}()
			match.NewRooms(match.Config[info]{Spec: spec})
		}()
	}
}

// A lobby in which players got an error of the game's Open replays, for any content of the error.
func TestAnErrorOfOpenReplays(t *testing.T) {
	g := newGame(nil)
	g.fails = &fs.PathError{Op: "open", Path: "deck", Err: fs.ErrNotExist}
	var file bytes.Buffer
	w := netlooptest.New(t, g, netlooptest.Record(&file))
	if _, errs := ask(t, w, 1, join(w, "ann")...); errs[0] == nil {
		t.Fatal("there is a place in a room that does not open")
	}
	w.Drain(time.Second)
	p, err := netloop.NewReplay(netloop.Config{}, newGame(nil), bytes.NewReader(file.Bytes()))
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// A client that asks for any room of a kind gets into one, and is refused in words without one.
func TestAClientAsksByKind(t *testing.T) {
	w := netlooptest.New(t, newGame(nil), netlooptest.MaxRooms(2))
	var all []*client.Client
	for i := range 5 {
		all = append(all, w.JoinAs(client.Config{Room: "any table", Token: fmt.Sprint(i)}, netlooptest.Link{}))
	}
	w.Step(20)
	in := map[string]int{}
	for _, c := range all {
		if c.Closed() == nil {
			in[c.Room()]++
		}
	}
	if why := all[4].Closed(); why == nil || why.Code != netloop.CodeFull && why.Code != netloop.CodeInternal || len(in) != 1 {
		t.Errorf("the clients are in %v, and the last one was closed with %v", in, why)
	}
	for name := range in {
		if !strings.HasPrefix(name, "table/1-") || in[name] != 4 {
			t.Errorf("the clients are in %v", in)
		}
	}
}

// The list of a lobby has an object for each room, with its newest state, until it ends.
func TestListShowsRooms(t *testing.T) {
	w := netlooptest.New(t, newGame(nil))
	all := join(w, "ann", "bob")
	seen := func() (players []uint8) {
		w.Look(all[1], func(t *netloop.Tick) {
			for o := range rows.All(t) {
				players = append(players, o.State().Players)
			}
		})
		return players
	}
	answers, _ := ask(t, w, 2, all[0])
	w.Until(30, func() bool { return slices.Equal(seen(), []uint8{2}) })
	w.Look(all[0], func(*netloop.Tick) { _ = all[0].Move(netloop.Ticket(answers[0].Ticket)) })
	// The other ticket expires.
	w.Until(2400, func() bool { return slices.Equal(seen(), []uint8{1}) })
	_ = all[0].Close()
	w.Until(300, func() bool { return len(seen()) == 0 })
	for range 2 { // A name may be used again.
		r, err := w.OpenRoom(netloop.RoomSpec{Name: "again", Kind: "table"})
		if err != nil {
			t.Fatal(err)
		}
		w.Until(30, func() bool { return len(seen()) == 1 })
		r.Drain(0, netloop.CodeClosing, "over")
		w.Until(30, func() bool { return len(seen()) == 0 })
	}
}
