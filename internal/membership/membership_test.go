package membership_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/membership"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// bed is a cluster in memory, whose time a test sets.
type bed struct {
	*testing.T
	hub *cluster.Memory
	now time.Duration
}

func newBed(t *testing.T) *bed {
	b := &bed{T: t}
	b.hub = cluster.NewMemory(100, func() time.Duration { return b.now })
	return b
}

// server is a member with its load and the names that it has lost.
type server struct {
	*membership.Member
	load cluster.Load
	lost []string
}

func (b *bed) server(id, region string) *server {
	b.Helper()
	s := &server{load: cluster.Load{MaxRooms: 10, MaxClients: 100}}
	s.Member = membership.New(membership.Config{
		Via: b.hub.Member(), Load: func() cluster.Load { return s.load }, Now: func() time.Duration { return b.now }, Log: slog.New(slog.DiscardHandler),
		Lost: func(room string, e cluster.Epoch) { s.lost = append(s.lost, fmt.Sprint(room, " ", e)) },
	})
	membership.Handle(s.Member, "double", func(_ context.Context, from string, q *clusterv1.Reserve) (proto.Message, error) {
		switch q.GetSeats() {
		case 0:
			return nil, &transport.Refusal{Code: transport.CodeFull, Text: "full for " + from}
		case 1:
			return nil, cluster.ErrGone
		case 2:
			return nil, errors.New("broken")
		}
		return &clusterv1.Reserve{Seats: 2 * q.GetSeats()}, nil
	})
	if err := s.Join(b.Context(), cluster.Server{ID: id, Region: region, Schema: "s"}); err != nil {
		b.Fatal(err)
	}
	return s
}

// The rooms of other servers are copied: new and changed ones, those that end, and those of a
// server that has left. A room keeps its number.
func TestRoomsOfOtherServersAreCopied(t *testing.T) {
	b := newBed(t)
	x, y := b.server("x", ""), b.server("y", "")
	numbers := map[string]uint64{}
	sync := func(want ...string) {
		t.Helper()
		b.now += cluster.BoardInterval
		b.hub.Settle()
		var got []string
		x.Sync(func(c membership.Change) {
			if known, ok := numbers[c.Room]; ok && known != c.Number || c.Number <= membership.FirstNumber {
				t.Errorf("room %s has the numbers %d and %d", c.Room, known, c.Number)
			}
			numbers[c.Room] = c.Number
			got = append(got, fmt.Sprint(c.Server, " ", c.Room, " ", c.Entry.GetPlayers(), " ", c.Entry != nil))
		})
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("changes %q, want %q", got, want)
		}
	}
	announce := func(room string, players uint32) {
		t.Helper()
		data, err := proto.Marshal(&clusterv1.Entry{Players: players})
		if err != nil || !y.Announce(room, data) {
			t.Fatal(err)
		}
	}
	announce("oak", 1)
	announce("elm", 2)
	if !x.Announce("own", nil) || !y.Announce("damaged", []byte{0xff}) {
		t.Fatal("not announced")
	}
	sync("y elm 2 true", "y oak 1 true")
	sync()
	announce("oak", 3)
	sync("y oak 3 true")
	if at, ok := x.Where("oak"); !ok || at != "y" {
		t.Errorf("oak is at %q, %v", at, ok)
	}
	b.hub.Partition("y", 1)
	sync()
	b.now += cluster.SuspectBeats * cluster.Beat
	sync("y elm 0 false", "y oak 0 false") // Its rooms are listed no longer, and found.
	if at, ok := x.Where("oak"); !ok || at != "y" {
		t.Errorf("oak of a suspect server is at %q, %v", at, ok)
	}
	b.hub.Partition("y", 0)
	sync("y elm 2 true", "y oak 3 true")
	y.Announce("elm", []byte{0xff}) // An entry that cannot be read is none.
	sync("y elm 0 false")
	announce("elm", 2)
	numbers = map[string]uint64{}
	sync("y elm 2 true")
	y.Announce("oak", nil)
	sync("y oak 0 false")
	if at, ok := x.Where("oak"); ok {
		t.Errorf("oak is still at %q", at)
	}
	if err := y.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	sync("y elm 0 false")
}

