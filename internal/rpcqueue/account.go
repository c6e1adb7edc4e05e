package rpcqueue

import (
	"cmp"
	"slices"
	"time"
)

// MaxDebts limits the stored accounts of senders that have left. An account is dropped when its
// buckets are full again, with the usual limits after some seconds. Above MaxDebts, the account
// that would be dropped next is evicted.
const MaxDebts = 4096

// Holder identifies the account to which a sender's messages count.
type Holder struct {
	// Key names the holder; with an empty key the account ends when the sender leaves.
	Key string
	// Shared means that the key identifies a person; all senders of that person share one account,
	// even at the same time. Otherwise the key identifies a place, such as an address, that several
	// people may use: each sender has its own account, and a new sender starts with the debts of
	// senders that have left the place, but with at most half of the drops that lead to a kick.
	Shared bool
}

// account is the state of the buckets of one holder.
type account struct {
	Holder
	users int // senders that use it

	bucket     bucket
	strikes    bucket        // dropped messages
	rung       Rung          // of the running episode
	exceededAt time.Duration // when a limit was last exceeded
	meters     []meter

	until time.Duration // when all buckets are full again, after the last sender has left
}

// accounts stores the accounts of holders with a key.
type accounts struct {
	shared  map[string]*account // in use
	debts   map[string]*account // of holders that have left
	order   []*account          // the same, by until
	evicted uint64
}

func newAccounts() accounts {
	return accounts{shared: map[string]*account{}, debts: map[string]*account{}}
}

// open returns the account for a new sender.
func (as *accounts) open(h Holder, now, kick time.Duration) *account {
	if a := as.shared[h.Key]; h.Shared && a != nil {
		a.users++
		return a
	}
	a := as.debts[h.Key]
	switch {
	case a == nil:
		a = &account{Holder: h}
	case h.Shared:
		as.drop(a)
	default: // Use a copy, so that the debt also remains for the next client of a flooder.
		a = a.copied()
		a.strikes.full = min(a.strikes.full, now+kick/2)
	}
	a.users = 1
	a.rung = min(a.rung, Dropping) // A sender that enters again can be kicked again.
	if h.Shared {
		as.shared[h.Key] = a
	}
	return a
}

// close releases the account of a sender that has left. An account with a key that has no other
// sender is stored until all its buckets are full.
func (as *accounts) close(a *account, now time.Duration) {
	if a.users--; a.users > 0 || a.Key == "" {
		return
	}
	if a.Shared {
		delete(as.shared, a.Key)
	} else if a.rung < Dropping || now-a.exceededAt >= calmFor {
		// A method's limit may take hours to refill. Later senders of the same place inherit its
		// use only if a message of this sender was dropped recently: a sender within the limit does
		// not use up the limit of other senders.
		a.meters = nil
	}
	if other := as.debts[a.Key]; other != nil {
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
	as.debts[a.Key] = a
	if len(as.order) > MaxDebts {
		as.drop(as.order[0])
		as.evicted++
	}
}

// copied returns a copy of the account.
func (a *account) copied() *account {
	b := *a
	b.meters = slices.Clone(a.meters)
	return &b
}

// merge raises the debts of the account to those of o, an account with the same key.
func (a *account) merge(o *account) {
	a.bucket.full = max(a.bucket.full, o.bucket.full)
	a.strikes.full = max(a.strikes.full, o.strikes.full)
	a.rung, a.exceededAt = max(a.rung, o.rung), max(a.exceededAt, o.exceededAt)
	if a.meters == nil {
		a.meters = o.meters
	}
	for i := range o.meters {
		a.meters[i].bucket.full = max(a.meters[i].bucket.full, o.meters[i].bucket.full)
	}
}

// expire drops accounts with all buckets full.
func (as *accounts) expire(now time.Duration) {
	for len(as.order) > 0 && as.order[0].until <= now {
		as.drop(as.order[0])
	}
}

func (as *accounts) drop(a *account) {
	delete(as.debts, a.Key)
	i, _ := as.find(a)
	as.order = slices.Delete(as.order, i, i+1)
}

// find returns the index of an account in as.order, or the index at which to insert it, and reports
// whether it is there. The order is by until, then by Key; no two accounts share a Key.
func (as *accounts) find(a *account) (int, bool) {
	return slices.BinarySearchFunc(as.order, a, func(x, y *account) int {
		return cmp.Or(cmp.Compare(x.until, y.until), cmp.Compare(x.Key, y.Key))
	})
}

// Enter sets the account of a sender, before its first Push. Without Enter the sender has its own
// account.
func (q *Queue[C]) Enter(from uint64, h Holder) {
	if s := q.senders.get(from); from != 0 && s.account.Key == "" {
		s.account = q.accounts.open(h, q.limits.now, q.limits.kick)
	}
}

// Sizes returns the number of entries of each table of senders.
func (q *Queue[C]) Sizes() map[string]int {
	return map[string]int{"senders": len(q.senders.byID), "accounts": len(q.accounts.shared), "debts": len(q.accounts.debts)}
}

// Evicted returns the number of accounts that were evicted before their buckets were full.
func (q *Queue[C]) Evicted() uint64 { return q.accounts.evicted }
