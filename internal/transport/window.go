package transport

import "time"

// The ack window decides, flush by flush, whether a client may be sent another
// snapshot. It keeps the queue of a link that carries less than it is asked to
// carry short, without slowing down a link that carries everything.
//
//	poll    Arrived(LinkFacts.LastArrival)   Acked(ranges), for each arrival
//	flush   Open ┬─ send ──▶ Sent(first, last, false)
//	             ├─ probe ─▶ Sent(first, last, true)
//	             └─ neither: the snapshot stays due
//
// It aims at a queueing delay D above the least round trip R, not at losses (the
// update of FAST TCP). What it compares with R is the least round trip of the last
// 100 ms, which jitter does not disturb (the standing round trip of Copa). And R is
// not trusted for ever: a round trip that stays above R+D is our own queue or a
// longer route, and one snapshot sent alone tells which (the measurement of BBR).
const (
	// MaxWindow bounds the snapshots in flight, and with them the memory of a
	// Window. 128 at 60 Hz is a round trip of two seconds.
	MaxWindow = 128

	// windowStart is the window before the first sample: a snapshot, the one
	// that overtakes it, and room for a lost acknowledgement of each.
	windowStart = 4
	// windowSpan is how far S and N look back: several samples at every send
	// rate in use, and shorter than what a player notices.
	windowSpan = 100 * time.Millisecond
	// windowSlack is the least D. Both ends poll at their own tick, so a round
	// trip is uncertain by two ticks, and jitter comes on top.
	windowSlack = 50 * time.Millisecond

	// windowHold and windowHoldMax bound H, how long S must stand above R+D before
	// R is measured again. A measurement that confirms R doubles it, because
	// draining the link costs snapshots.
	windowHold    = 500 * time.Millisecond
	windowHoldMax = 8 * time.Second

	// A closed window probes after twice the smoothed round trip, within these.
	probeLeast = 100 * time.Millisecond
	probeMost  = 500 * time.Millisecond

	// windowSilence is after how much silence the next arrival admits one full
	// snapshot. A client that hears nothing still sends at 10 Hz, so a hole of one
	// direction never looks like this, and cannot fill up with snapshots.
	windowSilence = 300 * time.Millisecond

	// windowPolls bounds the polls that S and N look back to. More than 32 in
	// 100 ms, which no tick rate in use reaches, share an entry.
	windowPolls = 32
)

// A Window is the ack window of one client, counted in snapshots. It belongs to
// the goroutine that owns the client (the room), knows the time only by what it
// is told, and allocates only when more is in flight than ever before.
//
// A sample is the time from a snapshot's flush to the poll that takes its first
// acknowledgement. A snapshot that leaves the window unacknowledged, because a
// later packet was acknowledged, yields none.
type Window struct {
	period time.Duration // between two snapshots, when nothing blocks
	size   int           // W

	// The snapshots in flight, oldest first: ring[(head+i)%len(ring)], i < count.
	ring  []flight
	head  int
	count int

	next uint64 // one above the highest packet id sent
	top  uint64 // one above the highest packet id acknowledged; 0 = none

	// Samples of the last 100 ms, one entry per poll, oldest first. All samples
	// of a poll are taken at one instant, so their least and largest suffice.
	polls     [windowPolls]pollSamples
	pollHead  int
	pollCount int

	least time.Duration // R; 0 = no sample yet
	srtt  time.Duration // of all samples; 0 = none yet

	hold      time.Duration // H
	above     bool          // S is above R+D, ...
	aboveFrom time.Duration // ... since then
	measuring bool
	restore   int // W before the measurement

	lastAck     time.Duration // last poll that acknowledged anything new
	lastSent    time.Duration // last snapshot or probe
	lastArrived time.Duration
	heard       bool // anything arrived at all: what was before is no silence
	admit       bool // one full snapshot may leave although the window is closed
}

// flight is one snapshot in flight.
type flight struct {
	first, last uint64
	at          time.Duration // its flush
	acked       uint64        // a bit per packet
	n           int           // snapshots in flight at its flush, itself included
	sampled     bool
}

// done says whether f leaves the window: all its packets are acknowledged, or
// one of a later snapshot or probe is. top is one above the highest packet
// acknowledged.
func (f *flight) done(top uint64) bool {
	return f.last+1 < top || f.acked == ^uint64(0)>>(63-(f.last-f.first))
}

// pollSamples is what the samples of one poll amount to.
type pollSamples struct {
	at    time.Duration
	least time.Duration
	n     int // the largest
}

