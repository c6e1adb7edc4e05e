package persist_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/persist/storetest"
)

var (
	schema = netloop.NewSchema("counting", 1, 0)
	counts = netloop.NewClass[count](schema, "count")
	add    = netloop.NewRPC[plus](schema, "add")
)

type (
	count struct{ N uint64 }
	plus  struct{ N uint64 }
	saved struct{ N uint64 }
)

// counting is a game whose rooms store a number.
type counting struct {
	keeper *persist.Keeper
	every  time.Duration
	panics bool                  // Save panics
	saver  *persist.Saver[saved] // of the room that was opened last
}

func (*counting) Schema() *netloop.Schema { return schema }

func (*counting) OpenFor(context.Context, string, *netloop.Join) (netloop.RoomSpec, error) {
	return netloop.RoomSpec{CloseEmpty: time.Second, Sleep: true}, nil
}

func (g *counting) Open(r *netloop.Room) error {
	var o *netloop.Object[count]
	key := "" // the name of the room
	if r.Spec().Name == "" {
		key = "room "
	}
	s, stored, err := persist.Keep(r, persist.Config[saved]{
		Keeper: g.keeper, Key: key, Every: g.every,
		Save: func() *saved {
			if g.panics {
				panic("no")
			}
			if o.State().N == 0 {
				return nil
			}
			return &saved{o.State().N}
		},
	})
	if err != nil {
		return err
	}
	g.saver = s
	r.OnStart(func(t *netloop.Tick) {
		o = counts.Spawn(t, count{})
		if stored != nil {
			o.Edit(t).N = stored.N
		}
	})
	add.Handle(r, func(t *netloop.Tick, _ *netloop.Client, m plus) error {
		o.Edit(t).N += m.N
		s.Changed(t)
		return nil
	})
	return nil
}

func world(tb testing.TB, s *netlooptest.Store, every time.Duration, o ...netlooptest.Option) (*netlooptest.World, *counting) {
	g := &counting{keeper: persist.New(s), every: every}
	return netlooptest.New(tb, g, o...), g
}

var link = netlooptest.Link{Delay: 5 * time.Millisecond}

func TestTheFakeStoreIsAStore(t *testing.T) {
	var s netlooptest.Store
	storetest.Run(t, func(t *testing.T) persist.Store { return ended{&s} })
}

// misusing is a game that calls Keep wrongly.
type misusing struct {
	counting

	errs []error
}

func (g *misusing) Open(r *netloop.Room) error {
	save := func() *saved { return nil }
	for _, c := range []persist.Config[saved]{{}, {Key: "a"}, {Save: save}} {
		_, _, err := persist.Keep(r, c)
		g.errs = append(g.errs, err)
	}
	return nil
}

func TestKeepNeedsAKeyAndSave(t *testing.T) {
	var g misusing
	netlooptest.New(t, &g)
	for _, err := range g.errs {
		if err == nil || !strings.Contains(err.Error(), "a Config needs a Save, and a Key if the room has no name") {
			t.Errorf("the error is %v", err)
		}
	}
}

// ended is a store in memory that looks at contexts, as one on a disk does.
type ended struct{ *netlooptest.Store }

func (s ended) Save(ctx context.Context, key string, incarnation uint64, record []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Store.Save(ctx, key, incarnation, record)
}

// sum returns the number that a client sees, or -1.
func sum(w *netlooptest.World, c *client.Client) (n int) {
	n = -1
	w.Look(c, func(t *netloop.Tick) {
		for o := range counts.All(t) {
			n = int(o.State().N)
		}
	})
	return n
}

func send(w *netlooptest.World, c *client.Client, n uint64) {
	w.Look(c, func(*netloop.Tick) { client.Send(c, add, plus{n}) })
}

// The state of a room survives its end and the server's, and changes within an interval are stored
// together.
func TestAStateSurvives(t *testing.T) {
	var s netlooptest.Store
	w, g := world(t, &s, 0)
	c := w.Join("", nil, link)
	w.Until(120, func() bool { return sum(w, c) == 0 })
	for range 100 {
		send(w, c, 1)
		w.Step(1)
		w.Settle()
	}
	w.Until(30, func() bool { return sum(w, c) == 100 })
	if n := s.Saves(); n != 1 {
		t.Errorf("%d saves within the first interval, want 1", n)
	}
	for _, c := range []struct {
		wait  time.Duration // to 4.7 and 5.3 s after the first save
		saves int
	}{{3 * time.Second, 1}, {600 * time.Millisecond, 2}} {
		w.Advance(c.wait)
		w.Settle()
		if n := s.Saves(); n != c.saves {
			t.Errorf("%v later there were %d saves, want %d", c.wait, n, c.saves)
		}
	}
	if got := string(s.Record("room ")); got != `{"N":100}` {
		t.Errorf("the record is %s", got)
	}
	send(w, c, 1) // Stored at the end.
	w.Step(5)
	w.Drain(time.Second)
	if got := string(s.Record("room ")); got != `{"N":101}` {
		t.Errorf("after the end the record is %s", got)
	}
	w.Restart(g)
	c = w.Join("", nil, link)
	w.Until(120, func() bool { return sum(w, c) == 101 })
}

