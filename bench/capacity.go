package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/netloop/netloop/client"
)

// maxLate is the highest p99 of the ticks' lateness at which the server still holds its clients.
const maxLate = 0.5 // ms

// capacities finds the number of clients per core in each requested world.
func (b *bench) capacities(ctx context.Context, out io.Writer) error {
	for _, a := range b.opts.only {
		held, why, err := b.capacity(ctx, a.world, a.clients)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s at %d Hz: a core holds %d clients; more: %s\n", a.world, b.opts.rate, held, why)
	}
	return nil
}

// capacity doubles the clients until there are too many, and then halves the gap three times.
func (b *bench) capacity(ctx context.Context, world string, from int) (held int, why string, err error) {
	try := func(clients int) (bool, error) {
		text, err := b.holds(ctx, arrangement{world, clients})
		if text == "" && err == nil {
			held = clients
			return true, nil
		}
		why = text
		return false, err
	}
	clients := from
	for ok := true; ok; clients *= 2 {
		if ok, err = try(clients); err != nil {
			return held, why, err
		}
		if !ok {
			break
		}
	}
	for low, high := held, clients; high-low > max(from/8, high/10); {
		middle := (low + high) / 2
		ok, err := try(middle)
		if err != nil {
			return held, why, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return held, why, nil
}

// holds returns the reason why a server does not hold so many clients: empty if it does in one of
// the rounds.
func (b *bench) holds(ctx context.Context, a arrangement) (why string, err error) {
	t := b.netloopTurn(a, b.self, client.QUIC)
	if frames := quietFrames(a.world, b.opts.rate); frames > 0 {
		t.playerArgs = append(t.playerArgs, "--frame-rate", strconv.Itoa(frames))
	}
	for range b.opts.rounds {
		s, err := b.take(ctx, t)
		if err != nil {
			return "", err
		}
		late := float64(s.ticks.Lateness.Percentile(99)) / 1e6
		fmt.Fprintf(b.about, "%v at %d Hz: %.0f %% of a core, lateness p99 %.2f ms, %d overruns, clients %.0f %% of theirs\n",
			a, b.opts.rate, 100*s.server, late, s.ticks.Overruns, 100*s.player)
		switch {
		case s.saturated != "":
			why = fmt.Sprintf("not known, at %d %s", a.clients, s.saturated)
		case late > maxLate:
			why = fmt.Sprintf("at %d ticks begin %.2f ms late (p99)", a.clients, late)
		case s.ticks.Overruns > 0:
			why = fmt.Sprintf("at %d there are %d overruns", a.clients, s.ticks.Overruns)
		default:
			return "", nil
		}
	}
	return why, nil
}

// quietFrames returns the frames per second of clients that send only acknowledgements, at a tick
// rate: one frame for each acknowledgement on a good link. More frames would send nothing, but fill
// the clients' core and so be late, and a late client acknowledges in every frame. It returns 0,
// for the default, if the clients play.
func quietFrames(world string, rate int) int {
	const snapshots, span = 3, 51 // acknowledged at once, and the span in ms: client/acking.go
	switch world {
	case "peers", "flips":
		return rate / min(max(span*rate/1000, 1), snapshots)
	}
	return 0
}
