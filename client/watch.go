package client

import (
	"fmt"
	"slices"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/panicguard"
)

// Watcher holds the functions to call when objects of a class spawn, change and despawn. Every
// function may be nil. They run in EarlyUpdate, after the packet with the event has been applied as
// a whole; values between two packets may be skipped. A function that panics is counted and logged,
// and does not prevent other calls.
type Watcher[S any] struct {
	Spawn   func(t *netloop.Tick, o *netloop.Object[S])
	Change  func(t *netloop.Tick, o *netloop.Object[S], old S)
	Despawn func(t *netloop.Tick, o *netloop.Object[S], last S)
}

// watcher is a Watcher with its type erased. Only Step's goroutine uses it.
type watcher struct {
	tell    func(t *netloop.Tick, e *netvar.Event)
	at      panicguard.Func
	changes bool   // has a Change
	batch   uint64 // of the events being delivered when it was added: it has seen their effects
	stopped bool
}

// Watch adds a watcher of the objects of a class, and returns a function that removes it. Spawn is
// called for existing objects, at once if Watch is called inside a Step, else in the next. Several
// watchers of a class are called in the order in which they were added. stop may be called in any
// function of the game on Step's goroutine, including those of the watcher; none of these is called
// afterwards. Watch panics with a class of another schema.
func Watch[S any](c *Client, k *netloop.Class[S], w Watcher[S]) (stop func()) {
	class := bridge.Netloop.Class(k)
	if !slices.Contains(c.schema.Classes().Classes(), class.State) {
		panic(fmt.Sprintf("client: Watch: class %q belongs to another schema than Config.Schema", k.Name()))
	}
	return c.watch(class.State, &watcher{
		at: panicguard.Func{Name: "Watch", Class: k.Name()}, changes: w.Change != nil,
		tell: func(t *netloop.Tick, e *netvar.Event) {
			o := class.Wrap(e.Object).(*netloop.Object[S])
			switch {
			case e.Kind == netvar.Spawn && w.Spawn != nil:
				w.Spawn(t, o)
			case e.Kind == netvar.Change && w.Change != nil:
				w.Change(t, o, *(*S)(e.Old))
			case e.Kind == netvar.Despawn && w.Despawn != nil:
				w.Despawn(t, o, o.State())
			}
		},
	})
}

// watch adds a watcher. Lists of watchers are replaced and never modified, because a list may be in
// iteration.
func (c *Client) watch(class *netvar.Class, w *watcher) (stop func()) {
	list := &c.watchers[class.Index()]
	w.batch = c.telling
	*list = append(slices.Clip(*list), w)
	c.tellChanges(class)
	existing := func(t *netloop.Tick) {
		for o := range c.replica.All(class) {
			c.hear(t, w, &netvar.Event{Kind: netvar.Spawn, Object: o})
		}
	}
	if c.now.Stage != 0 {
		existing(c.tick.Tick.(*netloop.Tick))
	} else {
		c.later(existing)
	}
	return func() {
		w.stopped = true
		*list = slices.DeleteFunc(slices.Clone(*list), func(other *watcher) bool { return other == w })
		c.tellChanges(class)
	}
}

// tellChanges enables change events of a class if one of its watchers has a Change.
func (c *Client) tellChanges(class *netvar.Class) {
	wanted := slices.ContainsFunc(c.watchers[class.Index()], func(w *watcher) bool { return w.changes })
	c.replica.TellChanges(class, wanted)
}

// tellAll delivers the events of the replica, as of a tick, to the watchers.
func (c *Client) tellAll(t *netloop.Tick, tick uint64) {
	events := c.replica.Events()
	c.batches++
	c.telling = c.batches
	for i := range events {
		if events[i].Kind == netvar.Spawn && c.met(events[i].Object, tick) {
			continue
		}
		for _, w := range c.watchers[events[i].Object.Class().Index()] {
			if w.batch != c.telling {
				c.hear(t, w, &events[i])
			}
		}
	}
	c.telling = 0
}

// tell delivers an event that the client caused by itself.
func (c *Client) tell(e *netvar.Event) {
	for _, w := range c.watchers[e.Object.Class().Index()] {
		c.hear(c.tick.Tick.(*netloop.Tick), w, e)
	}
}

// hear delivers one event to one watcher. A panic there does not affect other watchers.
func (c *Client) hear(t *netloop.Tick, w *watcher, e *netvar.Event) {
	defer c.guard.Recover(&w.at, nil)
	if !w.stopped {
		w.tell(t, e)
	}
}