// The room of a silent server is found until its lease ends. Once another server has opened it, it
// is found there, also after the silent server has returned, and after its older room has ended.
func TestTheRoomOfASilentServerIsFoundElsewhere(t *testing.T) {
	b := newBed(t)
	x, y, z := b.server("x", ""), b.server("y", ""), b.server("z", "")
	at := func(when, want string) {
		t.Helper()
		b.now += cluster.BoardInterval
		b.hub.Settle()
		x.Sync(func(membership.Change) {})
		got, err := x.Find(t.Context(), "oak")
		if got != want || errors.Is(err, cluster.ErrGone) != (want == "") {
			t.Errorf("%s: found at %q, %v, want %q", when, got, err, want)
		}
		if where, _ := x.Where("oak"); want != "" && where != want {
			t.Errorf("%s: the boards have it at %q, want %q", when, where, want)
		}
	}
	open := func(s *server) cluster.Epoch {
		t.Helper()
		e, err := s.Claim(t.Context(), "oak")
		if err != nil || !s.Announce("oak", []byte{}) {
			t.Fatal(err)
		}
		return e
	}
	first := open(y)
	at("opened", "y")
	b.hub.Partition("y", 1)
	b.now += cluster.SuspectBeats * cluster.Beat
	at("suspect", "y")
	b.now += (cluster.LeaseBeats - cluster.SuspectBeats) * cluster.Beat
	at("its lease has ended", "")
	open(z)
	at("opened elsewhere", "z")
	b.hub.Partition("y", 0)
	at("returned", "z")
	y.Release("oak", first)
	at("the older room has ended", "z")
}

// The room that a returned server has, too, is found when the newer room ends first.
func TestTheOlderRoomIsFoundAfterTheNewer(t *testing.T) {
	b := newBed(t)
	x, y, z := b.server("x", ""), b.server("y", ""), b.server("z", "")
	sync := func() {
		b.now += cluster.BoardInterval
		b.hub.Settle()
		x.Sync(func(membership.Change) {})
	}
	for _, s := range []*server{y, z} {
		s.Announce("oak", []byte{})
		sync()
	}
	if at, ok := x.Where("oak"); at != "z" || !ok {
		t.Errorf("the newer room is at %q, %v", at, ok)
	}
	z.Announce("oak", nil)
	sync()
	if at, ok := x.Where("oak"); at != "y" || !ok {
		t.Errorf("the older room is at %q, %v", at, ok)
	}
}

// A name has one holder. It is free after Release, and Lost names the room after another server
// has it.
func TestNamesOfRooms(t *testing.T) {
	b := newBed(t)
	x, y := b.server("x", ""), b.server("y", "")
	e, err := x.Claim(t.Context(), "oak")
	if err != nil || x.Hold("oak", e) != nil {
		t.Fatal(err)
	}
	if _, err := y.Claim(t.Context(), "oak"); !errors.Is(err, cluster.ErrTaken) {
		t.Errorf("claimed twice: %v", err)
	}
	if at, err := y.Find(t.Context(), "oak"); at != "x" || err != nil {
		t.Errorf("found at %q, %v", at, err)
	}
	if at, err := x.Find(t.Context(), "oak"); !errors.Is(err, cluster.ErrGone) {
		t.Errorf("its own room is elsewhere: %q, %v", at, err)
	}
	b.hub.Freeze("x", true)
	b.now += cluster.LeaseBeats * cluster.Beat
	later, err := y.Claim(t.Context(), "oak")
	if err != nil || later <= e {
		t.Fatal(err, later, e)
	}
	b.hub.Freeze("x", false)
	if want := []string{fmt.Sprint("oak ", e)}; !slices.Equal(x.lost, want) {
		t.Errorf("lost %q, want %q", x.lost, want)
	}
	y.Release("oak", later)
	if err := y.Close(t.Context()); err != nil { // Close waits for the release.
		t.Fatal(err)
	}
	if _, err := x.Claim(t.Context(), "oak"); err != nil {
		t.Error(err)
	}
}

