// Command fleet is the program of `make fleet`: servers of a cluster, a director, and bots that
// wander between rooms and servers. It has two runs.
//
// Without flags three servers have NATS inside. One of them is killed and one is drained on the
// way, as in a rolling update; both return (rolling.go). With -faults three NATS servers and four
// game servers are processes of their own. Servers are frozen, cut off from NATS and killed during
// a hand-over, and NATS servers are killed (faults.go). Both exit with 0 only if the ledger holds:
//
//	a room admits nobody after a newer one of its name was opened
//	a player is in one room, and its room knows the player
//	a room that moved has counted each answer that its players got, and a room that was opened
//	again after a crash each one that was saved
//	no list has a room for longer than a few seconds that its server does not have
//	all players are in rooms again at the end, as many as the servers count
//
// The flow: processes.go and routes.go start this program again as servers (game.go) and NATS
// servers, bots.go plays, ledger.go and watch.go check.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
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
	serve(os.Getenv(asServer))
	o := options{}
	flag.IntVar(&o.bots, "bots", 150, "number of bots")
	flag.DurationVar(&o.phase, "phase", 6*time.Second, "time between the events")
	flag.BoolVar(&o.faults, "faults", false, "play the faults of servers, routes and NATS instead of an update")
	flag.DurationVar(&o.freeze, "freeze", time.Minute, "time of the longer freeze of a server, with -faults: more than 10s")
	flag.DurationVar(&o.outage, "outage", time.Minute, "time without NATS, with -faults")
	flag.BoolVar(&o.keep, "keep", false, "keep the logs of the processes")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: fleet [flags] [-- flags of the servers]")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.args = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// serve runs this process as a server, as the director or as a NATS server. Without a kind it
