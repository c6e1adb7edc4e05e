package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

func TestPostRunsInATickWithoutAClient(t *testing.T) {
	var room *netloop.Room
	var got []uint64
	w := open(t, func(r *netloop.Room) {
		room = r
		echo.Handle(r, func(_ *netloop.Tick, from *netloop.Client, m text) error {
			if from != nil {
				t.Error("a posted message has a sender")
			}
			got = append(got, m.N)
			return nil
		})
	})
	var wg sync.WaitGroup
	for n := range uint64(10) {
		wg.Go(func() {
			if err := echo.Post(room, text{N: n}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.Step(1)
	slices.Sort(got)
	if !slices.Equal(got, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("ran %v", got)
	}
	for n := range uint64(2000) {
		if err := echo.Post(room, text{N: n}); err != nil {
			if !errors.Is(err, netloop.ErrBusy) || n != 1024 {
				t.Errorf("post %d: %v", n, err)
			}
			return
		}
	}
	t.Error("posts are not bounded")
}

func TestTheResultOfGoRunsInALaterTick(t *testing.T) {
	release := make(chan struct{})
	var result string
	var asked, came uint64
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			asked = tick.Number()
			netloop.Go(tick, func(context.Context) (int, error) { <-release; return 6 * 7, nil },
				func(tick *netloop.Tick, n int, err error) { result, came = fmt.Sprint(n, err), tick.Number() })
			netloop.Go(tick, func(context.Context) (int, error) { panic("oops") },
				func(_ *netloop.Tick, _ int, err error) {
					if err == nil || !strings.Contains(err.Error(), "oops") {
						t.Errorf("a panic became %v", err)
					}
				})
		})
	}, netlooptest.AllowPanics())
	w.Step(3)
	if result != "" {
		t.Error("the result is there before the work is done")
	}
	close(release)
	w.Settle()
	w.Step(1)
	if result != "42 <nil>" || came <= asked {
		t.Errorf("got %q in tick %d", result, came)
	}
}

// TestSettleMakesWorkRepeatable: results come in the order of asking, whatever ends
// first, and before the virtual time of a call runs out.
func TestSettleMakesWorkRepeatable(t *testing.T) {
	const works = 8
	gates := make([]chan struct{}, works+1)
	for i := range gates {
		gates[i] = make(chan struct{})
	}
	var got []int
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			for n := range works { // The last one ends first.
				netloop.Go(tick, func(context.Context) (int, error) { <-gates[n+1]; close(gates[n]); return n, nil },
					func(_ *netloop.Tick, n int, _ error) { got = append(got, n) })
			}
		})
	})
	w.Step(1)
	close(gates[works])
	w.Settle()
	w.Step(1)
	if !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("the results are %v", got)
	}
}
