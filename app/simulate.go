package app

import (
	"log/slog"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/netem"
)

// simulation is the bad network of --simulate. A nil simulation does nothing.
type simulation struct {
	spec  netem.Spec
	stats netem.Stats
}

// newSimulation returns the network that is asked for, or nil.
func (o *options) newSimulation() *simulation {
	if o.Simulate == (netem.Spec{}) {
		return nil
	}
	return &simulation{spec: o.Simulate}
}

// String is what the network does, for the banner; empty for none.
func (s *simulation) String() string {
	if s == nil {
		return ""
	}
	return s.spec.String()
}

// install puts the network before a server that does not listen yet.
func (s *simulation) install(to *netloop.Server, seed uint64) {
	if s != nil {
		bridge.Netloop.Server(to).Simulate(netem.Config{Spec: s.spec, Seed: seed, Stats: &s.stats})
	}
}

// begins says that players do not feel the real network.
func (s *simulation) begins(log *slog.Logger, seed uint64) {
	if s != nil {
		log.Warn("the network is simulated: every client address gets this one before its own", "simulate", s.String(), "seed", seed)
	}
}

// ends says what the network has done.
func (s *simulation) ends(log *slog.Logger) {
	if s != nil {
		log.Info("the simulated network has ended", "datagrams", s.stats.String())
	}
}
