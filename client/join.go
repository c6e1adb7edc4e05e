package client

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// attempt is one attempt to join the room: the greeting that a dial sends to the server, and its
// result. First only the dialing goroutine writes it, then only Step's goroutine uses it.
type attempt struct {
	schema *schema.Schema
	hello  *netloopv1.Hello
	tokens func(context.Context) (string, error)
	to     *transport.Address // server to dial; nil: the server of the client's first dial
	began  time.Duration      // start, on the client's clock
	limit  time.Duration      // time limit of the dial
	quiet  time.Duration      // limit of a dial without an answer
	cancel context.CancelFunc
	config transport.SessionConfig

	redirects int  // servers that have passed the client on to this one, in a row
	holds     bool // the hello waits until send is called

	served   *schema.Foreign // the server's schema if it differs from the client's, else nil
	tokenErr error           // error of tokens; the attempt continues with only the resume token
	session  *transport.Session
	welcome  *netloopv1.Welcome

	mu        sync.Mutex
	send      func()        // under mu: sends the hello of a held attempt, once it can be sent
	at        time.Duration // under mu: end of the dial, on the client's clock
	done      bool          // under mu: the dial has ended
	discarded bool          // under mu: the result is discarded
	err       error         // under mu
}

// newAttempt returns the next attempt, with the data that the server needs: the number of messages
// that the client has received, and the join parameters in case the client cannot resume.
func (n *connection) newAttempt() *attempt {
	a := &attempt{schema: n.schema, tokens: n.cfg.Tokens, hello: n.schema.Hello(), began: n.clock.Now(), cancel: func() {}}
	a.hello.Room, a.hello.Token, a.hello.Build, a.hello.Params = n.room, n.cfg.Token, "netloop-go", n.params
	a.hello.Moves, a.hello.Travels, a.to = true, n.travels, n.server
	a.hello.Ticket, a.hello.Spectate = n.ticket, n.cfg.Spectate
	if !n.cfg.Reconnect.Off {
		n.attempts++
		a.hello.Resume = &netloopv1.Resume{Token: n.secret, Received: n.received, Kept: len(n.secret) > 0, Attempt: n.attempts}
	}
	a.config = transport.SessionConfig{
		Client: true, Inbox: transport.NewInbox(maxArrivals, &n.traffic), Clock: n.clock.Now, Stats: &n.traffic, Decode: a.decode,
	}
	return a
}

// greeting returns the client's side of the handshake.
func (a *attempt) greeting() transport.Greeting {
	g := transport.Greeting{Hello: a.hello, Adapt: a.adapt, Limit: a.limit}
	if a.holds {
		g.Hold = a.hold
	}
	return g
}

// fetchToken fetches the token from Config.Tokens. An error ends the attempt, unless the client has
// a resume token, which suffices while the server keeps the seat. If the seat is gone, the server
// refuses the attempt, and the next attempt fetches a token again.
func (a *attempt) fetchToken(ctx context.Context) error {
	if a.tokens == nil {
		return nil
	}
	token, err := a.tokens(ctx)
	switch {
	case err == nil:
		a.hello.Token = token
	case len(a.hello.GetResume().GetToken()) == 0:
		return err
	default:
		a.tokenErr = err
	}
	return nil
}

// adapt matches the server's schema tables with Config.Schema, before the client is admitted.
func (a *attempt) adapt(t *netloopv1.SchemaTables) (err error) {
	a.served, err = a.schema.Adapt(t)
	return err
}

// decode decodes a message on the goroutine that has read it.
func (a *attempt) decode(m *transport.Message) (_, decoded any, err error) {
	if a.served != nil {
		decoded, err = a.served.Decode(m)
	} else {
		decoded, err = a.schema.DecodeOnClient(m)
	}
	return nil, decoded, err
}

// finish stores the result of the dial. A discarded connection is closed.
func (a *attempt) finish(s *transport.Session, w *netloopv1.Welcome, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.session, a.welcome, a.err, a.done = s, w, err, true
	if a.config.Clock != nil {
		a.at = a.config.Clock()
	}
	a.closeDiscardedLocked()
}

// result reports whether the dial has ended, and its error.
func (a *attempt) result() (ended bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.done, a.err
}

// discard cancels the dial and discards its result.
func (a *attempt) discard() {
	a.cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.discarded = true
	a.closeDiscardedLocked()
}

func (a *attempt) closeDiscardedLocked() {
	if a.discarded && a.session != nil {
		a.session.Close(netloop.CodeLeft, "")
	}
}

// resumed reports whether the server resumed the seat of the last connection.
func (a *attempt) resumed() bool {
	return a.welcome.GetResumed() && len(a.hello.GetResume().GetToken()) > 0
}

// failure returns the reason why an attempt has failed, and whether further attempts would fail too
// (final).
func (a *attempt) failure(err error) (why netloop.Closed, final bool) {
	if errors.Is(err, driver.ErrDialerClosed) {
		return netloop.Closed{Code: netloop.CodeLeft, Text: "the Dialer was closed"}, true
	}
	why = refusal(err)
	unproven := why.Code == netloop.CodeUnauthenticated && a.tokenErr != nil
	return why, !unproven && !temporary(why.Code)
}

// connected handles the first connection, before the first Step.
func (c *Client) connected(a *attempt) {
	if err := c.welcome(a); err != nil {
		a.session.Close(transport.CodeProtocol, err.Error())
		c.end(netloop.Closed{Code: transport.CodeProtocol, Text: err.Error()})
		return
	}
	c.enter(nil, a)
	c.conn.setState(State{Phase: Loading})
}

