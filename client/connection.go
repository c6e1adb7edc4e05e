package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// connection is the client's connection, and its seat in a room, which it keeps after the loss of
// the connection. Only Step's goroutine uses it, except closed.
type connection struct {
	*core
	cfg    Config
	params []byte                          // Config.Join
	dial   func(context.Context, *attempt) // connects in the background; calls attempt.finish once
	jitter *rand.Rand                      // varies the delays between attempts to reconnect
	// welcomed sets the client's clock and rates from the server's welcome, before the next frame.
	// It returns an error for an invalid welcome.
	welcomed func(*attempt) error
	end      func(netloop.Closed) // ends the client

	session *transport.Session // the newest session; nil until the first one
	served  *schema.Foreign    // the server's schema if it differs from the client's, else nil
	movable bool               // the server may move the client to another room over the connection
	travels bool               // the client can dial other servers than that of its first dial
	server  *transport.Address // server of its room; nil: the server of its first dial
	trip    *trip              // move to another server; nil: none
	since   time.Duration      // when the connection began
	silence silence
	traffic transport.Stats
	rejoin  *rejoin // nil while connected

	id       netloop.ClientID
	minor    int    // minor version of the schema in use
	room     string // the current room, or the requested one
	ticket   string // sent with the request; empty: none
	instance []byte // id of the server process
	secret   []byte // the resume token; empty if the server keeps no seat
	keep     time.Duration
	backlog  *transport.Backlog // nil if the server keeps no seat
	before   uint64             // reliable messages received before this connection
	received uint64             // all reliable messages received
	attempts uint64             // to connect; the server refuses one that arrives late

	state   State
	onState []func(State)

	mu     sync.Mutex
	closed *netloop.Closed // under mu
	done   chan struct{}   // a channel that is closed once the field closed is set
}

// rejoin is the state of a client that has lost its connection, or that moves to another room,
// until a game has resumed or admitted it.
type rejoin struct {
	since   time.Duration // time at which the loss was detected
	tries   int
	next    time.Duration // time of the next attempt, after the last one has failed
	dialing *attempt      // attempt in progress
	dialed  *attempt      // attempt that has connected and waits for the next poll
	joining bool          // connected; the server has not sent yet that the client is admitted
	anew    bool          // a new seat was joined, which the next attempt may resume
	resumed bool          // the seat of before the loss was resumed
	moves   bool          // the client moves to another room; its connection still works
	trip    *trip         // the client has left for another server; nil: it has not
	err     error         // error of the last attempt, or of the lost connection; nil in a move
	state   State         // state before the loss, to which the client returns
}

const (
	minBackOff = 100 * time.Millisecond // after the first attempt; doubles with each further one
	maxBackOff = 5 * time.Second
	// unansweredBackOff replaces maxBackOff after an attempt without any answer. Such attempts cost
	// a server no work, and if they are frequent, the client reconnects soon after the server has
	// restarted.
	unansweredBackOff = 600 * time.Millisecond
	// minUnanswered, or unansweredTrips round trips of the last connection if that is longer, is
	// the time after which an attempt without any answer is given up. QUIC sends again after 0.2,
	// 0.6 and 1.4 s.
	minUnanswered   = time.Second
	unansweredTrips = 3
	// minDial limits the first dial, and each later limit is twice as long, up to maxDial. The
	// first limits are short, because a restarted server does not answer a dial that began before
	// the restart.
	minDial = time.Second
	maxDial = 5 * time.Second
	// maxMove limits a move over an existing connection. Usually a limit of the server ends the
	// move earlier.
	maxMove = time.Minute
)

