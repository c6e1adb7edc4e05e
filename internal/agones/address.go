package agones

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/clock"
)

// addressTime is the limit of the wait for the address: Agones gives it when the pod has started.
const addressTime = 30 * time.Second

// Address returns the address at which players reach this server, host:port, by the sidecar on a
// port of this machine. It waits until Agones has given the address, at most 30 s.
func Address(ctx context.Context, port int) (string, error) {
	c := newClient(port, nil)
	defer c.close()
	return c.address(ctx)
}

func (c *client) address(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, addressTime)
	defer cancel()
	last := errors.New("it was not asked")
	for {
		g, err := c.gameServer(ctx)
		switch {
		case err == nil && g.address != "":
			return g.address, nil
		case err == nil:
			last = errors.New("the GameServer has no address or port")
		case ctx.Err() == nil:
			last = err
		}
		if !clock.Sleep(ctx, pace) {
			return "", fmt.Errorf("the sidecar of Agones names no address of this server within %v: %w", addressTime, last)
		}
	}
}
