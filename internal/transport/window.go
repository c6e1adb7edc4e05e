package transport

import "time"

// The ack window decides at each flush whether a client may be sent another snapshot. It keeps the
// queue of a slow link short, without slowing down a fast link.
//
//	poll    Arrived(LinkFacts.LastArrival)   Acked(ranges), for each arrival
//	flush   Open ┬─ send ──▶ Sent(first, last, bytes, false)
//	             ├─ probe ─▶ Sent(first, last, bytes, true)
//	             └─ neither: the snapshot remains due
//
// Its target is a queueing delay D above the least round trip R, not a loss rate (the update of
// FAST TCP). It compares R with the least round trip of the last 100 ms, which jitter does not
// disturb (the standing round trip of Copa). R may become outdated: a round trip that remains above
// R+D is caused by our own queue or by a longer route. To distinguish these, one snapshot is sent
// alone (the measurement of BBR). Once the link is full, the bytes of the snapshots are limited
// too: see rate.go.
const (
	// MaxWindow bounds the snapshots in flight, and so the memory of a Window. 128 at 60 Hz is a
	// round trip of two seconds.
	MaxWindow = 128

	// windowStart is the size W before the first sample: two snapshots in flight, and for each of
	// them one more in case an acknowledgement is lost.
	windowStart = 4
	// windowSpan is the period over which S (the least round trip) and N (the most snapshots in
	// flight) are taken: long enough for several samples at every send rate in use, and too short
	// for a player to notice.
	windowSpan = 100 * time.Millisecond
	// windowSlack is the least value of D, the queueing delay that is allowed above the least round
	// trip R. Both ends poll at their own tick, so a round trip is uncertain by two ticks, plus
	// jitter.
	windowSlack = 50 * time.Millisecond

	// windowHold and windowHoldMax bound H: once the recent least round trip S has been above R+D
	// for the time H, R is measured again. A measurement that confirms R doubles H, because
	// draining the link costs snapshots.
	windowHold    = 500 * time.Millisecond
	windowHoldMax = 8 * time.Second

	// A closed window probes after twice the smoothed round trip, within these bounds.
	minProbe = 100 * time.Millisecond
	maxProbe = 500 * time.Millisecond

	// breakAfter is the time without an acknowledgement after which only probes are sent: the
	// circuit breaker of RFC 8083 and RFC 8085 (section 3.1.10). Then only a window for a round
	// trip of about this length is still open.
	breakAfter = 2 * time.Second

	// windowSilence is the silence after which the next arrival admits one full snapshot. A client
	// that receives no data still sends at 10 Hz, so a path that fails in one direction does not
	// count as silence, and is not filled with snapshots.
	windowSilence = 300 * time.Millisecond

	// windowPolls is the size of the ring of polls from which S and N are taken. Beyond 32 polls in
	// 100 ms, which no tick rate in use reaches, polls share an entry.
	windowPolls = 32
)

// A Window is the ack window of one client: it bounds the client's snapshots in flight. It belongs
// to the goroutine that owns the client (the room), uses only the times that are passed to it, and
// allocates only when more snapshots are in flight than ever before.
//
// A sample is the time from a snapshot's flush to the poll with its first acknowledgement. A
// snapshot that is removed because a later packet was acknowledged gives no sample.
type Window struct {
	period time.Duration // between two snapshots, when the window is open
	size   int           // W

	// The snapshots in flight, oldest first: ring[(head+i)%len(ring)], i < count.
	ring  []flight
	head  int
	count int

	next uint64 // one above the highest packet id sent
	top  uint64 // one above the highest acknowledged packet id; 0: none

	messaged uint64 // the first packet id after the newest messages

	// Samples of the last 100 ms, one entry per poll, oldest first. All samples
	// of a poll are taken at one instant, so their least and largest suffice.
	polls     [windowPolls]pollSamples
	pollHead  int
	pollCount int

	least time.Duration // R; 0: no sample yet
	srtt  time.Duration // smoothed round trip of all samples; 0: none yet

	hold      time.Duration // H
	above     bool          // S is above R+D, ...
	aboveFrom time.Duration // ... since this time
	measuring bool
	restore   int // W before the measurement

	lastAck     time.Duration // last poll with a new acknowledgement
	lastSent    time.Duration // last snapshot or probe
	lastArrived time.Duration
	heard       bool // a packet has arrived; the time before the first one is no silence
	admit       bool // one full snapshot may be sent although the window is closed

	rate rate
}

// flight is one snapshot in flight.
type flight struct {
	first, last uint64
	bytes       int           // bytes of the snapshot, with the headers of its packets
	messages    int           // bytes of the unreliable messages since the snapshot before it
	at          time.Duration // time of its flush
	acked       uint64        // one bit per packet
	n           int           // snapshots in flight at its flush, including itself
	sampled     bool
}

