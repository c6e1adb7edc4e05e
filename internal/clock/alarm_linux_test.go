package clock

import (
	"context"
	"errors"
	"testing"
	"time"
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

// An alarm whose waits no context could end closes as others do.
func TestAnAlarmWithoutAContextCloses(t *testing.T) {
	a := new(alarms)
	a.wait(context.Background(), time.Millisecond)
	if len(a.free) != 1 {
		t.Skip("this system has no timerfd")
	}
	if err := a.close(); err != nil {
		t.Error(err)
	}
	late := newAlarm() // Its wait ends after the clock.
	if a.put(late); len(a.free) != 0 || late.file.Close() == nil {
		t.Error("an alarm is left open")
	}
}
