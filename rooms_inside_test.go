package netloop

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// opening is a game with fill as its Open and answer as its OpenFor.
type opening struct {
	fill   func(*Room) error
	answer func(ctx context.Context, name string, j *Join) (RoomSpec, error)
}

var openingSchema = NewSchema("opening", 1, 0)

func (*opening) Schema() *Schema { return openingSchema }

func (g *opening) Open(r *Room) error {
	if g.fill == nil {
		return nil
	}
	return g.fill(r)
}

func (g *opening) OpenFor(ctx context.Context, name string, j *Join) (RoomSpec, error) {
	return g.answer(ctx, name, j)
}

// closedGame opens no rooms for clients.
type closedGame struct{ g *opening }

func (closedGame) Schema() *Schema      { return openingSchema }
func (c closedGame) Open(r *Room) error { return c.g.Open(r) }

// newStill makes a server that does not run.
func newStill(t *testing.T, c Config, g Game) *Server {
	t.Helper()
	s, err := New(c, g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// scraped returns the metrics of a server.
func scraped(s *Server) string {
	w := httptest.NewRecorder()
	s.metrics.Handler(s.log).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// counted checks that the metrics of a server have these lines.
func counted(t *testing.T, s *Server, lines ...string) {
	t.Helper()
	text := scraped(s)
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the metrics have no line %s", line)
		}
	}
}

// refusedWith checks the code of a refusal.
func refusedWith(t *testing.T, what string, err error, code Code) {
	t.Helper()
	var why *transport.Refusal
	if !errors.As(err, &why) || why.Code != code {
		t.Errorf("%s: %v, want the code %v", what, err, code)
	}
}

// The seed of a room is the FNV-1a hash of its name and number, initialised with the server's seed,
// so that a server with the same seed plays the same again.
func TestTheSeedOfARoomIsItsHash(t *testing.T) {
	for _, seed := range []uint64{0, 1, 1 << 40} {
		seen := map[uint64]string{}
		for _, name := range []string{"", "a", "b", "table 7"} {
			for _, number := range []uint64{0, 1, 2, 255, 256, 1<<56 + 3} {
				got := roomSeed(seed, name, number)
				h := fnv.New64a()
				fmt.Fprint(h, name)
				_ = binary.Write(h, binary.LittleEndian, number) // A hash never fails.
				if seed == 0 && got != h.Sum64() {
					t.Errorf("room %q, number %d, has the seed %x, want %x", name, number, got, h.Sum64())
				}
				of := fmt.Sprint(seed, name, number)
				if other, same := seen[got]; same {
					t.Errorf("%s and %s have one seed", of, other)
				}
				seen[got] = of
			}
		}
	}
}

// Of several clients that ask for a private room at once, only the one for which it is opened gets
// a seat, and is charged for it.
func TestOneClientOpensAPrivateRoom(t *testing.T) {
	const clients = 4
	var asking sync.WaitGroup
	asking.Add(clients)
	s := newStill(t, Config{}, &opening{answer: func(context.Context, string, *Join) (RoomSpec, error) {
		asking.Done()
		asking.Wait()
		return RoomSpec{Private: true}, nil
	}})
	s.clock.Clock = clock.NewVirtual()
	const from = "10.1.2.3:4"
	var wait sync.WaitGroup
	var invited atomic.Int64
	for range clients {
		wait.Go(func() {
			hello := &netloopv1.Hello{Room: "a"}
			if _, _, err := s.roomFor(t.Context(), hello, from); err != nil {
				t.Error(err)
			}
			if hello.GetTicket() != "" {
				invited.Add(1)
			}
		})
	}
	wait.Wait()
	if n := invited.Load(); n != 1 {
		t.Errorf("%d clients have a ticket", n)
	}
	left := 0
	for s.openings.Allow(siteOf(from), s.clock.Now()) {
		left++
	}
	if left != directory.RoomBurst-1 {
		t.Errorf("their site may open %d rooms more, want %d", left, directory.RoomBurst-1)
	}
}

// A client that leaves while the game decides about its room is no failure of the game.
func TestAClientMayLeaveDuringOpenFor(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	s := newStill(t, Config{}, &opening{answer: func(within context.Context, _ string, _ *Join) (RoomSpec, error) {
		leave()
		<-within.Done()
		return RoomSpec{}, within.Err()
	}})
	_, _, err := s.roomFor(ctx, &netloopv1.Hello{Room: "a"}, "10.1.2.3:4")
	refusedWith(t, "a client that has left", err, CodeLost)
}

// A server with the largest number of rooms refuses programs and clients. A client that asks for a
// room which the game opens gets it under the requested name, with the default CloseEmpty unless
// the game sets another.
func TestTheGameOpensRequestedRooms(t *testing.T) {
	var s *Server
	var asked []string
	var during context.Context
	g := &opening{answer: func(ctx context.Context, name string, j *Join) (RoomSpec, error) {
		asked = append(asked, name)
		during = ctx
		switch name {
		case "there":
			_, err := s.OpenRoom(ctx, RoomSpec{Name: name, Kind: "first"})
			return RoomSpec{Kind: "second"}, err
		case "crowded":
			_, err := s.OpenRoom(ctx, RoomSpec{Name: "the last"})
			return RoomSpec{}, err
		case "bad":
			return RoomSpec{SendEvery: 99}, nil
		case "slow":
			<-ctx.Done()
			return RoomSpec{}, ctx.Err()
		case "ours":
			return RoomSpec{Name: "another", CloseEmpty: time.Second}, nil
		}
		var level struct{ Level int }
		if err := j.Params(&level); err != nil || level.Level != 7 || j.Token != "token" || j.Addr != "[2001:db8::1]:1" {
			t.Errorf("asked with %+v, level %d: %v", j, level.Level, err)
		}
		return RoomSpec{Kind: "table"}, nil
	}}
	var log bytes.Buffer
	s = newStill(t, Config{MaxRooms: 5, AdmitTimeout: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))}, g)
	var goesOn context.Context // the context of the client's admission
	ask := func(name string) (r *Room, err error) {
		goesOn, r, err = s.roomFor(t.Context(), &netloopv1.Hello{Room: name, Token: "token", Params: []byte(`{"Level":7}`)}, "[2001:db8::1]:1")
		return r, err
	}
	for _, c := range []struct {
		name, kind string
		empty      time.Duration
	}{{"a", "table", 30 * time.Second}, {"ours", "", time.Second}, {"there", "first", 30 * time.Second}} {
		r, err := ask(c.name)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if spec := r.Spec(); spec.Name != c.name || spec.Kind != c.kind || spec.CloseEmpty != c.empty {
			t.Errorf("%s: opened %q of kind %q, empty for %v", c.name, spec.Name, spec.Kind, spec.CloseEmpty)
		}
		if during.Err() == nil {
			t.Errorf("%s: the context of OpenFor goes on", c.name)
		}
		if j, ok := goesOn.Value(identityKey{}).(*room.Join); !ok || j.Token != "token" {
			t.Errorf("%s: whose token has been looked at is asked again", c.name)
		}
	}
	if a, err := ask("a"); err != nil || a.Spec().Name != "a" {
		t.Errorf("a room that is there: %v", err)
	}
	_, err := ask("bad")
	refusedWith(t, "a room that cannot be", err, CodeInternal)
	_, err = ask("slow")
	refusedWith(t, "a game that takes too long", err, CodeTimeout)
	_, err = ask("crowded")
	refusedWith(t, "one room too many, meanwhile", err, CodeFull)
	_, err = ask("late")
	refusedWith(t, "one room too many", err, CodeFull)
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "late"}); !errors.Is(err, ErrTooManyRooms) {
		t.Errorf("a program that opens one too many is told %v", err)
	}
	if want := "[a ours there bad slow crowded late]"; fmt.Sprint(asked) != want {
		t.Errorf("the game was asked for %v, want %s", asked, want)
	}
	if !strings.Contains(log.String(), "Room.SendEvery") {
		t.Errorf("the log says nothing of the bad room: %s", &log)
	}
	s.draining.Store(true)
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "closing"}); !errors.Is(err, ErrClosing) {
		t.Errorf("a server that drains: %v", err)
	}
	_, _, err = s.openFor(t.Context(), g, "ours", &room.Join{})
	refusedWith(t, "a client of a server that drains", err, CodeClosing)
}