// done reports whether f is no longer in flight: all its packets are acknowledged, or a packet of
// a later snapshot or probe is acknowledged. top is one above the highest packet acknowledged.
func (f *flight) done(top uint64) bool {
	return f.last+1 < top || f.acked == ^uint64(0)>>(63-(f.last-f.first))
}

// pollSamples holds the least time and the largest number of snapshots in flight among all samples
// of one poll.
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

// SetPeriod changes the time between two snapshots. Snapshots in flight are not affected; the size
// W of the window adapts with the next samples.
func (w *Window) SetPeriod(sendPeriod time.Duration) {
	if sendPeriod <= 0 {
		panic("transport: Window.SetPeriod needs a positive send period")
	}
	w.period = sendPeriod
}

// Open reports whether a snapshot may be sent to the client at this flush, or a probe (a snapshot
// of at most one small packet). With both false, the snapshot remains due. It changes no state;
// Sent does.
func (w *Window) Open(now time.Duration) (send, probe bool) {
	open := w.count < w.size && !w.unacknowledged(now) || w.admit || w.aloneLost(now)
	if open && w.Budget(now) >= minSnapshot {
		return true, false
	}
	// The interval begins at the last acknowledgement, snapshot or probe.
	return false, now-max(w.lastAck, w.lastSent) >= w.probeInterval()
}

// unacknowledged reports whether no acknowledgement has arrived for breakAfter, although snapshots
// are in flight.
func (w *Window) unacknowledged(now time.Duration) bool {
	return w.count > 0 && now-max(w.lastAck, w.flight(0).at) >= breakAfter
}

// aloneLost reports whether the snapshot that was sent alone to measure R seems to be lost. Without
// another snapshot the client would get none for a second.
func (w *Window) aloneLost(now time.Duration) bool {
	return w.measuring && now-max(w.lastAck, w.lastSent) >= min(w.srtt+w.srtt/2, maxProbe/2)
}

// probeInterval is 2·srtt within its bounds, and maxProbe without a sample, because the link may
// be a slow one.
func (w *Window) probeInterval() time.Duration {
	if w.srtt == 0 {
		return maxProbe
	}
	return min(max(2*w.srtt, minProbe), maxProbe)
}

// Budget returns the number of bytes that a snapshot may have now, or Unlimited if the link can
// carry all changes. A record that cannot be divided may exceed it, and delays the next snapshot.
func (w *Window) Budget(now time.Duration) int {
	b := w.rate.budget(now, w.period)
	if w.measuring { // While R is measured, one snapshot per round trip is sent in any case.
		b = max(b, minSnapshot)
	}
	return b
}

// Messages returns the number of bytes that the unreliable messages of this flush may have, after
// its snapshot: Unlimited if the link can carry all changes, and 0 while the window is closed, only
// probes are sent, or a snapshot alone measures the round trip.
func (w *Window) Messages(now time.Duration) int {
	if w.count >= w.size && w.lastSent != now || w.unacknowledged(now) || w.measuring {
		return 0
	}
	return w.rate.messages(now, w.period)
}

// Said records that unreliable messages of bytes bytes in total were sent at this flush.
func (w *Window) Said(now time.Duration, bytes int) {
	w.messaged = w.next
	w.rate.say(now, w.period, bytes)
}

// Blocked records that no snapshot was sent at this flush, although one was due: the carrier has
// not sent the last one yet, or Open returned false.
func (w *Window) Blocked(now time.Duration, carrier bool) {
	if carrier {
		w.rate.controlledUntil = now + controlledSpan
	}
	if carrier || w.count >= w.size {
		w.rate.blocked++
	}
}

// Sent records that packets first to last, with bytes bytes in total, were sent at this flush as
// one snapshot or as a probe. A probe is neither counted as in flight nor sampled: its
// acknowledgement frees every snapshot before it. Ids increase from call to call; a snapshot has at
// most 64 packets.
func (w *Window) Sent(now time.Duration, first, last uint64, bytes int, probe bool) {
	if first < w.next || last < first || last-first >= 64 {
		panic("transport: Window.Sent wants increasing packet ids, at most 64 in a snapshot")
	}
	w.next = last + 1
	w.lastSent = now
	if probe {
		return
	}
	bytes += packetHead * int(last-first+1)
	w.rate.spend(now, w.period, bytes)
	alone := w.measuring && !w.admit
	w.admit = false
	if w.count == MaxWindow {
		w.pop() // Only snapshots admitted after silence exceed W: this one is old.
	}
	w.count++
	if w.count > len(w.ring) {
		w.grow()
	}
	n := w.count
	switch {
	case alone && w.top <= w.messaged:
		n = 2 // Messages may delay it.
	case alone:
		n = 1 // A snapshot that seems to be lost does not delay this one.
	}
	*w.flight(w.count - 1) = flight{first: first, last: last, bytes: bytes, messages: w.rate.takePending(), at: now, n: n}
}

