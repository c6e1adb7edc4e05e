package app

import (
	"log/slog"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/netem"
)

// simulation is the bad network of --simulate. A nil simulation has no effect.
type simulation struct {
	spec  netem.Spec
	stats netem.Stats
}

// newSimulation returns the requested network, or nil.
func (o *options) newSimulation() *simulation {
	if o.Simulate == (netem.Spec{}) {
		return nil
	}
	return &simulation{spec: o.Simulate}
}

// String returns the network's effects, for the banner; empty for none.
func (s *simulation) String() string {
	if s == nil {
		return ""
	}
	return s.spec.String()
}

// install puts the network in front of a server that does not listen yet.
func (s *simulation) install(to *netloop.Server, seed uint64) {
	if s != nil {
		bridge.Netloop.Server(to).Simulate(netem.Config{Spec: s.spec, Seed: seed, Stats: &s.stats})
	}
}

// begins logs that players do not use the real network.
func (s *simulation) begins(log *slog.Logger, seed uint64) {
	if s != nil {
		log.Warn("network is simulated for each client address", "simulate", s.String(), "seed", seed)
	}
}

// ends logs the counts of the network.
func (s *simulation) ends(log *slog.Logger) {
	if s != nil {
		log.Info("simulated network has ended", "datagrams", s.stats.String())
	}
}
