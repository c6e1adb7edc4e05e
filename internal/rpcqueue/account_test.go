package rpcqueue

import (
	"fmt"
	"testing"
	"time"
)

var (
	ann   = Holder{Key: "ann", Shared: true}
	house = Holder{Key: "house"}
)

func newOwing(t *testing.T) (*limitedQueue, *Method) {
	m := method(1, "m")
	m.Limit = Bucket{PerSecond: .1, Burst: 2}
	free := method(2, "free")
	q := newLimited(t, Limits{Sender: Bucket{PerSecond: 10, Burst: 20}, Kick: 30}, m, free)
	q.at(time.Hour)
	return q, free
}

func TestWhoComesAgainFindsItsBucketAsItWas(t *testing.T) {
	for _, h := range []Holder{ann, house} {
		q, m := newOwing(t)
		q.Enter(1, h)
		q.push(1, m, 35)
		q.Forget(1)
		q.Enter(2, h)
		if n, _ := q.push(2, m, 10); n != 5 {
			t.Errorf("%+v: of the 5 that were left, %d were queued", h, n)
		}
		if kept := len(q.accounts.owed) > 0; kept == h.Shared {
			t.Errorf("%+v: while somebody is there who owes, kept as of a leaver is %v", h, kept)
		}
		q.Forget(2)
		q.at(time.Hour + 2*time.Second)
		q.Enter(3, h)
		if n, _ := q.push(3, m, 40); n != 20 {
			t.Errorf("%+v: two seconds later %d were queued, want 20", h, n)
		}
	}
}

func TestWhoIsKickedMayBeKickedAgain(t *testing.T) {
	q, m := newOwing(t)
	q.Enter(1, house)
	q.push(1, m, 71)
	q.wantTold("1 free warn", "1 free drop", "1 free kick")
	q.Forget(1)
	q.Enter(2, house)
	if n, _ := q.push(2, m, 15); n != 0 { // A neighbour has half of the way to a kick.
		t.Errorf("%d were queued", n)
	}
	q.wantTold()
	q.push(2, m, 1)
	q.wantTold("2 free kick")

	q.Enter(3, ann)
	q.push(3, m, 71)
	q.Forget(3)
	q.told = nil
	q.Enter(4, ann)
	q.push(4, m, 1)
	q.wantTold("4 free kick") // The same player has used up all of it.
}

// A flooder cannot free itself of its debt by leaving it to the next sender.
func TestWhatIsOwedStaysAtAPlace(t *testing.T) {
	q, m := newOwing(t)
	q.Enter(1, house)
	q.push(1, m, 71)
	q.Forget(1)
	for id := uint64(2); id < 5; id++ {
		q.Enter(id, house)
	}
	if n, _ := q.push(4, m, 10); n != 0 {
		t.Errorf("of the third who came %d were queued", n)
	}
}

func TestSendersOfOneSubjectShareItsBucket(t *testing.T) {
	q, m := newOwing(t)
	q.Enter(1, ann)
	q.Enter(2, ann)
	q.push(1, m, 30)
	if n, _ := q.push(2, m, 20); n != 10 {
		t.Errorf("the second sender had %d of the 10 that were left", n)
	}
	q.Forget(1)
	q.at(time.Hour + time.Second)
	if n, _ := q.push(2, m, 20); n != 10 {
		t.Errorf("when the first has left the second had %d, want the 10 of a second", n)
	}
}

// Several people share one address: none of them is limited because of another.
func TestNeighboursDoNotShareABucket(t *testing.T) {
	q, m := newOwing(t)
	limited := q.table.sorted[0]
	for id := range uint64(100) {
		q.Enter(id+1, house)
	}
	for id := range uint64(100) {
		if n, _ := q.push(id+1, m, 30); n != 30 {
			t.Fatalf("sender %d had %d of 30", id+1, n)
		}
	}
	q.at(time.Hour + 10*time.Second)
	q.push(1, limited, 2)
	q.Forget(1)
	q.Enter(101, house)
	if n, _ := q.push(101, limited, 2); n != 2 {
		t.Errorf("a neighbour's use of a method left %d of 2", n)
	}

	// A sender that was dropped leaves that too.
	if n, o := q.push(2, limited, 3); n != 2 || o != MethodLimited {
		t.Errorf("%d, then %v", n, o)
	}
	q.Forget(2)
	q.Enter(102, house)
	if n, _ := q.push(102, limited, 2); n != 0 {
		t.Errorf("after a flooder %d were queued", n)
	}

	// Each later sender gets the full refill.
	q.at(time.Hour + 20*time.Second)
	for id := uint64(103); id < 105; id++ {
		q.Enter(id, house)
		if n, _ := q.push(id, limited, 2); n != 1 {
			t.Errorf("ten seconds after a flooder sender %d had %d of 1", id, n)
		}
	}
}

