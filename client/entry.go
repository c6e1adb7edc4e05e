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
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// entry is one attempt to enter the room: the greeting that a dial sends to the server, and its
// result. First only the dialing goroutine writes it, then only Step's goroutine uses it.
type entry struct {
	schema *schema.Schema
	hello  *netloopv1.Hello
	tokens func(context.Context) (string, error)
	began  time.Duration // on the client's clock
	limit  time.Duration // of the dial
	quiet  time.Duration // limit of a dial without an answer
	cancel context.CancelFunc
	config transport.SessionConfig

	served  *schema.Foreign // the server's schema, if it is another
	unable  error           // of tokens: the hello has no token of its own
	session *transport.Session
	welcome *netloopv1.Welcome

	mu     sync.Mutex
	ended  bool  // under mu: the dial has ended
	unread bool  // under mu: the result is discarded
	err    error // under mu
}

// newEntry returns the next attempt, with all that the server needs: how far the client had
// received messages, and the join parameters in case it cannot resume.
func (c *Client) newEntry() *entry {
	e := &entry{schema: c.schema, tokens: c.cfg.Tokens, hello: c.schema.Hello(), began: c.clock.Now(), cancel: func() {}}
	e.hello.Room, e.hello.Token, e.hello.Build, e.hello.Params = c.room, c.cfg.Token, "netloop-go", c.params
	e.hello.Moves = true
	e.hello.Ticket, e.hello.Spectate = c.ticket, c.cfg.Spectate
	if !c.cfg.Reconnect.Off {
		c.attempts++
		e.hello.Resume = &netloopv1.Resume{Token: c.secret, Received: c.received, Kept: len(c.secret) > 0, Attempt: c.attempts}
	}
	e.config = transport.SessionConfig{
		Client: true, Inbox: transport.NewInbox(maxArrivals, &c.traffic), Clock: c.clock.Now, Stats: &c.traffic, Decode: e.decode,
	}
	return e
}

// greeting returns the messages with which the client introduces itself.
func (e *entry) greeting() transport.Greeting {
	return transport.Greeting{Hello: e.hello, Adapt: e.adapt}
}

// prove fetches the token. A client with a resume token needs none unless its seat is gone: then
// the server refuses it, and the next dial fetches a token.
func (e *entry) prove(ctx context.Context) error {
	if e.tokens == nil {
		return nil
	}
	token, err := e.tokens(ctx)
	switch {
	case err == nil:
		e.hello.Token = token
	case len(e.hello.GetResume().GetToken()) == 0:
		return err
	default:
		e.unable = err
	}
	return nil
}

// adapt matches the server's tables with Config.Schema, before the client is admitted.
func (e *entry) adapt(t *netloopv1.SchemaTables) (err error) {
	e.served, err = e.schema.Adapt(t)
	return err
}

// decode decodes a message on the goroutine that has read it.
func (e *entry) decode(m *transport.Message) (_, decoded any, err error) {
	if e.served != nil {
		decoded, err = e.served.Decode(m)
	} else {
		decoded, err = e.schema.DecodeOnClient(m)
	}
	return nil, decoded, err
}

// end stores the result of the dial. A discarded connection is closed.
func (e *entry) end(s *transport.Session, w *netloopv1.Welcome, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session, e.welcome, e.err, e.ended = s, w, err, true
	e.leaveLocked()
}

// result reports whether the dial has ended, and its error.
func (e *entry) result() (ended bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended, e.err
}

// giveUp cancels the dial and discards its result.
func (e *entry) giveUp() {
	e.cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unread = true
	e.leaveLocked()
}

func (e *entry) leaveLocked() {
	if e.unread && e.session != nil {
		e.session.Close(netloop.CodeLeft, "")
	}
}

// resumed reports whether the server resumed the seat of the last connection.
func (e *entry) resumed() bool {
	return e.welcome.GetResumed() && len(e.hello.GetResume().GetToken()) > 0
}

// arrive applies the time of a welcome, before the next frame. It returns an error for an invalid
// welcome.
func (c *Client) arrive(e *entry) error {
	w := e.welcome
	if e.resumed() && netloop.ClientID(w.GetClientId()) != c.id {
		return errors.New("the server says that this client is another")
	}
	at := newServer
	if len(c.instance) > 0 && bytes.Equal(c.instance, w.GetInstanceId()) {
		at = newRoom // Also for a room of the same name: another one may have taken its place.
		if e.resumed() {
			at = sameRoom
		}
	}
	now := c.clock.Now()
	err := c.time.welcome(now, now-e.began, w, at)
	if err == nil {
		err = c.joinScale(w.GetTimeScale())
	}
	if err != nil {
		return err
	}
	if c.session != nil && at != sameRoom {
		game := time.Duration(0)
		if c.time.known {
			game = c.time.gameTime(now)
		}
		c.tick.ShiftTimers(game-c.now.GameTime, c.loop.Scale().At(game)-c.now.ScaledTime)
	}
	c.instance = w.GetInstanceId()
	c.pace.period = c.time.timeline.Rate.Period()
	c.loop.SetSteps(c.time.timeline)
	return nil
}