// A site that lets too many rooms be opened, or shows too many wrong tickets, has to wait, and the
// refusals are counted for the operator.
func TestLimitsPerSiteAreCounted(t *testing.T) {
	g := &opening{answer: func(context.Context, string, *Join) (RoomSpec, error) { return RoomSpec{}, nil }}
	s := newStill(t, Config{}, g)
	now := clock.NewVirtual()
	s.clock.Clock = now
	ask := func(hello *netloopv1.Hello, site string) error {
		_, _, err := s.roomFor(t.Context(), hello, site+".7.7.7:1")
		return err
	}
	for i := range directory.RoomBurst + 2 {
		err := ask(&netloopv1.Hello{Room: fmt.Sprint(i)}, "1")
		if i < directory.RoomBurst {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		refusedWith(t, "a room too many", err, CodeBusy)
	}
	if err := ask(&netloopv1.Hello{Room: "another"}, "2"); err != nil {
		t.Errorf("another site: %v", err)
	}
	for i := range directory.RoomBurst + 3 {
		err := ask(&netloopv1.Hello{Ticket: "guess"}, "1")
		if i < directory.RoomBurst {
			refusedWith(t, "a guess", err, CodeTicket)
			continue
		}
		refusedWith(t, "a guess too many", err, CodeBusy)
	}
	refusedWith(t, "a guess from another site", ask(&netloopv1.Hello{Ticket: "guess"}, "2"), CodeTicket)
	counted(t, s, `netloop_queue_drops_total{queue="rooms",reason="site"} 2`,
		`netloop_queue_drops_total{queue="tickets",reason="site"} 3`, fmt.Sprintf(`netloop_queue_drops_total{queue="tickets",reason="unknown"} %d`, directory.RoomBurst+1))
}

// A room that cannot be recorded is not opened, its game releases its resources, and its name is
// free; a room without a recording is opened.
func TestARoomThatCannotBeRecordedIsNotOpened(t *testing.T) {
	var closed atomic.Int64
	g := closedGame{&opening{fill: func(r *Room) error {
		r.OnClose(func(context.Context, *Closed) error { closed.Add(1); return nil })
		return nil
	}}}
	broken := errors.New("the disk is full")
	var answer struct {
		w   io.WriteCloser
		err error
	}
	s := newStill(t, Config{RecordRoom: func(RoomInfo) (io.WriteCloser, error) { return answer.w, answer.err }}, g)
	spec := RoomSpec{Name: "a", Kind: "match", MaxSpectators: 1, SpectatorDelay: time.Second}
	answer.err = broken
	if _, err := s.OpenRoom(t.Context(), spec); !errors.Is(err, broken) || closed.Load() != 1 {
		t.Errorf("it is opened, %v, and was closed %d times", err, closed.Load())
	}
	torn := &tornFile{}
	answer.w, answer.err = torn, nil
	if _, err := s.OpenRoom(t.Context(), spec); !errors.Is(err, errTorn) || closed.Load() != 2 || torn.closed != 1 {
		t.Errorf("it is opened, %v, was closed %d times, and its file %d times", err, closed.Load(), torn.closed)
	}
	counted(t, s, `netloop_rooms{kind="match"} 0`)
	answer.w = nil
	r, err := s.OpenRoom(t.Context(), spec)
	if err != nil || r.recording != nil {
		t.Errorf("one that is not to be recorded: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.OpenRoom(ended, RoomSpec{Name: "b"}); !errors.Is(err, context.Canceled) {
		t.Errorf("when the time for it is over: %v", err)
	}
}

var errTorn = errors.New("torn")

// tornFile accepts no bytes.
type tornFile struct{ closed int }

func (*tornFile) Write([]byte) (int, error) { return 0, errTorn }
func (f *tornFile) Close() error            { f.closed++; return nil }

// A panic of the game's Open costs the room alone; it is counted and logged.
func TestAnOpenThatPanicsIsTold(t *testing.T) {
	g := closedGame{&opening{fill: func(r *Room) error {
		if r.Spec().Kind == "bad" {
			panic("ouch")
		}
		return nil
	}}}
	var log bytes.Buffer
	s := newStill(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, g)
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a", Kind: "bad"}); err == nil || !strings.Contains(err.Error(), "panicked: ouch") {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(log.String(), "the game's Open panicked") || !strings.Contains(log.String(), "room=a") {
		t.Errorf("the log says %s", &log)
	}
	counted(t, s, `netloop_system_panics_total{system="Open"} 1`, `netloop_rooms{kind="bad"} 0`)
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a"}); err != nil {
		t.Errorf("its name is not free: %v", err)
	}
}

