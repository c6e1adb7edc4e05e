package loadtest

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
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
