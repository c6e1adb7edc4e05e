package nats

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/cluster"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

var errFault = errors.New("no answer")

// fakeRecords are the records of a store in memory. fault may fail a request, before or after it
// has its effect.
type fakeRecords struct {
	all      map[string]fakeRecord
	revision uint64
	fault    func(what string) (before, after error)
}

type fakeRecord struct {
	data     []byte
	revision uint64
}

func (f *fakeRecords) put(_ context.Context, subject string, data []byte, revision uint64, _ time.Duration) (uint64, error) {
	before, after := f.fault("put " + subject)
	switch {
	case before != nil:
		return 0, before
	case f.all[subject].revision != revision:
		return 0, errConflict
	}
	f.revision++
	f.all[subject] = fakeRecord{data, f.revision}
	return f.revision, after
}

func (f *fakeRecords) get(_ context.Context, subject string) ([]byte, uint64, error) {
	before, _ := f.fault("get " + subject)
	return f.all[subject].data, f.all[subject].revision, before
}

func (f *fakeRecords) remove(_ context.Context, revision uint64) error {
	for subject, r := range f.all {
		if r.revision == revision {
			delete(f.all, subject)
		}
	}
	return nil
}

// fakeMember returns a member whose lease is confirmed, without a connection.
func fakeMember(t *testing.T, f *fakeRecords, id string) *Cluster {
	c, err := New(Config{URL: "nats://nowhere", Beat: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c.id, c.joined, c.records, c.store.base = id, true, f, 1000
	fakeBeat(t, c)
	return c
}

// fakeBeat renews the lease of a member.
func fakeBeat(t *testing.T, c *Cluster) {
	t.Helper()
	c.lease.count++
	l := &clusterv1.Lease{Id: c.id, Term: c.lease.term, Count: c.lease.count, Run: c.run}
	seq, err := c.records.put(t.Context(), "lease."+c.id, encode(l), c.lease.revision, recordTTL)
	if err != nil {
		t.Fatal(err)
	}
	c.confirm(c.now(), seq)
}

func newFake() *fakeRecords {
	return &fakeRecords{all: map[string]fakeRecord{}, fault: func(string) (error, error) { return nil, nil }}
}

func claim(c *Cluster, name string) (cluster.Epoch, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	return c.Claim(ctx, name, 0)
}

// A claim that cannot read the holder's lease takes nothing.
func TestAFailedReadGrantsNothing(t *testing.T) {
	f := newFake()
	a, b := fakeMember(t, f, "a"), fakeMember(t, f, "b")
	e, err := claim(a, "oak")
	if err != nil {
		t.Fatal(err)
	}
	f.fault = func(what string) (error, error) {
		if what == "get lease.a" {
			return errFault, nil
		}
		return nil, nil
	}
	if _, err := claim(b, "oak"); !errors.Is(err, cluster.ErrBusy) {
		t.Errorf("Claim: %v", err)
	}
	if is, _, err := a.readName(t.Context(), "oak"); err != nil || is.GetHolder() != "a" || a.Hold("oak", e) != nil {
		t.Errorf("the record is %v, %v", is, err)
	}
}

// A claim whose answer is lost is found by its next try, with the epoch of the record.
func TestALostAnswerIsFound(t *testing.T) {
	f := newFake()
	a := fakeMember(t, f, "a")
	lost := 0
	f.fault = func(what string) (error, error) {
		if lost++; strings.HasPrefix(what, "put name.") && lost == 1 {
			return nil, errFault
		}
		return nil, nil
	}
	e, err := claim(a, "oak")
	if err != nil || e != cluster.Epoch(1000+f.revision) || a.Hold("oak", e) != nil || f.revision != 2 {
		t.Errorf("epoch %d, %v, after %d records", e, err, f.revision)
	}
}

// A claim during which the own lease has ended is not granted with the old term.
func TestALeaseThatEndsDuringAClaim(t *testing.T) {
	f := newFake()
	a := fakeMember(t, f, "a")
	f.fault = func(what string) (error, error) {
		if strings.HasPrefix(what, "put name.") {
			a.mu.Lock()
			a.lease.term, a.lease.stored = 2, false
			a.mu.Unlock()
		}
		return nil, nil
	}
	if e, err := claim(a, "oak"); !errors.Is(err, cluster.ErrBusy) || a.held["oak"] != nil || a.doubts["oak"] == nil {
		t.Errorf("Claim: %d, %v; held %v", e, err, a.held["oak"])
	}
}

// Names of a store that was lost are written again with their epochs. A name that is missing in
// the same store was lost.
func TestALostStoreIsWrittenAgain(t *testing.T) {
	f := newFake()
	var lost []string
	a := fakeMember(t, f, "a")
	a.self.Lost = func(name string, _ cluster.Epoch) { lost = append(lost, name) }
	e, err := claim(a, "oak")
	if err != nil {
		t.Fatal(err)
	}
	clear(f.all)
	a.store.base = 5000
	a.claimAgain("oak", a.held["oak"], 2)
	if is, _, err := a.readName(t.Context(), "oak"); err != nil || is.GetEpoch() != uint64(e) || is.GetTerm() != 2 || len(lost) > 0 {
		t.Errorf("the record is %v, %v", is, err)
	}
	a.lease.term = 2
	fakeBeatAfterLoss(t, a)
	if err := a.Hold("oak", e); err != nil {
		t.Errorf("Hold: %v", err)
	}
	newer, err := claim(a, "elm")
	if err != nil || newer <= e {
		t.Errorf("epoch %d after %d, %v", newer, e, err)
	}
	clear(f.all)
	a.claimAgain("elm", a.held["elm"], 3)
	if !errors.Is(a.Hold("elm", newer), cluster.ErrTaken) || len(lost) != 1 {
		t.Errorf("a missing name is held; lost %v", lost)
	}
}

func fakeBeatAfterLoss(t *testing.T, c *Cluster) {
	t.Helper()
	c.lease.revision = 0
	fakeBeat(t, c)
}