func TestASubjectIsThereUntilTheLastOfItsSendersLeaves(t *testing.T) {
	q, m := newOwing(t)
	q.Enter(1, ann)
	q.Enter(2, ann)
	q.Forget(1)
	q.Enter(3, ann)
	q.push(2, m, 40)
	if n, _ := q.push(3, m, 1); n != 0 {
		t.Error("the third sender has a bucket of its own")
	}
}

func TestASubjectKeepsItsMethodsLimits(t *testing.T) {
	q, _ := newOwing(t)
	limited := q.table.sorted[0]
	q.Enter(1, ann)
	q.push(1, limited, 2)
	q.Forget(1)
	q.at(time.Hour + 5*time.Second) // All other buckets are full.
	q.Enter(2, ann)
	if n, _ := q.push(2, limited, 2); n != 0 {
		t.Errorf("after it came again %d were queued", n)
	}
}

// For each limit the next sender gets the largest debt of a sender that has left, and no report.
func TestTheOrderOfLeavingDoesNotMatter(t *testing.T) {
	for _, order := range [][]uint64{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		q, m := newOwing(t)
		limited := q.table.sorted[0]
		for _, id := range append(order, 4) {
			q.Enter(id, house)
		}
		q.push(1, limited, 2)
		q.push(1, m, 59) // 21 of these are dropped.
		q.push(2, limited, 1)
		q.push(2, m, 45) // Six of these.
		q.push(3, m, 5)
		for _, id := range order {
			q.Forget(id)
		}
		q.told = nil
		q.Enter(5, house)
		if n, _ := q.push(5, m, 15); n != 0 { // Half of the way to a kick is left.
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
			t.Errorf("%v left: who was there before had %d of 2", order, n)
		}
	}
}

// The debt of a method's limit passes only to the neighbours of senders that were recently dropped.
func TestOnlyWhoWasDroppedLeavesAMethodsLimit(t *testing.T) {
	for _, c := range []struct {
		pushed int
		stays  time.Duration
		left   int
	}{{10, 0, 2}, {25, 0, 2}, {45, 0, 0}, {45, calmFor - 1, 0}, {45, calmFor, 2}} {
		q, m := newOwing(t)
		limited := q.table.sorted[0]
		q.Enter(1, house)
		q.push(1, limited, 2)
		q.push(1, m, c.pushed)
		q.at(time.Hour + c.stays)
		q.Forget(1)
		q.Enter(2, house)
		q.at(time.Hour + max(c.stays, 5*time.Second)) // Its own limit is no hindrance any more.
		if n, _ := q.push(2, limited, 2); n != c.left {
			t.Errorf("after one who pushed %d and stayed %v, %d were queued, want %d", c.pushed, c.stays, n, c.left)
		}
	}
}

func TestWhatIsOwedIsForgottenWithTime(t *testing.T) {
	q, m := newOwing(t)
	for id := range uint64(10) {
		q.Enter(id+1, Holder{Key: fmt.Sprint(id)})
		q.push(id+1, m, int(id)+1)
		q.Forget(id + 1)
	}
	for left := 10; left > 0; left-- {
		if n := len(q.accounts.owed); n != left || len(q.accounts.order) != left {
			t.Fatalf("%d and %d accounts are kept, want %d", n, len(q.accounts.order), left)
		}
		q.at(q.limits.now + time.Second/10)
	}
	if len(q.accounts.owed)+len(q.accounts.order)+len(q.accounts.shared) != 0 {
		t.Error("something is kept for ever")
	}
	q.Enter(11, ann)
	q.push(11, m, 10)
	q.at(q.limits.now + time.Second) // All buckets are full from now on.
	q.Forget(11)
	q.Enter(12, Holder{})
	q.push(12, m, 40)
	q.Forget(12)
	q.Forget(13)
	if len(q.accounts.owed)+len(q.accounts.shared) != 0 {
		t.Error("who owes nothing, or has no name, is kept")
	}
}

func TestWhatIsOwedIsBounded(t *testing.T) {
	q, m := newOwing(t)
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
	if n := len(q.accounts.owed); n != most || len(q.accounts.order) != n || q.Evicted() != 3 {
		t.Errorf("%d accounts are kept, %d evicted", n, q.Evicted())
	}
	if q.accounts.owed["0"] != nil || q.accounts.owed["3"] == nil {
		t.Error("not those went who owed least")
	}
}

func TestEnteringTwiceChangesNothing(t *testing.T) {
	q, m := newOwing(t)
	q.Enter(0, ann)
	q.Enter(1, ann)
	q.push(1, m, 35)
	q.Enter(1, house)
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
