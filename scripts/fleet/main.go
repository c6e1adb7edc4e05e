// Command fleet is the program of `make fleet`: three servers with NATS inside, a director, and
// bots that wander between rooms and servers. One server is killed and one is drained on the way,
// as in a rolling update; both return. It exits with 0 only if the ledger holds:
//
//	a room of an older incarnation admits nobody after a newer one has
//	a player is in one room, and its room knows the player
//	a room that moved from the drained server has counted each answer that its players got
//	each server's rooms leave the lists soon after it was killed
//	all players are in rooms again at the end, as many as the servers count
//
// The flow: processes.go starts this program again as servers (game.go), bots.go plays, ledger.go
// checks.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/netloop/netloop/app"
	_ "github.com/netloop/netloop/app/embednats"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/clock"
)

func main() {
	if os.Getenv(asServer) != "" {
		serve()
	}
	o := options{}
	flag.IntVar(&o.bots, "bots", 150, "number of bots")
	flag.DurationVar(&o.phase, "phase", 6*time.Second, "time between the events")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// serve runs this process as a server, or as the director.
func serve() {
	g, err := newGame()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
	app.Main(g)
}

type options struct {
	bots  int
	phase time.Duration
}

const servers = 3

// minStay is the least average time of a bot in a room, so that most bots are in rooms.
const minStay = 2 * time.Second

// fleet is a run.
type fleet struct {
	options
	dir       string
	routes    []string // of the NATS servers
	listens   []string // of the NATS servers, for clients
	processes [servers]*process
	door      *door
	ledger    *ledger
	out       io.Writer
	began     time.Time
	drained   int // rooms of the server that was drained
}

// run plays the fleet, and returns an error unless the ledger holds.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "netloop-fleet-")
	if err != nil {
		return err
	}
	f := &fleet{options: o, dir: dir, out: out, began: time.Now()}
	f.ledger = newLedger(func() time.Duration { return time.Since(f.began) })
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
		} else {
			err = fmt.Errorf("%w (logs: %s)", err, dir)
		}
	}()
	director, err := f.start(ctx)
	defer func() {
		for _, p := range append(f.processes[:], director) {
			if p != nil {
				p.kill()
			}
		}
	}()
	if err != nil {
		return err
	}
	dialer, err := client.NewDialer()
	if err != nil {
		return err
	}
	defer dialer.Close() //nolint:errcheck // The run is over.
	playing, end := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer func() { end(); group.Wait() }()
	var still atomic.Bool
	b := &bots{door: f.door, ledger: f.ledger, dialer: dialer, stay: max(f.phase/3, minStay), still: still.Load}
	for n := range o.bots {
		group.Go(func() { b.play(playing, n) })
	}
	if err := f.events(ctx); err != nil {
		return err
	}
	still.Store(true)
	f.settle(ctx)
	return f.report(ctx)
}

// say prints a line of progress.
func (f *fleet) say(format string, a ...any) {
	fmt.Fprintf(f.out, "%5.1f s  %s\n", time.Since(f.began).Seconds(), fmt.Sprintf(format, a...))
}

// start starts the servers and the director.
func (f *fleet) start(ctx context.Context) (director *process, err error) {
	ports, err := freePorts(2 * servers)
	if err != nil {
		return nil, err
	}
	f.routes, f.listens = ports[:servers], ports[servers:]
	var group sync.WaitGroup
	var failed [servers]error
	for i := range servers { // Two of three must run before names can be claimed.
		group.Go(func() { f.processes[i], failed[i] = f.server(ctx, i) })
	}
	group.Wait()
	if err := cmp.Or(failed[0], failed[1], failed[2]); err != nil {
		return nil, err
	}
	tokens := filepath.Join(f.dir, "tokens")
	const token = "fleet-0123456789"
	if err := os.WriteFile(tokens, []byte("write "+token+"\n"), 0o600); err != nil {
		return nil, err
	}
	director, err = launch(ctx, f.dir, "director", "director", "--admin", "127.0.0.1:0", "--admin-token-file", tokens,
		"--cluster", "nats://"+strings.Join(f.listens, ",nats://"))
	if err != nil {
		return nil, err
	}
	f.door = &door{at: director.at.Admin, token: token}
	f.say("three servers with NATS inside, and a director")
	return director, f.until(ctx, "the director knows the servers", func() bool { return len(f.known(ctx)) == servers })
}

// server starts a server, for the first time or again.
func (f *fleet) server(ctx context.Context, i int) (*process, error) {
	routes := append([]string{f.routes[i]}, slices.Delete(slices.Clone(f.routes), i, i+1)...)
	name := string(rune('a' + i))
	return launch(ctx, f.dir, name, "run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain", "3s", "--hand-over",
		"--cluster", "embed", "--cluster-listen", f.listens[i], "--cluster-routes", strings.Join(routes, ","),
		"--state-dir", filepath.Join(f.dir, name))
}

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