// Arrived records an arrival of the client. The owner calls it at a poll with
// LinkFacts.LastArrival, if that has changed; an empty datagram counts too.
func (w *Window) Arrived(now time.Duration) {
	if w.heard && now-w.lastArrived >= windowSilence && w.count >= w.size {
		w.admit = true
	}
	w.heard, w.lastArrived = true, now
}

// Acked handles acknowledged packet ids, in any order, at the poll of time now. Ids never sent, or
// acknowledged before, have no effect.
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
	hole := now-w.lastAck >= breakAfter
	w.lastAck = now
	w.takeSamples(now)
	for w.count > 0 && w.flight(0).done(w.top) {
		w.rate.done(w.flight(0))
		w.pop()
	}
	switch {
	case hole:
		w.rate.reset(now)
	case w.measuring: // A snapshot sent alone shows neither a rate nor a queue.
		w.rate.begin(now)
	default:
		w.rate.endRound(now, w.srtt, w.least)
	}
}

// mark records the packets in flight that r covers, and reports whether any is new.
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

// takeSamples takes a sample of every snapshot in flight that is first acknowledged at this poll.
func (w *Window) takeSamples(now time.Duration) {
	for i := range w.count {
		f := w.flight(i)
		if f.acked != 0 && !f.sampled {
			f.sampled = true
			w.sample(now, max(now-f.at, 1), f.n)
		}
	}
}

// sample updates the window by the round trip s of one snapshot; n snapshots were in flight when it
// was sent, including itself.
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
	w.rate.sample(s)
	w.remember(now, s, n)
	standing, used := w.recent(now)
	limit := w.limit()
	if standing <= limit {
		w.above = false
		// The new size is 1.5 times the number of snapshots in use, which lets a link carry more
		// within a few samples, and does not enlarge an unused window; the bound is the number that
		// fits in R+D. With a small N, three or four periods in a row may pass without an
		// acknowledgement. More headroom was tried (N+4): with 2 % loss each way it saves 1 blocked
		// snapshot in 20 000, but on a link asked for 8 times its capacity, the p99 of the age rose
		// from 1.2 to 1.8 s.
		w.resize(min((3*used+1)/2+1, ceilDiv(limit, w.period)+2))
		return
	}
	if w.rate.limit == 0 { // With a limit, smaller snapshots shorten the queue.
		w.rate.closing = true
		w.resize(ceilDiv(time.Duration(used)*limit, standing))
	}
	switch {
	case !w.above:
		w.above, w.aboveFrom = true, now
	case now-w.aboveFrom >= w.hold:
		w.measuring, w.restore = true, w.size
		w.resize(1)
	}
}

// measured ends the measurement of R with the sample s of a snapshot that was sent alone, so that s
// does not include our own queue.
func (w *Window) measured(s time.Duration) {
	if s <= w.limit() {
		// R was right: the queue is caused by this flow or by others. Measure less often.
		w.hold = min(2*w.hold, windowHoldMax)
	} else {
		w.hold = windowHold
		w.rate.limit = 0 // The rate was limited because of the longer route.
	}
	w.least = s
	w.measuring, w.above = false, false
	w.pollCount = 0
	w.resize(w.restore)
}

// limit is R+D, the least round trip plus the allowed queueing delay: round trips up to it do not
// shrink the window.
func (w *Window) limit() time.Duration { return w.least + max(windowSlack, w.least/4) }

// remember adds a sample to polls, from which recent computes S and N.
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

// recent returns S and N: the least sample and the largest n of the last 100 ms. There is at least
// one sample, because recent is called directly after remember.
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

// resize sets W, the number of snapshots that may be in flight, from 1 to MaxWindow: with 0 no
// sample could follow.
func (w *Window) resize(size int) { w.size = min(max(size, 1), MaxWindow) }

// flight returns the i-th snapshot in flight.
func (w *Window) flight(i int) *flight { return &w.ring[(w.head+i)%len(w.ring)] }

// grow doubles the ring. It starts small, because only a long or a bad link needs a large one.
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

// InFlight is the number of snapshots in flight. It exceeds Size if W has shrunk since they were
// sent.
func (w *Window) InFlight() int { return w.count }

// SRTT is the smoothed round trip from flush to the poll with the acknowledgement, including the
// ticks of both ends; 0 before the first sample.
func (w *Window) SRTT() time.Duration { return w.srtt }

// Loss is the share of lost packets in thousandths, of the last 50 or more packets that were
// measured together. It is false before the first measurement.
func (w *Window) Loss() (thousandths int, ok bool) { return w.rate.loss.last, w.rate.loss.measured }

// LastAck is the time of the poll with the newest acknowledgement; false before the first one.
func (w *Window) LastAck() (time.Duration, bool) { return w.lastAck, w.top > 0 }

// ceilDiv is ⌈a÷b⌉.
func ceilDiv(a, b time.Duration) int { return int((a + b - 1) / b) }
