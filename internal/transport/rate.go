package transport

import (
	"math"
	"math/bits"
	"time"
)

// The byte rate of a Window bounds the bytes of a client's snapshots and unreliable messages,
// headers included. A link that cannot carry all changes gets smaller snapshots at an even pace,
// and other flows keep their share. The rate is unlimited until the link is full for two rounds: a
// queue has built up before it, the window was reduced, or the loss has increased. The rate remains
// unlimited for snapshots that cannot be smaller. It then begins at half of the rate at which bytes
// were acknowledged, which drains the queue: all flows that begin see the link's real round trip.
// From then on it is adjusted once per round trip:
//
//   - A queueing delay q takes the share q ÷ rateSpan of it, and rateStep is added. All flows see
//     the same queue, so their rates become equal (the update of FAST TCP, with bytes).
//   - Of the share of lost packets that exceeds the usual one, half is taken. Random loss, as on
//     radio links, does not depend on the rate and is soon usual.
//   - Over QUIC or TCP, whose congestion control has its own queue, a round in which a snapshot
//     was blocked takes a quarter, and another one adds a third of rateStep.
//
// Messages take half of the rate at most, and snapshots the rest.
//
// A client that uses less than a quarter of its rate is no longer limited. All values are integers,
// because a replay on another machine must repeat each decision.
const (
	// rateRound is the least length of a round: the samples of 100 ms are hardly disturbed by
	// jitter.
	rateRound = windowSpan
	// rateNoise is the queueing delay that is not distinguished from jitter, and rateFull a larger
	// delay, which shows a full link.
	rateNoise = 18 * time.Millisecond
	rateFull  = 15 * time.Millisecond
	// fullRounds is the number of rounds, or measurements of the loss, in a row that must show a
	// full link: a single one may be due to jitter and lost acknowledgements.
	fullRounds = 2
	// easyRounds is the number of rounds in a row after which a client that uses less than a
	// quarter of its rate is no longer limited. In a single one the window may have been closed.
	easyRounds = 2
	// rateSpan is the queueing delay that would reduce the rate to 0; at most half of the rate is
	// subtracted. A queue of 50 ms reduces it by 15 %.
	rateSpan = time.Second / 3
	// rateStep, in bytes per round trip, is added in each round trip. A TCP flow adds a packet, and
	// halves. With 600 bytes, eight clients share a link unevenly.
	rateStep = 300
	// minRate, in bytes per second, and minSnapshot, in bytes, are lower bounds: ten small
	// snapshots a second. Smaller snapshots would consist only of headers.
	minRate     = 10 * minSnapshot
	minSnapshot = 250
	// packetHead is the size of the headers of a packet below the session.
	packetHead = 60

	// controlledSpan is the time for which a carrier that was busy at a flush counts as one with a
	// congestion control of its own.
	controlledSpan = 10 * time.Second

	// lossPackets is the least number of packets for a measurement of the loss. A loss up to
	// lossAllowed plus 1.5 times the usual loss, of which at most lossUsual counts, does not reduce
	// the rate. Shares are in thousandths.
	lossPackets = 50
	lossAllowed = 100
	lossUsual   = 200
)

// Unlimited is the budget of a client whose rate is not limited.
const Unlimited = math.MaxInt32

// rate is the byte rate of a Window.
type rate struct {
	limit   int           // bytes per second; 0: unlimited
	tokens  int           // bytes that may be sent, headers included; negative after a large record
	spare   int           // of tokens, bytes that messages may take
	pending int           // bytes of messages since the last snapshot
	filled  time.Duration // when tokens and spare were computed

	// The current round.
	began     time.Duration
	spent     int           // bytes of snapshots and messages that were sent in it
	snapshots int           // snapshots that are no longer in flight
	sent      int           // bytes of these snapshots
	messaged  int           // bytes of the messages before them
	delivered int           // acknowledged bytes, and as large a share of the messages
	least     time.Duration // the least sample; 0: none yet
	closing   bool          // the window was reduced
	blocked   int           // flushes without a snapshot: closed window, busy carrier

	// controlledUntil is the time until which the carrier counts as one with a congestion
	// control of its own.
	controlledUntil time.Duration

	full int // rounds in a row that show a full link
	easy int // rounds in a row without a queue, in which the client has used less than a quarter
	loss loss
}

// fill adds the tokens gained since the last call, for at most two periods, so that no burst
// follows a pause.
func (r *rate) fill(now, period time.Duration) {
	gain := int(int64(r.limit) * int64(min(now-r.filled, time.Minute)) / int64(time.Second))
	most := int(int64(r.limit) * int64(2*period) / int64(time.Second))
	r.tokens = min(r.tokens+gain, max(most, minSnapshot))
	r.spare = min(r.spare+gain/2, max(most/2, maxDatagramMessage))
	r.filled = now
}

// messages returns the bytes that unreliable messages may have.
func (r *rate) messages(now, period time.Duration) int {
	if r.limit == 0 {
		return Unlimited
	}
	next := *r
	next.fill(now, period)
	return max(next.spare, 0)
}

// say subtracts messages. The next snapshot tells how many of them arrive.
func (r *rate) say(now, period time.Duration, bytes int) {
	r.spend(now, period, bytes)
	r.spare -= bytes
	r.pending += bytes
}

