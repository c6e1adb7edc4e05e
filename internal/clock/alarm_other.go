//go:build !linux

package clock

import (
	"context"
	"time"
)

// alarms on this system are the timers of the runtime.
type alarms struct{}

func (*alarms) wait(ctx context.Context, d time.Duration) { waitTimer(ctx, d) }

func (*alarms) close() error { return nil }