// events are the run: one server is killed, one is drained, and both return.
func (f *fleet) events(ctx context.Context) error {
	if err := f.until(ctx, "the bots play", func() bool { return f.ledger.players("") >= f.most() }); err != nil {
		return err
	}
	f.say("%d bots play, at the servers %d, %d and %d", f.ledger.players(""), f.at(0), f.at(1), f.at(2))
	clock.Sleep(ctx, f.phase)

	killed := f.processes[1].at.Server
	f.processes[1].kill()
	f.say("server b is killed")
	since := time.Now()
	if err := f.until(ctx, "its rooms are in no list", func() bool { return f.listed(ctx, killed) == 0 }); err != nil {
		return err
	}
	if took := time.Since(since); took > unlistedTime {
		f.ledger.fault("rooms of a killed server were listed for %v", took.Round(time.Millisecond))
	}
	f.say("its rooms are in no list")
	if err := f.until(ctx, "its players play elsewhere", func() bool { return f.ledger.players(killed) == 0 && f.ledger.players("") >= f.most() }); err != nil {
		return fmt.Errorf("%w: %d of %d bots are in rooms, %d of them in those of the killed server; the last refusal: %w",
			err, f.ledger.players(""), f.bots, f.ledger.players(killed), f.ledger.refused())
	}
	if took := time.Since(since); took > playsTime {
		f.ledger.fault("players of a killed server were in no room for %v", took.Round(time.Millisecond))
	}
	f.say("its players play elsewhere: %d bots in rooms", f.ledger.players(""))
	var err error
	if f.processes[1], err = f.server(ctx, 1); err != nil {
		return err
	}
	f.say("server b is back")
	clock.Sleep(ctx, f.phase)

	f.say("server c is drained, with %d players", f.at(2))
	f.drained = f.listed(ctx, f.processes[2].at.Server)
	if err := f.processes[2].stop(); err != nil {
		return err
	}
	if f.processes[2], err = f.server(ctx, 2); err != nil {
		return err
	}
	f.say("server c is updated, and back")
	clock.Sleep(ctx, f.phase)
	return ctx.Err()
}

// most returns the number of bots that are in rooms at any moment: others are on their way.
func (f *fleet) most() int { return f.bots * 8 / 10 }

// at returns the number of players at a server.
func (f *fleet) at(i int) int { return f.ledger.players(f.processes[i].at.Server) }

// settle lets the bots stay where they are, until all are in rooms.
func (f *fleet) settle(ctx context.Context) {
	if f.until(ctx, "all bots are in rooms", func() bool { return f.ledger.players("") == f.bots }) != nil {
		f.ledger.fault("%d of %d bots are in rooms at the end", f.ledger.players(""), f.bots)
	}
	counted := 0
	same := func() bool {
		counted = 0
		for _, s := range f.known(ctx) {
			counted += s.Clients
		}
		return counted == f.bots
	}
	if f.until(ctx, "the servers count the bots", same) != nil {
		f.ledger.fault("the servers count %d clients, of %d bots", counted, f.bots)
	}
	switch c, _ := f.ledger.result(); { // The bots have told where their rooms are.
	case f.drained > 0 && c.carried == 0:
		f.ledger.fault("none of the %d rooms of the drained server moved with its players", f.drained)
	case c.pause > carriedTime:
		f.ledger.fault("a player that moved with its room was without an answer for %v", c.pause.Round(time.Millisecond))
	}
}

// until waits for a condition.
func (f *fleet) until(ctx context.Context, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	for !done() {
		if !clock.Sleep(ctx, 4*lookEvery) {
			return fmt.Errorf("not within %v: %s", waitTime, what)
		}
	}
	return nil
}

// serverInfo is a server in the director's list.
type serverInfo struct {
	ID      string
	Suspect bool
	Clients int
}

// known returns the servers that the director knows and that are not suspect.
func (f *fleet) known(ctx context.Context) (all []serverInfo) {
	var answer struct{ Servers []serverInfo }
	if err := f.door.ask(ctx, "GET", "/servers", &answer); err != nil {
		return nil
	}
	return slices.DeleteFunc(answer.Servers, func(s serverInfo) bool { return s.Suspect })
}

// listed returns the number of a server's rooms in the director's list, or -1 if it does not
// answer.
func (f *fleet) listed(ctx context.Context, server string) (n int) {
	var answer struct{ Rooms []struct{ Server string } }
	if err := f.door.ask(ctx, "GET", "/rooms?limit=10000", &answer); err != nil {
		return -1
	}
	for _, r := range answer.Rooms {
		if r.Server == server {
			n++
		}
	}
	return n
}

// report prints the figures, and returns an error unless the ledger holds.
func (f *fleet) report(ctx context.Context) error {
	c, faults := f.ledger.result()
	slices.Sort(c.gaps)
	gap := func(share float64) time.Duration {
		if len(c.gaps) == 0 {
			return 0
		}
		return c.gaps[int(share*float64(len(c.gaps)-1))].Round(time.Millisecond)
	}
	f.say("%d joins, %d moves, %d of them to another server; %d seats lost, %d requests to try again", c.joins, c.moves, c.crossed, c.lost, c.refused)
	f.say("a move takes %v, p99 %v (frames of %v included)", gap(0.5), gap(0.99), frameTime)
	f.say("%d players moved with their rooms, without an answer for %v at most", c.carried, c.pause.Round(time.Millisecond))
	f.say("bots at the servers: %d, %d and %d", f.at(0), f.at(1), f.at(2))
	for _, fault := range faults {
		fmt.Fprintln(f.out, "FAULT ", fault)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(faults) > 0:
		return fmt.Errorf("the ledger has %d faults", len(faults))
	}
	f.say("the ledger holds")
	return nil
}
