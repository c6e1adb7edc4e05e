// Package nettest has helpers for tests of transports: an owner of sessions that collects
// arrivals, and waits for network events. It is for tests only.
package nettest

import (
	"testing"
	"time"

	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Patience limits the waits of tests; no test measures with it.
const Patience = 20 * time.Second

// Owner collects the arrivals of sessions, as a server's room does. It belongs to one goroutine.
type Owner struct {
	Arrivals *transport.Inbox
	Seen     []transport.Arrival // all arrivals that were polled
}

// NewOwner makes an owner with counted arrivals, unless stats is nil.
func NewOwner(stats *transport.Stats) *Owner {
	return &Owner{Arrivals: transport.NewInbox(0, stats)}
}

// Poll collects new arrivals.
func (o *Owner) Poll() { o.Seen = append(o.Seen, o.Arrivals.Swap(nil)...) }

// Find polls until an arrival satisfies ok.
func (o *Owner) Find(t testing.TB, what string, ok func(*transport.Arrival) bool) *transport.Arrival {
	t.Helper()
	var found *transport.Arrival
	Eventually(t, what, func() bool {
		o.Poll()
		for i := range o.Seen {
			if ok(&o.Seen[i]) {
				found = &o.Seen[i]
				return true
			}
		}
		return false
	})
	return found
}

// Kind finds an arrival by its kind.
func Kind(k transport.ArrivalKind) func(*transport.Arrival) bool {
	return func(a *transport.Arrival) bool { return a.Kind == k }
}

// Of returns a condition for [Owner.Find]: the arrival is from session s and of kind k.
func Of(s *transport.Session, k transport.ArrivalKind) func(*transport.Arrival) bool {
	return func(a *transport.Arrival) bool { return a.Kind == k && a.Session == s }
}

// Message finds a message by its method.
func Message(method uint32) func(*transport.Arrival) bool {
	return func(a *transport.Arrival) bool {
		return a.Kind == transport.MessageArrived && a.Message.Method == method
	}
}

// Eventually waits until ok is true.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.After(Patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("timed out waiting for ", what)
		}
	}
}

// Hello returns a client's hello with the schema of every server under test.
func Hello() *netloopv1.Hello {
	return &netloopv1.Hello{Protocol: transport.ProtocolVersion, Schema: "test"}
}

// Welcome returns the answer to it.
func Welcome(id uint64) *netloopv1.Welcome {
	return &netloopv1.Welcome{
		Protocol: transport.ProtocolVersion, ClientId: id,
		TickRate: &netloopv1.Rate{Num: 60, Den: 1}, FixedRate: &netloopv1.Rate{Num: 60, Den: 1},
	}
}
