package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit statuses.
const (
	exitOK      = 0
	exitRuntime = 1   // no connection, no answer of --admin, or a file could not be written
	exitUsage   = 2   // a flag that does not exist or cannot be used
	exitShort   = 99  // measured, but short of the requirements of a good run
	exitEarly   = 105 // interrupted: measured for less time than asked
)

// Main runs a load test with the flags of the command line and ends the program: --help lists them.
//
// The result is written to stdout, for people or as JSON ([Result]), progress to stderr. The exit
// status is 0 only if all clients connected, none was lost, all converged, the generator was not
// saturated and each --threshold is met; 99 if one of these failed; 1 if no measurement was
// possible, for instance without an answering server, or a file could not be written; and 2 for an
// unusable flag. An interrupt ends the run early: the figures so far are printed, and the status is
// 105. A second one kills the program.
func Main(b Bot) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := execute(ctx, os.Args, os.Stdout, os.Stderr, b)
	stop()
	os.Exit(code)
}

// execute is [Main] with the process's arguments and streams as parameters, and with the exit
// status as its result. args[0] is the program's name.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer, b Bot) int {
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	cmd, code := command(name, args, stdout, stderr, b)
	cmd.SetArgs(args[1:])
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", name, oneLine(err))
		var failed runtimeError
		if errors.As(err, &failed) {
			return exitRuntime
		}
		return exitUsage
	}
	return *code
}

// runtimeError marks an error that occurs although the flags are valid: the exit status is then
// exitRuntime instead of exitUsage.
type runtimeError struct{ error }

func (e runtimeError) Unwrap() error { return e.error }

// command makes the command line. code holds the exit status after a run without an error.
func command(name string, args []string, stdout, stderr io.Writer, b Bot) (cmd *cobra.Command, code *int) {
	var o options
	code = new(int)
	play := func(cmd *cobra.Command, _ []string) (err error) {
		if err := configure(o.config, cmd.Flags()); err != nil {
			return err
		}
		if err := o.validate(); err != nil {
			return err
		}
		if err := o.parseProfile(b); err != nil {
			return err
		}
		o.command, o.values = args, valuesOf(cmd.Flags())
		*code, err = playAndPrint(cmd.Context(), &o, stdout, stderr, b)
		return err
	}
	cmd = &cobra.Command{
		Use: name, Short: "Play " + b.Schema().Name() + " with many bots, and measure what they notice",
		Args: noArgs, RunE: play, SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	run := &cobra.Command{Use: "run", Short: "Run the load test (also what no command means)", Args: noArgs, RunE: play}
	o.flags(cmd.PersistentFlags())
	cmd.PersistentFlags().SortFlags = false
	cmd.AddCommand(run)
	cmd.SetHelpCommand(&cobra.Command{Hidden: true})
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SetFlagErrorFunc(func(of *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			return fmt.Errorf("%w%s: %s --help lists the flags", err, suggest(unknown.GetSpecifiedName(), of.Flags()), name)
		}
		var bad *pflag.InvalidValueError
		if errors.As(err, &bad) { // The text of strconv is no help to a user.
			return badFlag(bad.GetFlag().Name, fmt.Sprintf("%q", bad.GetValue()), name+" --help says what it takes")
		}
		return fmt.Errorf("%w: %s --help lists the flags", err, name)
	})
	return cmd, code
}

// noArgs refuses positional arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		return fmt.Errorf("%q is not a command (there is run)", args[0])
	}
	return fmt.Errorf("%q is one word too many: %s takes only flags, see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())
}

// playAndPrint runs the load test and writes the result to its destinations.
func playAndPrint(ctx context.Context, o *options, stdout, stderr io.Writer, b Bot) (int, error) {
	r := newRun(*o, b, stderr)
	rep, err := r.play(ctx)
	if err != nil {
		return exitRuntime, runtimeError{err}
	}
	if err := writeOutputs(o, rep, stdout); err != nil {
		return exitRuntime, runtimeError{err}
	}
	if !o.toStdout("text") {
		for _, why := range rep.Verdict.Reasons {
			r.screen.note("not ok: " + why)
		}
	}
	return rep.Verdict.Exit, nil
}

// oneLine joins the lines of an error.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