// Rooms are found as soon as they are open, before their first tick, and an iteration over them may
// stop early.
func TestRoomsAreThereAtOnce(t *testing.T) {
	s := newStill(t, Config{MaxClients: 300}, closedGame{new(opening)})
	for _, name := range []string{"a", "b"} {
		if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: name, MaxClients: 10, MaxSpectators: 3}); err != nil {
			t.Fatal(err)
		}
	}
	var listed []string
	for _, l := range ListRooms(s, RoomFilter[struct{}]{}) {
		listed = append(listed, l.Name)
	}
	if want := "[ a b]"; fmt.Sprint(listed) != want {
		t.Errorf("listed %v, want %s", listed, want)
	}
	looked := 0
	for range s.Rooms() {
		looked++
		break
	}
	if looked != 1 {
		t.Errorf("looked at %d rooms", looked)
	}
	if got := s.maxClients(); got != 256+2*13 {
		t.Errorf("all rooms have seats for %d clients", got)
	}
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "c", MaxClients: 100}); err != nil || s.maxClients() != 300 {
		t.Errorf("there are seats for %d clients, of 300 that the server has: %v", s.maxClients(), err)
	}
	long := strings.Repeat("n", 256)
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: long}); err != nil {
		t.Fatal(err)
	}
	tickets, err := s.Reserve(t.Context(), long, Reservation{Seats: 256})
	if err != nil || len(tickets[0]) != 279 {
		t.Errorf("a ticket for the longest name has %d bytes: %v", len(tickets[0]), err)
	}
	if r, _ := s.rooms.Get(long); !r.full() || s.room.full() {
		t.Error("a room is full when its seats are reserved, and no other is")
	}
	for info := range s.Rooms() {
		if want := map[string]int{long: 256}[info.Spec.Name]; info.Reserved != want || info.Locked {
			t.Errorf("%d seats of %.5q are reserved, and it is locked: %v", info.Reserved, info.Spec.Name, info.Locked)
		}
	}
	s.room.e.Admission.Lock(true)
	for info := range s.Rooms() {
		if info.Locked != (info.Spec.Name == "") {
			t.Errorf("%.5q is locked: %v", info.Spec.Name, info.Locked)
		}
	}
}

