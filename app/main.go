package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/netloop/netloop"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main runs the command line of a dedicated server for a game, and exits.
func Main(g netloop.Game) {
	// A server that is started by a double-click on Windows must run.
	cobra.MousetrapHelpText = ""
	signal.Ignore(syscall.SIGPIPE) // The reader of the log may end; the game continues.
	ctx, cancel := context.WithCancelCause(context.Background())
	// Size 2: one signal to close, one to abort; more have no effect.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		cancel(fmt.Errorf("signal %v", <-signals))
		<-signals
		os.Exit(exitFailed) // No message: writing one may hang.
	}()
	os.Exit(run(ctx, os.Args, os.Environ(), os.Stdout, os.Stderr, g))
}

// program is one run of the command line.
type program struct {
	name           string // of the executable, for messages
	env            []string
	stdout, stderr io.Writer
	game           netloop.Game
}

// run is Main without signals and exit: it returns the exit status. args begins with the program's
// name. When ctx ends, a server that runs closes.
func run(ctx context.Context, args, env []string, stdout, stderr io.Writer, g netloop.Game) int {
	p := &program{name: "server", env: env, stdout: stdout, stderr: stderr, game: g}
	if len(args) > 0 {
		p.name = strings.TrimSuffix(filepath.Base(args[0]), ".exe")
		args = args[1:]
	}
	err := p.execute(ctx, args)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "%s: %s\n", p.name, oneLine(err))
	if _, failed := errors.AsType[*failure](err); failed {
		return exitFailed
	}
	return exitUsage
}

// failure is an error with exit status 1: a server or command that ran has failed. Any other error
// has status 2: it occurred before, and the operator can fix it.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }

// failed makes an error a failure.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &failure{err}
}

// printJSON prints a value as indented JSON.
func (p *program) printJSON(v any) error {
	e := json.NewEncoder(p.stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// oneLine turns an error, which may be several joined ones and quote a user's text, into exactly
// one line of printable text.
func oneLine(err error) string {
	var parts []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return printable(strings.Join(parts, "; "))
}

// printable replaces the characters of a text that cannot be printed.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}
