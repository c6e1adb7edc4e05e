package room

import (
	"testing"
	"time"
)

// The margin is the 5th percentile of the last second, and of a limited number of packets.
func TestMarginsAreOfTheLastSecond(t *testing.T) {
	var m margins
	if _, ok := m.least(0); ok {
		t.Error("there is a margin without an input")
	}
	const ms = time.Millisecond
	for i := range 40 { // 39, 38 … 0 ms early, 10 ms apart
		m.add(time.Duration(i)*10*ms, time.Duration(39-i)*ms)
	}
	for now, want := range map[time.Duration]time.Duration{400 * ms: 2 * ms, 1200 * ms: ms, 1390 * ms: 0} {
		if got, ok := m.least(now); !ok || got != want {
			t.Errorf("at %v the margin is %v, %v, want %v", now, got, ok, want)
		}
	}
	if _, ok := m.least(1391 * ms); ok {
		t.Error("there is a margin after a second without inputs")
	}
	for range marginsKept {
		m.add(400*ms, 7*ms)
	}
	if got, _ := m.least(400 * ms); got != 7*ms {
		t.Errorf("of %d newer ones the margin is %v", marginsKept, got)
	}
	for i := range 100 {
		m.add(400*ms, time.Duration(i)*ms)
	}
	if got, _ := m.least(400 * ms); got != 39*ms {
		t.Errorf("of the last 64 of 100 the margin is %v, want that of the fourth", got)
	}
}
