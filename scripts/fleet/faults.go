package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/clock"
)

// The run with faults. Each event has its own checks, with the time that they took; the ledger and
// watch check all the time.

const (
	// failing is the number of its servers.
	failing = 4
	// patience is longer than LostAfter and a short freeze: such bots return to a frozen server.
	patience = 15 * time.Second
	// handOverTime is the average time that a room takes to store its state for another server, so
	// that a crash meets hand-overs at each of their steps.
	handOverTime = 400 * time.Millisecond
)

// Limits of the events, for a busy machine. The printed times are those of a quiet one.
const (
	suspectTime = 8 * time.Second  // 3 s
	returnTime  = 8 * time.Second  // 2 s, until a returned server is listed with its rooms
	nameTime    = 30 * time.Second // 10 s, until the name of a silent server is free
	endTime     = 15 * time.Second // 2 s, until a room without its name ends
	boardTime   = 10 * time.Second // 3 s, until calls work without one of three NATS servers
	storeTime   = 60 * time.Second // until names work, after NATS is back
)

// The times of the events that have no flag.
const (
	shortFreeze = 10 * time.Second
	cutTime     = 20 * time.Second
)

// playFaults is the run: all faults, one after the other.
func (f *fleet) playFaults(ctx context.Context) error {
	for _, event := range []func(context.Context) error{
		func(ctx context.Context) error { return f.frozen(ctx, 1, shortFreeze, false) },
		func(ctx context.Context) error { return f.frozen(ctx, 2, f.freeze, true) },
		func(ctx context.Context) error { return f.partition(ctx, 3, cut) },
		func(ctx context.Context) error { return f.partition(ctx, 0, stalled) },
		f.natsKilled,
		f.natsAway,
		f.killed,
		func(ctx context.Context) error { return f.handOver(ctx, 2, 2) },
		func(ctx context.Context) error { return f.handOver(ctx, 1, 0) },
	} {
		if err := event(ctx); err != nil {
			return err
		}
		if err := f.until(ctx, "the bots play, and all rooms are listed", func() bool { return f.all() && f.whole(ctx) }); err != nil {
			return fmt.Errorf("%w: %d of %d bots are in rooms; the last refusal: %w", err, f.ledger.players(""), f.bots, f.ledger.refused())
		}
		f.seatedOnce(ctx)
		for _, p := range f.processes {
			f.ledger.recovered(p.at.Server)
		}
	}
	return ctx.Err()
}

// killed kills a server, and starts another one.
func (f *fleet) killed(ctx context.Context) error {
	if err := f.crash(ctx, 3); err != nil {
		return err
	}
	return f.startServer(ctx, 3)
}

// took waits for a condition, and returns the time since an event. The ledger notes a fault if it
// is longer than the limit.
func (f *fleet) took(ctx context.Context, since time.Time, limit time.Duration, what string, done func() bool) (time.Duration, error) {
	err := f.until(ctx, what, done)
	d := time.Since(since).Round(10 * time.Millisecond)
	if err == nil && d > limit {
		f.ledger.fault("%s after %v, limit %v", what, d, limit)
	}
	return d, err
}

// frozen stops a server for a time. If that is longer than the lease of its names, another server
// opens one of its rooms meanwhile.
func (f *fleet) frozen(ctx context.Context, i int, d time.Duration, reopens bool) error {
	p := f.processes[i]
	f.ledger.fails(p.at.Server)
	rooms := f.ledger.roomsAt(p.at.Server)
	since := time.Now()
	if err := p.freeze(true); err != nil {
		return err
	}
	f.say("server %s is frozen for %v, with %d players", p.name, d, f.at(i))
	suspect, err := f.took(ctx, since, suspectTime, "a frozen server is suspect", func() bool { return f.suspects(ctx, p.at.Server) })
	if err != nil {
		return errors.Join(err, p.freeze(false))
	}
	f.say("  it is suspect after %v", suspect)
	if reopens {
		if err := f.reopened(ctx, i, rooms, since); err != nil {
			return errors.Join(err, p.freeze(false))
		}
	}
	clock.Sleep(ctx, d-time.Since(since))
	since = time.Now()
	if err := p.freeze(false); err != nil {
		return err
	}
	return f.returned(ctx, i, rooms, since, reopens)
}