// attempts counts the saves that a store is asked for.
type attempts struct {
	*netlooptest.Store
	n atomic.Int64
}

func (a *attempts) Save(ctx context.Context, key string, incarnation uint64, record []byte) error {
	a.n.Add(1)
	return a.Store.Save(ctx, key, incarnation, record)
}

// A store that fails is asked again until it works, less often each time, and the newest state is
// stored last.
func TestAFailedSaveIsTriedAgain(t *testing.T) {
	var s netlooptest.Store
	log := &logged{TB: t}
	tried := &attempts{Store: &s}
	w := netlooptest.New(log, &counting{keeper: persist.New(tried), every: -1})
	c := w.Join("", nil, link)
	w.Until(120, func() bool { return sum(w, c) == 0 })
	s.Fail(true)
	for i := range 20 * 60 {
		if i%60 == 0 {
			send(w, c, 1)
		}
		w.Step(1)
		w.Settle()
	}
	// At least 0.25, 0.75, 1.75, 3.75, 7.75 and 15.75 s after the first one, and at most twice as
	// late.
	if n := tried.n.Load(); s.Record("room ") != nil || n < 6 || n > 7 {
		t.Fatalf("a store that fails was asked %d times in 20 s, and has %s", n, s.Record("room "))
	}
	s.Fail(false)
	for range 60 {
		w.Step(60)
		w.Settle()
	}
	if got := string(s.Record("room ")); got != `{"N":20}` || s.Saves() != 1 {
		t.Errorf("%d saves, and the record is %s", s.Saves(), got)
	}
	if len(log.lines) != 1 || !strings.Contains(log.lines[0], "states cannot be stored") {
		t.Errorf("the log has %q", log.lines)
	}
	before := tried.n.Load()
	s.Fail(true)
	send(w, c, 1)
	for range 33 { // The first pause is shorter than half a second.
		w.Step(1)
		w.Settle()
	}
	if n := tried.n.Load() - before; n < 2 {
		t.Errorf("half a second after its first failure the store was asked %d times", n)
	}
	s.Fail(false)
	w.Drain(time.Second) // While the room waits for the next attempt.
	if got := string(s.Record("room ")); got != `{"N":21}` {
		t.Errorf("after the end the record is %s", got)
	}
}

// logged collects the errors of a server, which netlooptest writes into the log of the test.
type logged struct {
	testing.TB
	lines, failures []string
}

func (l *logged) Logf(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *logged) Errorf(format string, args ...any) {
	l.failures = append(l.failures, fmt.Sprintf(format, args...))
}

func (l *logged) Fatalf(format string, args ...any) {
	l.Errorf(format, args...)
	panic(format)
}

// Without an interval each change is stored at once, and those during a save together after it.
func TestChangesDuringASaveAreStoredTogether(t *testing.T) {
	var s netlooptest.Store
	w, g := world(t, &s, -1)
	c := w.Join("", nil, link)
	w.Until(120, func() bool { return sum(w, c) == 0 })
	if !g.saver.Stored() {
		t.Error("a state without changes is not stored")
	}
	s.Stall(true)
	for range 10 {
		send(w, c, 1)
		w.Step(5)
		if g.saver.Stored() {
			t.Fatal("a change is stored while the store does not answer")
		}
	}
	s.Stall(false)
	for range 5 {
		w.Settle()
		w.Step(1)
	}
	if got := string(s.Record("room ")); got != `{"N":10}` || s.Saves() != 2 || !g.saver.Stored() {
		t.Errorf("%d saves, and the record is %s; want 2, and 10; stored is %v", s.Saves(), got, g.saver.Stored())
	}
	send(w, c, ^uint64(9)) // Back to 0, which has no record.
	for range 5 {
		w.Step(3)
		w.Settle()
	}
	if got := s.Record("room "); got != nil {
		t.Errorf("a deleted record is %s", got)
	}
}

// A newer room owns the record: the older one stores no more, and closes.
func TestASupersededRoomCloses(t *testing.T) {
	var s netlooptest.Store
	log := &logged{TB: t}
	w, _ := world(log, &s, 0)
	c := w.Join("", nil, link)
	w.Until(120, func() bool { return sum(w, c) == 0 })
	if _, err := s.Load(t.Context(), "room ", 1<<40); err != nil {
		t.Fatal(err)
	}
	send(w, c, 1)
	func() {
		// A world takes the end of its room for a fault.
		defer func() { _ = recover() }()
		for range 3 {
			w.Step(3)
			w.Settle()
		}
	}()
	if len(log.failures) != 1 || !strings.Contains(log.failures[0], "a newer room has the state") || s.Record("room ") != nil {
		t.Errorf("the world fails with %q, and the record is %s", log.failures, s.Record("room "))
	}
	if len(log.lines) == 0 || !strings.Contains(log.lines[0], "the state of the room belongs to a newer room") || strings.Contains(fmt.Sprint(log.lines), "cannot be stored") {
		t.Errorf("the log has %q", log.lines)
	}
}