// ended returns the reason why the client ended, or nil. It may be called from any goroutine.
func (n *connection) ended() *netloop.Closed {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

// setEnded records the reason why the client ended, and stops reconnecting. It reports false if the
// client has already ended.
func (n *connection) setEnded(why *netloop.Closed) bool {
	n.mu.Lock()
	first := n.closed == nil
	if first {
		n.closed = why
		close(n.done)
	}
	n.mu.Unlock()
	if first {
		n.dropTrip()
	}
	if r := n.rejoin; first && r != nil {
		n.rejoin = nil
		r.discard()
		if r.joining {
			n.session.Close(netloop.CodeLeft, "")
		}
	}
	return first
}

// live reports whether the client is connected.
func (n *connection) live() bool { return n.session != nil && (n.rejoin == nil || n.rejoin.joining) }

func (n *connection) setState(s State) {
	if s == n.state {
		return
	}
	n.state = s
	for _, fn := range n.onState {
		n.call("OnState", func() { fn(s) })
	}
}

// present returns the client's state or, while it is Reconnecting, the state to which it will
// return. become changes the state.
func (n *connection) present() State {
	if n.rejoin != nil {
		return n.rejoin.state
	}
	return n.state
}

func (n *connection) become(s State) {
	if n.rejoin != nil {
		n.rejoin.state = s
		return
	}
	n.setState(s)
}

// reconnects reports whether the client reconnects after a connection that ended with this code.
func (n *connection) reconnects(code netloop.Code) bool {
	switch {
	case n.cfg.Reconnect.Off || n.ended() != nil:
		return false
	case code == netloop.CodeLost || code == netloop.CodeTimeout:
		return true
	}
	return n.rejoin != nil && temporary(code)
}

// temporary reports whether a server that refuses with this code may accept the client later.
func temporary(code netloop.Code) bool {
	switch code {
	case transport.CodeUnspecified, netloop.CodeFull, netloop.CodeBusy, netloop.CodeClosing, netloop.CodeTimeout,
		netloop.CodeFlood, netloop.CodeLost, netloop.CodeInternal:
		return true
	}
	return false
}

// broken handles the loss of the connection: it starts to reconnect or, if the client already
// reconnects, plans the next attempt.
func (n *connection) broken(why netloop.Closed) {
	if n.rejoin == nil {
		n.log.Warn("connection is broken, reconnecting", "error", &why)
	}
	n.drop(why)
}

// drop is broken without a message in the log.
func (n *connection) drop(why netloop.Closed) {
	n.session.Close(transport.CodeTimeout, why.Text) // No effect if the session has ended.
	now := n.clock.Now()
	if r := n.rejoin; r != nil {
		if r.err == nil {
			r.since = now
		}
		r.joining = false
		n.retry(r, &why, now+n.backOff(r.tries, maxBackOff))
		return
	}
	n.stats.Drops++
	n.rejoin = &rejoin{since: now, next: now, state: n.state, err: &why}
	n.reconnect()
}

// reconnect is called in each Step. It starts attempts that are due, and handles their results.
func (n *connection) reconnect() {
	r, now := n.rejoin, n.clock.Now()
	if r == nil {
		return
	}
	tried := now - r.since
	if r.err == nil { // GiveUp does not apply to a move over an existing connection.
		if tried >= maxMove {
			n.end(netloop.Closed{Code: netloop.CodeTimeout, Text: fmt.Sprintf("the other room did not answer within %v", maxMove)})
			return
		}
	} else if tried >= n.cfg.Reconnect.GiveUp {
		n.end(netloop.Closed{
			Code: netloop.CodeLost,
			Text: fmt.Sprintf("connection is broken, and %d attempts to reconnect in %v failed: %v", r.tries, tried.Round(time.Millisecond), r.err),
		})
		return
	}
	switch {
	case r.trip != nil && r.dialing != nil:
		n.finishTrip(r, now)
	case r.dialing != nil:
		n.finishDial(r, now)
	case r.dialed == nil && !r.joining && now >= r.next:
		n.redial(r, now)
	}
}

// redial starts an attempt.
func (n *connection) redial(r *rejoin, now time.Duration) {
	r.tries++
	a := n.newAttempt()
	a.limit = min(doubled(minDial, r.tries, maxDial), r.since+n.cfg.Reconnect.GiveUp-now)
	a.quiet = max(minUnanswered, unansweredTrips*n.session.LinkFacts().SRTT)
	r.dialing = a
	n.start(a)
	n.setState(State{Phase: Reconnecting, Attempt: r.tries, Left: n.left()})
}

// start begins the dial of an attempt.
func (n *connection) start(a *attempt) {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	n.dial(ctx, a)
}

// finishDial handles the result of an attempt, if it has ended.
func (n *connection) finishDial(r *rejoin, now time.Duration) {
	a := r.dialing
	ended, err := a.result()
	if !ended {
		return
	}
	a.cancel()
	r.dialing = nil
	if err == nil {
		if err = n.welcomed(a); err == nil {
			r.dialed = a
			return
		}
		a.session.Close(transport.CodeProtocol, err.Error())
		err = &transport.Closed{Code: transport.CodeProtocol, Text: err.Error()}
	}
	if next := n.redirected(a, err); next != nil {
		r.dialing = next
		n.start(next)
		return
	}
	switch why, final := a.failure(err); {
	case why.Code == netloop.CodeTicket && n.moving() && r.tries > 0 && n.ticket != "":
		n.ticket = "" // After a crash of the server the client joins its last room again.
	case final || n.endsMove(err):
		n.end(why)
		return
	}
	most := unansweredBackOff
	if answered := (*transport.Refusal)(nil); errors.As(err, &answered) {
		most = maxBackOff
	}
	n.retry(r, err, now+n.backOff(r.tries, most))
}

// retry plans the attempt after one that has failed. The first failure of a move over an existing
// connection is the loss of this connection.
func (n *connection) retry(r *rejoin, err error, at time.Duration) {
	if r.err == nil {
		n.stats.Drops++
	}
	r.err, r.next = err, at
}

// backOff returns the delay after an attempt: it doubles with each attempt, up to most, and a
// random part of up to half is added or subtracted, so that not all clients reconnect at once after
// a failure of the server.
func (n *connection) backOff(tries int, most time.Duration) time.Duration {
	d := doubled(minBackOff, tries, most)
	return d/2 + time.Duration(n.jitter.Int64N(int64(d)+1))
}

// doubled returns first, doubled for each attempt after the first, up to most.
func doubled(first time.Duration, tries int, most time.Duration) time.Duration {
	for ; tries > 1 && first < most; tries-- {
		first *= 2
	}
	return min(first, most)
}

// left returns the time for which the server still keeps the client's seat.
func (n *connection) left() time.Duration {
	if n.rejoin == nil {
		return 0
	}
	return max(0, n.rejoin.since+n.keep-n.clock.Now())
}

// accepted handles the server's message that the game has admitted or resumed the client.
func (n *connection) accepted(received uint64) {
	if n.backlog != nil && !n.session.Resend(received) {
		n.violated()
		return
	}
	r := n.rejoin
	if r == nil {
		return
	}
	n.rejoin = nil
	if r.resumed {
		n.stats.Resumes++
	}
	n.log.Info("reconnected", "attempts", r.tries, "after", n.clock.Now()-r.since, "client", n.id, "room", n.room)
	n.setState(r.state)
}

// confirmed records the number of reliable messages that the server has received.
func (n *connection) confirmed(received uint64) {
	if n.backlog != nil && !n.backlog.Confirm(received) {
		n.violated()
	}
}

// violated ends the connection to a server that acknowledges messages that were never sent.
func (n *connection) violated() {
	n.session.Close(transport.CodeProtocol, "server acknowledged messages that were never sent")
}

// count counts a reliable message, and acknowledges it to the server from time to time.
func (n *connection) count(a *transport.Arrival) {
	if n.backlog != nil && a.Message.Reliable {
		n.received = n.before + a.Number
		n.session.Received(n.received, a.Size)
	}
}

// silence measures the time without packets while Step was called.
type silence struct {
	arrival  time.Duration // time of the newest arrival
	step     time.Duration // time of the last Step
	duration time.Duration
}

// maxFrame limits the part of one frame's length that counts as silence. If a frame is longer, the
// program hung or the machine slept.
const maxFrame = 100 * time.Millisecond

// add records a Step and the time of the newest arrival, and returns the time without packets.
func (s *silence) add(now, arrival time.Duration) time.Duration {
	if s.duration += min(now-s.step, maxFrame); arrival != s.arrival {
		s.duration = 0
	}
	s.step, s.arrival = now, arrival
	return s.duration
}

// checkSilence handles a connection without packets for Config.LostAfter: the client starts to
// reconnect, or ends if it does not reconnect.
func (n *connection) checkSilence() {
	if !n.live() || n.ended() != nil {
		return
	}
	if n.silence.add(n.clock.Now(), n.session.LinkFacts().LastArrival) < n.cfg.LostAfter {
		return
	}
	why := netloop.Closed{Code: netloop.CodeTimeout, Text: fmt.Sprintf("no packet from the server for %v", n.cfg.LostAfter)}
	if n.reconnects(why.Code) {
		n.broken(why)
		return
	}
	n.session.Close(why.Code, why.Text)
	n.end(why)
}
