package room_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// stalling is a bare server; the test controls its log and time.
type stalling struct {
	*bare
	logs *logtest.ObservedLogs
	now  time.Duration
}

func newStalling(t *testing.T) *stalling {
	t.Helper()
	core, logs := logtest.New(zapcore.InfoLevel)
	s := &stalling{newBareAs(t, netloop.Config{Log: logging.Slog(zap.New(core))}, func(*netloop.Room) {}), logs, 0}
	s.tickAfter(0)
	return s
}

// tickAfter runs a tick after the given number of dropped ticks.
func (s *stalling) tickAfter(dropped uint64) {
	s.t.Helper()
	s.tick++
	r := s.room
	s.now += time.Duration(dropped+1) * r.Spec().Rate.Period()
	in := r.Timeline().Input(s.tick)
	in.Start, in.Dropped, in.EpochMoved = s.now, dropped, dropped > 0
	if err := r.Step(in); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stalling) calm(ticks int) {
	s.t.Helper()
	for range ticks {
		s.tickAfter(0)
	}
}

// lines empties the log and returns its lines about stalls.
func (s *stalling) lines() (all []string) {
	for _, e := range s.logs.TakeAll() {
		m := e.ContextMap()
		all = append(all, fmt.Sprint(m["ticks"], " ", m["before_tick"], " ", m["longest"].(time.Duration).Round(time.Millisecond), " ", m["clients_lost"], " ", m["lost"]))
	}
	return all
}

// A stall is logged in one line: its ticks, time, duration, and lost clients, up to a limit.
func TestAStallIsToldInOneLine(t *testing.T) {
	s := newStalling(t)
	var all []*testConn
	for range room.StallNames + 4 {
		all = append(all, s.join())
	}
	s.calm(60)
	all[0].End(transport.Closed{Code: netloop.CodeLost}) // Before the stall.
	s.calm(1)
	s.tickAfter(175)
	all[1].End(transport.Closed{Code: netloop.CodeLeft, Remote: true})
	for i, session := range all[2:5] {
		session.End(transport.Closed{Code: netloop.CodeLost})
		s.calm(i)
	}
	if said := s.lines(); said != nil {
		t.Error("told before it was over:", said)
	}
	s.calm(60)
	if said := fmt.Sprint(s.lines()); said != "[175 63 2.933s 3 [3 4 5]]" {
		t.Error("the log says", said)
	}
	s.calm(600)
	s.tickAfter(1200)
	for i, session := range all[5:] {
		if session.End(transport.Closed{Code: netloop.CodeLost}); i == 3 {
			s.calm(9 * 60) // The server detects the other losses as late as the clients did.
		}
	}
	s.calm(2*60 + 1)
	want := "1200 " + fmt.Sprint(s.tick-11*60-1) + " 20.017s 15 [6 7 8 9 10 11 12 13 14 15 16 17 18 19 20]"
	if said := s.lines(); len(said) != 1 || said[0] != want {
		t.Errorf("the log says %q, want %q", said, want)
	}
	s.calm(600)
	if said := s.lines(); said != nil {
		t.Error("told again:", said)
	}
}

// A server that never keeps up logs it once in ten seconds, and at its end.
func TestStallsThatDoNotEndAreToldRarely(t *testing.T) {
	s := newStalling(t)
	var all []*testConn
	for range room.StallNames + 4 {
		all = append(all, s.join())
	}
	s.calm(1)
	for range 25 * 60 { // 25 s of game time, 50 s of the clock.
		s.tickAfter(1)
	}
	if said := fmt.Sprint(s.lines()); said != "[600 3 33ms 0 [] 600 603 33ms 0 []]" {
		t.Error("the log says", said)
	}
	for _, session := range all {
		session.End(transport.Closed{Code: netloop.CodeLost})
	}
	s.calm(1)
	if err := s.room.Shutdown.Finish(netloop.CodeClosing, ""); err != nil {
		t.Fatal(err)
	}
	if said := fmt.Sprint(s.lines()); said != "[300 1203 33ms 20 [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16]]" {
		t.Error("at the end the log says", said)
	}
}

// The line of a stall waits for the clients that it has lost: a second, or, after clients have
// given the server up, until the server has detected it.
func TestTheLineOfAStallWaitsForTheLost(t *testing.T) {
	// 600 dropped ticks are a stall of just over 10 s.
	for dropped, want := range map[uint64]int{0: -1, 1: 60, 598: 60, 600: 660} {
		s := newStalling(t)
		s.tickAfter(dropped)
		waited := -1
		for n := 1; n <= 700 && waited < 0; n++ {
			if s.calm(1); s.lines() != nil {
				waited = n
			}
		}
		if waited != want {
			t.Errorf("after %d dropped ticks the line comes %d ticks later, want %d", dropped, waited, want)
		}
	}
}
