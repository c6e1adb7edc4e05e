package bot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
)

// Host implements cards.Host: each bot is a client of this process, without a network.
func Host(ctx context.Context, s *netloop.Server, n int) {
	var playing sync.WaitGroup
	for i := range n {
		playing.Go(func() {
			for ctx.Err() == nil {
				hosted(ctx, s, i)
				pause(ctx, time.Second)
			}
		})
	}
	playing.Wait()
}

var names = []string{"Ada", "Blaise", "Carl", "Dana", "Emmy", "Fermat", "Grace", "Hypatia"}

// hosted runs one bot until ctx ends, or its client does.
func hosted(ctx context.Context, s *netloop.Server, n int) {
	name := names[n%len(names)]
	if again := n / len(names); again > 0 {
		name = fmt.Sprintf("%s %d", name, again+1)
	}
	c, err := client.Dial(ctx, "", client.Config{Schema: cards.Schema, Local: s, Token: name + " (bot)"})
	if err != nil {
		return // The server does not run yet, or is full.
	}
	b := New(c)
	b.Roams, b.Think = true, func() time.Duration {
		more := rand.N(1300 * time.Millisecond) //nolint:gosec // It is no secret.
		return 700*time.Millisecond + more
	}
	_ = c.Run(ctx) // The reason does not matter: the caller tries again.
	_ = c.Close()
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
