package rpcqueue

import (
	"cmp"
	"slices"
	"time"
)

// MaxOwed bounds the accounts that are kept of senders who have left. Each is forgotten once
// nothing is owed on it: after seconds, by the usual limits. When more are owed, the one that
// would be forgotten next goes.
const MaxOwed = 4096

// Holder says whose account a sender draws on.
type Holder struct {
	// Key names the holder; the empty one holds nothing beyond the sender's own stay.
	Key string
	// Shared says that the key stands for somebody, whose senders share what they may
	// push, at the same time too. Otherwise it stands for a place, such as an address,
	// where several live: each sender has an account, and whoever comes begins with what
	// those owe who have left, but with at most half of the way to a kick.
	Shared bool
}

// account is what senders owe to the limits: the state of their buckets.
type account struct {
	Holder
	users int // senders that draw on it

	bucket  bucket
	strikes bucket        // what was dropped
	rung    Rung          // of the running episode
	trouble time.Duration // when a limit was last exceeded
	meters  []meter

	until time.Duration // of one whose holder has left: when nothing is owed any more
}

// accounts finds those of holders with a key.
type accounts struct {
	shared  map[string]*account // in use
	owed    map[string]*account // of holders who have left
	order   []*account          // these, by until
	evicted uint64
}

func newAccounts() accounts {
	return accounts{shared: map[string]*account{}, owed: map[string]*account{}}
}

// open returns the account for a sender who comes.
func (as *accounts) open(h Holder, now, kick time.Duration) *account {
	if a := as.shared[h.Key]; h.Shared && a != nil {
		a.users++
		return a
	}
	a := as.owed[h.Key]
	switch {
	case a == nil:
		a = &account{Holder: h}
	case h.Shared:
		as.drop(a)
	default: // What is owed stays: a flooder gets rid of it by letting nobody else in first.
		a = a.copied()
		a.strikes.full = min(a.strikes.full, now+kick/2)
	}
	a.users = 1
	a.rung = min(a.rung, Dropping) // Whoever comes again may be kicked again.
	if h.Shared {
		as.shared[h.Key] = a
	}
	return a
}

// close keeps the account of a sender who has left, as far as something is owed on it.
func (as *accounts) close(a *account, now time.Duration) {
	if a.users--; a.users > 0 || a.Key == "" {
		return
	}
	if a.Shared {
		delete(as.shared, a.Key)
	} else if a.rung < Dropping || now-a.trouble >= calmFor {
		// What is left of a method's limit may be little for hours. Of those who share a
		// place, only who has been dropped may leave that to the others: what is left of
		// the sender's own limit costs nobody anything who keeps to it.
		a.meters = nil
	}
	if other := as.owed[a.Key]; other != nil {
		as.drop(other)
		a.merge(other)
	}
	a.until = max(a.bucket.full, a.strikes.full)
	for i := range a.meters {
		a.until = max(a.until, a.meters[i].bucket.full)
	}
	if a.until <= now {
		return
	}
	i, _ := as.find(a)
	as.order = slices.Insert(as.order, i, a)
	as.owed[a.Key] = a
	if len(as.order) > MaxOwed {
		as.drop(as.order[0])
		as.evicted++
	}
}

// copied is the same, owed once more.
func (a *account) copied() *account {
	b := *a
	b.meters = slices.Clone(a.meters)
	return &b
}

// merge adds what another owes who has left the same place.
func (a *account) merge(o *account) {
	a.bucket.full = max(a.bucket.full, o.bucket.full)
	a.strikes.full = max(a.strikes.full, o.strikes.full)
	a.rung, a.trouble = max(a.rung, o.rung), max(a.trouble, o.trouble)
	if a.meters == nil {
		a.meters = o.meters
	}
	for i := range o.meters {
		a.meters[i].bucket.full = max(a.meters[i].bucket.full, o.meters[i].bucket.full)
	}
}

// expire forgets those who owe nothing any more.
func (as *accounts) expire(now time.Duration) {
	for len(as.order) > 0 && as.order[0].until <= now {
		as.drop(as.order[0])
	}
}

func (as *accounts) drop(a *account) {
	delete(as.owed, a.Key)
	i, _ := as.find(a)
	as.order = slices.Delete(as.order, i, i+1)
}

// find returns the place of an account in the order, which nothing else may have.
func (as *accounts) find(a *account) (int, bool) {
	return slices.BinarySearchFunc(as.order, a, func(x, y *account) int {
		return cmp.Or(cmp.Compare(x.until, y.until), cmp.Compare(x.Key, y.Key))
	})
}

// Enter says on whose account a sender draws, before its first Push. Without it the sender has
// one of its own.
func (q *Queue[C]) Enter(from uint64, h Holder) {
	if s := q.senders.get(from); from != 0 && s.account.Key == "" {
		s.account = q.accounts.open(h, q.limits.now, q.limits.kick)
	}
}

// Evicted is how many accounts were forgotten although something was owed on them.
func (q *Queue[C]) Evicted() uint64 { return q.accounts.evicted }
