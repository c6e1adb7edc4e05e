package loadtest

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/metrics/ticks"
)

type told struct{}

func (told) TickRate() netloop.Rate { return netloop.Hz(30) }

func TestFramesFollowTheServersRate(t *testing.T) {
	account := &ticks.Snapshot{Budget: 50 * time.Millisecond}
	for name, c := range map[string]struct {
		client       any
		account      *ticks.Snapshot
		frameRate    float64
		tick, period time.Duration
	}{
		"as the client was told": {told{}, account, 0, netloop.Hz(30).Period(), netloop.Hz(30).Period()},
		"as /ticks says":         {nil, account, 0, 50 * time.Millisecond, 50 * time.Millisecond},
		"as servers have it":     {nil, nil, 0, netloop.Hz(60).Period(), netloop.Hz(60).Period()},
		"as --frame-rate says":   {nil, account, 100, 50 * time.Millisecond, 10 * time.Millisecond},
	} {
		r := &run{opts: options{frameRate: c.frameRate}}
		r.rates(c.client, c.account)
		if r.tick != c.tick || r.period != c.period {
			t.Errorf("%s: tick %v and frames %v, want %v and %v", name, r.tick, r.period, c.tick, c.period)
		}
	}
}
