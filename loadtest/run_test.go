package loadtest

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
)

func TestFramesFollowTheServersRate(t *testing.T) {
	for frameRate, period := range map[float64]time.Duration{0: netloop.Hz(30).Period(), 100: 10 * time.Millisecond} {
		r := &run{opts: options{frameRate: frameRate}}
		r.rates(netloop.Hz(30))
		if r.tick != netloop.Hz(30).Period() || r.period != period {
			t.Errorf("--frame-rate %v: tick %v and frames %v, want frames of %v", frameRate, r.tick, r.period, period)
		}
	}
}
