package netem

import (
	"testing"
	"time"
)

func TestEventsRunByTimeThenSequence(t *testing.T) {
	var s Schedule[int]
	for i := range 2000 {
		s.Push(time.Duration(i*7919%50), i)
	}
	last, lastAt := -1, time.Duration(-1)
	for n := 0; ; n++ {
		next, waits := s.Next()
		i, at, ok := s.Pop(40)
		if !ok {
			if n != 1640 || s.Len() != 360 || !waits || next != 41 {
				t.Fatal(n, "popped,", s.Len(), "remain, the next at", next)
			}
			return
		}
		if at < lastAt || at == lastAt && i < last || at > 40 || next != at {
			t.Fatal("after", lastAt, last, "came", at, i, "announced for", next)
		}
		last, lastAt = i, at
	}
}