// If its state cannot be loaded, a room does not open, and the asker gets the reason. The next one
// to ask opens it.
func TestAFailedLoadRefuses(t *testing.T) {
	var s netlooptest.Store
	log := &logged{TB: t}
	w, _ := world(log, &s, 0, netlooptest.Configure(func(c *netloop.Config) { c.AdmitTimeout = 20 * time.Millisecond }))
	s.Fail(true)
	ask := func() *client.Client { return w.JoinAs(client.Config{Room: "a"}, link) }
	c := ask()
	w.Step(30)
	if why := c.Closed(); why == nil || why.Code != netloop.CodeBusy || !strings.Contains(why.Text, "cannot be loaded") || !strings.Contains(fmt.Sprint(log.lines), "the state of a room cannot be loaded") {
		t.Fatalf("the client was closed with %v, and the log has %q", why, log.lines)
	}
	s.Fail(false)
	if err := s.Save(t.Context(), "a", 1, []byte(`{"N":3}`)); err != nil {
		t.Fatal(err)
	}
	c = ask()
	w.Until(120, func() bool { return sum(w, c) == 3 })
}

// A torn record is kept, and its room does not open.
func TestATornRecordIsKept(t *testing.T) {
	var s netlooptest.Store
	w, g := world(&logged{TB: t}, &s, -1)
	s.Tear()
	c := w.JoinAs(client.Config{Room: "a"}, link)
	w.Until(120, func() bool { return sum(w, c) == 0 })
	send(w, c, 1)
	w.Step(5)
	w.Settle()
	w.Restart(g)
	c = w.JoinAs(client.Config{Room: "a"}, link)
	w.Step(30)
	if why := c.Closed(); why == nil || why.Code != netloop.CodeInternal || string(s.Record("a")) != `{"N` {
		t.Errorf("the client was closed with %v, and the record is %s", why, s.Record("a"))
	}
}

// A save that does not end with its room is waited for: two writes never overlap.
func TestTheLastSaveWaitsForTheOneBefore(t *testing.T) {
	var s netlooptest.Store
	w, _ := world(t, &s, -1)
	c := w.Join("", nil, link)
	w.Until(120, func() bool { return sum(w, c) == 0 })
	s.Stall(true)
	send(w, c, 1)
	w.Step(3)
	send(w, c, 1)
	w.Step(3)
	s.Stall(false)
	w.Drain(time.Second)
	if got := string(s.Record("room ")); got != `{"N":2}` || s.Saves() != 2 {
		t.Errorf("%d saves, and the record is %s", s.Saves(), got)
	}
}

// A panic of Save costs its message alone.
func TestAPanicOfSaveIsNotTheEnd(t *testing.T) {
	var s netlooptest.Store
	w, g := world(t, &s, -1, netlooptest.AllowPanics())
	c := w.Join("", nil, link)
	w.Until(120, func() bool { return sum(w, c) == 0 })
	for _, panics := range []bool{true, false} {
		g.panics = panics
		send(w, c, 1)
		w.Step(3)
		w.Settle()
	}
	if got := string(s.Record("room ")); got != `{"N":2}` {
		t.Errorf("the record is %s", got)
	}
	wait := func() {
		for range 5 {
			w.Step(30)
			w.Settle()
		}
	}
	s.Fail(true)
	send(w, c, 1)
	w.Step(3)
	g.panics = true
	wait() // It panics when it is tried again.
	g.panics = false
	s.Fail(false)
	send(w, c, 1)
	wait()
	if got := string(s.Record("room ")); got != `{"N":4}` {
		t.Errorf("after a panic of a repeated save the record is %s", got)
	}
}

// A replay loads the recorded state, and needs no store.
func TestAReplayNeedsNoStore(t *testing.T) {
	var s netlooptest.Store
	if err := s.Save(t.Context(), "room ", 1, []byte(`{"N":3}`)); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, _ := world(t, &s, 0, netlooptest.Record(&file))
	c := w.Join("", nil, link)
	w.Until(120, func() bool { return sum(w, c) == 3 })
	send(w, c, 1)
	w.Step(5)
	w.Drain(time.Second)
	p, err := netloop.NewReplay(netloop.Config{}, &counting{}, bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = p.Step()
	}
	n := uint64(0)
	if e := p.Look(func(t *netloop.Tick) {
		for o := range counts.All(t) {
			n = o.State().N
		}
	}); e != nil || !errors.Is(err, io.EOF) || n != 4 {
		t.Errorf("the replay ends with %v and %d, want 4: %v", err, n, e)
	}
}
