// Command demo is what `make demo` runs: it starts the server on free ports of loopback,
// lets the load client play on it, stops the server as an operator would, and leaves with
// the load client's exit status. It uses nothing but the two programs' public flags.
//
// The flow:
//
//	server --addr-file F     writes its real addresses to F once it is ready
//	loadclient --addr ...    live progress on stderr, the summary on stdout
//	interrupt to the server  it must say goodbye to its clients and exit 0
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const (
	startLimit = 15 * time.Second      // until the server is ready; it takes well under a second
	stopLimit  = 10 * time.Second      // until an interrupted server has left
	pollEvery  = 20 * time.Millisecond // looking for the address file
)

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "folder with the server and loadclient programs")
	flag.IntVar(&o.clients, "clients", 100, "how many bots play")
	flag.DurationVar(&o.duration, "duration", 20*time.Second, "how long they are measured")
	flag.Parse()
	o.extra = flag.Args()
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
	extra    []string // further arguments of the load client
}

func run(ctx context.Context, o options) (code int, err error) {
	dir, err := os.MkdirTemp("", "netloop-demo-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	addrFile := filepath.Join(dir, "addr.json")
	server := command(context.WithoutCancel(ctx), o.bin, "server", "run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--addr-file", addrFile)
	server.Env = halfTheCores(os.Environ())
	if err := server.Start(); err != nil {
		return 1, fmt.Errorf("start the server: %w", err)
	}
	ended := make(chan error, 1) // one sender, one value
	go func() { ended <- server.Wait() }()
	defer func() {
		if e := stopServer(server, ended); e != nil && code == 0 {
			code, err = 1, e
		}
	}()

	at, err := waitReady(ctx, addrFile, ended)
	if err != nil {
		return 1, err
	}
	load := command(ctx, o.bin, "loadclient", append([]string{
		"run", "--addr", at.Listen, "--admin", "http://" + at.Admin,
		"--clients", strconv.Itoa(o.clients), "--duration", o.duration.String(),
	}, o.extra...)...)
	if err := load.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode(), errors.New("the load client was not satisfied: see its report")
		}
		return 1, fmt.Errorf("load client: %w", err)
	}
	return 0, nil
}

// halfTheCores leaves the other half to the bots, unless the environment says how many the
// server shall have. Both programs take every core by default, and on a machine that runs both
// they then take them from each other in the middle of a tick: on two cores the tick's p99 was
// 7 to 11 ms instead of 5, and the snapshot interval's 26 ms instead of 24.
func halfTheCores(env []string) []string {
	if os.Getenv("GOMAXPROCS") != "" {
		return env
	}
	return append(env, "GOMAXPROCS="+strconv.Itoa(max(1, runtime.NumCPU()/2)))
}

// command is a program of ours on this terminal. When ctx ends it is interrupted.
func command(ctx context.Context, bin, name string, args ...string) *exec.Cmd {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopLimit
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

// addresses is what the server writes to its --addr-file.
type addresses struct {
	Listen string `json:"listen"`
	Admin  string `json:"admin"`
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

// stopServer interrupts the server and demands that it exits 0.
func stopServer(server *exec.Cmd, ended <-chan error) error {
	if server.Process.Signal(os.Interrupt) != nil {
		_ = server.Process.Kill() // Windows knows no interrupt for another process
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