// enter switches to the connection of an entry that has arrived, and resets the state that belongs
// to one connection.
func (c *Client) enter(t *netloop.Tick, e *entry) {
	w := e.welcome
	c.session, c.served, c.warned = e.session, e.served, nil
	c.secret = w.GetResumeToken()
	c.room, c.mayMove, c.handles = w.GetRoom(), w.GetMoves(), w.GetHandles()
	if strings.Contains(c.ticket, "@") { // It is used up; a room's code is not.
		c.ticket = ""
	}
	c.keep = time.Duration(min(w.GetKeepNs(), math.MaxInt64))
	c.reception.restart(w.GetSendEvery())
	c.refusals, c.snapshot, c.verify.next = refusals{}, Snapshot{}, 0
	c.since = c.clock.Now()
	c.silence = lull{step: c.since}
	c.setOverload(netloop.OverloadNone)
	c.views.anew()
	if e.resumed() {
		c.before = c.received
		c.session.Keep(c.backlog)
		c.session.AwaitPeer()
		c.replica.Resume()
		c.away.state.Closing = 0 // Like the overload, it is sent again if it holds.
		return
	}
	c.join(t, e)
}

// join starts a new seat. All earlier state of the room is dropped.
func (c *Client) join(t *netloop.Tick, e *entry) {
	w, lost := e.welcome, c.backlog
	c.forgetInputs()
	c.id, c.minor = netloop.ClientID(w.GetClientId()), int(w.GetMinor())
	c.before, c.received, c.backlog = 0, 0, nil
	if len(c.secret) > 0 {
		c.backlog = new(transport.Backlog)
	}
	c.session.Keep(c.backlog)
	if c.away != nil {
		c.away.state = State{Phase: Loading}
		c.forget(t, lost)
	}
	c.prediction.keep(&c.time.timeline)
	c.stats.Teleports += c.replica.Stats().Teleports
	if e.served != nil {
		c.replica.Adapt(e.served.Classes())
	} else {
		c.replica.Adapt(nil)
	}
	c.replica.StartAt(c.time.timeline.TickAt(c.time.gameTime(c.clock.Now())))
}

// forget drops the state of a lost seat, and tells the game.
func (c *Client) forget(t *netloop.Tick, lost *transport.Backlog) {
	if lost != nil {
		c.stats.Dropped += uint64(lost.Len())
	}
	c.held.release(c.queue)
	c.held.state, c.views.state = 0, 0
	c.replica.Clear()
	c.views.forget()
	c.tellAll(t, 0)
	c.forgetPrediction()
	why := netloop.Closed{Code: netloop.CodeLost, Text: "the connection broke, and the server has kept no place"}
	if c.moving() {
		why = netloop.Closed{Code: netloop.CodeMoved, Text: "the client has moved to another room"}
	}
	c.calls.failAll(t, &why)
}

// accepted handles the server's message that the game has admitted or resumed the client.
func (c *Client) accepted(received uint64) {
	if c.backlog != nil && !c.session.Resend(received) {
		c.violated("the server has had messages that were never sent")
		return
	}
	a := c.away
	if a == nil {
		return
	}
	c.away = nil
	if a.resumed {
		c.stats.Resumes++
	}
	c.log.Info("connected again", "attempts", a.attempt, "after", c.clock.Now()-a.since, "client", c.id, "room", c.room)
	c.setState(a.state)
}

// confirmed records how many reliable messages the server has received.
func (c *Client) confirmed(received uint64) {
	if c.backlog != nil && !c.backlog.Confirm(received) {
		c.violated("the server has had messages that were never sent")
	}
}

// came counts a reliable message, and acknowledges it to the server from time to time.
func (c *Client) came(a *transport.Arrival) {
	if c.backlog != nil && a.Message.Reliable {
		c.received = c.before + a.Number
		c.session.Received(c.received, a.Size)
	}
}

// violated ends the connection to a server that breaks the protocol.
func (c *Client) violated(text string) { c.session.Close(transport.CodeProtocol, text) }
