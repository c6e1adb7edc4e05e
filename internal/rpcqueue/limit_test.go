package rpcqueue

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// limitedQueue is a queue with a test clock, and its reports.
type limitedQueue struct {
	*Queue[*int]
	t    *testing.T
	tick uint64
	told []string
}

func newLimited(t *testing.T, l Limits, methods ...*Method) *limitedQueue {
	t.Helper()
	table, err := NewTable(methods...)
	if err != nil {
		t.Fatal(err)
	}
	q := &limitedQueue{Queue: New[*int](table), t: t}
	for _, m := range methods {
		if err := q.Handle(m, func(n *int, _ *Item) error { *n++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.SetLimits(l); err != nil {
		t.Fatal(err)
	}
	q.OnLimit = func(from uint64, m *Method, r Rung) {
		name := UnknownName
		if m != nil {
			name = m.Name
		}
		q.told = append(q.told, fmt.Sprintf("%d %s %v", from, name, r))
	}
	return q
}

// at begins a tick at a game time, with empty queues.
func (q *limitedQueue) at(now time.Duration) {
	q.tick++
	q.Begin(q.tick, now)
	q.Drain(loop.Update, new(int))
	q.Begin(q.tick, now)
}

// push pushes n messages and returns how many were queued.
func (q *limitedQueue) push(from uint64, m *Method, n int) (queued int, last Outcome) {
	for range n {
		if last = q.Push(Item{Method: m, From: from}); last.Queued() {
			queued++
		}
	}
	return queued, last
}

func (q *limitedQueue) wantTold(want ...string) {
	q.t.Helper()
	if !slices.Equal(q.told, want) {
		q.t.Errorf("told %q, want %q", q.told, want)
	}
	q.told = nil
}

func (q *limitedQueue) wantLimits(want ...string) {
	q.t.Helper()
	var got []string
	q.LimitCounts(func(s Scope, r Rung, dry bool, n uint64) { got = append(got, fmt.Sprint(s, " ", r, " ", dry, " ", n)) })
	if !slices.Equal(got, want) {
		q.t.Errorf("limits %q, want %q", got, want)
	}
}

func TestALimitAllowsItsBurstAndThenItsRate(t *testing.T) {
	m := method(1, "m")
	m.Limit = Bucket{PerSecond: 4, Burst: 3}
	q := newLimited(t, Limits{}, m)
	q.at(time.Hour)
	if n, o := q.push(7, m, 10); n != 3 || o != MethodLimited {
		t.Errorf("of a burst of 3, %d were queued, and the next was %v", n, o)
	}
	if n, _ := q.push(8, m, 10); n != 3 {
		t.Errorf("another sender had %d", n)
	}
	q.wantTold("7 m drop", "8 m drop")
	if n, _ := q.push(0, m, 10); n != 10 {
		t.Errorf("sender 0 is unlimited, and had %d of 10", n)
	}
	total := 0
	for i := range 1000 { // Ten seconds; dropped messages use no tokens.
		q.at(time.Hour + time.Duration(i)*10*time.Millisecond)
		n, _ := q.push(7, m, 5)
		total += n
	}
	if total != 39 {
		t.Errorf("in 9.99 s at 4 a second, %d were queued", total)
	}
}

func TestALimitPerTickStartsAnewEachTick(t *testing.T) {
	m, free := method(1, "m"), method(2, "free")
	m.PerTick = 2
	q := newLimited(t, Limits{}, m, free)
	for range 3 {
		q.at(0)
		if n, o := q.push(7, m, 5); n != 2 || o != TickLimited {
			t.Errorf("%d in a tick, then %v", n, o)
		}
		if n, _ := q.push(7, free, 5); n != 5 {
			t.Errorf("a method without a limit: %d of 5", n)
		}
	}
	q.wantLimits("tick drop false 9")
}

func TestTheLadderWarnsDropsAndKicks(t *testing.T) {
	m := method(1, "m")
	q := newLimited(t, Limits{Sender: Bucket{PerSecond: 10, Burst: 20}, Kick: 30}, m)
	q.at(time.Hour)
	if n, _ := q.push(7, m, 20); n != 20 {
		t.Errorf("%d of the burst", n)
	}
	q.wantTold()
	if n, _ := q.push(7, m, 20); n != 20 {
		t.Errorf("%d of the second burst, which only warns", n)
	}
	q.wantTold("7 m warn")
	if n, o := q.push(7, m, 30); n != 0 || o != ClientLimited {
		t.Errorf("%d beyond, then %v", n, o)
	}
	q.wantTold("7 m drop")
	if o := q.Push(Item{From: 7}); o != ClientLimited { // Undecodable messages count too.
		t.Errorf("garbage is %v", o)
	}
	q.wantTold("7 (unknown) kick")
	q.wantLimits("client warn false 20", "client drop false 31", "client kick false 1")
	if n, _ := q.push(8, m, 20); n != 20 {
		t.Errorf("another sender had %d", n)
	}
	q.wantTold()
}

func TestAnEpisodeEndsAfterTenCalmSeconds(t *testing.T) {
	m := method(1, "m")
	q := newLimited(t, Limits{Sender: Bucket{PerSecond: 10, Burst: 10}}, m)
	now := time.Hour
	q.at(now)
	q.push(7, m, 25)
	q.wantTold("7 m warn", "7 m drop")
	for range 30 { // It hovers around its limit: no reports.
		now += 9 * time.Second
		q.at(now)
		q.push(7, m, 12)
	}
	q.wantTold()
	now += 10 * time.Second
	q.at(now)
	q.push(7, m, 11)
	q.wantTold("7 m warn")
}

func TestCountedDropsDecayAtTheRateOfTheSender(t *testing.T) {
	m := method(1, "m")
	q := newLimited(t, Limits{Sender: Bucket{PerSecond: 10, Burst: 10}, Kick: 50}, m)
	for i := range 1000 { // Twice its rate: half is dropped, and the count decays as fast.
		q.at(time.Hour + time.Duration(i)*100*time.Millisecond)
		q.push(7, m, 2)
	}
	q.wantTold("7 m warn", "7 m drop")
	for i := range 100 { // Four times its rate.
		q.at(time.Hour + 100*time.Second + time.Duration(i)*100*time.Millisecond)
		q.push(7, m, 4)
	}
	q.wantTold("7 m kick")
}

func TestADryRunCountsAndDropsNothing(t *testing.T) {
	m := method(1, "m")
	m.PerTick, m.Limit = 8, Bucket{PerSecond: 1, Burst: 5}
	q := newLimited(t, Limits{Sender: Bucket{PerSecond: 1, Burst: 1}, Kick: 1, Dry: true}, m)
	q.at(time.Hour)
	if n, _ := q.push(7, m, 10); n != 10 {
		t.Errorf("%d of 10", n)
	}
	// One is within the burst, one warns, eight would be dropped; three of the ten exceed the
	// method's five.
	q.wantLimits("client warn false 1", "client drop true 8", "client kick true 1", "method drop true 5")
	q.wantTold("7 m warn", "7 m drop", "7 m kick")
}

func TestForgetFreesTheStateOfLimits(t *testing.T) {
	m := method(1, "m")
	m.Limit = Bucket{PerSecond: 1, Burst: 1}
	q := newLimited(t, Limits{Sender: Bucket{PerSecond: 100, Burst: 100}}, m)
	q.at(time.Hour)
	for id := uint64(1); id <= 1000; id++ {
		q.push(id, m, 2)
		q.Forget(id)
	}
	if n := len(q.senders.byID); n != 0 {
		t.Errorf("%d senders are still known", n)
	}
}

func TestBadLimitsAreRefusedByName(t *testing.T) {
	m := method(1, "m")
	for _, c := range []struct {
		limits Limits
		says   string
	}{
		{Limits{Sender: Bucket{PerSecond: math.NaN(), Burst: 1}}, "NaN"},
		{Limits{Sender: Bucket{PerSecond: 0, Burst: 1}}, "a second"},
		{Limits{Sender: Bucket{PerSecond: 1, Burst: 0}}, "burst"},
		{Limits{Sender: Bucket{PerSecond: 1, Burst: 1<<16 + 1}}, "burst"},
		{Limits{Kick: 1}, "kick"},
		{Limits{Budget: -1}, "budget"},
	} {
		if err := newLimited(t, Limits{}, m).SetLimits(c.limits); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v", c.limits, err)
		}
	}
	for _, bad := range []*Method{{ID: 1, Name: "m", Limit: Bucket{PerSecond: -1, Burst: 1}}, {ID: 1, Name: "m", PerTick: -1}} {
		if _, err := NewTable(bad); err == nil || !strings.Contains(err.Error(), `"m"`) {
			t.Errorf("error %v", err)
		}
	}
}

func TestTheBoundsOfLimitsAreAllowed(t *testing.T) {
	const (
		hourly            = 1. / 3600
		most              = 1 << 20 // of messages in a drain and of drops before a kick
		maxAtOnce         = 1 << 16
		lessThanOneAnHour = 1. / 3600.5
	)
	free := Bucket{PerSecond: 1, Burst: 1}
	for _, c := range []struct {
		limits Limits
		ok     bool
	}{
		{Limits{Sender: Bucket{PerSecond: hourly, Burst: maxAtOnce}}, true},
		{Limits{Sender: Bucket{PerSecond: MaxPerSecond, Burst: 1}}, true},
		{Limits{Sender: Bucket{PerSecond: MaxPerSecond + 1, Burst: 1}}, false},
		{Limits{Sender: Bucket{PerSecond: lessThanOneAnHour, Burst: 1}}, false},
		{Limits{Sender: free, Kick: most}, true},
		{Limits{Sender: free, Kick: most + 1}, false},
		{Limits{Sender: free, Kick: -1}, false},
		{Limits{Budget: most}, true},
		{Limits{Budget: most + 1}, false},
		{Limits{Time: MaxTime, SenderTime: MaxTime}, true},
		{Limits{Time: MaxTime + 1}, false},
		{Limits{Time: -1}, false},
		{Limits{SenderTime: MaxTime + 1}, false},
		{Limits{SenderTime: -1}, false},
	} {
		if err := c.limits.Check(); (err == nil) != c.ok {
			t.Errorf("%+v: error %v", c.limits, err)
		}
	}
	if p := (Bucket{}).price(); p != 0 {
		t.Errorf("a message costs %v of a bucket without a bottom", p)
	}
	for perTick, ok := range map[int]bool{maxAtOnce: true, maxAtOnce + 1: false} {
		if _, err := NewTable(&Method{ID: 1, Name: "m", PerTick: perTick}); (err == nil) != ok {
			t.Errorf("%d a tick: error %v", perTick, err)
		}
	}
}

func TestOneMessageATickIsALimit(t *testing.T) {
	m := method(1, "m")
	m.PerTick = 1
	q := newLimited(t, Limits{}, m, method(2, "free"))
	q.at(0)
	if n, o := q.push(7, m, 2); n != 1 || o != TickLimited {
		t.Errorf("%d of one a tick, then %v", n, o)
	}
	if n := q.limits.meters; n != 1 {
		t.Errorf("there are %d meters for one limited method", n)
	}
}

func TestUnknownValuesHaveNames(t *testing.T) {
	if s := Outcome(NumOutcomes).String(); s != "invalid" {
		t.Errorf("an outcome that does not exist is %q", s)
	}
	if s := numScopes.String() + Scope(255).String(); s != "ticktick" {
		t.Errorf("scopes that do not exist are %q", s)
	}
	if s := (Kick + 1).String() + Rung(255).String(); s != "kickkick" {
		t.Errorf("rungs that do not exist are %q", s)
	}
}
