package e2e_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// callLog records watcher calls in order.
type callLog struct{ lines []string }

func (d *callLog) note(who, what string, n int32) {
	d.lines = append(d.lines, fmt.Sprint(who, " ", what, " ", n))
}

func (d *callLog) watcher(who string) client.Watcher[thing] {
	return client.Watcher[thing]{
		Spawn:   func(_ *netloop.Tick, o *netloop.Object[thing]) { d.note(who, "spawn", o.State().N) },
		Change:  func(_ *netloop.Tick, o *netloop.Object[thing], old thing) { d.note(who, "change", o.State().N) },
		Despawn: func(_ *netloop.Tick, _ *netloop.Object[thing], last thing) { d.note(who, "despawn", last.N) },
	}
}

// told compares the records since the last call.
func (d *callLog) told(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(d.lines, want) {
		t.Errorf("got %q, want %q", d.lines, want)
	}
	d.lines = nil
}

// watched is a world with one client and objects that the test changes.
type watched struct {
	*netlooptest.World
	c       *client.Client
	objects []*netloop.Object[thing]
}

func newWatched(t *testing.T, objects int, o ...netlooptest.Option) *watched {
	t.Helper()
	w := &watched{}
	w.World = open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			for n := range objects {
				w.objects = append(w.objects, things.Spawn(tick, thing{N: int32(n)}))
			}
		})
	}, o...)
	w.c = play(t, w.World, perfect)
	return w
}

// change changes the server's objects and steps until the client has the changes.
func (w *watched) change(fn func(*netloop.Tick)) {
	w.Tick(fn)
	w.Step(4)
}

func TestSeveralWatchersOfAClassAreCalled(t *testing.T) {
	w, d := newWatched(t, 1), &callLog{}
	stopA := client.Watch(w.c, things, d.watcher("a"))
	w.Step(1)
	d.told(t, "a spawn 0")
	stopB := client.Watch(w.c, things, d.watcher("b"))
	w.Step(1)
	d.told(t, "b spawn 0")
	w.change(func(tick *netloop.Tick) { w.objects[0].Edit(tick).N = 5 })
	d.told(t, "a change 5", "b change 5")
	stopA()
	stopA() // A second call has no effect.
	w.change(func(tick *netloop.Tick) { w.objects[0].Edit(tick).N = 6 })
	d.told(t, "b change 6")
	client.Watch(w.c, things, client.Watcher[thing]{Despawn: d.watcher("c").Despawn})
	stopB()
	w.change(func(tick *netloop.Tick) { w.objects[0].Edit(tick).N = 7 })
	w.change(func(tick *netloop.Tick) { w.objects[0].Despawn(tick) })
	d.told(t, "c despawn 7")
}

func TestAStoppedWatcherIsNotCalled(t *testing.T) {
	w, d := newWatched(t, 3), &callLog{}
	var stop, stopOther func()
	stop = client.Watch(w.c, things, client.Watcher[thing]{
		Spawn: func(_ *netloop.Tick, o *netloop.Object[thing]) {
			d.note("a", "spawn", o.State().N)
			if o.State().N == 1 { // During the calls for existing objects.
				stop()
			}
		},
		Change: d.watcher("a").Change,
	})
	w.Step(1)
	d.told(t, "a spawn 0", "a spawn 1")

	client.Watch(w.c, things, client.Watcher[thing]{Change: func(_ *netloop.Tick, o *netloop.Object[thing], _ thing) {
		d.note("b", "change", o.State().N)
		stopOther() // the next watcher in the list
	}})
	stopOther = client.Watch(w.c, things, client.Watcher[thing]{Change: d.watcher("c").Change})
	client.Watch(w.c, things, client.Watcher[thing]{Change: d.watcher("d").Change})
	w.Step(1)
	w.change(func(tick *netloop.Tick) { w.objects[0].Edit(tick).N = 5 })
	d.told(t, "b change 5", "d change 5")

	// The watcher is stopped before the Step with its calls for existing objects.
	client.Watch(w.c, things, d.watcher("early"))()
	w.Step(1)
	d.told(t)
}

// A watcher added by the callback of another one, for a packet that was already applied, is
// called once for each object.
func TestAWatcherAddedInACallbackIsCalledOncePerObject(t *testing.T) {
	w, d := newWatched(t, 1), &callLog{}
	added := false
	client.Watch(w.c, things, client.Watcher[thing]{Spawn: func(_ *netloop.Tick, o *netloop.Object[thing]) {
		if o.State().N == 10 && !added {
			added = true
			client.Watch(w.c, things, d.watcher("late"))
		}
	}})
	w.Step(1)
	w.change(func(tick *netloop.Tick) {
		w.objects[0].Edit(tick).N = 7
		things.Spawn(tick, thing{N: 10})
		things.Spawn(tick, thing{N: 11})
	})
	d.told(t, "late spawn 7", "late spawn 10", "late spawn 11")
	w.change(func(tick *netloop.Tick) { w.objects[0].Edit(tick).N = 8 })
	d.told(t, "late change 8")
}

func TestAPanicOfAWatcherDoesNotStopOtherWatchers(t *testing.T) {
	var log strings.Builder
	w, d := newWatched(t, 20), &callLog{}
	c := w.JoinAs(client.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, perfect)
	client.Watch(c, things, client.Watcher[thing]{
		Spawn:  func(*netloop.Tick, *netloop.Object[thing]) { panic("a bad watcher") },
		Change: func(*netloop.Tick, *netloop.Object[thing], thing) { panic("a bad watcher") },
	})
	client.Watch(c, things, d.watcher("b"))
	w.Until(60, func() bool { return len(d.lines) == 20 })
	d.lines = nil
	client.Watch(c, things, client.Watcher[thing]{Spawn: func(*netloop.Tick, *netloop.Object[thing]) { panic("a late one") }})
	w.Step(1)
	w.change(func(tick *netloop.Tick) { w.objects[3].Edit(tick).N = 33 })
	d.told(t, "b change 33")
	if n := c.Stats().Panics; n != 20+20+1 {
		t.Errorf("%d panics are counted", n)
	}
	if n := strings.Count(log.String(), "a bad watcher"); n != 1 || !strings.Contains(log.String(), "watch_test.go") {
		t.Errorf("%d log lines: %s", n, log.String())
	}
}
