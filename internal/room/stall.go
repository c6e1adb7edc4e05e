package room

import (
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// stall is a period in which ticks were dropped, because the machine paused or is too slow. It is
// logged in one line. It belongs to the room's goroutine.
type stall struct {
	*core
	dropped uint64 // number of dropped ticks; 0: no stall
	begun   loop.Input
	longest time.Duration // longest time between the starts of two ticks
	until   time.Duration // game time at which the stall ends, unless more ticks are dropped
	lost    int           // number of clients that were lost
	names   []uint64      // ids of the first lost clients
}

const (
	// stallCalm is the time without dropped ticks after which a stall is over. By then the server
	// has detected the end of the connections that clients closed during the stall.
	stallCalm = time.Second
	// stallLoses is the length of a stall after which clients close their silent connections. The
	// server detects the closed connections up to stallLoses later, because it reads the packets
	// that clients sent before only after the stall, and takes them for new.
	stallLoses = 10 * time.Second
	// stallLongest is the time after which an ongoing stall is logged.
	stallLongest = 10 * time.Second
	// stallNames is the largest number of clients that the log line names.
	stallNames = 16
)

// observe records the ticks that were dropped before the tick that begins, and logs a stall that is
// over. last is the start of the previous tick.
func (s *stall) observe(in *loop.Input, last time.Duration) {
	if in.Slept > 0 { // The room slept, and missed no tick in that time.
		last = in.Deadline - s.spec.Rate.Period()*time.Duration(1+in.Dropped)
	}
	if s.dropped > 0 && (in.GameTime >= s.until || in.Dropped > 0 && in.GameTime-s.begun.GameTime >= stallLongest) {
		s.report()
	}
	if in.Dropped == 0 {
		return
	}
	if s.dropped == 0 {
		s.begun = *in
	}
	s.dropped += in.Dropped
	s.longest = max(s.longest, in.Start-last)
	s.until = max(s.until, in.GameTime+stallCalm)
	if in.Start-last >= stallLoses {
		s.until = in.GameTime + stallLoses + stallCalm
	}
}

// lostClient records a client that lost its connection during a stall.
func (s *stall) lostClient(c *Client, why *transport.Closed) {
	if s.dropped == 0 || why.Code != transport.CodeLost {
		return
	}
	if s.lost++; len(s.names) < stallNames {
		s.names = append(s.names, c.id)
	}
}

// report logs a stall and resets it.
func (s *stall) report() {
	if s.dropped == 0 {
		return
	}
	s.log.Warn("ticks were dropped: the machine paused, a tick took too long, or the server is too slow",
		"ticks", s.dropped, "before_tick", s.begun.Tick, "longest", s.longest, "clients_lost", s.lost, "lost", s.names)
	*s = stall{core: s.core}
}
