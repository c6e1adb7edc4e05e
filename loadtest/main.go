package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/netloop/netloop/internal/tui"
)

// Exit statuses.
const (
	exitOK      = 0
	exitRuntime = 1   // no connection, no answer of --admin, or a file could not be written
	exitUsage   = 2   // a flag that does not exist or cannot be used
	exitShort   = 99  // measured, but short of the requirements of a good run
	exitEarly   = 105 // interrupted: measured for less time than asked
)

// sameSignal is the time after an interrupt in which a second one has no effect: a terminal sends
// Ctrl-C to the load client and to the program that has started it, which may pass it on.
const sameSignal = 300 * time.Millisecond

// Main runs a load test with the flags of the command line and ends the program: --help lists them.
//
// The result is written to stdout, for people or as JSON ([Result]), progress to stderr. The exit
// status is 0 only if all clients connected, none was lost, all converged, the generator was not
// saturated and each --threshold is met; 99 if one of these failed; 1 if no measurement was
// possible, for instance without an answering server, or a file could not be written; and 2 for an
// unusable flag. An interrupt ends the run early: the figures so far are printed, and the status is
// 105. A second one kills the program.
func Main(b Bot) {
	// 1 000 bots take 1.4 GiB instead of 1.5, and the collector still runs less than once a second.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		time.Sleep(sameSignal)
		stop()
	})
	p := &program{args: os.Args, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Environ(), interrupt: stop, bot: b}
	p.terminal = tui.IsTerminal(os.Stdin, p.env) && tui.IsTerminal(os.Stderr, p.env)
	code := p.execute(ctx)
	stop()
	os.Exit(code)
}

// execute is [Main] with the exit status as its result.
func (p *program) execute(ctx context.Context) int {
	p.name = strings.TrimSuffix(filepath.Base(p.args[0]), ".exe")
	cmd := p.command()
	cmd.SetArgs(p.args[1:])
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(p.stderr, "%s: %s\n", p.name, oneLine(err))
		if _, failed := errors.AsType[runtimeError](err); failed {
			return exitRuntime
		}
		return exitUsage
	}
	return p.code
}

// runtimeError marks an error that occurs although the flags are valid: the exit status is then
// exitRuntime instead of exitUsage.
type runtimeError struct{ error }

func (e runtimeError) Unwrap() error { return e.error }

// program is one execution of the load client.
type program struct {
	name           string   // of the executable
	args           []string // args[0] is its path
	stdin          io.Reader
	stdout, stderr io.Writer
	env            []string
	terminal       bool   // stdin and stderr are one
	interrupt      func() // ends the load test early, as a signal does
	bot            Bot
	code           int // the exit status after a command without an error
}

// command makes the command line.
func (p *program) command() *cobra.Command {
	root := p.player(p.name, "Play "+p.bot.Schema().Name()+" with many bots, and measure what they notice", (*program).run, nil)
	root.CompletionOptions = cobra.CompletionOptions{DisableDefaultCmd: true}
	root.AddCommand(
		p.player("run", "Run the load test (also what no command means)", (*program).run, nil),
		p.player("find", "Raise the number of bots until a threshold breaks, and print the largest number that meets all", (*program).find, func(o *options, f *pflag.FlagSet) {
			f.IntVar(&o.from, "from", findFrom, "the first number of bots; --clients is the largest")
			preset(f, "clients", "1000")
			preset(f, "duration", "8s")
		}),
		p.player("soak", "Run for hours, with a line a minute, and fail if memory, goroutines or metric series grow", (*program).run, func(o *options, f *pflag.FlagSet) {
			o.soak = true
			preset(f, "duration", "1h")
		}),
		p.compare(),
		p.report(),
	)
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(p.flagError)
	return root
}

// preset changes the default of a flag.
func preset(f *pflag.FlagSet, name, value string) {
	flag := f.Lookup(name)
	flag.DefValue = value
	if err := flag.Value.Set(value); err != nil {
		panic(err) // The value is a constant of this file.
	}
}