// NewWindow returns the window of a client that is sent a snapshot every
// sendPeriod, which must be positive.
func NewWindow(sendPeriod time.Duration) *Window {
	if sendPeriod <= 0 {
		panic("transport: NewWindow needs a positive send period")
	}
	return &Window{period: sendPeriod, size: windowStart, hold: windowHold, ring: make([]flight, 2*windowStart)}
}

// SetPeriod changes the time between two snapshots. What is in flight stays so; W follows
// with the next samples.
func (w *Window) SetPeriod(sendPeriod time.Duration) {
	if sendPeriod <= 0 {
		panic("transport: Window.SetPeriod needs a positive send period")
	}
	w.period = sendPeriod
}

// Open says what may be sent to the client at this flush: a snapshot, a probe
// (a snapshot of at most one small packet), or, with both false, nothing: the
// snapshot then stays due. It changes nothing; Sent does.
func (w *Window) Open(now time.Duration) (send, probe bool) {
	if w.count < w.size || w.admit {
		return true, false
	}
	// The interval counts from the last acknowledgement, snapshot or probe.
	return false, now-max(w.lastAck, w.lastSent) >= w.probeInterval()
}

// probeInterval is 2·srtt within its bounds. Without any sample the link may be
// a slow one, so the longest applies.
func (w *Window) probeInterval() time.Duration {
	if w.srtt == 0 {
		return probeMost
	}
	return min(max(2*w.srtt, probeLeast), probeMost)
}

// Sent records that packets first to last left at this flush as one snapshot or
// as a probe. A probe is neither counted as in flight nor sampled: it is there
// to be acknowledged, which frees every snapshot before it. Ids increase from
// call to call; a snapshot has at most 64 packets.
func (w *Window) Sent(now time.Duration, first, last uint64, probe bool) {
	if first < w.next || last < first || last-first >= 64 {
		panic("transport: Window.Sent wants increasing packet ids, at most 64 in a snapshot")
	}
	w.next = last + 1
	w.lastSent = now
	if probe {
		return
	}
	w.admit = false
	if w.count == MaxWindow {
		w.pop() // Only those admitted after silence get here: this one is old.
	}
	w.count++
	if w.count > len(w.ring) {
		w.grow()
	}
	*w.flight(w.count - 1) = flight{first: first, last: last, at: now, n: w.count}
}

// Arrived records that anything of the client arrived. The owner calls it at a
// poll with LinkFacts.LastArrival, if that has changed: an empty datagram counts.
func (w *Window) Arrived(now time.Duration) {
	if w.heard && now-w.lastArrived >= windowSilence && w.count >= w.size {
		w.admit = true
	}
	w.heard, w.lastArrived = true, now
}

// Acked takes acknowledged packet ids, in any order, at the poll of time now. Ids
// never sent mean nothing, and neither do those known already.
func (w *Window) Acked(now time.Duration, ranges []Range) {
	top := w.top
	fresh := false
	for _, r := range ranges {
		if r.First >= w.next || r.Last < r.First {
			continue
		}
		r.Last = min(r.Last, w.next-1)
		top = max(top, r.Last+1)
		if w.mark(r) {
			fresh = true
		}
	}
	if top > w.top {
		w.top, fresh = top, true
	}
	if !fresh {
		return
	}
	w.lastAck = now
	w.takeSamples(now)
	for w.count > 0 && w.flight(0).done(w.top) {
		w.pop()
	}
}

// mark notes which packets in flight r covers, and says whether any is new.
func (w *Window) mark(r Range) bool {
	fresh := false
	for i := range w.count {
		f := w.flight(i)
		if f.last < r.First {
			continue
		}
		if f.first > r.Last {
			break
		}
		from, to := max(r.First, f.first)-f.first, min(r.Last, f.last)-f.first
		bits := (^uint64(0) >> (63 - (to - from))) << from
		if f.acked|bits != f.acked {
			f.acked |= bits
			fresh = true
		}
	}
	return fresh
}

// takeSamples samples every snapshot in flight whose first acknowledgement came
// with this poll.
func (w *Window) takeSamples(now time.Duration) {
	for i := range w.count {
		f := w.flight(i)
		if f.acked != 0 && !f.sampled {
			f.sampled = true
			w.sample(now, max(now-f.at, 1), f.n)
		}
	}
}

