package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/netloop/netloop/app/internal/director"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/membership"
)

// directorFlags are the settings of the command director.
var directorFlags = []string{
	"admin", "admin-token-file", "cluster", "cluster-name", "cluster-creds", "cluster-ca", "region", "zone", "for", "log-level", "log-format", "addr-file", "config",
}

// directorCommand makes the command that finds rooms of a cluster for login services.
func (p *program) directorCommand(c *configuration) *cobra.Command {
	cmd := &cobra.Command{
		Use: "director", Short: "Serve HTTP requests for seats in the rooms of a cluster",
		Long: "Serves HTTP requests for seats in the rooms of a cluster, for login services and matchmakers:\n" +
			"POST /match?kind=table&seats=2 finds a room or opens one on the least loaded server, and returns\n" +
			"its addresses and a ticket for each seat. deploy/director.openapi.json describes all pages.\n\n" +
			"A director has no rooms and stores nothing; any number of them may run.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(cmd.Flags(), p.env); err != nil {
				return err
			}
			if c.options.Cluster == "" || c.options.Cluster == clusterEmbed {
				return c.bad("cluster", c.options.Cluster, "a director needs the URL of the cluster's NATS, such as nats://10.0.0.5:4222")
			}
			if c.options.Admin == "" {
				return c.bad("admin", c.options.Admin, "a director needs the address for its requests")
			}
			return p.direct(cmd.Context(), c)
		},
	}
	var others []string
	for _, s := range c.settings {
		if !slices.Contains(directorFlags, s.key) {
			others = append(others, s.key)
		}
	}
	c.addFlags(cmd.Flags(), others...)
	return cmd
}

// direct runs a director until ctx ends.
func (p *program) direct(ctx context.Context, c *configuration) error {
	o := c.options
	log, closeLog, err := p.openLog(o)
	if err != nil {
		return err
	}
	defer closeLog()
	out := log.Slog()
	joined, err := c.openCluster(p.env, out)
	if err != nil {
		return err
	}
	began := time.Now()
	now := func() time.Duration { return time.Since(began) }
	m := membership.New(membership.Config{
		Via: joined.via.Via, Now: now, Log: out,
		Load: func() cluster.Load { return cluster.Load{Draining: true} }, // It never gets a room.
		Lost: func(string, cluster.Epoch) {},
	})
	var id [8]byte
	_, _ = rand.Read(id[:]) // Never fails.
	self := cluster.Server{
		ID: "director-" + hex.EncodeToString(id[:]), Region: o.Region, Zone: o.Zone,
		Schema: hex.EncodeToString(bridge.Netloop.Schema(p.game.Schema()).Fingerprint()),
	}
	if err := m.Join(ctx, self); err != nil {
		return c.bad("cluster", o.Cluster, err.Error())
	}
	d := director.New(m, now)
	listener, err := p.listenDirector(c, d, m, out)
	if err != nil {
		return errors.Join(err, m.Close(context.Background()))
	}
	if o.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.For)
		defer cancel()
	}
	var refreshing sync.WaitGroup
	refreshing.Go(func() { refresh(ctx, d, m) })
	err = listener.Serve(ctx)
	refreshing.Wait()
	closing, cancel := context.WithTimeout(context.Background(), logGrace)
	defer cancel()
	if why := m.Close(closing); why != nil {
		out.Warn("cluster does not answer, it lists this director for a minute", "error", why)
	}
	if err == nil {
		out.Info("closed")
	}
	return failed(err)
}

// refresh copies the boards whenever they have changed, until ctx ends.
func refresh(ctx context.Context, d *director.Director, m *membership.Member) {
	d.Refresh()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.Changed():
		}
		d.Refresh()
		if !clock.Sleep(ctx, cluster.BoardInterval) {
			return
		}
	}
}

// listenDirector opens the port of a director, and writes its address to stdout and to the address
// file.
func (p *program) listenDirector(c *configuration, d *director.Director, m *membership.Member, log *slog.Logger) (*admin.Server, error) {
	o := c.options
	var tokens *admin.Tokens
	var err error
	if o.AdminTokens != "" {
		if tokens, err = admin.OpenTokens(o.AdminTokens, log); err != nil {
			return nil, c.bad("admin-token-file", o.AdminTokens, err.Error())
		}
	}
	file, err := c.newAddrFile()
	if err != nil {
		return nil, err
	}
	defer file.discard()
	a, err := admin.Listen(admin.Config{
		Listen: o.Admin, Routes: d.Routes(), Tokens: tokens, Counts: new(admin.Counts), Log: log,
		Progress: func() (since, period time.Duration) { return 0, time.Second },
		Health:   func() (string, error) { return "", nil },
		Ready: func() (note string, err error) {
			if len(m.Servers()) < 2 { // Heartbeats arrive each second.
				return "", errors.New("no other server of the cluster is known yet")
			}
			if h := m.Health(); !h.OK {
				note = "the cluster does not answer: " + h.Text
			}
			return note, nil
		},
	})
	if err != nil {
		return nil, c.portError(fmt.Errorf("netloop: Admin: %w", err))
	}
	at := bound(a.Addr(), o.Admin)
	if _, err := fmt.Fprintf(p.stdout, "director of %s\n\n  requests  http://%s  POST /match, /rooms /servers /healthz /readyz\n  server    %s\n", p.game.Schema().Name(), at, m.ID()); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if err := file.publish(addresses{Admin: at, Server: m.ID()}); err != nil {
		return nil, errors.Join(c.bad("addr-file", o.AddrFile, "use a writable file: "+err.Error()), a.Close())
	}
	log.Info("serving", "admin", at)
	return a, nil
}
