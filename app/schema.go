package app

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/netloop/netloop/internal/bridge"
)

// schemaCommand makes the command that prints the game's schema for other tools.
func (p *program) schemaCommand() *cobra.Command {
	var ts bool
	var from string
	cmd := &cobra.Command{
		Use: "schema", Short: "Write the schema as TypeScript, for web clients",
		Long: "Writes the game's schema as a TypeScript module: the types of its classes and messages,\n" +
			"with their limits, and a value that connect of the TypeScript client takes as its schema.\n\n" +
			"  server schema --ts > web/game.ts",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if !ts {
				return errors.New("schema needs --ts: TypeScript is its only format")
			}
			return bridge.Netloop.Schema(p.game.Schema()).TypeScript(p.stdout, from)
		},
	}
	cmd.Flags().BoolVar(&ts, "ts", false, "write TypeScript")
	cmd.Flags().StringVar(&from, "import", "@netloop/client", "module of the client")
	return cmd
}
