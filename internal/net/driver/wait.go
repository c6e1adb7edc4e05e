package driver

import (
	"context"
	"time"
)

// CloseGrace is the time after a server's shutdown deadline for goroutines that were told to end:
// the admission of a game may ignore its context.
const CloseGrace = time.Second

// WaitUntil calls wait and returns true when it has returned. It returns false if wait has not
// returned CloseGrace after the end of ctx.
func WaitUntil(ctx context.Context, wait func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); wait() }()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-done:
		return true
	case <-time.After(CloseGrace):
		return false
	}
}