// reopened waits until another server opens the fullest room of a silent one, for a player that
// asks for its name.
func (f *fleet) reopened(ctx context.Context, i int, rooms []string, since time.Time) error {
	if len(rooms) == 0 {
		return fmt.Errorf("server %s has no room with players", f.processes[i].name)
	}
	silent, other := f.processes[i], f.processes[(i+1)%len(f.processes)]
	var last error
	took, err := f.took(ctx, since, nameTime, "a room of a silent server is open elsewhere", func() bool {
		a, err := f.crowd.visit(ctx, other.at.Listen, rooms[0], "visitor "+silent.name)
		last = err
		return err == nil && a.Place.Server != silent.at.Server
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	f.say("  another server has opened a room of it after %v", took)
	return nil
}

// returned checks that a server is listed again, and that its room that another server has opened
// ends.
func (f *fleet) returned(ctx context.Context, i int, rooms []string, since time.Time, reopened bool) error {
	p := f.processes[i]
	took, err := f.took(ctx, since, returnTime, "a returned server is listed with its rooms", func() bool {
		return f.lists(ctx, p)
	})
	if err != nil {
		return err
	}
	f.say("  after its return it is listed with its rooms in %v", took)
	if !reopened {
		return nil
	}
	took, err = f.took(ctx, since, endTime, "the older room ends", func() bool {
		own, ok := f.own(ctx, p)
		return ok && !slices.Contains(own, rooms[0])
	})
	if err == nil {
		f.say("  its older room has ended after %v", took)
	}
	return err
}

// partition cuts the route of a server to NATS for a time. Its players and all others play on. With
// a stalled route another server opens one of its rooms meanwhile.
func (f *fleet) partition(ctx context.Context, i int, how routeState) error {
	p := f.processes[i]
	f.ledger.fails(p.at.Server)
	rooms := f.ledger.roomsAt(p.at.Server)
	since, reopens := time.Now(), how == stalled
	f.ways[i].set(how)
	f.say("server %s, with %d players, is cut off from NATS for %v; its connection is %s", p.name, f.at(i), cutTime,
		map[routeState]string{cut: "closed", stalled: "open, but no byte passes"}[how])
	suspect, err := f.took(ctx, since, suspectTime, "a server without NATS is suspect", func() bool { return f.suspects(ctx, p.at.Server) })
	if err != nil {
		return err
	}
	f.say("  it is suspect after %v", suspect)
	took, err := f.playOn(ctx)
	if err != nil {
		return err
	}
	f.say("  players at all servers get answers within %v", took)
	if reopens {
		if err := f.reopened(ctx, i, rooms, since); err != nil {
			return err
		}
	}
	clock.Sleep(ctx, cutTime-time.Since(since))
	since = time.Now()
	f.ways[i].set(open)
	return f.returned(ctx, i, rooms, since, reopens)
}

// playOn waits until each server has answered players, and returns the time that it took.
func (f *fleet) playOn(ctx context.Context) (time.Duration, error) {
	since := time.Now()
	before := make([]int, len(f.processes))
	for i, p := range f.processes {
		before[i] = f.ledger.answers(p.at.Server)
	}
	return f.took(ctx, since, boardTime, "players at all servers get answers", func() bool {
		for i, p := range f.processes {
			if f.at(i) > 0 && f.ledger.answers(p.at.Server) == before[i] {
				return false
			}
		}
		return true
	})
}

// natsKilled kills one of three NATS servers.
func (f *fleet) natsKilled(ctx context.Context) error {
	f.nats[0].kill()
	since := time.Now()
	f.say("one of three NATS servers is killed")
	took, err := f.took(ctx, since, boardTime, "the director reserves a seat", func() bool { _, err := f.door.match(ctx); return err == nil })
	if err != nil {
		return err
	}
	f.say("  the director reserves a seat after %v", took)
	before := f.ledger.crossed()
	took, err = f.took(ctx, since, boardTime, "players move between servers", func() bool { return f.ledger.crossed() > before })
	if err != nil {
		return err
	}
	f.say("  players move between servers after %v", took)
	took, err = f.took(ctx, since, storeTime, "a new room is opened", func() bool { return f.opens(ctx) == nil })
	if err == nil {
		f.say("  a new room is opened after %v", took)
	}
	return err
}

// opens lets the director open a room, since no other room of its kind has free seats.
func (f *fleet) opens(ctx context.Context) error {
	f.lonely++
	return f.door.ask(ctx, http.MethodPost, fmt.Sprintf("/match?kind=lonely-%d", f.lonely), new(match))
}

// natsAway kills a second NATS server, so that names have no majority, then the last one, and
// starts all again. The bots stay in their rooms: a seat that a bot gives up is not replaced
// meanwhile.
func (f *fleet) natsAway(ctx context.Context) error {
	f.still.Store(true)
	defer f.still.Store(false)
	if err := f.noMajority(ctx); err != nil {
		return err
	}
	if err := f.noNATS(ctx); err != nil {
		return err
	}
	if err := together(natsServers, func(i int) (err error) { f.nats[i], err = f.natsServer(ctx, i); return err }); err != nil {
		return err
	}
	since := time.Now()
	f.say("all three are back")
	took, err := f.took(ctx, since, storeTime, "a new room is opened", func() bool { return f.opens(ctx) == nil })
	if err != nil {
		return err
	}
	f.say("  a new room is opened after %v", took)
	took, err = f.took(ctx, since, storeTime, "all rooms are listed, without notes", func() bool { return f.whole(ctx) && f.probe(ctx, "/readyz", "NATS") == 0 })
	if err == nil {
		f.say("  all rooms are listed, and /readyz has no note, after %v", took)
	}
	return err
}

// noMajority kills the second of three NATS servers.
func (f *fleet) noMajority(ctx context.Context) error {
	m, err := f.door.match(ctx)
	if err != nil {
		return err
	}
	f.nats[1].kill()
	since := time.Now()
	f.say("a second NATS server is killed, with %d bots in rooms", f.ledger.players(""))
	c, err := f.crowd.take(ctx, m, client.Config{Join: player{"guest"}})
	if err != nil {
		return fmt.Errorf("a ticket from before: %w", err)
	}
	defer c.Close() //nolint:errcheck // Its seat is no longer needed.
	if _, err := f.crowd.whereIs(ctx, c, "guest"); err != nil {
		return fmt.Errorf("a seat by a ticket from before: %w", err)
	}
	f.say("  a ticket from before is accepted")
	var refused error
	took, err := f.took(ctx, since, nameTime, "a new room is refused as busy", func() bool {
		refused = f.opens(ctx)
		return refused != nil && strings.Contains(refused.Error(), "busy")
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, refused)
	}
	f.say("  a new room is refused after %v: %s", took, strings.TrimSpace(refused.Error()))
	took, err = f.took(ctx, since, nameTime, "/readyz has a note", func() bool { return f.probe(ctx, "/readyz", "NATS") == len(f.processes) })
	if err == nil {
		f.say("  /readyz has a note after %v, with status 200", took)
	}
	return err
}

// noNATS kills the last NATS server for a time. All play on.
func (f *fleet) noNATS(ctx context.Context) error {
	players := f.ledger.players("")
	f.nats[2].kill()
	since := time.Now()
	f.say("the third one is killed, too: there is no NATS for %v", f.outage)
	var longest time.Duration
	for time.Since(since) < f.outage && ctx.Err() == nil {
		took, err := f.playOn(ctx)
		if err != nil {
			return err
		}
		longest = max(longest, took)
		for _, page := range []string{"/healthz", "/readyz"} {
			if f.probe(ctx, page, "") < len(f.processes) {
				f.ledger.fault("%s is not 200 without NATS", page)
			}
		}
		clock.Sleep(ctx, f.phase)
	}
	stayed := f.ledger.players("")
	f.say("  players at all servers get answers within %v; %d of %d bots have kept their seats; /healthz and /readyz have status 200", longest, stayed, players)
	if stayed < players*9/10 {
		f.ledger.fault("%d of %d bots have kept their seats without NATS", stayed, players)
	}
	return nil
}

// probe returns the number of servers whose page has status 200 and contains a text.
func (f *fleet) probe(ctx context.Context, page, text string) (n int) {
	for _, p := range f.processes {
		d := door{at: p.at.Admin}
		if got, err := d.text(ctx, http.MethodGet, page); err == nil && strings.Contains(got, text) {
			n++
		}
	}
	return n
}

// handOver drains a server, and kills one in the middle of it: the server itself, or another that
// gets its rooms. Both return.
func (f *fleet) handOver(ctx context.Context, drained, killed int) error {
	from, victim := f.processes[drained], f.processes[killed]
	rooms := f.roomsOf(ctx, from.at.Server)
	f.say("server %s is drained, with %d players in %d rooms", from.name, f.at(drained), len(rooms))
	f.ledger.fails(from.at.Server)
	f.ledger.fails(victim.at.Server)
	if err := from.terminate(); err != nil {
		return err
	}
	clock.Sleep(ctx, handOverTime)
	victim.kill()
	since := time.Now()
	moved := 0
	for server, names := range f.listing(ctx) {
		for _, name := range names {
			if server != from.at.Server && slices.Contains(rooms, name) {
				moved++
			}
		}
	}
	f.say("  server %s is killed meanwhile: %d rooms have moved", victim.name, moved)
	if from != victim {
		if err := from.wait(); err != nil {
			return err
		}
		f.say("  server %s has ended after %v", from.name, time.Since(since).Round(10*time.Millisecond))
	}
	if err := f.settled(ctx, since, victim.at.Server); err != nil {
		return err
	}
	if err := f.startServer(ctx, drained); err != nil {
		return err
	}
	if from == victim {
		return nil
	}
	return f.startServer(ctx, killed)
}
