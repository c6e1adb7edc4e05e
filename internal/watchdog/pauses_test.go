package watchdog_test

import (
	"testing"
	"time"

	"github.com/netloop/netloop/internal/watchdog"
)

// After a pause of the process one check is left out, and the next one counts, however late it is.
func TestACheckAfterAPauseIsLeftOut(t *testing.T) {
	var p watchdog.Pauses
	for _, check := range []struct {
		at    time.Duration
		skips bool
	}{
		{time.Second, false},
		{2 * time.Second, false},
		{5 * time.Second, false}, // A busy machine.
		{17 * time.Second, true}, // It was stopped for 12 s.
		{18 * time.Second, false},
		{60 * time.Second, true},
		{90 * time.Second, false},
		{91 * time.Second, false},
	} {
		if got := p.Skip(check.at, time.Second); got != check.skips {
			t.Errorf("the check after %v: left out is %v", check.at, got)
		}
	}
}
