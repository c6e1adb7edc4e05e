package room_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/loop"
)

// asking is a room on a virtual clock with questions that each take some time.
type asking struct {
	*bare
	clock *clock.Virtual
	// answers has the tick of each answer; its size exceeds the number of questions.
	answers chan uint64
}

func newAsking(t *testing.T) *asking {
	a := &asking{newBare(t, func(*netloop.Room) {}), clock.NewVirtual(), make(chan uint64, 32)}
	a.server.UseClock(a.clock)
	return a
}

// ask asks n questions, and returns once all of them wait.
func (a *asking) ask(n int, takes time.Duration) {
	a.t.Helper()
	for range n {
		begun := a.room.WaitingQuestions()
		go func() {
			v, err := a.room.Questions.Ask(a.t.Context(), func(tick uint64) any { a.clock.Advance(takes); return tick })
			if err != nil {
				a.t.Error(err)
			}
			a.answers <- v.(uint64)
		}()
		for a.room.WaitingQuestions() == begun {
			runtime.Gosched()
		}
	}
}

// answered runs ticks, in which n questions are answered, and returns the ticks of the answers.
func (a *asking) answered(n, ticks int) (at []uint64) {
	for range ticks {
		a.step()
	}
	for range n {
		at = append(at, <-a.answers)
	}
	slices.Sort(at)
	return at
}

// Questions take a millisecond of a tick, regardless of their number; a longer question uses up
// the time of the ticks after it.
func TestQuestionsTakeAMillisecondOfATick(t *testing.T) {
	for takes, want := range map[time.Duration][]uint64{
		0:                       {1, 1, 1, 1},
		400 * time.Microsecond:  {1, 1, 1, 2}, // The third begins in time.
		time.Millisecond:        {1, 2, 3, 4},
		3500 * time.Microsecond: {1, 4, 8, 11},
	} {
		a := newAsking(t)
		a.ask(4, takes)
		got := a.answered(4, 20)
		if !slices.Equal(got, want) {
			t.Errorf("questions of %v were answered in the ticks %v, want %v", takes, got, want)
		}
	}
}

// The time of questions is counted. A tick without a question takes none, and allocates no memory.
func TestTheTimeOfQuestionsIsCounted(t *testing.T) {
	a := newAsking(t)
	for range 10 {
		a.step()
	}
	counted := func() float64 {
		return a.room.Metrics().Values("inspect_seconds_total")["inspect_seconds_total"][0].Value
	}
	if got := counted(); got != 0 {
		t.Errorf("%v s without a question", got)
	}
	if n := testing.AllocsPerRun(100, a.room.AnswerQuestions); n != 0 {
		t.Errorf("%v allocations", n)
	}
	a.ask(4, 400*time.Microsecond)
	a.answered(4, 10)
	if got := counted(); got != 0.0016 {
		t.Errorf("%v s", got)
	}
}

// A loop of many systems is described over several ticks, a millisecond in each, and the
// description is the same.
func TestALargeLoopIsDescribedOverSeveralTicks(t *testing.T) {
	const systems = 1000
	virtual := clock.NewVirtual()
	b := newBare(t, func(r *netloop.Room) {
		for i := range systems {
			r.On(netloop.Update, fmt.Sprintf("test.%d", i), func(*netloop.Tick) {})
		}
	})
	b.server.UseClock(&slow{virtual})
	view := make(chan loop.View, 1)
	go func() {
		v, err := b.room.Questions.AskView(t.Context())
		if err != nil {
			t.Error(err)
		}
		view <- v.(loop.View)
	}()
	for b.room.WaitingQuestions() == 0 {
		runtime.Gosched()
	}
	n := 0
	for ; b.room.WaitingQuestions() > 0; n++ {
		b.step()
	}
	got := <-view
	if n < 10 || n > systems {
		t.Errorf("it took %d ticks", n)
	}
	want := b.room.Questions.View()
	for i, stage := range want.Stages {
		if len(got.Stages[i].Systems) != len(stage.Systems) {
			t.Fatalf("%v has %d systems, want %d", stage.Stage, len(got.Stages[i].Systems), len(stage.Systems))
		}
		for j := range stage.Systems {
			if got.Stages[i].Systems[j].Name != stage.Systems[j].Name {
				t.Fatalf("system %d of %v is %s, want %s", j, stage.Stage, got.Stages[i].Systems[j].Name, stage.Systems[j].Name)
			}
		}
	}
}

// slow is a clock that advances by 300 µs between two reads.
type slow struct{ *clock.Virtual }

func (s *slow) Now() time.Duration {
	s.Advance(300 * time.Microsecond)
	return s.Virtual.Now()
}
