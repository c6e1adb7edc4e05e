package e2e_test

import (
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

func TestHooksBelongIntoOpen(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.late", func(tick *netloop.Tick) {
			r.OnJoin(func(*netloop.Tick, *netloop.Client) error {
				t.Error("a hook that came too late ran")
				return nil
			})
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, "Open") {
					t.Errorf("NewPerClient recovered %q", v)
				}
			}()
			netloop.NewPerClient[int](r)
		})
	}, netlooptest.AllowPanics())
	w.Step(1)
	play(t, w, perfect)
}
