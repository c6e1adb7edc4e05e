package app

import (
	"context"
	"encoding/hex"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/agones"
	"github.com/netloop/netloop/internal/bridge"
)

// agonesPortKey is the environment variable in which Agones names the port of its sidecar.
const agonesPortKey = "AGONES_SDK_HTTP_PORT"

// agonesPort returns the port of the sidecar of Agones, or 0 without --agones.
func (o *options) agonesPort(environ []string) (int, error) {
	if !o.Agones {
		return 0, nil
	}
	text := variable(environ, agonesPortKey)
	if text == "" {
		return agones.DefaultPort, nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, netloop.ConfigError(agonesPortKey, text, "use the port of the sidecar of Agones, 1 to 65535, or leave it out for %d", agones.DefaultPort)
	}
	return int(port), nil
}

// nameAddress sets the address of players for a cluster, if it is not set: Agones knows it, since
// it selects the port of the machine.
func (c *configuration) nameAddress(ctx context.Context, sidecar int) error {
	o := c.options
	if sidecar == 0 || o.Cluster == "" || o.PublicAddr != "" {
		return nil
	}
	addr, err := agones.Address(ctx, sidecar)
	if err != nil {
		return c.bad("public-addr", o.PublicAddr, "name the address at which players reach this server: "+err.Error())
	}
	o.PublicAddr = addr
	return nil
}

// fingerprintBytes is the length of the schema's fingerprint in a label: 32 hexadecimal digits of
// the 63 characters that Kubernetes allows.
const fingerprintBytes = 16

// connectAgones connects a server with the sidecar of Agones on a port, 0 for none, until stop is
// called, which tells Agones that the server has ended. end is called if Agones ends the server.
func (p *program) connectAgones(port int, s *netloop.Server, log *slog.Logger, end func(error)) (stop func()) {
	if port == 0 {
		return func() {}
	}
	agent := agones.New(agones.Config{
		Port: port, Health: s.Health, Ready: s.Ready, Shutdown: end, Log: log,
		Load:        func() agones.Load { return loadOf(s) },
		Names:       func(limit int) []string { return listedRooms(s, limit) },
		Labels:      map[string]string{"netloop-game": p.game.Schema().Name(), "netloop-schema": p.fingerprint()},
		Annotations: map[string]string{"netloop-version": versions(p.game)},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { agent.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// fingerprint returns the beginning of the schema's fingerprint: servers with equal ones have equal
// classes, methods and fields.
func (p *program) fingerprint() string {
	return hex.EncodeToString(bridge.Netloop.Schema(p.game.Schema()).Fingerprint()[:fingerprintBytes])
}

// loadOf returns the use of a server for Agones.
func loadOf(s *netloop.Server) (l agones.Load) {
	for r := range s.Rooms() {
		l.Rooms++
		l.Players += r.Clients - r.Spectators + r.Reserved
		l.Used = l.Used || r.Clients+r.Reserved > 0
	}
	return l
}

// listedRooms returns the names of at most limit rooms. Private rooms, and a default room without a
// name, are left out.
func listedRooms(s *netloop.Server, limit int) []string {
	names := []string{}
	for r := range s.Rooms() {
		if len(names) >= limit {
			break
		}
		if name := strings.ToValidUTF8(r.Spec.Name, "?"); name != "" && !r.Spec.Private {
			names = append(names, name)
		}
	}
	return names
}
