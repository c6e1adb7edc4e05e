// Command demo is the program of `make demo`: it starts the server on free ports of loopback, lets
// the load client play on it, stops the server as an operator would, and exits with the load
// client's status. It uses only the two programs' public flags.
//
// The flow:
//
//	server --addr-file F     writes its real addresses to F once it is ready
//	loadclient --addr ...    live progress on stderr, the summary on stdout
//	again, without a report  while another player is connected, in a browser
//	interrupt to the server  it must close its clients and exit 0
//
// With -capacity, for `make capacity`, it searches the largest number of players of the arena and
// the card game instead. With -watch, for `make watch`, the server's admin listener has a known
// address, Prometheus scrapes it if it is installed, and all run until an interrupt.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startLimit = 15 * time.Second      // until the server is ready; usually well under a second
	stopLimit  = 10 * time.Second      // until an interrupted server has exited
	pollEvery  = 20 * time.Millisecond // between looks for the address file
)

// The load client's limits, checked before any program is started.
const (
	maxClients  = 10_000
	minDuration = 100 * time.Millisecond
	maxDuration = 24 * time.Hour
)

const exitUsage = 2

func main() {
	o, err := parse(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	os.Exit(code)
}

type options struct {
	bin      string
	clients  int
	duration time.Duration
	web      string // the address of the arena's page
	admin    string // of the admin listener
	watch    bool   // Prometheus runs too, and an interrupt is the normal end
	deploy   string // the folder with Prometheus's configuration
	// prometheus is the address of its pages.
	prometheus string
	extra      []string // further flags of the load client

	capacity string // a file for searches of the largest number of players; empty is none
	players  []kind
	rates    []int // ticks per second
	from     int   // the first number of players
}

// parse reads the command line. The error names the expected value; help is written to out.
func parse(args []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		fmt.Fprintln(out, "demo [flags] [-- flags of loadclient run]: lets bots play on a server of their own")
		flags.SetOutput(out)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.bin, "bin", "bin", "folder with the server and loadclient programs")
	flags.IntVar(&o.clients, "clients", 100, "number of bots, 1 to 10000")
	flags.DurationVar(&o.duration, "duration", 20*time.Second, "how long they are measured, 100ms to 24h")
	flags.StringVar(&o.web, "web", "127.0.0.1:0", "address of the arena's page, host:port; port 0 picks a free one")
	flags.StringVar(&o.admin, "admin", "127.0.0.1:0", "address of the admin listener, host:port; port 0 picks a free one")
	flags.BoolVar(&o.watch, "watch", false, "run Prometheus too, if it is installed, and everything until an interrupt")
	flags.StringVar(&o.deploy, "deploy", filepath.Join("deploy", "prometheus"), "folder with the configuration of Prometheus, for -watch")
	flags.StringVar(&o.prometheus, "prometheus", "127.0.0.1:9090", "address of the pages of Prometheus, for -watch")
	flags.StringVar(&o.capacity, "capacity", "", "search the largest numbers of players that meet the thresholds, up to -clients, and write the results to this file")
	flags.IntVar(&o.from, "from", 25, "the first number of players of -capacity")
	players := flags.String("players", "arena,idle,cards", "the sorts of players of -capacity")
	rates := flags.String("rates", "20,30,60", "the tick rates of -capacity, per second")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: demo -help lists the flags", err)
	}
	if o.extra = flags.Args(); o.watch {
		o.duration = maxDuration
	}
	programs := []string{"server", "loadclient"}
	if o.capacity != "" {
		if err := o.parsePlayers(*players, *rates); err != nil {
			return o, err
		}
		programs = nil
		for _, k := range o.players {
			programs = append(programs, k.server, k.client)
		}
	}
	switch {
	case o.clients < 1 || o.clients > maxClients:
		return o, fmt.Errorf("-clients: %d cannot be used: use 1 to %d", o.clients, maxClients)
	case o.duration < minDuration || o.duration > maxDuration:
		return o, fmt.Errorf("-duration: %v cannot be used: use 100ms to 24h", o.duration)
	case len(o.extra) > 0 && !strings.HasPrefix(o.extra[0], "-"):
		return o, fmt.Errorf("%q is one word too many: demo takes only flags, and after -- those of loadclient run: see demo -help", o.extra[0])
	}
	for _, name := range programs {
		if _, err := os.Stat(program(o.bin, name)); err != nil {
			return o, fmt.Errorf("-bin: %q cannot be used: %w: make build puts the programs into bin", o.bin, err)
		}
	}
	return o, nil
}

func run(ctx context.Context, o options) (code int, err error) {
	if o.capacity != "" {
		err := capacity(ctx, o, os.Stdout)
		return status(err), err
	}
	dir, err := os.MkdirTemp("", "netloop-demo-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	err = serve(ctx, o, "server", dir, []string{"--web", o.web}, func(at addresses) error {
		code, err = demo(ctx, o, dir, at)
		return err
	})
	return max(code, status(err)), err
}

// status returns the exit status of an error.
func status(err error) int {
	if err == nil {
		return 0
	}
	return 1
}

