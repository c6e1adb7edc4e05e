package connlimit

import (
	"context"
	"net/http"
	"time"
)

// shutdownGrace is the time for unfinished answers after the server has stopped.
const shutdownGrace = 2 * time.Second

// Serve runs serve, the Serve or ServeTLS of s, until ctx ends or the listener fails, and returns
// when serve has returned. When ctx ends, unfinished answers get shutdownGrace before their
// connections are closed. Serve returns an error if the listener has failed.
func Serve(ctx context.Context, s *http.Server, serve func() error) error {
	failed := make(chan error, 1) // one sender, one value
	go func() { failed <- serve() }()
	select {
	case err := <-failed:
		_ = s.Close()
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if s.Shutdown(grace) != nil {
		_ = s.Close() // The remaining clients have had shutdownGrace.
	}
	<-failed //nolint:errcheck // It is http.ErrServerClosed.
	return nil
}
