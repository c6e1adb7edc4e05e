package loadtest

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/netem"
)

// A bot's frame rate is that of --frame-rate, or the tick rate of its room: also after it has moved
// from a lobby of 20 Hz to a room of 60.
func TestFramesFollowTheRoomsRate(t *testing.T) {
	for frameRate, fixed := range map[float64]time.Duration{0: 0, 100: 10 * time.Millisecond} {
		r, p := &run{opts: options{frameRate: frameRate}}, new(player)
		for _, rate := range []netloop.Rate{netloop.Hz(20), netloop.Hz(60), {}, netloop.Hz(60), netloop.Hz(30)} {
			before := p.period
			p.follow(r, rate)
			want := fixed
			switch {
			case fixed == 0 && rate.Num > 0:
				want = rate.Period()
			case fixed == 0:
				want = before // It is between two rooms.
			}
			if p.period != want {
				t.Errorf("--frame-rate %v in a room of %v: frames of %v, want %v", frameRate, rate, p.period, want)
			}
		}
	}
}

// Over a simulated network each client has a socket of its own, and otherwise it may share one.
func TestClientsOfASimulatedNetworkShareNoSocket(t *testing.T) {
	for simulated, want := range map[*netem.Stats]int{nil: 2, new(netem.Stats): 6} {
		r := &run{opts: options{clients: 6, perSocket: 4}, simulated: simulated}
		if err := r.openSockets(); err != nil {
			t.Fatal(err)
		}
		if n := len(r.dialers); n != want {
			t.Errorf("simulated: %v, and %d sockets, want %d", simulated != nil, n, want)
		}
		for _, d := range r.dialers {
			_ = d.Close() // The test is over either way.
		}
	}
}

// A wait ends early when the run is interrupted, or no client is left.
func TestAWaitEndsWithTheRun(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, c := range []struct {
		ctx                               context.Context
		gone, away, rejoining             int64
		wait, complete, interrupted, dead bool
	}{
		{ctx: t.Context(), complete: true},
		{ctx: t.Context(), gone: 1, wait: true},
		{ctx: t.Context(), gone: 1, rejoining: 1, wait: true, dead: true},
		{ctx: t.Context(), away: 1, wait: true, dead: true}, // The server does not answer any more.
		{ctx: interrupted, wait: true, interrupted: true},
	} {
		r := &run{clock: clock.NewSystem(), deadAfter: 30 * time.Millisecond}
		r.connected.Store(1)
		r.gone.Store(c.gone)
		r.away.Store(c.away)
		r.rejoining.Store(c.rejoining)
		d := time.Duration(0)
		if c.wait {
			d = time.Hour
		}
		if complete := r.waitUntil(c.ctx, r.now()+d); complete != c.complete || r.interrupted != c.interrupted || r.dead != c.dead {
			t.Errorf("%+v: complete %v, interrupted %v", c, complete, r.interrupted)
		}
		_ = r.clock.Close() // The test is over either way.
	}
}

// A client that was lost after it had joined in place of another is no failure of the run, as a
// client that the run did not disturb is.
func TestDisturbedClientsAreNoFailures(t *testing.T) {
	for again, want := range map[bool]Clients{
		true:  {Wanted: 1, Connected: 1, Verifying: 1},
		false: {Wanted: 1, Connected: 1, Verifying: 2, Disconnected: 1},
	} {
		w, p := bench()
		r := w.run
		r.workers, r.screen = []*worker{w}, newScreen(io.Discard, true)
		r.entered.Store(1)
		p.verify = equal
		lost := &player{again: again, left: make(chan struct{}), meter: Meter{worker: w}}
		w.players = []*player{p, lost}
		w.leave(lost, errors.New("lost"))
		rep := r.report(Series{})
		if rep.Clients != want || rep.Converged != again || rep.Joins.Ended["lost"] != 1 {
			t.Errorf("again: %v: %+v, converged %v, %v", again, rep.Clients, rep.Converged, rep.Joins)
		}
	}
}
