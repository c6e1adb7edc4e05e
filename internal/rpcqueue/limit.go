package rpcqueue

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// Bucket is a token bucket in game time: it permits Burst messages at once, and PerSecond messages
// a second on average. The zero Bucket is unlimited.
//
// It is stored as the time at which it is full again (the virtual scheduling form of the generic
// cell rate algorithm, ITU-T I.371): integers that a replay repeats exactly, and 8 bytes per
// bucket.
type Bucket struct {
	PerSecond float64
	Burst     int
}

// The limits of a Bucket. Their products are far below the largest time.Duration.
const (
	MinPerSecond = 1. / 3600
	MaxPerSecond = 1e6
	MaxBurst     = 1 << 16
)

// MaxKick, MaxBudget and MaxTime limit Limits; values this large are effectively no limit.
const (
	MaxKick   = 1 << 20
	MaxBudget = 1 << 20
	MaxTime   = time.Hour
)

// Check returns an error if the bucket is invalid.
func (b Bucket) Check() error {
	switch {
	case b == Bucket{}:
		return nil
	case !(b.PerSecond >= MinPerSecond && b.PerSecond <= MaxPerSecond): // NaN too.
		return fmt.Errorf("%v a second: use 1 an hour to %.0f a second", b.PerSecond, MaxPerSecond)
	case b.Burst < 1 || b.Burst > MaxBurst:
		return fmt.Errorf("a burst of %d: use 1 to %d", b.Burst, MaxBurst)
	}
	return nil
}

// price returns the time in which the bucket regains one message; 0 for an unlimited bucket.
func (b Bucket) price() time.Duration {
	if b == (Bucket{}) {
		return 0
	}
	return time.Duration(math.Round(float64(time.Second) / b.PerSecond))
}

// bucket is the state of a Bucket.
type bucket struct{ full time.Duration } // when it is full again

// debt returns the time that the bucket would take to fill up after one more message with this
// price.
func (b *bucket) debt(now, price time.Duration) time.Duration {
	return max(b.full-now, 0) + price
}

func (b *bucket) take(now, price time.Duration) { b.full = max(b.full, now) + price }

// Limits limits the load by senders on the owner of a queue. The zero Limits is unlimited. Messages
// without a sender (0) are not limited.
type Limits struct {
	// Sender limits the messages of each sender, of all methods together. Above the burst, messages
	// are still accepted, with a warning; above twice the burst they are dropped.
	Sender Bucket
	// Kick is the number of messages of a sender that may be dropped by limits before its Rung is
	// Kick. The count of drops decreases at the rate of Sender. 0: never.
	Kick int
	// Budget is the largest number of messages that a drain runs; 0: no limit. If more messages
	// wait, each sender gets an equal share, and the remaining messages wait in order.
	Budget int
	// Time limits the total cost of all drains of one tick, by the prices of the messages, and
	// SenderTime the part of one sender; 0: no limit. A drain takes at most half of the remaining
	// time while later stages have messages too. The first message of a drain runs at any price,
	// and so, within Time, does the first message of each sender in a drain.
	Time, SenderTime time.Duration
	// Dry counts the actions of the limits, but does not perform them.
	Dry bool
}

// Rung is the level of a sender's excess over the limits: see the constants.
type Rung uint8

// The rungs.
const (
	Calm Rung = iota
	Warned
	Dropping
	Kick
)

var rungNames = [...]string{"calm", "warn", "drop", "kick"}

// String returns the rung as a metric label.
func (r Rung) String() string { return rungNames[min(int(r), len(rungNames)-1)] }

// Scope is the exceeded limit. It is a metric label.
type Scope uint8

// The scopes.
const (
	OfSender Scope = iota // Limits.Sender
	OfMethod              // Method.Limit
	OfTick                // Method.PerTick
	numScopes
)

var scopeNames = [numScopes]string{"client", "method", "tick"}

// String returns the scope as a metric label.
func (s Scope) String() string { return scopeNames[min(s, numScopes-1)] }

// sender is the state of one sender. Its memory is limited by the methods of the table that have
// limits, and freed by Forget; the debt on its account may be stored for a while.
type sender struct {
	id      uint64
	waiting [loop.NumStages + 1]int32 // messages in the queues

	// spent is the cost of its messages in the tick with the number round. The other fields are
	// scratch of the drain being planned: took is the cost of its selected messages, next and
	// newest are the positions of its next and its newest message in the ring, and quota is the
	// number of its messages that run.
	round        uint64
	spent, took  time.Duration
	next, newest int32
	quota        int32
	enlisted     bool

	*account
}

// meter is the use of one limited method by one sender.
type meter struct {
	bucket bucket
	tick   uint64
	count  int32 // in that tick
}

// limited is a method of the table with its own limit.
type limited struct {
	index int // of the meter
	price time.Duration
	debt  time.Duration
	each  int32 // per tick; 0: no limit
}

// limiter checks pushed messages against the limits. It is part of a Queue.
type limiter struct {
	Limits
	price, warn, drop, kick time.Duration

	now     time.Duration
	tick    uint64
	round   uint64        // counts calls of Begin
	spent   time.Duration // by all messages of this tick
	methods []limited     // by method id
	meters  int
	counts  [numScopes][Kick + 1][2]uint64 // last index: 0 done, 1 would have been done
}

