package rpcqueue

import (
	"fmt"
	"testing"
	"time"
)

var (
	person  = Holder{Key: "ann", Shared: true}
	address = Holder{Key: "house"}
)

func newAccountQueue(t *testing.T) (*limitedQueue, *Method) {
	m := method(1, "m")
	m.Limit = Bucket{PerSecond: .1, Burst: 2}
	free := method(2, "free")
	q := newLimited(t, Limits{Sender: Bucket{PerSecond: 10, Burst: 20}, Kick: 30}, m, free)
	q.at(time.Hour)
	return q, free
}

func TestAReturningSenderHasItsOldBucket(t *testing.T) {
	for _, h := range []Holder{person, address} {
		q, m := newAccountQueue(t)
		q.Enter(1, h)
		q.push(1, m, 35)
		q.Forget(1)
		q.Enter(2, h)
		if n, _ := q.push(2, m, 10); n != 5 {
			t.Errorf("%+v: of the remaining 5, %d were queued", h, n)
		}
		if kept := len(q.accounts.debts) > 0; kept == h.Shared {
			t.Errorf("%+v: the debt of a left sender is stored: %v", h, kept)
		}
		q.Forget(2)
		q.at(time.Hour + 2*time.Second)
		q.Enter(3, h)
		if n, _ := q.push(3, m, 40); n != 20 {
			t.Errorf("%+v: two seconds later %d were queued, want 20", h, n)
		}
	}
}

func TestAKickedSenderMayBeKickedAgain(t *testing.T) {
	q, m := newAccountQueue(t)
	q.Enter(1, address)
	q.push(1, m, 71)
	q.wantTold("1 free warn", "1 free drop", "1 free kick")
	q.Forget(1)
	q.Enter(2, address)
	if n, _ := q.push(2, m, 15); n != 0 { // A neighbour has half of the drops until a kick.
		t.Errorf("%d were queued", n)
	}
	q.wantTold()
	q.push(2, m, 1)
	q.wantTold("2 free kick")

	q.Enter(3, person)
	q.push(3, m, 71)
	q.Forget(3)
	q.told = nil
	q.Enter(4, person)
	q.push(4, m, 1)
	q.wantTold("4 free kick") // The same player has used up all of them.
}

// A flooding client cannot pass its debt on to the next sender and so be free of it.
func TestADebtRemainsAtItsAddress(t *testing.T) {
	q, m := newAccountQueue(t)
	q.Enter(1, address)
	q.push(1, m, 71)
	q.Forget(1)
	for id := uint64(2); id < 5; id++ {
		q.Enter(id, address)
	}
	if n, _ := q.push(4, m, 10); n != 0 {
		t.Errorf("%d of the third sender were queued", n)
	}
}

func TestSendersOfOneSubjectShareItsBucket(t *testing.T) {
	q, m := newAccountQueue(t)
	q.Enter(1, person)
	q.Enter(2, person)
	q.push(1, m, 30)
	if n, _ := q.push(2, m, 20); n != 10 {
		t.Errorf("the second sender had %d of the remaining 10", n)
	}
	q.Forget(1)
	q.at(time.Hour + time.Second)
	if n, _ := q.push(2, m, 20); n != 10 {
		t.Errorf("when the first has left the second had %d, want the 10 of a second", n)
	}
}

// With a shared address, no sender is limited because of another one.
func TestNeighboursDoNotShareABucket(t *testing.T) {
	q, m := newAccountQueue(t)
	limited := q.table.sorted[0]
	for id := range uint64(100) {
		q.Enter(id+1, address)
	}
	for id := range uint64(100) {
		if n, _ := q.push(id+1, m, 30); n != 30 {
			t.Fatalf("sender %d had %d of 30", id+1, n)
		}
	}
	q.at(time.Hour + 10*time.Second)
	q.push(1, limited, 2)
	q.Forget(1)
	q.Enter(101, address)
	if n, _ := q.push(101, limited, 2); n != 2 {
		t.Errorf("a neighbour's use of a method left %d of 2", n)
	}

	// A dropped sender leaves this debt too.
	if n, o := q.push(2, limited, 3); n != 2 || o != MethodLimited {
		t.Errorf("%d, then %v", n, o)
	}
	q.Forget(2)
	q.Enter(102, address)
	if n, _ := q.push(102, limited, 2); n != 0 {
		t.Errorf("after a flooder %d were queued", n)
	}

	// Each later sender gets the full refill.
	q.at(time.Hour + 20*time.Second)
	for id := uint64(103); id < 105; id++ {
		q.Enter(id, address)
		if n, _ := q.push(id, limited, 2); n != 1 {
			t.Errorf("ten seconds after a flooder sender %d had %d of 1", id, n)
		}
	}
}

func TestASubjectsAccountLastsUntilItsLastSenderLeaves(t *testing.T) {
	q, m := newAccountQueue(t)
	q.Enter(1, person)
	q.Enter(2, person)
	q.Forget(1)
	q.Enter(3, person)
	q.push(2, m, 40)
	if n, _ := q.push(3, m, 1); n != 0 {
		t.Error("the third sender has a bucket of its own")
	}
}

