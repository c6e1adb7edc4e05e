package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// manual is a Memory whose time is set by the test.
type manual struct {
	*Memory
	t   *testing.T
	now time.Duration
}

func newManual(t *testing.T) *manual {
	m := &manual{t: t}
	m.Memory = NewMemory(0, func() time.Duration { return m.now })
	return m
}

func (m *manual) pass(beats int) {
	m.now += time.Duration(beats) * Beat
	m.Settle()
}

func (m *manual) join(id string, h Handler) *member {
	m.t.Helper()
	c := m.Member()
	c.Serve(h)
	if err := c.Join(m.t.Context(), Member{Server: Server{ID: id}}); err != nil {
		m.t.Fatal(err)
	}
	return c.(*member)
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// In a partition the side without the store claims nothing, keeps its boards as they were, and
// calls of the other side wait. Afterwards the older claim knows that it has lost.
func TestAPartition(t *testing.T) {
	m := newManual(t)
	calls := 0
	a, b := m.join("a", nil), m.join("b", func(context.Context, Request) ([]byte, error) { calls++; return nil, nil })
	older, err := b.Claim(t.Context(), "oak", 0)
	if err != nil || !b.Announce("oak", []byte("1")) {
		t.Fatal(err)
	}
	m.pass(1)
	m.Partition("b", 1)
	if _, err := a.Call(ended(), Call{To: "b"}); !errors.Is(err, ErrBusy) || calls > 0 {
		t.Errorf("a call over the partition: %v", err)
	}
	b.Announce("elm", []byte("1"))
	m.pass(LeaseBeats)
	newer, err := a.Claim(t.Context(), "oak", 0)
	if err != nil || newer <= older {
		t.Errorf("epoch %d after %d, %v", newer, older, err)
	}
	if _, err := b.Claim(ended(), "yew", 0); !errors.Is(err, ErrBusy) {
		t.Errorf("Claim of the smaller side: %v", err)
	}
	if all := a.Boards(); len(all) != 2 || !all[1].Suspect || len(all[1].Rooms) != 1 {
		t.Errorf("boards %+v", all)
	}
	m.Partition("b", 0)
	if err := b.Hold("oak", older); !errors.Is(err, ErrTaken) || calls > 0 {
		t.Errorf("Hold of the older claim: %v, %d late calls", err, calls)
	}
	if all := a.Boards(); all[1].Suspect || len(all[1].Rooms) != 2 {
		t.Errorf("boards %+v", all)
	}
}

// A board that one member reads as soon as it is due reaches all members: each is told the change.
func TestAllMembersAreToldOfABoardThatOneReads(t *testing.T) {
	m := newManual(t)
	a, told := m.join("a", nil), 0
	reader, other := m.join("b", nil), m.Member()
	if err := other.Join(t.Context(), Member{Server: Server{ID: "c"}, Changed: func() { told++ }}); err != nil {
		t.Fatal(err)
	}
	a.Announce("oak", []byte("1"))
	a.Announce("oak", []byte("2")) // It waits for the interval.
	m.now += BoardInterval
	told = 0
	reader.Boards()
	if m.Settle(); told == 0 {
		t.Error("a member is not told of the board that another one has read")
	}
	if reader.Boards(); told > 1 {
		t.Errorf("a member is told %d times of one change", told)
	}
}

// Silence counts only while the store hears the member that claims.
func TestSilenceWithoutTheStore(t *testing.T) {
	m := newManual(t)
	a, b := m.join("a", nil), m.join("b", nil)
	if _, err := b.Claim(t.Context(), "oak", 0); err != nil {
		t.Fatal(err)
	}
	m.Freeze("b", true)
	m.StoreGone(true)
	m.pass(3 * LeaseBeats)
	m.StoreGone(false)
	for _, c := range []struct {
		beats int
		want  error
	}{{0, ErrTaken}, {LeaseBeats - 1, ErrTaken}, {1, nil}} {
		m.pass(c.beats)
		if _, err := a.Claim(t.Context(), "oak", 0); !errors.Is(err, c.want) {
			t.Errorf("after %d beats more: %v, want %v", c.beats, err, c.want)
		}
	}
}

// Members that have left and expired names take no memory.
func TestMemoryIsBounded(t *testing.T) {
	m := newManual(t)
	a := m.join("a", nil)
	for i := range 100 {
		b := m.join(fmt.Sprint("b", i), nil)
		b.Announce("oak", []byte("1"))
		a.Boards()
		if _, err := b.Claim(t.Context(), "oak", 0); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.members) != 1 || len(a.seen) > 1 || len(a.cut) > 0 || len(m.names) > 0 {
		t.Errorf("%d members, %d boards, %d cuts and %d names remain", len(m.members), len(a.seen), len(a.cut), len(m.names))
	}
	for i := range MaxKept {
		if _, err := a.Claim(t.Context(), fmt.Sprint("token/", i), Beat); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := a.Claim(t.Context(), "token/more", Beat); !errors.Is(err, ErrBusy) {
		t.Errorf("a name beyond the limit: %v", err)
	}
	m.pass(1)
	if _, err := a.Claim(t.Context(), "token/more", Beat); err != nil || len(m.names) != 1 {
		t.Errorf("after their time: %v, and %d names remain", err, len(m.names))
	}
	for i := range MaxNames {
		if _, err := a.Claim(t.Context(), fmt.Sprint("room/", i), 0); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := a.Claim(t.Context(), "room/more", 0); !errors.Is(err, ErrBusy) {
		t.Errorf("a room beyond the limit: %v", err)
	}
	for i := range MaxNames {
		if err := a.Release(t.Context(), fmt.Sprint("room/", i), a.held[fmt.Sprint("room/", i)].epoch); err != nil {
			t.Fatal(i, err)
		}
	}
	if len(a.held) > 0 || len(a.released) > 0 || len(m.names) != 1 {
		t.Errorf("%d rooms, %d released names and %d names remain", len(a.held), len(a.released), len(m.names))
	}
}
