package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/bridge"
	page "github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/inspect/history"
	"github.com/netloop/netloop/internal/room"
)

// inspectCommand makes the command that shows a running server, or a recording.
func (p *program) inspectCommand(c *configuration) *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use: "inspect [FILE]", Short: "Look at a running server in this terminal, or at a recording in a browser",
		Long: "Without FILE it shows the overview, ticks and clients of a running server in this terminal. To an\n" +
			"output that is not a terminal it prints a line each five seconds. The page /inspect of the server's\n" +
			"--admin shows more.\n\n" +
			"With FILE it replays a recording that --record or --record-rooms made, once and in the background,\n" +
			"and serves a page about its ticks: the objects, their changes, the messages and inputs, and when a\n" +
			"field has got a value. FILE may be a folder. The other recordings of the folder can be opened too.\n" +
			"Only this machine may ask. The answers have all data of the clients, except their tokens.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("inspect takes one file: %s FILE", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return p.inspectFile(cmd.Context(), c, args[0], f.listen)
			}
			return p.inspectServer(cmd.Context(), &f)
		},
	}
	cmd.Flags().StringVar(&f.ui, "ui", "term", "user interface for a server: term")
	cmd.Flags().StringVar(&f.room, "room", "", "name of the server's room; without it the default one")
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8081", "with FILE: TCP address of the page, host:port, of this machine alone; port 0 picks a free one")
	f.add(cmd.Flags())
	return cmd
}

// inspectFile serves a recording until ctx ends.
func (p *program) inspectFile(ctx context.Context, c *configuration, path, address string) (err error) {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("inspect: cannot read %q: name an existing file: %w", path, err)
	}
	dir := path
	if !info.IsDir() {
		dir = filepath.Dir(path)
	}
	recordings := history.NewRecordings(history.RecordingsConfig{Dir: dir, Replay: func(f io.ReadSeeker) (*room.Replay, error) {
		r, err := c.openReplay(p.game, f)
		if err != nil {
			return nil, errors.New(bare(err))
		}
		return bridge.Netloop.Replay(r), nil
	}})
	defer func() { err = errors.Join(err, recordings.Close()) }()
	if !info.IsDir() {
		if err := recordings.OpenPath(path); err != nil {
			return fmt.Errorf("inspect: %w", err)
		}
	}
	pages := recordings.Handler()
	files := page.Page()
	pages.Handle("GET /inspect", files)
	pages.Handle("GET /inspect/{file}", files)
	s, err := admin.ListenLocal(address, pages, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if _, err := fmt.Fprintf(p.stdout, "inspecting %s at http://%s/inspect#recording\n", path, s.Addr()); err != nil {
		return errors.Join(err, s.Close())
	}
	return failed(s.Serve(ctx))
}
