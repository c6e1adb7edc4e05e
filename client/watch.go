package client

import (
	"fmt"
	"slices"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/panicguard"
)

// Watcher holds the functions to call when objects of a class spawn, change and despawn. Every
// function may be nil. They run in EarlyUpdate, after the whole packet with the event has been
// applied; values between two packets may be skipped. A function that panics is counted and logged,
// and does not prevent other calls.
type Watcher[S any] struct {
	Spawn   func(t *netloop.Tick, o *netloop.Object[S])
	Change  func(t *netloop.Tick, o *netloop.Object[S], old S)
	Despawn func(t *netloop.Tick, o *netloop.Object[S], last S)
}

// watcher is a Watcher with its type erased. Only Step's goroutine uses it.
type watcher struct {
	notify  func(t *netloop.Tick, e *replica.Event)
	at      panicguard.Func
	changes bool   // the watcher has a Change function
	batch   uint64 // of events in delivery when the watcher was added, whose effects it has seen
	stopped bool
}

// Watch adds a watcher of the objects of a class, and returns a function that removes it. Spawn is
// called for existing objects: at once if Watch is called inside a Step, and otherwise in the next
// Step. Several watchers of a class are called in the order in which they were added. stop may be
// called in any function of the game on Step's goroutine, including those of the watcher; no
// function of the watcher is called afterwards. Watch panics with a class of another schema.
func Watch[S any](c *Client, k *netloop.Class[S], w Watcher[S]) (stop func()) {
	class := bridge.Netloop.Class(k)
	if !slices.Contains(c.schema.Classes().Classes(), class.State) {
		panic(fmt.Sprintf("client: Watch: class %q belongs to another schema than Config.Schema", k.Name()))
	}
	return c.watchers.add(class.State, &watcher{
		at: panicguard.Func{Name: "Watch", Class: k.Name()}, changes: w.Change != nil,
		notify: func(t *netloop.Tick, e *replica.Event) {
			o := class.Wrap(e.Object).(*netloop.Object[S])
			switch {
			case e.Kind == replica.Spawn && w.Spawn != nil:
				w.Spawn(t, o)
			case e.Kind == replica.Change && w.Change != nil:
				w.Change(t, o, *(*S)(e.Old))
			case e.Kind == replica.Despawn && w.Despawn != nil:
				w.Despawn(t, o, o.State())
			}
		},
	})
}

// watchers holds the watchers of all classes. Only Step's goroutine uses it.
type watchers struct {
	*core
	// matched reports whether the client has already spawned an object that arrived in a packet of
	// a tick.
	matched func(o *state.Object, tick uint64) bool
	byClass [][]*watcher // by the index of the class
	batches uint64       // number of batches of events passed to watchers
	batch   uint64       // batch that is being delivered; 0: none
}

// add adds a watcher. Lists of watchers are replaced and never modified, because a caller may be
// iterating over a list.
func (ws *watchers) add(class *state.Class, w *watcher) (stop func()) {
	list := &ws.byClass[class.Index()]
	w.batch = ws.batch
	*list = append(slices.Clip(*list), w)
	ws.enableChanges(class)
	existing := func(t *netloop.Tick) {
		for o := range ws.replica.All(class) {
			ws.deliver(t, w, &replica.Event{Kind: replica.Spawn, Object: o})
		}
	}
	if ws.now.Stage != 0 {
		existing(ws.current())
	} else {
		ws.post(existing)
	}
	return func() {
		w.stopped = true
		*list = slices.DeleteFunc(slices.Clone(*list), func(other *watcher) bool { return other == w })
		ws.enableChanges(class)
	}
}

// enableChanges enables change events of a class if one of its watchers has a Change.
func (ws *watchers) enableChanges(class *state.Class) {
	wanted := slices.ContainsFunc(ws.byClass[class.Index()], func(w *watcher) bool { return w.changes })
	ws.replica.TellChanges(class, wanted)
}

// notifyAll delivers the events of the replica, as of a tick, to the watchers.
func (ws *watchers) notifyAll(t *netloop.Tick, tick uint64) {
	events := ws.replica.Events()
	ws.batches++
	ws.batch = ws.batches
	for i := range events {
		if events[i].Kind == replica.Spawn && ws.matched(events[i].Object, tick) {
			continue
		}
		for _, w := range ws.byClass[events[i].Object.Class().Index()] {
			if w.batch != ws.batch {
				ws.deliver(t, w, &events[i])
			}
		}
	}
	ws.batch = 0
}

// notify delivers an event that the client itself has caused.
func (ws *watchers) notify(e *replica.Event) {
	for _, w := range ws.byClass[e.Object.Class().Index()] {
		ws.deliver(ws.current(), w, e)
	}
}

// deliver delivers one event to one watcher. A panic there does not affect other watchers.
func (ws *watchers) deliver(t *netloop.Tick, w *watcher, e *replica.Event) {
	defer ws.guard.Recover(&w.at, nil)
	if !w.stopped {
		w.notify(t, e)
	}
}
