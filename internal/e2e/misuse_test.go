package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	zapobserver "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/netlooptest"
)

// TestAServerLogsMisusedState: the log names class, object and field, the same one at most every
// ten seconds; a metric counts each. Both only with the development checks.
func TestAServerLogsMisusedState(t *testing.T) {
	for _, check := range []bool{true, false} {
		core, logs := zapobserver.New(zapcore.ErrorLevel)
		var kept *note
		s, _ := serveAs(t, script(func(r *netloop.Room) {
			var o *netloop.Object[note]
			r.OnStart(func(tick *netloop.Tick) {
				o = notes.Spawn(tick, note{})
				kept = o.Edit(tick)
			})
			r.On(netloop.Update, "test.misuse", func(tick *netloop.Tick) {
				if tick.Number()%2 == 0 {
					kept.List = append(kept.List[:0], int16(tick.Number()))
				} else {
					o.Edit(tick).Text = strings.Repeat("long", 10)
				}
			})
		}), netloop.Config{CheckEdits: check, CheckValues: check, Log: logging.Slog(zap.New(core))})
		waitFor(t, func() bool {
			_, body := page(t, s, "/metrics")
			return !check || strings.Contains(body, `netloop_state_misuses_total{kind="unedited"} 2`) && strings.Contains(body, `netloop_state_misuses_total{kind="misfit"} 2`)
		})
		var said []string
		for _, e := range logs.FilterMessageSnippet("state misused").All() {
			said = append(said, e.Message)
			fields := e.ContextMap()
			if fields["class"] != "note" || fields["object"] != "0.1" || fields["field"] == "" {
				t.Errorf("logged with %v", fields)
			}
		}
		if want := 2; check && len(said) != want || !check && len(said) != 0 {
			t.Errorf("check %v: logged %q", check, said)
		}
	}
}

// TestRefusedValuesReplay: the setting of value checks is part of a recording.
func TestRefusedValuesReplay(t *testing.T) {
	var file bytes.Buffer
	game := script(func(r *netloop.Room) {
		var o *netloop.Object[note]
		r.OnStart(func(tick *netloop.Tick) { o = notes.Spawn(tick, note{}) })
		r.On(netloop.Update, "test.misfit", func(tick *netloop.Tick) {
			n := int(tick.Number())
			o.Edit(tick).Text = strings.Repeat(string(rune('a'+n%26)), n%40)
		})
	})
	for _, refuse := range []bool{true, false} {
		file.Reset()
		var options []netlooptest.Option
		if options = append(options, netlooptest.Record(&file)); !refuse {
			options = append(options, netlooptest.AllowMisfits())
		}
		w := netlooptest.New(ignoreErrors{t}, game, options...)
		play(t, w, perfect)
		w.Step(100)
		p, err := netloop.NewReplay(netloop.Config{}, game, bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		ticks := 0
		for ; err == nil; ticks++ {
			_, err = p.Step()
		}
		if !errors.Is(err, io.EOF) || ticks < 100 {
			t.Errorf("refuse %v: %d ticks, %v", refuse, ticks, err)
		}
	}
}

// ignoreErrors is a test that ignores Errorf.
type ignoreErrors struct{ testing.TB }

func (ignoreErrors) Errorf(string, ...any) {}

func TestHooksRegisteredAfterOpenAreRefused(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.late", func(tick *netloop.Tick) {
			r.OnJoin(func(*netloop.Tick, *netloop.Client) error {
				t.Error("a hook registered after Open ran")
				return nil
			})
			late := func(*netloop.Tick) { t.Error("a hook registered after Open ran") }
			r.OnStart(late)
			r.OnAdmit(func(context.Context, *netloop.Join) error { late(nil); return nil })
			r.OnLeave(func(*netloop.Tick, *netloop.Client, *netloop.Closed) { late(nil) })
			r.OnDrain(func(*netloop.Tick, time.Duration) { late(nil) })
			r.OnClose(func(context.Context, *netloop.Closed) error { late(nil); return nil })
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

func TestRegistrationErrorsFailOpen(t *testing.T) {
	_, err := netloop.New(netloop.Config{}, script(func(r *netloop.Room) {
		r.On(netloop.Update, "one", func(*netloop.Tick) {})
		r.On(netloop.Update, "one", func(*netloop.Tick) {})
		r.On(netloop.Update, "two", func(*netloop.Tick) {}, netloop.Before("nobody"))
		echo.Handle(r, func(*netloop.Tick, *netloop.Client, text) error { return nil })
		echo.Handle(r, func(*netloop.Tick, *netloop.Client, text) error { return nil })
	}))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"one"`, `"nobody"`, `"echo"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}

func TestAStaleTickPanicsWithTheRemedy(t *testing.T) {
	var kept *netloop.Tick
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.keep", func(tick *netloop.Tick) { kept = tick })
	})
	w.Step(1)
	all := reflect.ValueOf(kept)
	for i := range all.NumMethod() {
		name, method := all.Type().Method(i).Name, all.Method(i)
		if name == "String" { // String is for failure texts.
			continue
		}
		args := make([]reflect.Value, method.Type().NumIn())
		for k := range args {
			args[k] = reflect.Zero(method.Type().In(k))
		}
		if v := said(func() { method.Call(args) }); !strings.Contains(v, "Tick."+name) || !strings.Contains(v, "RPC.Post") {
			t.Errorf("%s: recovered %q", name, v)
		}
	}
}
