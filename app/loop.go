package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/loop"
)

// loopFlags are the flags of loop print besides the settings.
type loopFlags struct {
	json, dot bool
	room      string
	adminFlags
}

// loopCommand makes the command that prints the loop.
func (p *program) loopCommand(c *configuration) *cobra.Command {
	var f loopFlags
	parent := parentCommand("loop", "Show the systems of a tick", "print")
	show := &cobra.Command{
		Use: "print", Short: "Print the stages of a tick with their systems, in the order of running",
		Long: "Prints the stages of a tick with their systems, in the order of running: as this game\n" +
			"registers them with these settings, or with --admin as they are in a running server,\n" +
			"with their costs and states.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.printLoop(cmd, c, &f) },
	}
	c.addFlags(show.Flags(), "admin", "admin-token-file")
	show.Flags().BoolVar(&f.json, "json", false, "print JSON")
	show.Flags().BoolVar(&f.dot, "dot", false, "print a graph for Graphviz")
	show.Flags().StringVar(&f.room, "room", "", "with --admin: name of the room; without it the default one")
	f.add(show.Flags())
	parent.AddCommand(show)
	return parent
}

func (p *program) printLoop(cmd *cobra.Command, c *configuration, f *loopFlags) error {
	if f.json && f.dot {
		return errors.New("--json and --dot exclude each other: choose one")
	}
	var v loop.View
	var err error
	if f.address != "" {
		query := url.Values{}
		if cmd.Flags().Changed("room") {
			query.Set("room", f.room)
		}
		v, err = fetchLoop(cmd.Context(), &f.adminFlags, query)
	} else {
		v, err = p.openLoop(c, cmd.Flags())
	}
	if err != nil {
		return err
	}
	switch {
	case f.json:
		err = p.printJSON(v)
	case f.dot:
		_, err = io.WriteString(p.stdout, dotOf(v))
	default:
		_, err = io.WriteString(p.stdout, tableOf(v, f.address != ""))
	}
	return failed(err)
}

// openLoop lets the game fill a room that opens no port and runs no tick, and returns its loop.
func (p *program) openLoop(c *configuration, flags *pflag.FlagSet) (loop.View, error) {
	if err := c.load(flags, p.env); err != nil {
		return loop.View{}, err
	}
	cfg := c.options.server()
	cfg.Seed = 1 // Random values are not shown.
	cfg.Listen, cfg.Auth = "", netloop.Auth{}
	s, err := netloop.New(cfg, p.game)
	if err != nil {
		return loop.View{}, c.gameError(err)
	}
	return bridge.Netloop.Server(s).Room.Questions.View(), nil
}

// fetchLoop reads the loop of a running server.
func fetchLoop(ctx context.Context, f *adminFlags, query url.Values) (v loop.View, err error) {
	body, at, err := f.ask(ctx, http.MethodGet, "loop", query)
	if err != nil {
		return v, err
	}
	if err = json.Unmarshal(body, &v); err == nil && len(v.Stages) == 0 {
		err = errors.New("it has no stages")
	}
	if err != nil {
		return v, &failure{fmt.Errorf("%s: %s is not the loop of a netloop server of this version: %w", f.name(), at, err)}
	}
	return v, nil
}

// tableOf prints a line per system. For a running server it includes the cost.
func tableOf(v loop.View, running bool) string {
	var w strings.Builder
	fmt.Fprintf(&w, "ticks at %s, fixed steps at %s", v.Rate, v.FixedRate)
	if running {
		fmt.Fprintf(&w, ", after tick %d, %d quarantined", v.Tick, v.Quarantined)
	}
	if v.Scale != "" {
		fmt.Fprintf(&w, ", time scale %s", v.Scale)
	}
	w.WriteString("\n\n")
	w.WriteString(loop.Table(v.Stages, running))
	return w.String()
}

// dotOf returns the loop as a graph: a cluster per stage, edges in the order of running.
func dotOf(v loop.View) string {
	var w strings.Builder
	w.WriteString("digraph loop {\n  rankdir=LR\n  node [shape=box]\n")
	last := ""
	for _, stage := range v.Stages {
		fmt.Fprintf(&w, "  subgraph \"cluster_%v\" {\n    label=%q\n", stage.Stage, stage.Stage.String())
		var edges []string
		for i := range stage.Systems {
			s := &stage.Systems[i]
			id := stage.Stage.String() + "/" + s.Name
			label := s.Path()
			if e := s.Every(); e != "-" {
				label += "\n" + e
			}
			style := ""
			switch {
			case s.Disabled || s.Quarantine > 0 || s.Pending:
				style = ", style=dashed"
			case s.Place != loop.Body:
				style = ", style=filled"
			}
			fmt.Fprintf(&w, "    %q [label=%q%s]\n", id, label, style)
			if last != "" && stage.Stage != 0 {
				edges = append(edges, fmt.Sprintf("  %q -> %q\n", last, id))
			}
			last = id
		}
		w.WriteString("  }\n" + strings.Join(edges, ""))
	}
	w.WriteString("}\n")
	return w.String()
}