func TestASubjectKeepsItsMethodsLimits(t *testing.T) {
	q, _ := newAccountQueue(t)
	limited := q.table.sorted[0]
	q.Enter(1, person)
	q.push(1, limited, 2)
	q.Forget(1)
	q.at(time.Hour + 5*time.Second) // All other buckets are full.
	q.Enter(2, person)
	if n, _ := q.push(2, limited, 2); n != 0 {
		t.Errorf("after it entered again %d were queued", n)
	}
}

// For each limit the next sender gets the largest debt of a sender that has left, and no report.
func TestTheOrderOfLeavingDoesNotMatter(t *testing.T) {
	for _, order := range [][]uint64{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		q, m := newAccountQueue(t)
		limited := q.table.sorted[0]
		for _, id := range append(order, 4) {
			q.Enter(id, address)
		}
		q.push(1, limited, 2)
		q.push(1, m, 59) // Of these, 21 are dropped.
		q.push(2, limited, 1)
		q.push(2, m, 45) // Of these, six are dropped.
		q.push(3, m, 5)
		for _, id := range order {
			q.Forget(id)
		}
		q.told = nil
		q.Enter(5, address)
		if n, _ := q.push(5, m, 15); n != 0 { // Half of the drops until a kick remain.
			t.Errorf("%v left: %d were queued", order, n)
		}
		q.wantTold()
		q.push(5, m, 1)
		q.wantTold("5 free kick")
		q.at(time.Hour + 10*time.Second)
		if n, o := q.push(5, limited, 2); n != 1 || o != MethodLimited {
			t.Errorf("%v left: of the limited method %d were queued, then %v", order, n, o)
		}
		if n, _ := q.push(4, limited, 2); n != 2 {
			t.Errorf("%v left: an earlier sender had %d of 2", order, n)
		}
	}
}

// The debt of a method's limit passes only to the neighbours of senders that were recently dropped.
func TestOnlyDroppedSendersPassOnTheDebtOfAMethod(t *testing.T) {
	for _, c := range []struct {
		pushed int
		stays  time.Duration
		left   int
	}{{10, 0, 2}, {25, 0, 2}, {45, 0, 0}, {45, calmFor - 1, 0}, {45, calmFor, 2}} {
		q, m := newAccountQueue(t)
		limited := q.table.sorted[0]
		q.Enter(1, address)
		q.push(1, limited, 2)
		q.push(1, m, c.pushed)
		q.at(time.Hour + c.stays)
		q.Forget(1)
		q.Enter(2, address)
		q.at(time.Hour + max(c.stays, 5*time.Second)) // Its own limit does not apply any more.
		if n, _ := q.push(2, limited, 2); n != c.left {
			t.Errorf("after a sender that pushed %d and was present for %v, %d were queued, want %d", c.pushed, c.stays, n, c.left)
		}
	}
}

func TestDebtsExpire(t *testing.T) {
	q, m := newAccountQueue(t)
	for id := range uint64(10) {
		q.Enter(id+1, Holder{Key: fmt.Sprint(id)})
		q.push(id+1, m, int(id)+1)
		q.Forget(id + 1)
	}
	for left := 10; left > 0; left-- {
		if n := len(q.accounts.debts); n != left || len(q.accounts.order) != left {
			t.Fatalf("%d and %d accounts are kept, want %d", n, len(q.accounts.order), left)
		}
		q.at(q.limits.now + time.Second/10)
	}
	if len(q.accounts.debts)+len(q.accounts.order)+len(q.accounts.shared) != 0 {
		t.Error("an account is kept forever")
	}
	q.Enter(11, person)
	q.push(11, m, 10)
	q.at(q.limits.now + time.Second) // All buckets are full from now on.
	q.Forget(11)
	q.Enter(12, Holder{})
	q.push(12, m, 40)
	q.Forget(12)
	q.Forget(13)
	if len(q.accounts.debts)+len(q.accounts.shared) != 0 {
		t.Error("an account without debt or key is kept")
	}
}

func TestStoredDebtsAreBounded(t *testing.T) {
	q, m := newAccountQueue(t)
	const most = 4096
	for id := range uint64(most + 3) {
		q.Enter(id+1, Holder{Key: fmt.Sprint(id)})
		n := 20
		if id < 3 {
			n = 1
		}
		q.push(id+1, m, n)
		q.Forget(id + 1)
	}
	if n := len(q.accounts.debts); n != most || len(q.accounts.order) != n || q.Evicted() != 3 {
		t.Errorf("%d accounts are kept, %d evicted", n, q.Evicted())
	}
	if q.accounts.debts["0"] != nil || q.accounts.debts["3"] == nil {
		t.Error("the evicted accounts are not those with the smallest debts")
	}
}

func TestEnteringTwiceChangesNothing(t *testing.T) {
	q, m := newAccountQueue(t)
	q.Enter(0, person)
	q.Enter(1, person)
	q.push(1, m, 35)
	q.Enter(1, address)
	if n, _ := q.push(1, m, 10); n != 5 {
		t.Errorf("%d were queued", n)
	}
	if n, _ := q.push(0, m, 100); n != 100 {
		t.Errorf("nobody had %d of 100", n)
	}
	q.Forget(1)
	if len(q.accounts.shared) != 0 {
		t.Error("an account in use was lost")
	}
}