// player makes a command that plays, with the flags of a run and further ones.
func (p *program) player(use, short string, do func(*program, context.Context, *options) error, more func(*options, *pflag.FlagSet)) *cobra.Command {
	o := &options{bot: p.bot, command: p.args}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: noArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := configure(o.config, cmd.Flags()); err != nil {
				return err
			}
			if err := errors.Join(o.validate(), o.parseProfile(p.bot)); err != nil {
				return err
			}
			o.values = valuesOf(cmd.Flags())
			return do(p, cmd.Context(), o)
		},
	}
	cmd.Flags().SortFlags = false
	o.flags(cmd.Flags())
	if more != nil {
		more(o, cmd.Flags())
	}
	return cmd
}

// compare makes the command compare.
func (p *program) compare() *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use: "compare A B", Short: "Compare results of --out json, and fail if B is worse: a file each, or a folder with several runs",
		SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("compare takes two results, and got %d: see %s compare --help", len(args), p.name)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) (err error) {
			p.code, err = compareFiles(&o, args, p.stdout, func(text string) { fmt.Fprintln(p.stderr, text) })
			return err
		},
	}
	cmd.Flags().StringVar(&o.tolerance, "tolerance", "5%", "the `SHARE` by which a judged figure may be worse")
	cmd.Flags().StringArrayVar(&o.metrics, "metric", nil, "`METRIC` that is judged, instead of those that repeat well; may be repeated")
	return cmd
}

// report makes the command report.
func (p *program) report() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "report FILE...", Short: "Write the results of --out json as one page, several runs beside each other",
		SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, files []string) error { return reportArgs(files, out, p.name) },
		RunE: func(_ *cobra.Command, files []string) error { return reportFiles(files, out) },
	}
	cmd.Flags().StringVar(&out, "html", "", "the `FILE` of the page")
	return cmd
}

// flagError adds a remedy to the error of a flag.
func (p *program) flagError(of *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return fmt.Errorf("%w%s: %s --help lists the flags", err, suggest(unknown.GetSpecifiedName(), of.Flags()), p.name)
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		// The text of strconv is no help to a user.
		return badFlag(bad.GetFlag().Name, fmt.Sprintf("%q", bad.GetValue()), p.name+" --help says what it takes")
	}
	return fmt.Errorf("%w: %s --help lists the flags", err, p.name)
}

// noArgs refuses positional arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		return fmt.Errorf("%q is not a command (there are run, find, soak, compare and report)", args[0])
	}
	return fmt.Errorf("%q is one word too many: %s takes only flags, see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())
}

// run runs the load test and writes the result to its destinations.
func (p *program) run(ctx context.Context, o *options) error {
	s, err := p.screen(ctx, o)
	if err != nil {
		return err
	}
	rep, err := newRun(*o, p.bot, s).play(ctx)
	s.close()
	if err != nil {
		return runtimeError{err}
	}
	if !o.toStdout("text") {
		for _, why := range rep.Verdict.Reasons {
			s.note("not ok: " + why)
		}
	}
	p.code = rep.Verdict.Exit
	return written(o.writeOutputs(p.stdout, func(format string, w io.Writer) error { return write(format, o, rep, w) }))
}

// screen makes the screen of --ui, and opens its terminal view.
func (p *program) screen(ctx context.Context, o *options) (*screen, error) {
	s := newScreen(p.stderr, o.ui == uiQuiet)
	switch {
	case o.ui == uiTerm && !p.terminal:
		return nil, badFlag("ui", o.ui, "stdin and stderr are no terminal: use plain")
	case o.ui == uiTerm, o.ui == uiAuto && p.terminal:
		s.open(ctx, p.stdin, p.env, p.interrupt)
	}
	return s, nil
}

// find searches the largest number of clients and writes the search to its destinations.
func (p *program) find(ctx context.Context, o *options) error {
	if err := o.parseFind(); err != nil {
		return err
	}
	show, err := p.screen(ctx, o)
	if err != nil {
		return err
	}
	s, err := find(ctx, o, func(ctx context.Context, o options) (*report, error) { return newRun(o, p.bot, show).play(ctx) }, show.progress, o.rest)
	show.close()
	failed := err
	p.code = s.exit()
	if len(s.Steps) > 0 { // The measured steps are printed also after an error.
		failed = errors.Join(err, o.writeOutputs(p.stdout, s.write))
	}
	return written(failed)
}

// written marks an error after the flags were accepted.
func written(err error) error {
	if err == nil {
		return nil
	}
	return runtimeError{err}
}

// oneLine joins the lines of an error.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
