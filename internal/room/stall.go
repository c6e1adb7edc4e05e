package room

import (
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// stall is a time in which ticks were dropped, until it is told of in one line of the log:
// a machine that stood still, or that does not keep up. It belongs to the room's goroutine.
type stall struct {
	dropped uint64 // ticks; 0 is no stall
	begun   loop.Input
	longest time.Duration // from the start of a tick to that of the next
	until   time.Duration // game time at which it is over, unless more is dropped
	lost    int           // clients
	names   []uint64      // of the first of them
}

const (
	// stallCalm is how long no tick may be dropped before a stall is over. By then the clients
	// that have given up meanwhile are known to be gone.
	stallCalm = time.Second
	// stallLoses is the wait after which clients have given the server up. The server has not:
	// what they had sent before looks new to it, and it finds out as much later.
	stallLoses = 10 * time.Second
	// stallLongest is after how long a stall that does not end is told of all the same.
	stallLongest = 10 * time.Second
	// stallNames bounds the clients that the line names.
	stallNames = 16
)

// observeStall takes note of ticks that were dropped before the one that begins, the last
// of which began at a time, and tells of a stall that is over.
func (r *Room) observeStall(in *loop.Input, last time.Duration) {
	s := &r.stall
	if in.Slept > 0 { // Until then nobody missed a tick.
		last = in.Deadline - r.spec.Rate.Period()*time.Duration(1+in.Dropped)
	}
	if s.dropped > 0 && (in.GameTime >= s.until || in.Dropped > 0 && in.GameTime-s.begun.GameTime >= stallLongest) {
		r.tellStall()
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

// lostInStall takes note of a client whose connection broke during a stall.
func (r *Room) lostInStall(c *Client, why *transport.Closed) {
	s := &r.stall
	if s.dropped == 0 || why.Code != transport.CodeLost {
		return
	}
	if s.lost++; len(s.names) < stallNames {
		s.names = append(s.names, c.id)
	}
}

// tellStall writes the line of a stall, and forgets it.
func (r *Room) tellStall() {
	s := &r.stall
	if s.dropped == 0 {
		return
	}
	r.log.Warn("ticks were dropped: the machine or a tick stood still, or the server does not keep up",
		"ticks", s.dropped, "before_tick", s.begun.Tick, "longest", s.longest, "clients_lost", s.lost, "lost", s.names)
	*s = stall{}
}
