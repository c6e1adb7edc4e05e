package fifo

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Two queues over one pool behave like lists under any operations. They hold no more pieces than
// their items need, and no removed items.
func TestQueuesBehaveLikeListsInLittleMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pool Pool[*int]
		var queues [2]Queue[*int]
		var want [2][]*int
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			i := rapid.IntRange(0, 1).Draw(t, "queue")
			q, list := &queues[i], &want[i]
			switch rapid.IntRange(0, 5).Draw(t, "do") {
			case 0, 1:
				for range rapid.IntRange(1, 3*pieceLen).Draw(t, "n") {
					v := new(int)
					at := q.Push(&pool)
					if *at != nil {
						t.Fatal("a new item is not empty")
					}
					*at = v
					*list = append(*list, v)
				}
			case 2:
				for range rapid.IntRange(0, len(*list)).Draw(t, "n") {
					var v *int
					if q.Pop(&pool, &v); v != (*list)[0] {
						t.Fatal("another item is popped")
					}
					*list = (*list)[1:]
				}
			case 3:
				front := q.Front()
				if len(front) == 0 != (len(*list) == 0) || !slices.Equal(front, (*list)[:len(front)]) {
					t.Fatalf("the front is %v of %v", front, *list)
				}
				if n := len(front); n > 0 {
					q.PopFront(&pool)
					*list = (*list)[n:]
				}
			case 4:
				n := rapid.IntRange(0, len(*list)).Draw(t, "n")
				q.Truncate(&pool, n)
				if pieces := len(q.pieces) - q.first; pieces != (q.off+n+pieceLen-1)/pieceLen || n == 0 && pieces > 0 {
					t.Fatalf("%d pieces of %d items", pieces, n)
				}
				*list = (*list)[:n]
			case 5:
				q.Append(&pool, &queues[1-i])
				*list, want[1-i] = append(*list, want[1-i]...), nil
			}
			for i := range queues {
				check(t, &queues[i], want[i])
			}
			for _, p := range pool.free {
				if *p != (piece[*int]{}) {
					t.Fatal("the pool holds an item")
				}
			}
		}
	})
}

func check(t *rapid.T, q *Queue[*int], want []*int) {
	t.Helper()
	if q.Len() != len(want) {
		t.Fatalf("%d items, want %d", q.Len(), len(want))
	}
	for i, v := range want {
		if *q.At(i) != v {
			t.Fatalf("at %d there is another item", i)
		}
	}
	if pieces := len(q.pieces) - q.first; pieces > len(want)/pieceLen+2 {
		t.Fatalf("%d pieces of %d items", pieces, len(want))
	}
	if q.first > len(q.pieces)-q.first {
		t.Fatalf("%d places that are free before %d pieces", q.first, len(q.pieces)-q.first)
	}
	for i, p := range q.pieces[:cap(q.pieces)] {
		if p != nil && (i < q.first || i >= len(q.pieces)) {
			t.Fatal("a removed piece is kept")
		}
	}
}

// Queues that have reached their size do not allocate, and the memory left by a burst is limited.
func TestThePoolKeepsALimitedNumberOfPieces(t *testing.T) {
	var pool Pool[int]
	var q Queue[int]
	burst := func(n int) {
		for i := range n {
			*q.Push(&pool) = i
		}
		for v := 0; q.Len() > 0; {
			q.Pop(&pool, &v)
		}
	}
	burst(1000)
	if n := testing.AllocsPerRun(10, func() { burst(1000) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(10, func() {
		for range 1000 {
			q.Push(&pool)
		}
		q.Truncate(&pool, 0)
	}); n != 0 {
		t.Errorf("%v allocations, if the queue is truncated", n)
	}
	burst(2 * maxFree * pieceLen)
	if len(pool.free) != 512 {
		t.Errorf("%d pieces are kept", len(pool.free))
	}
}