// sample is the update of the window by one sample s of a snapshot that was the
// n-th in flight.
func (w *Window) sample(now, s time.Duration, n int) {
	if w.srtt == 0 {
		w.srtt = s
	}
	w.srtt += (s - w.srtt) / 8
	if w.measuring {
		if n == 1 {
			w.measured(s)
		}
		return
	}
	if w.least == 0 || s < w.least {
		w.least = s
	}
	w.remember(now, s, n)
	standing, used := w.recent(now)
	limit := w.limit()
	if standing <= limit {
		w.above = false
		// Half again of what was in use lets a link take more within a few
		// samples, and gives none what it never used; at most what fits in R+D.
		// For small N this lets three or four periods in a row pass without
		// news. More headroom was tried (N+4): with 2 % loss each way it saves
		// 1 blocked snapshot in 20 000, but where a link is asked for 8 times
		// what it carries, the p99 of the age went from 1.2 to 1.8 s.
		w.resize(min((3*used+1)/2+1, ceilDiv(limit, w.period)+2))
		return
	}
	w.resize(ceilDiv(time.Duration(used)*limit, standing))
	switch {
	case !w.above:
		w.above, w.aboveFrom = true, now
	case now-w.aboveFrom >= w.hold:
		w.measuring, w.restore = true, w.size
		w.resize(1)
	}
}

// measured ends the measurement of R with the sample s of a snapshot that was
// sent alone, so that none of it is a queue of our own.
func (w *Window) measured(s time.Duration) {
	if s <= w.limit() {
		// R was right: the queue is our own doing, or shared. Ask less often.
		w.hold = min(2*w.hold, windowHoldMax)
	} else {
		w.hold = windowHold
	}
	w.least = s
	w.measuring, w.above = false, false
	w.pollCount = 0
	w.resize(w.restore)
}

// limit is R+D: up to it a round trip is not held against the link.
func (w *Window) limit() time.Duration { return w.least + max(windowSlack, w.least/4) }

// remember adds a sample to what recent looks back to.
func (w *Window) remember(now, s time.Duration, n int) {
	if w.pollCount > 0 {
		p := &w.polls[(w.pollHead+w.pollCount-1)%windowPolls]
		if p.at == now || w.pollCount == windowPolls {
			p.at, p.least, p.n = now, min(p.least, s), max(p.n, n)
			return
		}
	}
	w.polls[(w.pollHead+w.pollCount)%windowPolls] = pollSamples{at: now, least: s, n: n}
	w.pollCount++
}

// recent returns S and N: the least sample and the largest n of the last 100 ms.
// There is at least one, because it is asked when one has just been remembered.
func (w *Window) recent(now time.Duration) (standing time.Duration, used int) {
	for now-w.polls[w.pollHead].at > windowSpan {
		w.pollHead = (w.pollHead + 1) % windowPolls
		w.pollCount--
	}
	p := w.polls[w.pollHead]
	standing, used = p.least, p.n
	for i := 1; i < w.pollCount; i++ {
		p = w.polls[(w.pollHead+i)%windowPolls]
		standing, used = min(standing, p.least), max(used, p.n)
	}
	return standing, used
}

// resize sets W, which is at least 1: a link always has one snapshot in flight.
func (w *Window) resize(size int) { w.size = min(max(size, 1), MaxWindow) }

// flight is the i-th of the snapshots in flight.
func (w *Window) flight(i int) *flight { return &w.ring[(w.head+i)%len(w.ring)] }

// grow makes room for twice as many in flight: most clients never need the room that a long or a
// bad link does.
func (w *Window) grow() {
	larger := make([]flight, 2*len(w.ring))
	copy(larger[copy(larger, w.ring[w.head:]):], w.ring[:w.head])
	w.ring, w.head = larger, 0
}

func (w *Window) pop() {
	w.head = (w.head + 1) % len(w.ring)
	w.count--
}

// Size is W.
func (w *Window) Size() int { return w.size }

// InFlight is the number of snapshots in flight. It exceeds Size where W has
// shrunk since they were sent.
func (w *Window) InFlight() int { return w.count }

// SRTT is the smoothed round trip from flush to the poll that takes the
// acknowledgement, both ends' ticks included; 0 before the first sample.
func (w *Window) SRTT() time.Duration { return w.srtt }

// Least is R, the round trip of the link without a queue; 0 before the first
// sample.
func (w *Window) Least() time.Duration { return w.least }

// Measuring says whether R is being measured again, with W = 1.
func (w *Window) Measuring() bool { return w.measuring }

// ceilDiv is ⌈a÷b⌉.
func ceilDiv(a, b time.Duration) int { return int((a + b - 1) / b) }
