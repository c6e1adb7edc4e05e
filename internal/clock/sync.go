package clock

import (
	"math"
	"time"
)

const (
	// SyncWindow is the number of exchanges in the minimum filter. Among 48 exchanges at random
	// phases, the least delay in each direction is within a fraction of the jitter of the path.
	// During this many exchanges the clocks drift apart by more than that, so the drift is
	// estimated too, and subtracted.
	SyncWindow = 48
	// SyncReady is the number of exchanges before the first estimate. A player waits for them, so
	// they are fewer than the window.
	SyncReady = 8
	// SyncJump is the error at which the estimate jumps. A smaller error is corrected gradually, by
	// 1 % of the time, which is not visible and corrects 100 ms in 10 s.
	SyncJump = 100 * time.Millisecond
	// slewShare limits the correction of the estimate to 1/slewShare of the time that has passed.
	slewShare = 100
	// impossible bounds a negative round trip. A smaller one is tolerated, because a drift of
	// maxDrift over the 20 s of the window may cause it.
	impossible = 10 * time.Millisecond
	// maxSyncRTT bounds the round trip of a sample. Above it the connection is already lost, or the
	// peer's timestamps are wrong.
	maxSyncRTT = 10 * time.Second
	// maxSyncTime bounds a timestamp: 73 years, so that the difference of two timestamps does not
	// overflow for any values of the peer.
	maxSyncTime = time.Duration(1 << 61)
)

// Sync estimates the server's monotonic clock on a client. One goroutine owns it; the I/O
// goroutines of both sides take the timestamps.
//
// The offset is computed from the least delay of each direction in the window. Queues only add
// delay, so the least of many delays is close to the delay of the path without queues. The two
// least delays may be from different exchanges. The remaining error is half of the difference
// between the delays of the two directions without queues, which no exchange can measure.
type Sync struct {
	window      [SyncWindow]exchange
	count       uint64        // samples taken
	usable      uint64        // number of newest samples that are valid; may exceed the window
	at          time.Duration // time of the newest sample
	offset, rtt time.Duration // offset and rtt at that time
	drift       drift

	started       bool
	local, server time.Duration // times of the last reading
	credit        time.Duration // elapsed time that was not yet used for a correction
	jumps         uint64
}

// exchange is the result of one exchange: its approximate time, and the delay to the server and
// back, each including the unknown offset between the clocks.
type exchange struct{ at, there, back time.Duration }

// Sample takes the four timestamps of one exchange: client send, server receive, server send,
// client receive, each by the sender's or receiver's own clock. It reports whether they are
// plausible. Implausible timestamps are ignored.
func (s *Sync) Sample(t1, t2, t3, t4 time.Duration) bool {
	for _, t := range [...]time.Duration{t1, t2, t3, t4} {
		if t < -maxSyncTime || t > maxSyncTime {
			return false
		}
	}
	rtt := (t4 - t1) - (t3 - t2)
	if t4 < t1 || t3 < t2 || rtt < 0 || rtt > maxSyncRTT {
		return false
	}
	e := exchange{at: t1 + (t4-t1)/2, there: t2 - t1, back: t4 - t3}
	s.window[s.count%SyncWindow] = e
	s.count++
	s.usable++
	s.at = max(s.at, e.at)
	s.drift.add(e)
	if s.estimate(); s.rtt < -impossible {
		s.usable, s.drift = 1, drift{}
		s.estimate()
	}
	return true
}

// estimate computes offset and rtt from the least delay each way of the window, adjusted by the
// drift. If the rtt is negative by more than an unknown drift can cause, one of the clocks was set
// or stopped: Sample then discards all exchanges except the newest.
func (s *Sync) estimate() {
	there, back := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for i := range min(s.usable, SyncWindow) {
		e := &s.window[(s.count-1-i)%SyncWindow]
		gained := s.drift.over(s.at - e.at)
		there, back = min(there, e.there+gained), min(back, e.back-gained)
	}
	s.offset, s.rtt = (there-back)/2, there+back
}

// Ready reports whether there were enough samples to use the estimate.
func (s *Sync) Ready() bool { return s.count >= SyncReady }

// RTT is the least round trip of the window, an estimate of the path without queues; 0 before the
// first sample.
func (s *Sync) RTT() time.Duration { return max(s.rtt, 0) }

// Jumps returns the number of times that the estimate was off by SyncJump or more and jumped.
func (s *Sync) Jumps() uint64 { return s.jumps }

// Server returns the server's time at the client's time local. Between jumps it never decreases and
// runs between 0.99 and 1.01 times as fast as local. local must not decrease; for an earlier local,
// Server returns the last reading. Before Ready the result is a preliminary estimate, and later
// results may differ from it by a jump.
func (s *Sync) Server(local time.Duration) time.Duration {
	target := local + s.offset + s.drift.over(local-s.at)
	if !s.Ready() {
		return target
	}
	if !s.started {
		s.started = true
		s.local, s.server = local, target
		return target
	}
	passed := local - s.local
	if passed <= 0 {
		return s.server
	}
	s.local = local
	s.server += passed
	wrong := target - s.server
	if wrong >= SyncJump || wrong <= -SyncJump {
		s.server = target
		s.jumps++
		return s.server
	}
	s.credit += passed
	most := s.credit / slewShare
	s.credit -= most * slewShare
	s.server += min(max(wrong, -most), most)
	return s.server
}