// serve runs a server while play runs. dir is a folder for its addresses.
func serve(ctx context.Context, o options, name, dir string, flags []string, play func(addresses) error) (err error) {
	addrFile := filepath.Join(dir, "addr.json")
	server := command(context.WithoutCancel(ctx), o.bin, name, append([]string{"run", "--listen", "127.0.0.1:0", "--admin", o.admin, "--addr-file", addrFile}, flags...)...)
	server.Env = halfTheCores(os.Environ())
	if o.capacity != "" {
		server.Stdout = nil // A banner for each row is of no use.
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	ended := make(chan error, 1) // one sender, one value
	go func() { ended <- server.Wait() }()
	defer func() {
		if e := stopServer(server, ended); err == nil {
			err = e
		}
	}()
	at, err := waitReady(ctx, addrFile, ended)
	if err != nil {
		return err
	}
	return play(at)
}

// demo lets bots play on a server.
func demo(ctx context.Context, o options, dir string, at addresses) (code int, err error) {
	if o.watch {
		stop, err := watch(ctx, o, at, dir, os.Stdout)
		defer stop()
		if err != nil {
			return 1, err
		}
	} else {
		fmt.Printf("\nopen http://%s/ or call make desktop ADDR=%s, and fly among the bots: for %v, and as long as you play\n\n", at.Web, at.Listen, o.duration)
	}
	play := bots(ctx, o, at, o.duration)
	if o.watch {
		play.Stdout = nil // Its report would be about an interrupted measurement.
	}
	if err := play.Run(); err != nil {
		if o.watch && ctx.Err() != nil {
			return 0, nil
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
			return exit.ExitCode(), errors.New("the load client reports a shortfall: see its report; a slow or busy machine needs fewer bots: make demo ARGS=\"-clients 20\"")
		}
		return 1, fmt.Errorf("load client: %w", err)
	}
	stay(ctx, at.Admin, o.clients, askEvery, func(ctx context.Context) {
		more := bots(ctx, o, at, maxDuration)
		more.Stdout, more.Stderr = nil, nil
		_ = more.Run() // It is interrupted.
	})
	return 0, nil
}

// bots returns the command that runs the load client for the duration.
func bots(ctx context.Context, o options, at addresses, duration time.Duration) *exec.Cmd {
	return command(ctx, o.bin, "loadclient", append([]string{
		"run", "--addr", at.Listen, "--admin", "http://" + at.Admin,
		"--clients", strconv.Itoa(o.clients), "--verify", strconv.Itoa(readers(o.clients)), "--duration", duration.String(), "--ui", progress(duration),
	}, o.extra...)...)
}

// progress returns the --ui of bots: the terminal shows the address of the page, so there is no
// view, and for hours no line either.
func progress(duration time.Duration) string {
	if duration > time.Hour {
		return "quiet"
	}
	return "plain"
}

// readers returns the number of bots that read and check their state. The others acknowledge it
// and continue to play: a hundred reading bots and their server need more than two slow cores.
func readers(clients int) int { return (clients + 3) / 4 }

// halfTheCores leaves half of the cores to the bots, unless the environment sets the server's
// number. By default both programs use every core, and on one machine they then interrupt each
// other in the middle of a tick: on two cores the tick's p99 was 7 to 11 ms instead of 5, and the
// snapshot interval's 26 ms instead of 24.
func halfTheCores(env []string) []string {
	if os.Getenv("GOMAXPROCS") != "" {
		return env
	}
	return append(env, "GOMAXPROCS="+strconv.Itoa(max(1, runtime.NumCPU()/2)))
}

// program returns the path of a program of netloop, with a separator, because a bare name would
// be searched in PATH.
func program(bin, name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Clean(bin) + string(filepath.Separator) + name
}

// command returns a program of netloop on this terminal. The end of ctx interrupts it.
func command(ctx context.Context, bin, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program(bin, name), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopLimit
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

// addresses is the content of the server's --addr-file.
type addresses struct {
	Listen string `json:"listen"`
	Admin  string `json:"admin"`
	Web    string `json:"web"`
}

func waitReady(ctx context.Context, file string, ended chan error) (at addresses, err error) {
	limit := time.After(startLimit)
	for {
		if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &at) == nil && at.Listen != "" {
			return at, nil
		}
		select {
		case <-time.After(pollEvery):
		case err := <-ended:
			ended <- err // for stopServer
			return at, errors.New("the server ended before it was ready")
		case <-limit:
			return at, fmt.Errorf("the server was not ready within %v", startLimit)
		case <-ctx.Done():
			return at, ctx.Err()
		}
	}
}

// stopServer interrupts the server and requires that it exits 0.
func stopServer(server *exec.Cmd, ended <-chan error) error {
	if server.Process.Signal(os.Interrupt) != nil {
		_ = server.Process.Kill() // Windows has no interrupt for another process
	}
	select {
	case err := <-ended:
		if err != nil && runtime.GOOS != "windows" {
			return fmt.Errorf("the server did not exit 0: %w", err)
		}
		return nil
	case <-time.After(stopLimit):
		_ = server.Process.Kill()
		return fmt.Errorf("the server was still running %v after an interrupt (it ended with: %w)", stopLimit, <-ended)
	}
}
