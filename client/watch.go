package client

import (
	"fmt"
	"slices"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/netvar"
)

// Watcher says what happens when objects of a class come, change and go. Every
// function may be nil. They run in EarlyUpdate, after the packet that brought the
// news has been applied as a whole; values between two packets may be skipped.
type Watcher[S any] struct {
	Spawn   func(t *netloop.Tick, o *netloop.Object[S])
	Change  func(t *netloop.Tick, o *netloop.Object[S], old S)
	Despawn func(t *netloop.Tick, o *netloop.Object[S], last S)
}

// watcher is a Watcher with its type erased.
type watcher func(t *netloop.Tick, e *netvar.Event)

// Watch sets what happens to objects of a class. Spawn is called for those that
// exist already, at once if it is called inside a Step, else in the next. A
// second Watch of a class replaces the first. It panics with a class of another schema.
func Watch[S any](c *Client, k *netloop.Class[S], w Watcher[S]) {
	class := inside.Netloop.Class(k)
	if !slices.Contains(c.schema.Classes.Classes(), class.State) {
		panic(fmt.Sprintf("client: Watch: class %q belongs to another schema than Config.Schema", k.Name()))
	}
	existing := func(t *netloop.Tick) {
		for o := range k.All(t) {
			if w.Spawn != nil {
				w.Spawn(t, o)
			}
		}
	}
	c.replica.TellChanges(class.State, w.Change != nil)
	c.watchers[class.State.Index()] = func(t *netloop.Tick, e *netvar.Event) {
		o := class.Wrap(e.Object).(*netloop.Object[S])
		switch {
		case e.Kind == netvar.Spawn && w.Spawn != nil:
			w.Spawn(t, o)
		case e.Kind == netvar.Change && w.Change != nil:
			w.Change(t, o, *(*S)(e.Old))
		case e.Kind == netvar.Despawn && w.Despawn != nil:
			w.Despawn(t, o, o.State())
		}
	}
	if c.now.Stage != 0 {
		existing(c.tick.Tick.(*netloop.Tick))
		return
	}
	c.later(existing)
}
