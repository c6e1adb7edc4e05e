package e2e_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// An invalid registration of a client is rejected, logged and returned by Err, and has no other
// effect, before and after the first Step.
func TestABadAnchorOfAClientIsRejectedAtAnyTime(t *testing.T) {
	for _, when := range []string{"before the first Step", "later"} {
		t.Run(when, func(t *testing.T) {
			var log strings.Builder
			w := open(t, func(*netloop.Room) {})
			c := w.JoinAs(client.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, perfect)
			if when == "later" {
				w.Step(20)
			}
			var ran []string
			removed := false
			note := func(name string) func(*netloop.Tick) {
				return func(*netloop.Tick) { ran = append(ran, name) }
			}
			behind := c.On(netloop.Update, "behind", note("behind"), netloop.After("bad"))
			bad := c.On(netloop.Update, "bad", note("bad"), netloop.After("nobody"), netloop.OnRemove(func() { removed = true }))
			grouped := c.On(netloop.Update, "grouped", note("grouped"), netloop.InSystemGroup("no group"))
			twice := c.On(netloop.Update, "transport.poll", note("twice"))
			good := c.On(netloop.Update, "good", note("good"))
			w.Step(20)
			if c.State().Phase != client.Playing || c.Closed() != nil {
				t.Fatalf("it is %v, %v", c.State().Phase, c.Closed())
			}
			for s, want := range map[*netloop.System]string{
				bad:     `netloop: system "bad" is to run after "nobody", which is not registered`,
				grouped: `netloop: system "grouped" is to be in group "no group", which is not registered`,
				behind:  `netloop: system "behind" is to run after "bad", which is not registered`,
				twice:   `netloop: the name "transport.poll" is in use: remove that system first or choose another name`,
			} {
				if s.Err() == nil || s.Err().Error() != want {
					t.Errorf("%s: %v, want %s", s.Name(), s.Err(), want)
				}
			}
			if n := strings.Count(log.String(), "registration rejected"); n != 4 || !strings.Contains(log.String(), "nobody") {
				t.Errorf("%d lines of the log: %s", n, log.String())
			}
			if ran = slices.Compact(ran); good.Err() != nil || !slices.Equal(ran, []string{"good"}) || removed {
				t.Errorf("%v; %v ran; OnRemove was called: %v", good.Err(), ran, removed)
			}
			again := c.On(netloop.Update, "bad", note("again")) // The name is free again.
			w.Step(1)
			if again.Err() != nil || ran[len(ran)-1] != "again" {
				t.Errorf("again: %v, %v", again.Err(), ran)
			}
			if bad.Change(netloop.After()); bad.Err() == nil {
				t.Error("a rejected system can be changed")
			}
		})
	}
}

func TestAClientHasAddAndGroups(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	c := w.Join("", nil, perfect)
	var ran []string
	on := true
	note := func(name string) func(*netloop.Tick) {
		return func(*netloop.Tick) { ran = append(ran, name) }
	}
	// The system is registered before its group.
	c.On(netloop.Update, "inside", note("inside"), netloop.InSystemGroup("drawing"))
	both := c.Add("both", func(s netloop.Stage) func(*netloop.Tick) {
		if s == netloop.Update || s == netloop.PreUpdate {
			return note("both at " + s.String())
		}
		return nil
	}, netloop.Before("drawing"))
	group := c.Group("drawing", netloop.RunIf(func(*netloop.Tick) bool { return on }))
	w.Step(1)
	if both.Err() != nil || group.Err() != nil || !slices.Equal(ran, []string{"both at PreUpdate", "both at Update", "inside"}) {
		t.Errorf("%v, %v; %q ran", both.Err(), group.Err(), ran)
	}
	ran, on = nil, false
	w.Step(1)
	if !slices.Equal(ran, []string{"both at PreUpdate", "both at Update"}) {
		t.Errorf("while the group's condition is false, %q ran", ran)
	}
	if bad := c.Add("none", nil); bad.Err() == nil || bad.Name() != "none" {
		t.Errorf("%q without a function: %v", bad.Name(), bad.Err())
	}
	if bad := c.Group("drawing"); bad.Err() == nil {
		t.Error("two groups have the same name")
	}
}

func TestAClientHasALoop(t *testing.T) {
	x := new(trees)
	w := open(t, func(*netloop.Room) {})
	c := play(t, w, perfect)
	c.On(0, "a", x.note("a"))
	l := c.Loop()
	l.InsertBefore("a", x.system("b"))
	set(t, l)
	x.tick(t, w, "b a")
	l = c.Loop()
	l.Disable("transport.poll")
	if err := l.Set(); err == nil || !strings.Contains(err.Error(), "no packet from the server") {
		t.Errorf("error %v", err)
	}
}

func TestClosingAClientRemovesItsSystems(t *testing.T) {
	x := new(trees)
	w := open(t, func(*netloop.Room) {})
	c := play(t, w, perfect)
	var told []string
	for _, name := range []string{"a", "b"} {
		c.On(0, name, x.note(name), netloop.OnRemove(func() { told = append(told, name) }))
	}
	x.tick(t, w, "a b")
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		x.tick(t, w, "")
	}
	if !slices.Equal(told, []string{"a", "b"}) {
		t.Errorf("got %v", told)
	}
}
