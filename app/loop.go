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
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/loop"
)

// The limits on what is read from an admin listener that may not be one: an
// answer comes with the next tick, and describes at most some thousand systems.
const (
	viewTimeout = 10 * time.Second
	maxView     = 64 << 20
)

// loopFlags are those of loop print besides the settings.
type loopFlags struct {
	json, dot bool
	admin     string
	tokens    string
}

// loopCommand makes the command that prints the loop.
func (p *program) loopCommand(c *configuration) *cobra.Command {
	var f loopFlags
	parent := &cobra.Command{
		Use: "loop", Short: "Show the systems of a tick",
		RunE: func(cmd *cobra.Command, args []string) error {
			const what = "(there is print)"
			if len(args) == 0 {
				return fmt.Errorf("%s needs a command %s", cmd.CommandPath(), what)
			}
			return fmt.Errorf("%q is not a command%s %s", args[0], suggest(args[0], []string{"print"}), what)
		},
		Args: cobra.ArbitraryArgs,
	}
	show := &cobra.Command{
		Use: "print", Short: "Print the stages of a tick with their systems, in the order of running",
		Long: "Prints the stages of a tick with their systems, in the order of running: as this game\n" +
			"registers them with these settings, or with --admin as they are in a running server,\n" +
			"with what they cost and those that wait, are disabled or quarantined.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.printLoop(cmd, c, &f) },
	}
	c.addFlags(show.Flags(), "admin", "admin-token-file")
	show.Flags().BoolVar(&f.json, "json", false, "print JSON")
	show.Flags().BoolVar(&f.dot, "dot", false, "print a graph for Graphviz")
	show.Flags().StringVar(&f.admin, "admin", "", "admin address of a running server, host:port or a URL")
	show.Flags().StringVar(&f.tokens, "admin-token-file", "", "file with a token for --admin, as the server's")
	parent.AddCommand(show)
	return parent
}

func (p *program) printLoop(cmd *cobra.Command, c *configuration, f *loopFlags) error {
	if f.json && f.dot {
		return errors.New("--json and --dot exclude each other: choose one")
	}
	var v loop.View
	var err error
	if f.admin != "" {
		v, err = fetchLoop(cmd.Context(), f.admin, f.tokens)
	} else {
		v, err = p.openLoop(c, cmd.Flags())
	}
	if err != nil {
		return err
	}
	switch {
	case f.json:
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", "  ")
		err = e.Encode(v)
	case f.dot:
		_, err = io.WriteString(p.stdout, dotOf(v))
	default:
		_, err = io.WriteString(p.stdout, tableOf(v, f.admin != ""))
	}
	if err != nil {
		return &failure{err}
	}
	return nil
}

// openLoop lets the game fill a room that takes no port and runs no tick.
func (p *program) openLoop(c *configuration, flags *pflag.FlagSet) (loop.View, error) {
	if err := c.load(flags, p.env); err != nil {
		return loop.View{}, err
	}
	cfg := c.options.server()
	cfg.Seed = 1 // What is drawn is not shown.
	cfg.Listen, cfg.Auth = "", netloop.Auth{}
	s, err := netloop.New(cfg, p.game)
	if err != nil {
		return loop.View{}, c.gameError(err)
	}
	return inside.Netloop.Server(s).Room.View(), nil
}

// fetchLoop asks a running server, at a URL or at a bare host and port, with a token if there is
// a file of them.
func fetchLoop(ctx context.Context, address, tokens string) (v loop.View, err error) {
	full := address
	if !strings.Contains(full, "://") {
		full = "http://" + full
	}
	at, err := url.Parse(full)
	if err != nil || !hostPort(address) && full != address || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return v, fmt.Errorf("--admin: %q is not the address of an admin listener: use host:port or a URL, for instance http://127.0.0.1:8080", address)
	}
	token := ""
	if tokens != "" {
		if token, err = admin.ReadToken(tokens); err != nil {
			return v, fmt.Errorf("--admin-token-file: %w", err)
		}
	}
	at = at.JoinPath("loop")
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return v, fmt.Errorf("--admin: %w", err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return v, &failure{fmt.Errorf("--admin: no answer: %w: give the address that the server prints as its admin listener", err)}
	}
	defer func() { _ = resp.Body.Close() }() // It was only read.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxView))
	switch {
	case err != nil:
		return v, &failure{fmt.Errorf("--admin: %s: %w", at.Redacted(), err)}
	case resp.StatusCode != http.StatusOK:
		said, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
		return v, &failure{fmt.Errorf("--admin: %s says %s: %.200s", at.Redacted(), resp.Status, said)}
	}
	if err := json.Unmarshal(body, &v); err != nil || len(v.Stages) == 0 {
		return v, &failure{fmt.Errorf("--admin: %s is not the loop of a netloop server of this version: %w", at.Redacted(), err)}
	}
	return v, nil
}

// tableOf prints a line per system. Of a running server it has the cost too.
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

// dotOf is the loop as a graph: a cluster per stage, edges in the order of
// running.
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
			case s.Disabled || s.Paused || s.Quarantine > 0 || s.Pending:
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
