// Command netloop makes a new game:
//
//	go run github.com/netloop/netloop/cmd/netloop@latest new mygame --preset arena
//
// It imports no game server, so that it compiles in a moment.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "netloop: %s\n", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run.
	}
}

// serverCommands are commands of each game's server, which a new user may expect here.
var serverCommands = []string{"config", "doctor", "inspect", "loop", "replay", "rooms", "run", "schema", "token"}

// run parses the command line and runs the command.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	root := &cobra.Command{
		Use: "netloop", Short: "Make games for netloop",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if slices.Contains(serverCommands, args[0]) {
				return fmt.Errorf("%s is a command of the game's own server: go run . %s", args[0], strings.Join(args, " "))
			}
			return fmt.Errorf("%q is not a command (command: new); a game's own server has the others: go run . --help", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	g := game{version: version()}
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Make a game in a new folder",
		Long: "Makes a module in a new folder: a game with its page, bots and tests, and a Makefile.\n\n" +
			"  netloop new mygame --preset arena\n" +
			"  cd mygame\n" +
			"  make run   # and open the printed page twice",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return fmt.Errorf("new takes one name, not %d: netloop new mygame", len(args))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			g.dir = args[0]
			return g.create(cmd.Context(), stdout)
		},
	}
	cmd.Flags().StringVar(&g.preset, "preset", "blank", "the game to begin with: "+strings.Join(presets(), ", "))
	cmd.Flags().StringVar(&g.module, "module", "", "path of the module; without it the folder's name")
	cmd.Flags().StringVar(&g.replace, "replace", "", "folder of a clone of netloop to use instead of a release")
	root.AddCommand(cmd)
	root.SetFlagErrorFunc(flagError)
	root.SetOut(stdout)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// flagError adds the flags to pflag's errors.
func flagError(cmd *cobra.Command, err error) error {
	var all []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, "--"+f.Name) })
	return errors.New(err.Error() + " (flags: " + strings.Join(all, ", ") + ")")
}

// version returns the version of netloop that this program was built from, or "" if it has none:
// then the game gets the newest release.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || !strings.HasPrefix(info.Main.Version, "v") || strings.Contains(info.Main.Version, "+") {
		return ""
	}
	return info.Main.Version
}