// The answer of a call is a result, a refusal with its code, an error of the cluster, or a text.
func TestAnswersOfCalls(t *testing.T) {
	b := newBed(t)
	x, _ := b.server("x", ""), b.server("y", "")
	var answer clusterv1.Reserve
	call := func(to, method string, n uint32) error {
		return x.Call(t.Context(), to, method, &clusterv1.Reserve{Seats: n}, &answer)
	}
	if err := call("y", "double", 4); err != nil || answer.GetSeats() != 8 {
		t.Errorf("4 doubled is %d, %v", answer.GetSeats(), err)
	}
	refused := (*transport.Refusal)(nil)
	if err := call("y", "double", 0); !errors.As(err, &refused) || *refused != (transport.Refusal{Code: transport.CodeFull, Text: "full for x"}) {
		t.Errorf("a refusal arrives as %v", err)
	}
	for _, c := range []struct {
		to, method string
		n          uint32
		want       string
	}{
		{"y", "double", 1, cluster.ErrGone.Error()},
		{"z", "double", 4, cluster.ErrGone.Error()},
		{"y", "double", 2, "broken"},
		{"y", "halve", 4, `this server does not have the method "halve": it has another version`},
	} {
		if err := call(c.to, c.method, c.n); err == nil || err.Error() != c.want {
			t.Errorf("%s at %s: %v, want %s", c.method, c.to, err, c.want)
		}
	}
	over, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	if err := x.Call(over, "y", "double", &clusterv1.Reserve{Seats: 4}, nil); !errors.Is(err, cluster.ErrBusy) {
		t.Errorf("a call without time: %v", err)
	}
}

// A server whose cluster does not answer continues to join, and is a member as soon as it answers.
// Any other error of Join leaves it alone.
func TestAServerJoinsLater(t *testing.T) {
	b := newBed(t)
	b.hub.StoreGone(true)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	late := func(id string) (*membership.Member, error) {
		m := membership.New(membership.Config{Via: b.hub.Member(), Log: slog.New(slog.DiscardHandler)})
		return m, m.Join(over, cluster.Server{ID: id})
	}
	m, err := late("x")
	if err != nil || m.ID() != "x" || m.Health().OK {
		t.Fatalf("Join: %v; it is %q", err, m.ID())
	}
	if other, err := late("x"); err == nil || other.ID() != "" {
		t.Errorf("a second server has the id, too: %v", err)
	}
	b.hub.StoreGone(false)
	if _, err := m.Claim(t.Context(), "oak"); err != nil || !m.Health().OK {
		t.Errorf("after the cluster answers: %v", err)
	}
}

// A server that has not joined has no names and no calls, and closes.
func TestBeforeJoin(t *testing.T) {
	m := membership.New(membership.Config{Via: cluster.NewMemory(0, func() time.Duration { return 0 }).Member()})
	_, claim := m.Claim(t.Context(), "oak")
	_, find := m.Find(t.Context(), "oak")
	for _, err := range []error{claim, find, m.Call(t.Context(), "x", "double", &clusterv1.Reserve{}, nil)} {
		if !errors.Is(err, cluster.ErrBusy) {
			t.Error(err)
		}
	}
	m.Sync(func(c membership.Change) { t.Error(c) })
	if m.Announce("oak", []byte{1}) || m.ID() != "" || m.Servers() != nil {
		t.Error("it acts as a member")
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A room is placed on the least loaded server of the region that has room; rooms that were
// requested lately count.
func TestPlaces(t *testing.T) {
	b := newBed(t)
	x, y, z := b.server("x", "eu"), b.server("y", "eu"), b.server("z", "us")
	place := func(region, want string, except ...string) {
		t.Helper()
		if got, ok := x.Place(region, except); got != want || ok != (want != "") {
			t.Errorf("placed at %q, %v, want %q", got, ok, want)
		}
	}
	place("", "x")
	place("eu", "y", "x")
	if got, ok := y.Place("", nil); got != "y" || !ok {
		t.Errorf("of equal servers y prefers %q, %v", got, ok)
	}
	place("us", "z")
	place("asia", "")
	place("", "", "x", "y")
	x.load.Rooms = 1
	place("", "y")
	x.Asked("y")
	x.Asked("y")
	place("", "x")
	y.load.Rooms = 2 // As requested: they count once.
	place("", "x")
	y.load.Rooms = 0
	place("", "y")
	x.Asked("y")
	x.Asked("y")
	place("", "x")
	b.now += 2 * cluster.Beat
	place("", "y")
	y.load.Clients = 50
	place("", "x")
	x.load.Overload = 1
	place("", "y")
	y.load.Overload = 3
	place("", "x")
	x.load.Draining = true
	place("", "")
	y.load = cluster.Load{Rooms: 9, MaxRooms: 10, MaxClients: 1}
	place("", "y")
	y.load.Rooms = 10
	place("", "")
	y.load = cluster.Load{Clients: 1, MaxRooms: 10, MaxClients: 1}
	place("", "")
	z.load.Rooms = 9
	place("us", "z")
	b.hub.Freeze("z", true)
	b.now += cluster.SuspectBeats * cluster.Beat
	place("us", "")
}
