package clock

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

type refusing struct{}

func (refusing) Control(func(uintptr)) error { return errors.New("refused") }

// A timerfd that fails is closed, and the wait is as long as it would have been.
func TestAFailingAlarmIsReplacedByATimer(t *testing.T) {
	for name, spoil := range map[string]func(al *alarm){
		"the descriptor is closed":    func(al *alarm) { _ = al.file.Close() },
		"the descriptor is withheld":  func(al *alarm) { al.raw = refusing{} },
		"the kernel refuses the time": func(al *alarm) { al.set = func(uintptr) { al.err = errors.ErrUnsupported } },
	} {
		a, al := new(alarms), newAlarm()
		if al == nil {
			t.Skip("there are no timerfds")
		}
		spoil(al)
		a.put(al)
		begin := time.Now()
		a.wait(t.Context(), 2*time.Millisecond)
		if took := time.Since(begin); took < 2*time.Millisecond {
			t.Errorf("%s: the wait ended after %v", name, took)
		}
		if len(a.free) != 0 {
			t.Errorf("%s: the alarm is kept", name)
		}
		if err := al.file.Close(); err == nil {
			t.Errorf("%s: the alarm was left open", name)
		}
	}
}

// An alarm closes as others do if no context could end its waits.
func TestAnAlarmWithoutAContextCloses(t *testing.T) {
	a := new(alarms)
	a.wait(context.Background(), time.Millisecond)
	if len(a.free) != 1 {
		t.Skip("this system has no timerfd")
	}
	free, late := a.free[0], newAlarm() // The wait of the second ends after the clock.
	if err := a.close(); err != nil {
		t.Error(err)
	}
	if a.put(late); a.take() != nil || len(a.free) != 0 || free.file.Close() == nil || late.file.Close() == nil {
		t.Error("an alarm is left open")
	}
	begin := time.Now()
	if a.wait(t.Context(), 2*time.Millisecond); time.Since(begin) < 2*time.Millisecond {
		t.Errorf("without alarms a wait ends after %v", time.Since(begin))
	}
}

// An alarm waits for its time, or not at all once its context has ended, and forgets its context
// when it gets another one and when it is closed.
func TestAnAlarmFollowsOneContext(t *testing.T) {
	al := newAlarm()
	begin := time.Now()
	if !al.wait(t.Context(), 2*time.Millisecond) || time.Since(begin) < 2*time.Millisecond {
		t.Errorf("it has waited for %v", time.Since(begin))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	al.ended = ctx.Done() // Its end came before the wait.
	if !al.wait(ctx, time.Hour) {
		t.Error("the end of a context makes the alarm unusable")
	}
	forgets := 0
	for n, ends := range []func(){func() { al.follow(t.Context(), t.Context().Done()) }, func() { _ = al.close() }} {
		al.forget()
		al.forget = func() bool { forgets++; return true }
		if ends(); forgets != n+1 {
			t.Errorf("%d contexts are forgotten, want %d", forgets, n+1)
		}
	}
}

// A clock keeps 64 alarms, and does without where the system has no more.
func TestAlarmsAreBounded(t *testing.T) {
	a := new(alarms)
	for range 65 {
		a.put(newAlarm())
	}
	if len(a.free) != 64 {
		t.Errorf("%d alarms are kept", len(a.free))
	}
	if err := a.close(); err != nil {
		t.Error(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := unix.Rlimit{Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	al := newAlarm()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || al != nil {
		t.Errorf("without descriptors there is the alarm %v; %v", al, err)
	}
}
