package room

import (
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// stall is a period in which ticks were dropped, until it is logged in one line: the machine
// paused, or does not keep up. It belongs to the room's goroutine.
type stall struct {
	*core
	dropped uint64 // ticks; 0 is no stall
	begun   loop.Input
	longest time.Duration // from the start of a tick to that of the next
	until   time.Duration // game time of its end, unless more ticks are dropped
	lost    int           // number of clients that were lost
	names   []uint64      // ids of the first of them
}

const (
	// stallCalm is how long no tick may be dropped before a stall is over. By then the connections
	// of clients that have given up meanwhile are known to have ended.
	stallCalm = time.Second
	// stallLoses is the length of a stall after which clients have closed their silent connections.
	// The server detects that up to stallLoses later, because it counts their earlier packets as
	// new when it reads them after the stall.
	stallLoses = 10 * time.Second
	// stallLongest is the time after which an ongoing stall is logged.
	stallLongest = 10 * time.Second
	// stallNames bounds the clients that the line names.
	stallNames = 16
)

// observe records ticks that were dropped before the one that begins, and logs a stall that
// is over. last is the begin of the tick before.
func (s *stall) observe(in *loop.Input, last time.Duration) {
	if in.Slept > 0 { // No tick was missed until then.
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
	s.log.Warn("ticks were dropped: the machine or a tick stood still, or the server does not keep up",
		"ticks", s.dropped, "before_tick", s.begun.Tick, "longest", s.longest, "clients_lost", s.lost, "lost", s.names)
	*s = stall{core: s.core}
}
