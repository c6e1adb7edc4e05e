package app

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/netloop/netloop/internal/bridge"
)

// schemaCommand makes the command that prints the game's schema for other tools.
func (p *program) schemaCommand() *cobra.Command {
	var ts, test bool
	var from, step string
	cmd := &cobra.Command{
		Use: "schema", Short: "Write the schema as TypeScript, for web clients",
		Long: "Writes the game's schema as a TypeScript module: the types of its classes and messages,\n" +
			"with their limits, and a value that connect of the TypeScript client takes as its schema.\n\n" +
			"  server schema --ts > web/schema.ts\n\n" +
			"For a class that pages predict it writes the beginning of the page's step function, and of its\n" +
			"test, which runs the cases of netlooptest.Vectors:\n\n" +
			"  server schema --ts --step ship > web/ship.ts\n" +
			"  server schema --ts --step ship --test > web/ship.test.ts",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if !ts {
				return errors.New("schema needs --ts: TypeScript is its only format")
			}
			s := bridge.Netloop.Schema(p.game.Schema())
			switch {
			case step != "":
				return s.TypeScriptStep(p.stdout, from, step, test)
			case test:
				return errors.New("schema --test needs --step CLASS")
			}
			return s.TypeScript(p.stdout, from)
		},
	}
	cmd.Flags().BoolVar(&ts, "ts", false, "write TypeScript")
	cmd.Flags().StringVar(&step, "step", "", "class of which to write the step function instead")
	cmd.Flags().BoolVar(&test, "test", false, "write the test of the step function instead")
	cmd.Flags().StringVar(&from, "import", "@netloop/client", "module of the client")
	return cmd
}