func newLimiter(t *Table) limiter {
	l := limiter{methods: make([]limited, len(t.byID))}
	for _, m := range t.sorted {
		if m.Limit == (Bucket{}) && m.PerTick == 0 {
			continue
		}
		price := m.Limit.price()
		l.methods[m.ID] = limited{l.meters + 1, price, price * time.Duration(m.Limit.Burst), int32(m.PerTick)}
		l.meters++
	}
	return l
}

// Check returns an error if the limits are invalid.
func (l Limits) Check() error {
	if err := l.Sender.Check(); err != nil {
		return err
	}
	switch {
	case l.Kick < 0 || l.Kick > MaxKick:
		return fmt.Errorf("kick after %d drops: use 0 for never, or 1 to %d", l.Kick, MaxKick)
	case l.Kick > 0 && l.Sender == Bucket{}:
		return fmt.Errorf("kick after %d drops: it needs a limit of the sender, at whose rate drops are forgotten", l.Kick)
	case l.Budget < 0 || l.Budget > MaxBudget:
		return fmt.Errorf("a budget of %d messages: use 0 for any number, or 1 to %d", l.Budget, MaxBudget)
	case l.Time < 0 || l.Time > MaxTime:
		return fmt.Errorf("%v for all messages of a tick: use 0 for any time, or up to %v", l.Time, MaxTime)
	case l.SenderTime < 0 || l.SenderTime > MaxTime:
		return fmt.Errorf("%v for a sender's messages of a tick: use 0 for any time, or up to %v", l.SenderTime, MaxTime)
	}
	return nil
}

func (l *limiter) set(limits Limits) {
	l.Limits = limits
	l.price = limits.Sender.price()
	l.warn = l.price * time.Duration(limits.Sender.Burst)
	l.drop = 2 * l.warn
	l.kick = l.price * time.Duration(limits.Kick)
}

// begin starts a tick.
func (l *limiter) begin(tick uint64, now time.Duration) {
	l.tick, l.now = tick, now
	l.round++
	l.spent = 0
}

// allowance returns the limits of the next drain.
func (l *limiter) allowance() allowance {
	return allowance{
		messages: cmp.Or(l.Budget, math.MaxInt),
		all:      cmp.Or(l.Time, MaxTime) - l.spent,
		each:     cmp.Or(l.SenderTime, MaxTime),
	}
}

// sender applies the limit of all methods together to a message. It reports false if the message is
// to be dropped. climbed is the rung that the sender reaches with this message, or Calm if its rung
// does not change.
func (l *limiter) sender(s *sender) (ok bool, climbed Rung) {
	switch debt := s.bucket.debt(l.now, l.price); {
	case debt > l.drop:
		return l.strike(s, OfSender)
	case debt > l.warn:
		l.counts[OfSender][Warned][0]++
		climbed = l.climb(s, Warned)
	}
	s.bucket.take(l.now, l.price)
	return true, climbed
}

// method applies the limits of one method.
func (l *limiter) method(s *sender, m *Method) (o Outcome, climbed Rung) {
	lim := &l.methods[m.ID]
	if lim.index == 0 {
		return Accepted, Calm
	}
	if s.meters == nil {
		s.meters = make([]meter, l.meters)
	}
	use := &s.meters[lim.index-1]
	if use.tick != l.tick {
		use.tick, use.count = l.tick, 0
	}
	over, scope := Accepted, OfMethod
	switch {
	case use.bucket.debt(l.now, lim.price) > lim.debt:
		over = MethodLimited
	case lim.each > 0 && use.count >= lim.each:
		over, scope = TickLimited, OfTick
	}
	if over != Accepted {
		ok, climbed := l.strike(s, scope)
		if ok {
			over = Accepted
		}
		return over, climbed
	}
	use.bucket.take(l.now, lim.price)
	use.count++
	return Accepted, Calm
}

// strike counts a message above a limit. It reports true if the message is nevertheless accepted,
// in a dry run. climbed is as in sender.
func (l *limiter) strike(s *sender, scope Scope) (ok bool, climbed Rung) {
	dry := 0
	if l.Dry {
		dry = 1
	}
	l.counts[scope][Dropping][dry]++
	rung := Dropping
	if l.kick > 0 {
		s.strikes.take(l.now, l.price)
		if s.strikes.full-l.now > l.kick {
			rung = Kick
		}
	}
	climbed = l.climb(s, rung)
	if climbed == Kick {
		l.counts[scope][Kick][dry]++
	}
	return l.Dry, climbed
}

// calmFor is the time that a sender must be within its limits before an episode ends. If it were
// shorter, a sender close to a limit would be reported repeatedly.
const calmFor = 10 * time.Second

// climb records that the sender exceeds a limit. It returns the rung, to, if the sender reaches it
// for the first time in an episode, and otherwise Calm.
func (l *limiter) climb(s *sender, to Rung) Rung {
	if l.now-s.exceededAt >= calmFor {
		s.rung = Calm
	}
	s.exceededAt = l.now
	if to <= s.rung {
		return Calm
	}
	s.rung = to
	return to
}

// LimitCounts calls fn with the number of times that each limit took the action did or, if dry is
// set, would have taken it without Limits.Dry. Counts never decrease; zero counts are skipped.
func (q *Queue[C]) LimitCounts(fn func(limit Scope, did Rung, dry bool, n uint64)) {
	for scope := range q.limits.counts {
		for rung := range q.limits.counts[scope] {
			for dry, n := range q.limits.counts[scope][rung] {
				if n > 0 {
					fn(Scope(scope), Rung(rung), dry == 1, n)
				}
			}
		}
	}
}
