package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/netloop/netloop/client"
)

// fewPlayers and manyPlayers are the two client counts; their difference gives the memory per
// client.
const fewPlayers, manyPlayers = 50, 200

// memories measures the memory that a client adds to a server's resident memory, with the garbage
// collector's default setting and with half of it.
func (b *bench) memories(ctx context.Context, out io.Writer) error {
	defer func() { b.gogc = "" }()
	for _, a := range []string{"peers", "traffic"} {
		for _, b.gogc = range []string{"100", "50"} {
			few, err := b.thrifty(ctx, arrangement{a, fewPlayers})
			if err != nil {
				return err
			}
			many, err := b.thrifty(ctx, arrangement{a, manyPlayers})
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s, GOGC=%s: %s\n", a, b.gogc, added(few, many))
		}
	}
	return nil
}

// thrifty returns, of several windows, the least memory and the least processor time.
func (b *bench) thrifty(ctx context.Context, a arrangement) (least sample, err error) {
	for n := range b.opts.rounds {
		fmt.Fprintf(b.about, "%s %v, GOGC=%s, memory\n", time.Now().Format(time.TimeOnly), a, b.gogc)
		s, err := b.take(ctx, b.netloopTurn(a, b.self, client.QUIC))
		if err != nil {
			return s, fmt.Errorf("%v, memory: %w", a, err)
		}
		if n == 0 {
			least = s
		}
		least.resident, least.server = min(least.resident, s.resident), min(least.server, s.server)
	}
	return least, nil
}

// added describes the memory that each client adds, from a window with few of them and one with
// many.
func added(few, many sample) string {
	each := (many.resident*manyPlayers - few.resident*fewPlayers) / (manyPlayers - fewPlayers)
	return fmt.Sprintf("a client adds %.0f kB; %d clients take %.1f MB, and %.1f %% of a core",
		each/1e3, manyPlayers, many.resident*manyPlayers/1e6, 100*many.server)
}
