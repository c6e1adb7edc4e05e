package bot

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/loadtest"
)

// Bot plays the arena.
type Bot struct{}

// New makes the bot.
func New() loadtest.Bot { return Bot{} }

// Schema implements loadtest.Bot.
func (Bot) Schema() *netloop.Schema { return arena.Schema }

// Join implements loadtest.Bot.
func (Bot) Join(n int) any { return arena.JoinParams{Name: fmt.Sprintf("bot %d", n)} }

// The profiles of the bot.
const (
	play = "play" // it flies a ship, and asks for the standings
	idle = "idle" // it joins and receives the state
	poll = "poll" // it asks for the standings, and after the answer again
)

// Profiles implements loadtest.Profiles.
func (Bot) Profiles() []string { return []string{play, idle, poll} }

const (
	standingsRate = 2                      // of a pilot's questions, per second
	pollPause     = 200 * time.Millisecond // between an answer and the next question
)

// Start implements loadtest.Bot.
func (Bot) Start(c *client.Client, m *loadtest.Meter) {
	switch m.Profile() {
	case idle:
		return
	case poll:
		begin := sync.OnceFunc(func() { ask(m) })
		c.On(netloop.Update, "bot.poll", func(*netloop.Tick) { begin() })
		return
	}
	newPilot(c, m.Rand(), m).blind = m.Blind()
	loadtest.Calls(m, standingsRate, arena.Standings, func(*netloop.Tick) arena.StandingsQuery {
		return arena.StandingsQuery{Top: 10}
	})
}

// ask asks for the standings, and again after the answer: a closed loop.
func ask(m *loadtest.Meter) {
	loadtest.Ask(m, arena.Standings, arena.StandingsQuery{Top: 10}, func(t *netloop.Tick, _ arena.StandingsReply, err error) {
		if err == nil {
			t.AfterFunc(pollPause, func(*netloop.Tick) { ask(m) })
		}
	})
}

// newPilot makes a pilot for a client.
func newPilot(c *client.Client, rng *rand.Rand, f feel) *pilot {
	p := &pilot{client: c, rand: rng, feel: f}
	client.Watch(c, arena.Ships, client.Watcher[arena.Ship]{
		Spawn:   func(_ *netloop.Tick, o *netloop.Object[arena.Ship]) { p.meet(o) },
		Despawn: func(_ *netloop.Tick, o *netloop.Object[arena.Ship], _ arena.Ship) { p.part(o) },
	})
	client.Watch(c, arena.Rocks, p.rocks.watcher())
	client.Watch(c, arena.Pickups, p.pickups.watcher())
	client.Handle(c, arena.Said, func(_ *netloop.Tick, in *arenav1.Said) { p.hear(in) })
	p.play()
	return p
}

// seen lists the existing objects of a class, in the order of their arrival.
type seen[S any] struct{ all []*netloop.Object[S] }

func (s *seen[S]) add(o *netloop.Object[S]) { s.all = append(s.all, o) }

func (s *seen[S]) remove(o *netloop.Object[S]) {
	s.all = slices.DeleteFunc(s.all, func(have *netloop.Object[S]) bool { return have == o })
}

func (s *seen[S]) watcher() client.Watcher[S] {
	return client.Watcher[S]{
		Spawn:   func(_ *netloop.Tick, o *netloop.Object[S]) { s.add(o) },
		Despawn: func(_ *netloop.Tick, o *netloop.Object[S], _ S) { s.remove(o) },
	}
}
