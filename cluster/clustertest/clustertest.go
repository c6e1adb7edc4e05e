// Package clustertest tests implementations of [cluster.Cluster]: each one of this repository
// passes it, and others call it from their own tests.
//
//	Run ─▶ play, for each promise ─▶ a Bed: members, time, faults ─▶ the test of the promise
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/netloop/netloop/cluster"
)

// Bed is a cluster without members, and its faults. One goroutine uses it.
type Bed interface {
	// New returns the Cluster of another server, which has not joined.
	New() cluster.Cluster
	// Beat returns the interval of heartbeats.
	Beat() time.Duration
	// Pass lets time pass.
	Pass(d time.Duration)
	// Freeze cuts a server from all others and the store, or connects it again. Messages that were
	// sent meanwhile arrive then.
	Freeze(c cluster.Cluster, frozen bool)
	// StoreGone makes the store answer nobody, or all again. Other messages may be lost, too.
	StoreGone(gone bool)
}

// Run tests an implementation. play calls test once with a new Bed, and may run in parallel with
// other calls of play.
func Run(t *testing.T, play func(t *testing.T, test func(t *testing.T, b Bed))) {
	for _, c := range []struct {
		name string
		test func(*scene)
	}{
		{"names", names}, {"kept names", keptNames}, {"racing claims", racingClaims}, {"leases", leases}, {"late writes", lateWrites}, {"ledger", ledger},
		{"presence", presence}, {"boards", boards}, {"calls", calls}, {"repeated calls", repeatedCalls},
		{"late calls", lateCalls}, {"store gone", storeGone}, {"close", closing},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(t *testing.T, b Bed) { c.test(&scene{T: t, Bed: b}) })
		})
	}
}

// scene is a running test.
type scene struct {
	*testing.T
	Bed
	joined int
}

// join returns a new member with the id s1, s2 and so on, which leaves at the end of the test.
func (s *scene) join(m cluster.Member) (cluster.Cluster, string) {
	s.Helper()
	c := s.New()
	return c, s.joinAs(c, m)
}

func (s *scene) joinAs(c cluster.Cluster, m cluster.Member) string {
	s.Helper()
	s.joined++
	m.Server.ID = fmt.Sprintf("s%d", s.joined)
	if err := c.Join(s.within(20), m); err != nil {
		s.Fatalf("Join of %s: %v", m.Server.ID, err)
	}
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*s.Beat())
		defer cancel()
		_ = c.Close(ctx)
	})
	return m.Server.ID
}

// within returns a context that ends after so many beats.
func (s *scene) within(beats float64) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), s.beats(beats))
	s.Cleanup(cancel)
	return ctx
}

func (s *scene) beats(n float64) time.Duration { return time.Duration(n * float64(s.Beat())) }

// eventually waits for a condition, at most so many beats.
func (s *scene) eventually(beats float64, what string, is func() bool) {
	s.Helper()
	const step = 0.1
	for waited := 0.0; !is(); waited += step {
		if waited > beats {
			s.Fatalf("after %v beats: not %s", beats, what)
		}
		s.Pass(s.beats(step))
	}
}

func (s *scene) want(what string, err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("%s: %v, want %v", what, err, want)
	}
}

func (s *scene) claim(c cluster.Cluster, name string) cluster.Epoch {
	s.Helper()
	e, err := c.Claim(s.within(25), name, 0)
	if err != nil {
		s.Fatalf("Claim of %q: %v", name, err)
	}
	return e
}

// server returns a member as another one lists it.
func server(c cluster.Cluster, id string) (cluster.Server, bool) {
	for _, s := range c.Servers() {
		if s.ID == id {
			return s, true
		}
	}
	return cluster.Server{}, false
}

// board returns the board of a member as another one has it.
func board(c cluster.Cluster, id string) (found cluster.Board) {
	for _, b := range c.Boards() {
		if b.Server == id {
			found = b
		}
	}
	return found
}
