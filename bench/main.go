// Command bench is the program of `make bench-floor`: it measures a server's cost per client,
// beside a server of bare quic-go that exchanges as many datagrams of the same sizes.
//
// The flow:
//
//	main       this program, which starts itself again in other roles, each pinned to a core
//	  peers    core 0: a netloop server, whose world is 100 entities that change in every tick
//	  arena    core 0: the example game, or
//	  traffic  core 0: as many datagrams as the arena's without its game, or
//	  bare     core 0: quic-go and nothing around it
//	  play-…   core 1: the clients of that server
//	measure    when all clients are in: processor time, ticks and counters over a window
//	table      the figures of each, and their ratios
//
// The command `bench path` has other measurements: path.go.
//
// The compared servers run in turn, and again, and the cheapest window of each counts: other
// programs of the machine only ever add cost. A window in which the clients' core was full or their
// frames were late is marked as invalid.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/netloop/netloop/client"
)

func main() {
	if len(os.Args) > 1 && roles[os.Args[1]] != nil {
		role := os.Args[1]
		os.Args = append([]string{role}, os.Args[2:]...)
		profileBySignal()
		roles[role]()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// roles are the functions of the child processes that the program starts, by the first argument.
var roles = map[string]func(){
	"peers": servePeers, "play-peers": playPeers,
	"flips": serveFlips, "play-flips": playPeers,
	"arena": serveArena, "play-arena": playArena,
	"traffic": serveTraffic, "play-traffic": playTraffic,
	"bare": serveBare, "play-bare": playBare,
}

var errUsage = errors.New("it cannot run like that")

// options are the command line.
type options struct {
	only     []arrangement
	rounds   int
	window   time.Duration
	warmup   time.Duration
	rate     int
	server   string // another build of this program
	bare     bool
	capacity bool
	profile  bool
	memory   bool
	page     string
	sections []string // of that page
	verify   int
	sharing  int
	exact    bool
	others   []client.Transport // further transports of netloop's clients, beside QUIC
	extra    []string           // further flags of netloop's servers
}

// arrangement is one line of the table: a world, and its number of players.
type arrangement struct {
	world   string
	clients int
}

func (a arrangement) String() string { return fmt.Sprintf("%s %d", a.world, a.clients) }

// all are the default arrangements.
const all = "peers,50 peers,200 flips,50 flips,200 arena,50 arena,200 traffic,50 traffic,200"

// parse reads the command line. The error names the expected value; help is written to out.
func parse(args []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		fmt.Fprintln(out, "bench [flags] [-- flags of netloop's servers]: what a client costs, beside bare quic-go")
		flags.SetOutput(out)
		flags.PrintDefaults()
	}
	only := flags.String("only", all, "what is measured: peers, flips, arena or traffic, a comma and the number of clients; several in quotation marks")
	flags.IntVar(&o.rounds, "rounds", 2, "how often each is measured: the cheapest window counts")
	flags.DurationVar(&o.window, "window", 4*time.Second, "how long each is measured")
	flags.DurationVar(&o.warmup, "warmup", 3*time.Second, "how long clients play before that: in the first two seconds they ask for the time more often")
	flags.IntVar(&o.rate, "rate", 60, "ticks a second")
	flags.StringVar(&o.server, "server", "", "another build of this program, measured in turn with this one: its servers and its clients")
	flags.BoolVar(&o.bare, "bare", true, "measure bare quic-go too")
	flags.BoolVar(&o.capacity, "capacity", false, "look for how many clients a core holds: lateness p99 at most 0.5 ms and no overrun")
	flags.BoolVar(&o.profile, "profile", false, "print where a client's microseconds go, by profiles of the server and of the clients")
	flags.BoolVar(&o.memory, "memory", false, "print what a client adds to a server's memory, with GOGC at 100 and at 50")
	flags.StringVar(&o.page, "cost", "", "measure all that this page shows, and write it there: twenty minutes")
	parts := flags.String("sections", strings.Join(sectionNames(), " "), "what of that page is measured")
	others := flags.String("transport", "", "measure netloop over these too, beside QUIC: webtransport or websocket; several in quotation marks")
	flags.IntVar(&o.sharing, "per-socket", 1, "how many clients share a UDP socket: a server may send at once what goes to one address, and players have one each")
	flags.BoolVar(&o.exact, "exact", true, "let every client send at its own time, as players do, and not together with those of the same millisecond")
	flags.IntVar(&o.verify, "verify", 1, "how many clients read and check the state that they are sent")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: %w: -help lists the flags", errUsage, err)
	}
	if o.extra = flags.Args(); len(o.extra) > 0 && !strings.HasPrefix(o.extra[0], "-") {
		return o, fmt.Errorf("%w: %q is one word too many", errUsage, o.extra[0])
	}
	o.sections = strings.Fields(*parts)
	for _, name := range o.sections {
		if !slices.Contains(sectionNames(), name) {
			return o, fmt.Errorf("%w: -sections: %q cannot be used", errUsage, name)
		}
	}
	for text := range strings.FieldsSeq(*only) {
		a, err := parseArrangement(text)
		if err != nil {
			return o, err
		}
		o.only = append(o.only, a)
	}
	for text := range strings.FieldsSeq(*others) {
		var t client.Transport
		if err := t.UnmarshalText([]byte(text)); err != nil {
			return o, fmt.Errorf("%w: -transport: %q cannot be used: %w", errUsage, text, err)
		}
		o.others = append(o.others, t)
	}
	if o.rounds < 1 || o.window < 100*time.Millisecond || o.rate < 1 || o.rate > 1000 || o.warmup < 0 || len(o.only) == 0 {
		return o, fmt.Errorf("%w: use -rounds of 1 or more, a -window of 100ms or more, a -rate of 1 to 1000", errUsage)
	}
	return o, nil
}

func parseArrangement(text string) (arrangement, error) {
	world, number, _ := strings.Cut(text, ",")
	clients, err := strconv.Atoi(number)
	if err != nil || clients < 1 || clients > maxClients || !slices.Contains([]string{"peers", "flips", "arena", "traffic"}, world) {
		return arrangement{}, fmt.Errorf("%w: -only: %q cannot be used: write it as peers,50", errUsage, text)
	}
	return arrangement{world, clients}, nil
}

const maxClients = 4096

func run(ctx context.Context, args []string, out, about io.Writer) error {
	if len(args) > 0 && args[0] == "path" {
		return paths(ctx, args[1:], out, about)
	}
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	b, err := newBench(o, about)
	if err != nil {
		return err
	}
	defer b.close()
	switch {
	case o.page != "":
		return b.cost(ctx, o.page)
	case o.profile:
		return b.profiles(ctx, out)
	case o.memory:
		return b.memories(ctx, out)
	case o.capacity:
		return b.capacities(ctx, out)
	}
	return b.compare(ctx, out)
}
