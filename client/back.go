package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/transport"
)

// away is the state of a client with a broken connection, until the game has resumed or admitted
// it. Only Step's goroutine uses it.
type away struct {
	since   time.Duration // when the break was noticed
	attempt int           // from 1
	next    time.Duration // when the next attempt begins, after the last has failed
	dial    *entry        // in progress
	landed  *entry        // has connected, and awaits the next poll
	waits   bool          // for the server's message that the client is admitted
	resumed bool          // the seat was resumed
	moves   bool          // to another room, on the server's request: no connection has broken yet
	err     error         // of the last attempt
	state   State         // to return to
}

const (
	firstWait = 100 * time.Millisecond // after the first attempt; then twice as long each time
	mostWait  = 5 * time.Second
	// quietWait replaces mostWait after an attempt without any answer: such attempts cost a server
	// no work, and one of them is the first to reach it again.
	quietWait = 600 * time.Millisecond
	// leastQuiet, or quietTrips round trips of the last connection if that is longer, is the time
	// after which an attempt without any answer is given up. QUIC sends again after 0.2, 0.6 and
	// 1.4 s.
	leastQuiet = time.Second
	quietTrips = 3
	// The first attempts are short: a restarting server answers no attempt that began before.
	firstLimit = time.Second
	mostLimit  = 5 * time.Second
)

// dialing dials in the background, and calls end of the entry once.
type dialing func(ctx context.Context, e *entry)

// breaks reports whether the client reconnects after a connection that ended with this code.
func (c *Client) breaks(code netloop.Code) bool {
	switch {
	case c.cfg.Reconnect.Off || c.Closed() != nil:
		return false
	case code == netloop.CodeLost || code == netloop.CodeTimeout:
		return true
	}
	return c.away != nil && passes(code)
}

// passes reports whether a server that refuses with this code may accept the client later.
func passes(code netloop.Code) bool {
	switch code {
	case transport.CodeUnspecified, netloop.CodeFull, netloop.CodeBusy, netloop.CodeClosing, netloop.CodeTimeout,
		netloop.CodeFlood, netloop.CodeLost, netloop.CodeInternal:
		return true
	}
	return false
}

// lose starts to reconnect after a break, or continues.
func (c *Client) lose(why netloop.Closed) {
	c.session.Close(transport.CodeTimeout, why.Text) // Unless it has ended.
	now := c.clock.Now()
	if a := c.away; a != nil {
		a.waits, a.err, a.next = false, &why, now+c.backOff(a.attempt, mostWait)
		return
	}
	c.stats.Drops++
	c.away = &away{since: now, next: now, state: c.state, err: &why}
	c.log.Warn("the connection has broken: connecting again", "error", &why)
	c.reconnect()
}

// reconnect is called in each Step. It starts attempts that are due, and handles their results.
func (c *Client) reconnect() {
	a, now := c.away, c.clock.Now()
	if a == nil {
		return
	}
	if tried := now - a.since; tried >= c.cfg.Reconnect.GiveUp {
		c.end(netloop.Closed{
			Code: netloop.CodeLost,
			Text: fmt.Sprintf("the connection broke, and %d attempts in %v have not brought it back: %v", a.attempt, tried.Round(time.Millisecond), a.err),
		})
		return
	}
	switch {
	case a.dial != nil:
		c.dialled(a, now)
	case a.landed == nil && !a.waits && now >= a.next:
		c.redial(a, now)
	}
}

// redial starts an attempt.
func (c *Client) redial(a *away, now time.Duration) {
	a.attempt++
	e := c.newEntry()
	e.limit = min(doubled(firstLimit, a.attempt, mostLimit), a.since+c.cfg.Reconnect.GiveUp-now)
	e.quiet = max(leastQuiet, quietTrips*c.session.LinkFacts().SRTT)
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel, a.dial = cancel, e
	c.dial(ctx, e)
	c.setState(State{Phase: Reconnecting, Attempt: a.attempt, Left: c.left()})
}

// dialled handles the result of an attempt, if it has ended.
func (c *Client) dialled(a *away, now time.Duration) {
	e := a.dial
	ended, err := e.result()
	if !ended {
		return
	}
	e.cancel()
	a.dial = nil
	if err == nil {
		if err = c.arrive(e); err == nil {
			a.landed = e
			return
		}
		e.session.Close(transport.CodeProtocol, err.Error())
		err = &transport.Closed{Code: transport.CodeProtocol, Text: err.Error()}
	}
	if why, final := verdict(e, err); final || c.endsMove(err) {
		c.end(why)
		return
	}
	most := quietWait
	if answered := (*transport.Refusal)(nil); errors.As(err, &answered) {
		most = mostWait
	}
	a.err, a.next = err, now+c.backOff(a.attempt, most)
}

// land switches to a connection that was made.
func (c *Client) land(t *netloop.Tick) {
	a := c.away
	if a == nil || a.landed == nil {
		return
	}
	e := a.landed
	a.landed, a.waits, a.resumed = nil, true, e.resumed()
	c.enter(t, e)
	a.moves = false
}

// verdict returns why an attempt has failed, and whether another is pointless.
func verdict(e *entry, err error) (why netloop.Closed, final bool) {
	if errors.Is(err, driver.ErrDialerClosed) {
		return netloop.Closed{Code: netloop.CodeLeft, Text: "the Dialer was closed"}, true
	}
	why = refusal(err)
	unproven := why.Code == netloop.CodeUnauthenticated && e.unable != nil
	return why, !unproven && !passes(why.Code)
}

// backOff returns the delay after an attempt: twice as long after each, up to most, with a random
// deviation of a half, so that the clients of a server that was down do not all reconnect at once.
func (c *Client) backOff(attempt int, most time.Duration) time.Duration {
	d := doubled(firstWait, attempt, most)
	return d/2 + time.Duration(c.jitter.Int64N(int64(d)+1))
}

// doubled returns first, doubled for each attempt after the first, up to most.
func doubled(first time.Duration, attempt int, most time.Duration) time.Duration {
	for ; attempt > 1 && first < most; attempt-- {
		first *= 2
	}
	return min(first, most)
}

// left returns for how long the server still keeps the client's seat.
func (c *Client) left() time.Duration {
	if c.away == nil {
		return 0
	}
	return max(0, c.away.since+c.keep-c.clock.Now())
}

// live reports whether there is a connection.
func (c *Client) live() bool { return c.session != nil && (c.away == nil || c.away.waits) }

// stay ends the attempts to reconnect.
func (c *Client) stay() {
	a := c.away
	if a == nil {
		return
	}
	c.away = nil
	for _, e := range []*entry{a.dial, a.landed} {
		if e != nil {
			e.giveUp()
		}
	}
}
