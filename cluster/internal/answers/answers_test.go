package answers

import (
	"strconv"
	"testing"
	"time"
)

const s = time.Second

func TestACallBeginsOnce(t *testing.T) {
	l := NewLog(2, 10)
	e, o := l.Begin("a", 0, s)
	if o != New {
		t.Fatal(o)
	}
	if again, o := l.Begin("a", 0, 3*s); o != Known || again != e {
		t.Fatal("a running call is not known:", o)
	}
	l.Finish(e, Answer{Body: []byte("x")})
	if again, o := l.Begin("a", 2*s, 3*s); o != Known || string(again.Answer.Body) != "x" {
		t.Fatal("the repetition has not extended the time:", o)
	}
	if _, o := l.Begin("a", 3*s, 3*s); o != Late {
		t.Fatal("a late call:", o)
	}
}

func TestCallsAreBounded(t *testing.T) {
	l := NewLog(2, 10)
	a, _ := l.Begin("a", 0, s)
	b, _ := l.Begin("b", 0, 2*s)
	if _, o := l.Begin("c", 0, s); o != Full {
		t.Fatal("a third call:", o)
	}
	l.Finish(b, Answer{Body: make([]byte, 10)})
	if _, o := l.Begin("c", s+s/2, 3*s); o != Full {
		t.Fatal("a running call was dropped:", o)
	}
	l.Finish(a, Answer{})
	if _, o := l.Begin("c", s+s/2+sweepInterval, 3*s); o != Full {
		t.Fatal("more bytes than the limit:", o)
	}
	if _, o := l.Begin("c", 2*s, 3*s); o != New {
		t.Fatal("expired answers remain:", o)
	}
	if l.bytes != 0 || len(l.calls) != 1 {
		t.Fatal("kept", l.bytes, "bytes of", len(l.calls), "calls")
	}
}

func TestManyCallsLeaveNothing(t *testing.T) {
	l := NewLog(1000, 1<<20)
	for i := range 100000 {
		now := time.Duration(i) * time.Millisecond
		e, o := l.Begin(strconv.Itoa(i), now, now+s/2)
		if o != New {
			t.Fatal(i, o)
		}
		l.Finish(e, Answer{Body: make([]byte, 100)})
	}
	if len(l.calls) > 601 {
		t.Fatal(len(l.calls), "answers are kept")
	}
}
