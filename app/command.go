package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/netloop/netloop"
)

// execute parses the command line and runs the command.
func (p *program) execute(ctx context.Context, args []string) error {
	c, err := newConfiguration(p.game)
	if err != nil {
		return err
	}
	root := p.root(c)
	root.SetArgs(args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	return root.ExecuteContext(ctx)
}

// root makes the tree of commands. Without a subcommand it runs the server.
func (p *program) root(c *configuration) *cobra.Command {
	name := p.game.Schema().Name()
	serve := func(cmd *cobra.Command, _ []string) error {
		if err := c.load(cmd.Flags(), p.env); err != nil {
			return err
		}
		return p.serve(cmd.Context(), c)
	}
	root := &cobra.Command{
		Use:   p.name,
		Short: "Serve " + name,
		Long: "Serves " + name + ".\n\n" +
			"A flag such as --tick-rate may also be the environment variable NETLOOP_TICK_RATE or a line\n" +
			"of the file that --config names. Flags win over the environment, and that over the file.\n\n" +
			"SIGINT and SIGTERM close the server: clients get the reason, the game saves, the exit status\n" +
			"is 0. A second signal ends it at once, with status 1. SIGHUP reads the file again: a change\n" +
			"of log-level takes effect at once, other changes are logged and take effect at the next start.",
		RunE:              serve,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	run := &cobra.Command{Use: "run", Short: "Serve until a signal arrives; the default command", RunE: serve}
	config := &cobra.Command{
		Use: "config", Short: "Print the effective configuration as YAML, as --config reads it, and check it",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(cmd.Flags(), p.env); err != nil {
				return err
			}
			for _, w := range c.warnings {
				fmt.Fprintf(p.stderr, "%s: %s\n", p.name, w)
			}
			return c.print(p.stdout)
		},
	}
	version := &cobra.Command{
		Use: "version", Short: "Print the versions of game, netloop and Go",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.stdout, versions(p.game))
			return err
		},
	}
	for _, cmd := range []*cobra.Command{root, run, config} {
		c.addFlags(cmd.Flags())
	}
	root.AddCommand(run, config, version, p.replayCommand(c), p.inspectCommand(c), p.loopCommand(c), p.roomsCommand(), p.schemaCommand(), p.tokenCommand(), p.directorCommand(c), p.doctorCommand(c))
	root.SetHelpCommand(helpCommand())
	root.SetFlagErrorFunc(c.flagError)
	for _, cmd := range []*cobra.Command{root, run, config, version} {
		cmd.Args = noArgs
	}
	return root
}

// helpCommand makes the command help: cobra's, except that an unknown command is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [command]", Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = notACommand(rest[0])
			}
			if err != nil {
				return err
			}
			return about.Help()
		},
	}
}

func notACommand(word string) error {
	return fmt.Errorf("%q is not a command%s (commands: run, replay, inspect, config, director, doctor, loop, rooms, schema, token, version)", word, suggest(word, []string{"run", "replay", "inspect", "config", "director", "doctor", "loop", "rooms", "schema", "token", "version", "help"}))
}

// parentCommand makes a command that needs one of its subcommands.
func parentCommand(use, short string, names ...string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "commands"
			if len(names) == 1 {
				what = "command"
			}
			what = fmt.Sprintf("(%s: %s)", what, strings.Join(names, ", "))
			if len(args) == 0 {
				return fmt.Errorf("%s needs a command %s", cmd.CommandPath(), what)
			}
			return fmt.Errorf("%q is not a command%s %s", args[0], suggest(args[0], names), what)
		},
	}
}

// noArgs returns an error for arguments that are not flags.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		return notACommand(args[0])
	}
	return fmt.Errorf("unexpected argument %q: %s takes only flags, see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())
}

// addFlags adds a flag for every setting except the given ones.
func (c *configuration) addFlags(flags *pflag.FlagSet, but ...string) {
	flags.SortFlags = false
	for _, s := range c.settings {
		if slices.Contains(but, s.key) {
			continue
		}
		f := flags.VarPF(&flagValue{s: s, text: s.text()}, s.key, "", s.help)
		if s.kind() == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// flagValue stores the text of a flag until all sources are merged. A text that the setting cannot
// parse is refused at once.
type flagValue struct {
	s    *setting
	text string
}

func (f *flagValue) String() string { return f.text }
func (f *flagValue) Type() string   { return f.s.kind() }

func (f *flagValue) Set(text string) error {
	f.text = text
	return f.s.parse(text)
}

// commandWith returns the path of a command that has a flag, from the tree of cmd: run if it has
// the flag, or else the first such command, or "" if no command has it.
func commandWith(cmd *cobra.Command, flag string) (path string) {
	if !cmd.HasParent() && cmd.Flags().Lookup(flag) != nil {
		return cmd.CommandPath() + " run" // The root's flags are those of run.
	}
	if cmd.Flags().Lookup(flag) != nil {
		return cmd.CommandPath()
	}
	for _, sub := range cmd.Commands() {
		if path = commandWith(sub, flag); path != "" {
			return path
		}
	}
	return ""
}

// flagNames returns the names of a command's flags, and with below also those of its subcommands.
func flagNames(cmd *cobra.Command, below bool) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if below {
		for _, sub := range cmd.Commands() {
			names = append(names, flagNames(sub, true)...)
		}
	}
	return names
}

// flagError rewrites pflag's errors so that they name the flag and say what to change. It suggests
// only flags of this command, because not every command has the flags of the settings.
func (c *configuration) flagError(cmd *cobra.Command, err error) error {
	var (
		unknown  *pflag.NotExistError
		noValue  *pflag.ValueRequiredError
		badValue *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		dashes := "--"
		if unknown.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		if has := commandWith(cmd.Root(), name); has != "" { // Another command has the flag.
			return fmt.Errorf("--%s is not a flag of %s, but of %s (%s --help lists them)", name, cmd.CommandPath(), has, cmd.CommandPath())
		}
		near := suggest(name, flagNames(cmd, false))
		if near == "" { // Suggest a flag of another command.
			if near = suggest(name, flagNames(cmd.Root(), true)); near != "" {
				_, other, _ := strings.Cut(strings.TrimSuffix(near, "?"), "mean ")
				near = ": did you mean " + other + " of " + commandWith(cmd.Root(), other) + "?"
			}
		}
		return fmt.Errorf("%s%s is not a flag%s (--help lists them)", dashes, name, strings.Replace(near, "mean ", "mean --", 1))
	case errors.As(err, &noValue):
		return fmt.Errorf("--%s has no value: write --%s=VALUE", noValue.GetSpecifiedName(), noValue.GetSpecifiedName())
	case errors.As(err, &badValue):
		return netloop.ConfigError("--"+badValue.GetFlag().Name, fmt.Sprintf("%q", badValue.GetValue()), "%s", badValue.Unwrap())
	}
	return err
}