// reconnected switches to the new connection of a reconnecting or moving client, after its dial has
// succeeded.
func (c *Client) reconnected(t *netloop.Tick) {
	if r := c.conn.rejoin; r != nil && r.dialed != nil {
		a := r.dialed
		r.dialed, r.joining, r.anew = nil, true, r.anew || !a.resumed()
		r.resumed = !r.anew
		c.enter(t, a)
		if r.trip != nil { // Otherwise a trip is only being dialled, and continues.
			c.conn.trip = nil
		}
		r.moves, r.trip = false, nil
	}
}

// welcome sets the client's clock, rates and time scale from the server's welcome, before the next
// frame. It returns an error for an invalid welcome.
func (c *Client) welcome(a *attempt) error {
	w, n := a.welcome, &c.conn
	if a.resumed() && netloop.ClientID(w.GetClientId()) != n.id {
		return errors.New("server resumed the seat of another client")
	}
	kept := newServer
	if len(n.instance) > 0 && bytes.Equal(n.instance, w.GetInstanceId()) {
		kept = newRoom // Also for a room of the same name: another one may have replaced it.
		if a.resumed() {
			kept = sameRoom
		}
	}
	now := c.clock.Now()
	if r := n.rejoin; r != nil && r.trip != nil { // The welcome has waited for the frame accepted.
		now = a.at
	}
	err := c.time.welcome(now, now-a.began, w, kept)
	if err == nil {
		err = c.joinScale(w.GetTimeScale())
	}
	if err != nil {
		return err
	}
	if n.session != nil && kept != sameRoom {
		game := time.Duration(0)
		if c.time.known {
			game = c.time.gameTime(now)
		}
		c.tick.ShiftTimers(game-c.now.GameTime, c.loop.Scale().At(game)-c.now.ScaledTime)
	}
	n.instance = w.GetInstanceId()
	c.pace.period = flushPeriod(c.time.timeline)
	c.pace.next = min(c.pace.next, now+c.pace.period) // The previous room may have been slower.
	c.loop.SetSteps(c.time.timeline)
	return nil
}

// enter switches to the connection of a welcomed attempt, and resets the state that belongs to one
// connection.
func (c *Client) enter(t *netloop.Tick, a *attempt) {
	c.conn.enter(a)
	c.messages.handles, c.messages.warned = a.welcome.GetHandles(), make(map[uint32]bool)
	c.receiver.restart(a.welcome.GetSendEvery())
	c.setOverload(netloop.OverloadNone)
	c.views.restart()
	if a.resumed() {
		c.conn.resume()
		c.replica.Resume()
		return
	}
	c.inputs.reset()
	c.conn.join(a.welcome)
	if r := c.conn.rejoin; r != nil {
		r.state = State{Phase: Loading}
		c.leave(t)
	}
	c.prediction.resize()
	c.stats.Teleports += c.replica.Stats().Teleports
	if a.served != nil {
		c.replica.Adapt(a.served.Classes())
	} else {
		c.replica.Adapt(nil)
	}
	c.replica.StartAt(c.time.timeline.TickAt(c.time.gameTime(c.clock.Now())))
}

// leave drops the state of a lost seat, and notifies the game.
func (c *Client) leave(t *netloop.Tick) {
	c.messages.held.expire(math.MaxUint64, c.messages.push)
	c.messages.held.state = 0
	c.replica.Clear()
	c.views.reset()
	c.watchers.notifyAll(t, 0)
	c.prediction.reset()
	why := netloop.Closed{Code: netloop.CodeLost, Text: "connection is broken, and the server has kept no seat"}
	if c.conn.moving() {
		why = netloop.Closed{Code: netloop.CodeMoved, Text: "client has moved to another room"}
	}
	c.messages.calls.failAll(t, &why)
}

// enter replaces the session, and takes the seat's data from the welcome.
func (n *connection) enter(a *attempt) {
	w := a.welcome
	n.session, n.served = a.session, a.served
	n.secret, n.keep = w.GetResumeToken(), time.Duration(min(w.GetKeepNs(), math.MaxInt64))
	n.room, n.movable, n.server, n.ticket = w.GetRoom(), w.GetMoves(), a.to, a.hello.GetTicket()
	if strings.Contains(n.ticket, "@") { // A ticket is used up; a code (without @) is reusable.
		n.ticket = ""
	}
	n.since = n.clock.Now()
	n.silence = silence{step: n.since}
}

// resume continues with the seat of the last connection.
func (n *connection) resume() {
	n.before = n.received
	n.session.Keep(n.backlog)
	n.session.AwaitPeer()
	n.rejoin.state.Closing = 0 // If the server still plans to close, it sends the time again.
}

// join starts a new seat. Reliable messages that the server has not confirmed for the last seat are
// dropped, and counted.
func (n *connection) join(w *netloopv1.Welcome) {
	if n.backlog != nil {
		n.stats.Dropped += uint64(n.backlog.Len())
	}
	n.id, n.minor = netloop.ClientID(w.GetClientId()), int(w.GetMinor())
	n.before, n.received, n.backlog = 0, 0, nil
	if len(n.secret) > 0 {
		n.backlog = new(transport.Backlog)
	}
	n.session.Keep(n.backlog)
}