// Without a watchdog no room is watched.
func TestWithoutAWatchdogNoRoomIsWatched(t *testing.T) {
	s := newStill(t, Config{Watchdog: -1}, closedGame{new(opening)})
	s.watchdog(context.Background(), context.Background()) // It returns.
}

// Once a server has ended no room can take a name any more, however early its opening had begun.
func TestTheDirectoryClosesWithTheServer(t *testing.T) {
	s, err := New(Config{}, closedGame{new(opening)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.rooms.Reserve("late", ""); !errors.Is(err, directory.ErrClosed) {
		t.Errorf("a place can be had: %v", err)
	}
}

// Pages show the default room, or the room that the query names.
func TestPagesAreOfOneRoom(t *testing.T) {
	s := newStill(t, Config{}, closedGame{new(opening)})
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	nowhere := url.Values{"room": {"nowhere"}}
	if got, err := s.ticksPage(t.Context(), nowhere); got != nil || err == nil {
		t.Errorf("the ticks of no room are %v, %v", got, err)
	}
	if got, err := s.loopPage(t.Context(), nowhere); got != nil || err == nil {
		t.Errorf("the loop of no room is %v, %v", got, err)
	}
	given, up := context.WithCancel(t.Context())
	up()
	if _, err := s.loopPage(given, url.Values{"room": {"a"}}); err == nil {
		t.Error("the loop of a room that nobody runs is seen")
	}
	got, err := s.ticksPage(t.Context(), url.Values{"room": {"a"}})
	if row, ok := got.(directory.Row); err != nil || !ok || row.Name != "a" {
		t.Errorf("the ticks of the room are %v, %v", got, err)
	}
	got, err = s.ticksPage(t.Context(), nil)
	if _, ok := got.(directory.Row); err != nil || got == nil || ok {
		t.Errorf("the ticks of all rooms are %v, %v", got, err)
	}
}

// Past ticks of a room are kept if the operator wants it, until the room ends.
func TestPastTicksEndWithTheirRoom(t *testing.T) {
	s := newStill(t, Config{}, closedGame{new(opening)})
	if _, err := s.lastTicksPage(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "--inspect-ring 60s") {
		t.Errorf("without a ring: %v", err)
	}
	s = newStill(t, Config{InspectRing: time.Second, Admin: "127.0.0.1:0"}, closedGame{new(opening)})
	r, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	_ = r.e.Step(loop.Input{Tick: 1}) // It runs on.
	if line, err := s.lastTicksPage(t.Context(), url.Values{"room": {"a"}}); err != nil || line != `{"past":1,"first":1,"last":1}` {
		t.Errorf("%q, %v", line, err)
	}
	s.roomEnded(r, nil)
	if line, err := s.lastTicksPage(t.Context(), url.Values{"room": {"a"}}); err != nil || line != `{"past":2,"first":1,"last":1}` {
		t.Errorf("after the room has ended: %q, %v", line, err)
	}
	if a, err := s.pastPage(t.Context(), nil); err != nil || fmt.Sprint(a) != "{[{2 The last 1 s of a 1 1} {1 The last 1 s of a 1 1}] [{a 1}]}" {
		t.Errorf("%v, %v", a, err)
	}
}

// An operator closes rooms by their names, and gets an error for impossible requests.
func TestAnOperatorClosesRooms(t *testing.T) {
	s := newStill(t, Config{}, closedGame{new(opening)})
	r, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"": "give the name of a room", "room=": "the default room", "room=nowhere": "there is no room",
		"room=a&drain=x": "drain:", "room=a&drain=-1s": "drain:", "room=a&drain=24h1ns": "drain:",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.closePage(t.Context(), values); err == nil || !strings.Contains(err.Error(), want) || r.e.Admission.Closing() {
			t.Errorf("%q: %v, want %q", query, err, want)
		}
	}
	if got, err := s.closePage(t.Context(), url.Values{"room": {"a"}, "drain": {"24h"}}); err != nil || got != `the room "a" closes in 24h0m0s` {
		t.Errorf("told %q, %v", got, err)
	}
}