// returns.
func serve(kind string) {
	var g game
	var err error
	switch kind {
	case "":
		return
	case asNATS:
		err = serveNATS(os.Args[1:])
	default:
		if g, err = newGame(); err == nil {
			app.Main(g)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

type options struct {
	bots           int
	phase          time.Duration
	faults, keep   bool
	freeze, outage time.Duration
	args           []string // further ones of the servers
}

// minStay is the least average time of a bot in a room, so that most bots are in rooms.
const minStay = 2 * time.Second

// fleet is a run.
type fleet struct {
	options
	dir       string
	routes    []string // of the NATS servers
	listens   []string // of the NATS servers, for clients
	nats      []*process
	ways      []*route // of the servers to NATS
	mu        sync.Mutex
	processes []*process // servers; the events write it, with the lock
	director  *process
	door      *door
	crowd     *bots
	ledger    *ledger
	still     atomic.Bool // the bots stay in their rooms
	out       io.Writer
	began     time.Time
	drained   int // rooms of the server that was drained
	lonely    int // kinds of rooms that were requested once
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
		switch {
		case err != nil:
			err = fmt.Errorf("%w (logs: %s)", err, dir)
		case o.keep:
			f.say("logs: %s", dir)
		default:
			err = os.RemoveAll(dir)
		}
	}()
	defer f.stop()
	if err := f.start(ctx); err != nil {
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
	f.crowd = &bots{door: f.door, ledger: f.ledger, dialer: dialer, stay: max(f.phase/3, minStay), still: &f.still}
	events := f.playUpdate
	if o.faults {
		events, f.crowd.patient = f.playFaults, patience
	}
	for n := range o.bots {
		group.Go(func() { f.crowd.play(playing, n) })
	}
	group.Go(func() { f.watch(playing) })
	if err := f.until(ctx, "the bots play", f.all); err != nil {
		return err
	}
	f.say("%d bots play, at the servers %s", f.ledger.players(""), f.spread())
	clock.Sleep(ctx, f.phase)
	if err := events(ctx); err != nil {
		return errors.Join(err, f.report(ctx))
	}
	f.still.Store(true)
	f.settle(ctx)
	return f.report(ctx)
}

// say prints a line of progress.
func (f *fleet) say(format string, a ...any) {
	fmt.Fprintf(f.out, "%5.1f s  %s\n", time.Since(f.began).Seconds(), fmt.Sprintf(format, a...))
}

// start starts NATS, the servers and the director.
func (f *fleet) start(ctx context.Context) error {
	ports, err := freePorts(2 * natsServers)
	if err != nil {
		return err
	}
	f.routes, f.listens = ports[:natsServers], ports[natsServers:]
	what := "three servers with NATS inside, and a director"
	f.processes = make([]*process, updated)
	if f.faults {
		what = "three NATS servers, four servers that reach them through proxies, and a director"
		f.nats, f.processes = make([]*process, natsServers), make([]*process, failing)
		if err := together(natsServers, func(i int) (err error) { f.nats[i], err = f.natsServer(ctx, i); return err }); err != nil {
			return err
		}
		for i := range f.processes {
			way, err := newRoute(turned(f.listens, i))
			if err != nil {
				return err
			}
			f.ways = append(f.ways, way)
		}
	}
	// Two of three with NATS inside must run before names can be claimed.
	if err := together(len(f.processes), func(i int) error { return f.startServer(ctx, i) }); err != nil {
		return err
	}
	tokens := filepath.Join(f.dir, "tokens")
	const token = "fleet-0123456789"
	if err := os.WriteFile(tokens, []byte("write "+token+"\n"), 0o600); err != nil {
		return err
	}
	f.director, err = f.launch(ctx, "director", asGame, "director", "--admin", "127.0.0.1:0", "--admin-token-file", tokens,
		"--cluster", "nats://"+strings.Join(f.listens, ",nats://"))
	if err != nil {
		return err
	}
	f.door = &door{at: f.director.at.Admin, token: token}
	f.say("%s", what)
	return f.until(ctx, "the director knows the servers", func() bool { return len(f.known(ctx)) == len(f.processes) })
}

// together calls fn with 0 to n-1 at once, and returns the errors.
func together(n int, fn func(i int) error) error {
	var group sync.WaitGroup
	failed := make([]error, n)
	for i := range n {
		group.Go(func() { failed[i] = fn(i) })
	}
	group.Wait()
	return errors.Join(failed...)
}

// startServer starts a server, for the first time or again.
func (f *fleet) startServer(ctx context.Context, i int) (err error) {
	name := string(rune('a' + i))
	cluster := []string{"--cluster", "embed", "--cluster-listen", f.listens[i%natsServers], "--cluster-routes", strings.Join(turned(f.routes, i), ",")}
	if f.faults {
		cluster = []string{"--cluster", "nats://" + f.ways[i].addr()}
	}
	args := []string{"run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain", "3s", "--hand-over", "--state-dir", filepath.Join(f.dir, name)}
	p, err := f.launch(ctx, name, asGame, slices.Concat(args, cluster, f.args)...)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.processes[i] = p
	}
	return err
}

// turned returns a list that begins with its i-th value.
func turned(all []string, i int) []string {
	i %= len(all)
	return slices.Concat(all[i:], all[:i])
}

// stop ends all processes.
func (f *fleet) stop() {
	for _, p := range slices.Concat(f.processes, f.nats, []*process{f.director}) {
		if p != nil {
			p.kill()
		}
	}
	for _, r := range f.ways {
		r.close()
	}
}

// all reports whether all bots are in rooms that are so at any moment: others are on their way.
func (f *fleet) all() bool { return f.ledger.players("") >= f.bots*8/10 }

// at returns the number of players at a server.
func (f *fleet) at(i int) int { return f.ledger.players(f.processes[i].at.Server) }

// spread returns the numbers of players at the servers.
func (f *fleet) spread() string {
	var all []string
	for i := range f.processes {
		all = append(all, strconv.Itoa(f.at(i)))
	}
	return strings.Join(all, ", ")
}

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
	f.seatedOnce(ctx)
	switch c, _ := f.ledger.result(); { // The bots have told where their rooms are.
	case f.drained > 0 && c.carried == 0:
		f.ledger.fault("none of the %d rooms of the drained server moved with its players", f.drained)
	case !f.faults && c.pause > carriedTime: // A freeze is a pause, too.
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
	f.say("bots at the servers: %s; a room that was not there was listed for %v at most", f.spread(), c.listed.Round(10*time.Millisecond))
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