// takePending returns the bytes of the messages since the last snapshot, and begins anew.
func (r *rate) takePending() int {
	n := r.pending
	r.pending = 0
	return n
}

// spend subtracts a snapshot.
func (r *rate) spend(now, period time.Duration, bytes int) {
	r.fill(now, period)
	r.tokens -= bytes
	r.spent += bytes
}

// budget returns the bytes that the next snapshot may have.
func (r *rate) budget(now, period time.Duration) int {
	if r.limit == 0 {
		return Unlimited
	}
	next := *r
	next.fill(now, period)
	return next.tokens
}

// done counts the packets of a snapshot that is no longer in flight.
func (r *rate) done(f *flight) {
	packets, acked := int(f.last-f.first+1), bits.OnesCount64(f.acked)
	r.snapshots, r.sent, r.messaged = r.snapshots+1, r.sent+f.bytes, r.messaged+f.messages
	r.delivered += (f.bytes + f.messages) * acked / packets
	r.loss.lost += packets - acked
	r.loss.packets += packets
}

// sample adds a round trip to the round.
func (r *rate) sample(s time.Duration) {
	if r.least == 0 || s < r.least {
		r.least = s
	}
}

// begin begins a round.
func (r *rate) begin(now time.Duration) {
	r.began, r.spent, r.snapshots, r.sent, r.messaged, r.delivered, r.least, r.closing, r.blocked = now, 0, 0, 0, 0, 0, 0, false, 0
}

// reset begins a round, and a measurement of the loss.
func (r *rate) reset(now time.Duration) {
	r.begin(now)
	r.loss.packets, r.loss.lost = 0, 0
}

// endRound adjusts the rate, if the round has lasted a round trip. base is the round trip of the
// link without a queue.
func (r *rate) endRound(now, srtt, base time.Duration) {
	span := now - r.began
	if span < max(srtt, rateRound) || r.least == 0 {
		return
	}
	perSecond := func(bytes int) int { return int(int64(bytes) * int64(time.Second) / int64(span)) }
	queue := max(r.least-base-rateNoise, 0)
	excess := r.loss.excess()
	held := r.blocked > 0 && now < r.controlledUntil
	if r.full++; queue <= rateFull && !r.closing && !held {
		r.full = 0
	}
	switch {
	case r.limit == 0 && (r.full < fullRounds && r.loss.high < fullRounds || r.small()):
	case r.limit == 0:
		r.limit, r.tokens, r.spare, r.filled = max(perSecond(r.delivered)/2, minRate), 0, 0, now
		fallthrough
	default:
		if now < r.controlledUntil {
			r.adjustControlled(span, srtt, held)
		} else {
			r.adjust(span, srtt, queue, excess)
		}
		if r.easy++; queue > 0 || r.limit <= 4*perSecond(r.spent) {
			r.easy = 0
		}
		if r.easy == easyRounds {
			r.limit, r.easy = 0, 0
		}
	}
	r.begin(now)
}

// small reports whether there are few messages and the snapshots cannot be smaller: a limit would
// only omit some of them, as the window does.
func (r *rate) small() bool { return r.sent+r.messaged <= r.snapshots*(minSnapshot+packetHead) }

// adjust adjusts the rate after a round.
func (r *rate) adjust(span, srtt, queue time.Duration, excess int) {
	limit := int64(r.limit)
	less := limit * int64(min(queue, rateSpan/2)) / int64(rateSpan)
	less += limit * int64(excess) / 2000
	r.limit = max(r.limit-int(less)+r.gain(rateStep, span, srtt), minRate)
}

// adjustControlled adjusts the rate after a round over a carrier with a congestion control of its
// own, which takes each loss for congestion. At its least window it has two full packets in flight:
// if both are lost, half a second passes before the next one. Of small packets more are in flight.
// held reports that snapshots were blocked.
func (r *rate) adjustControlled(span, srtt time.Duration, held bool) {
	if held {
		r.limit = max(r.limit*3/4, minRate)
		return
	}
	r.limit += r.gain(rateStep/3, span, srtt)
}

// gain returns the bytes per second that a round adds: step bytes per round trip in each round
// trip, and a quarter of the rate at most.
func (r *rate) gain(step int, span, srtt time.Duration) int {
	srtt = max(srtt, time.Millisecond)
	more := int64(step) * int64(time.Second) / int64(srtt) * int64(span) / int64(srtt)
	return int(min(more, int64(r.limit/4)))
}

// loss measures the share of lost packets, in thousandths.
type loss struct {
	packets, lost int // since the last measurement
	usual         int // follows a lower share at once, and a higher share slowly
	high          int // measurements in a row with too much loss
	last          int // of the last measurement
	measured      bool
}

// excess returns the share of lost packets above the permitted share if there is a new measurement,
// and otherwise 0.
func (l *loss) excess() int {
	if l.packets < lossPackets {
		return 0
	}
	share := 1000 * l.lost / l.packets
	l.last, l.measured = share, true
	if share < l.usual {
		l.usual = share
	}
	l.usual += (share - l.usual) / 16
	l.packets, l.lost = 0, 0
	excess := max(share-lossAllowed-min(l.usual, lossUsual)*3/2, 0)
	if l.high++; excess == 0 {
		l.high = 0
	}
	return excess
}
