package main

import (
	"context"
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/clock"
)

// The run without faults: an update.

// updated is the number of its servers.
const updated = 3

// Limits of the events. On a quiet machine the rooms of a killed server leave the lists after 3 s,
// and its players play elsewhere after 12 s: NATS elects another leader, and their clients give up
// after 3 s. Players that move with their room play again after less than 1 s. The rest is for busy
// machines.
const (
	carriedTime  = 10 * time.Second
	unlistedTime = 10 * time.Second
	playsTime    = 60 * time.Second
	waitTime     = 90 * time.Second
)

// playUpdate is the run: one server is killed, one is drained, and both return.
func (f *fleet) playUpdate(ctx context.Context) error {
	if err := f.crash(ctx, 1); err != nil {
		return err
	}
	if err := f.startServer(ctx, 1); err != nil {
		return err
	}
	f.say("server b is back")
	clock.Sleep(ctx, f.phase)

	f.say("server c is drained, with %d players", f.at(2))
	f.drained = len(f.roomsOf(ctx, f.processes[2].at.Server))
	if err := f.processes[2].stop(); err != nil {
		return err
	}
	if err := f.startServer(ctx, 2); err != nil {
		return err
	}
	f.say("server c is updated, and back")
	clock.Sleep(ctx, f.phase)
	return ctx.Err()
}

// crash kills a server, and waits until its players play elsewhere.
func (f *fleet) crash(ctx context.Context, i int) error {
	p := f.processes[i]
	f.ledger.fails(p.at.Server)
	p.kill()
	f.say("server %s is killed", p.name)
	since := time.Now()
	if err := f.until(ctx, "its rooms are in no list", func() bool { return f.unlists(ctx, p.at.Server) }); err != nil {
		return err
	}
	if took := time.Since(since); took > unlistedTime {
		f.ledger.fault("rooms of a killed server were listed for %v", took.Round(time.Millisecond))
	}
	f.say("its rooms are in no list")
	return f.settled(ctx, since, p.at.Server)
}

// settled waits until the players of a server that was killed play elsewhere.
func (f *fleet) settled(ctx context.Context, since time.Time, killed string) error {
	if err := f.until(ctx, "its players play elsewhere", func() bool { return f.ledger.players(killed) == 0 && f.all() }); err != nil {
		return fmt.Errorf("%w: %d of %d bots are in rooms, %d of them in those of the killed server; the last refusal: %w",
			err, f.ledger.players(""), f.bots, f.ledger.players(killed), f.ledger.refused())
	}
	if took := time.Since(since); took > playsTime {
		f.ledger.fault("players of a killed server were in no room for %v", took.Round(time.Millisecond))
	}
	f.say("its players play elsewhere: %d bots in rooms", f.ledger.players(""))
	return nil
}
