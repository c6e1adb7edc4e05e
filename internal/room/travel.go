package room

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room/seats"
	"github.com/netloop/netloop/internal/transport"
)

// A client moves to a room of another server of the cluster. Its seat is kept until the other
// server has confirmed the arrival:
//
//	Client.Move, MoveAsked ──▶ depart ──▶ bind: Travel.Bind on another goroutine
//	                                        │ an error: the client stays
//	                                        ▼
//	                                      bound ──▶ flush: Session.Travel, the frame moved
//	transport.Gone, with CodeMoved ──▶ lost ──▶ drop, for travelKeep or longer
//	  its secret ──▶ resume: the client is back, and plays
//	  Arrived, a command ──▶ arrived ──▶ leave, with CodeMoved
//	  expire ──▶ leave, with CodeLost
//
// The result of Bind and the arrival are recorded facts of a tick. A room in which clients may move
// to other servers (Spec.Travels) handles all moves this way, because only Bind knows whether the
// room of a ticket or a code is on this server.

// Travel is a room's access to the other servers of its cluster. Its methods may be called from
// any goroutine.
type Travel interface {
	// Bind binds a ticket to the player of a client, at the server of the ticket's room. A refusal
	// is a *transport.Refusal.
	Bind(ctx context.Context, b Binding) (Bound, error)
	// Arrived tells the origin of a client that the client is in the room now. It does not wait. If
	// the origin answers that another program of the player has taken the client over, the client
	// is kicked by Commands.
	Arrived(r *Room, client uint64, from Origin)
	// Step tells a later step of the move with the number of a Bound. It does not wait.
	Step(number uint64, step TravelStep)
}

// TravelStep is a step of a client's move that its old room observes.
type TravelStep int

// The steps of a move after its Bound.
const (
	Left     TravelStep = iota // its connection has ended; its seat is kept if it can return
	Returned                   // it has resumed its seat here
	Expired                    // its seat is free: no other server has confirmed its arrival
)

// The types of package seats for travelling clients.
type (
	Identity = seats.Identity
	Origin   = seats.Origin
)

// Binding describes the client for which a ticket is bound.
type Binding struct {
	Ticket string
	Room   string
	Client uint64
	Join   *Join
	Addr   string
}

// Bound is the result of Travel.Bind, as a recording stores it.
type Bound struct {
	Local  bool   // the room of the ticket is on this server: nothing was bound
	Ticket string // with which the client joins the other room
	Number uint64 // random number by which the arrival is recognised
	To     transport.Destination
}

// travelKeep is the least time for which the seat of a client is kept that moves to another server:
// the client has 5 s for each of its two steps there.
const travelKeep = 10 * time.Second

// maxTakenOver bounds the numbers of earlier moves of a client whose arrival is refused.
const maxTakenOver = 4

// travels is a client's state of moves to other servers. It belongs to the room's goroutine.
type travels struct {
	canTravel bool     // its present program can move to another server
	binding   bool     // the ticket of its newest move is being bound
	local     bool     // its newest move is to a room of this server
	bound     *Bound   // its newest binding; nil: none
	told      bool     // its present program was sent the frame moved for bound
	takenOver []uint64 // numbers of moves of programs that another program has replaced
	settled   bool     // the game has accepted the client
	origin    *Origin  // the client at its old server; nil once that server is told of its arrival
	askedFrom time.Duration
}

// bind binds the ticket of a moving client on another goroutine.
func (cs *connections) bind(c *Client) {
	b := Binding{Ticket: c.moving, Room: cs.spec.Name, Client: c.id, Join: c.join, Addr: c.join.Addr}
	c.moving, c.binding = "", true
	travel := cs.cfg.Travel
	began := cs.room.Async.Go(Work{
		New: func() any { return new(Bound) },
		Do: func(ctx context.Context, result any) (err error) {
			*result.(*Bound), err = travel.Bind(ctx, b)
			return err
		},
		Then: func(result any, err error) { cs.bound(c, b.Ticket, result.(*Bound), err) },
	})
	if !began {
		cs.stays(c, "busy", errTooMuchWork)
	}
}

var errTooMuchWork = errors.New("the room has too much running work")

// bound handles the result of a binding.
func (cs *connections) bound(c *Client, ticket string, b *Bound, err error) {
	if !c.binding || !c.joined || c.kicked != nil {
		c.binding = false
		return
	}
	c.binding = false
	switch {
	case c.moving != "": // A later move replaces this one.
	case err != nil:
		cs.stays(c, travelFailure(err), err)
	case b.Local:
		c.moving, c.local = ticket, true
	default:
		c.travels.bound, c.told = b, false
	}
}

// stays counts and logs a move to another server that has failed. The client stays in the room.
func (cs *connections) stays(c *Client, reason string, err error) {
	c.binding = false
	cs.metrics.Drops.Add(1, "move", reason)
	cs.log.Warn("client cannot move, it stays in the room", "client", c.id, "error", err)
}

// travelFailure returns the label under which a failed binding is counted.
func travelFailure(err error) string {
	var refused *transport.Refusal
	if !errors.As(err, &refused) {
		return "failed"
	}
	switch refused.Code {
	case transport.CodeTicket:
		return "ticket"
	case transport.CodeBusy:
		return "busy"
	case transport.CodeRoomUnknown:
		return "room_gone"
	}
	return "refused"
}

// mayAskMove reports whether a client may request another move. A request costs a call to another
// server, while the client stays in the room.
func (cs *connections) mayAskMove(c *Client) bool {
	if !cs.spec.Travels {
		return true
	}
	if cs.now.GameTime < c.askedFrom {
		cs.metrics.Drops.Add(1, "move", "too_often")
		return false
	}
	c.askedFrom = cs.now.GameTime + askEvery
	return true
}

// tell sends a client the server to which it moves. A client that cannot move there leaves, and is
// sent the ticket as the reason.
func (cs *connections) tell(c *Client) {
	b := c.travels.bound
	c.told = true
	cs.sent.closed(c.id, &transport.Closed{Code: transport.CodeMoved, Text: b.Ticket})
	if c.canTravel {
		c.session.Travel(transport.MovedTo{Ticket: b.Ticket, To: b.To})
		return
	}
	c.step(Left)
	cs.leave(c, &transport.Closed{Code: transport.CodeMoved})
	c.session.Close(transport.CodeMoved, b.Ticket)
}

// MoveWaits reports whether the client's move to another room waits for its ticket.
func (c *Client) MoveWaits() bool { return c.binding && c.Connected() }

// OnItsWay reports whether the client was sent its move to another server and has not arrived there
// yet.
func (c *Client) OnItsWay() bool { return c.travels.bound != nil && c.told }

// mustTell reports whether the client was not sent its newest move yet.
func (c *Client) mustTell() bool { return c.travels.bound != nil && !c.told }

// travelled reports whether a connection ended because its client went to another server.
func (c *Client) travelled(why *transport.Closed) bool {
	return why.Code == transport.CodeMoved && c.travels.bound != nil && c.told
}

// keepTime returns the time for which the seat of a client is kept after the end of its connection.
func (cs *connections) keepTime(c *Client, why *transport.Closed) time.Duration {
	if c.travelled(why) {
		return max(cs.spec.KeepDropped, travelKeep)
	}
	return cs.spec.KeepDropped
}

// expired returns the reason with which a dropped client leaves after its time.
func (c *Client) expired() *transport.Closed {
	if c.dropped.Code == transport.CodeMoved {
		return &transport.Closed{Code: transport.CodeLost, Text: "it was on the way to another server, which has not confirmed its arrival"}
	}
	return c.dropped
}

// step tells a step of the client's newest move.
func (c *Client) step(s TravelStep) {
	if t := c.room.cfg.Travel; t != nil && c.travels.bound != nil && c.told {
		t.Step(c.travels.bound.Number, s)
	}
}

// replaced records that another program has taken the client over: the arrival of the earlier
// program at another server is refused.
func (t *travels) replaced() {
	if t.bound != nil && t.told {
		if len(t.takenOver) == maxTakenOver {
			t.takenOver = slices.Delete(t.takenOver, 0, 1)
		}
		t.takenOver = append(t.takenOver, t.bound.Number)
		t.bound = nil
	}
}

// confirm reports a client that has come from another server to that server, once the game has
// accepted the client and data of it has arrived.
func (c *Client) confirm() {
	if c.origin == nil || !c.settled || c.kicked != nil || c.origin.Server == "" {
		return
	}
	from := *c.origin
	c.origin = nil
	if t := c.room.cfg.Travel; t != nil {
		t.Arrived(c.room, c.id, from)
	}
}

// The answers to the report of an arrival.
var (
	// ErrNotHere is the answer if the client has left the room already: its seat is free.
	ErrNotHere = errors.New("the client is not in the room")
	// ErrTakenOver is the answer if another program of the player has taken the client over.
	ErrTakenOver = transport.Refuse(transport.CodeReplaced, "another program of the player has its place")
)

// Arrived reports to a client's old room that the client has arrived in a room of another server:
// in the next tick it leaves, and its secret is void. The error is ErrNotHere or ErrTakenOver, or
// that of a room which runs no tick. Any goroutine may call it.
func (c *Commands) Arrived(ctx context.Context, client, number uint64) error {
	return c.Execute(ctx, recording.Command{Kind: recording.Arrived, Client: client, Text: strconv.FormatUint(number, 16)})
}

// arrived lets a client leave that has arrived at another server.
func (cs *connections) arrived(client uint64, text string) error {
	number, err := strconv.ParseUint(text, 16, 64)
	c, ok := cs.clients.get(client)
	switch {
	case !ok || err != nil:
		return ErrNotHere
	case slices.Contains(c.takenOver, number):
		return ErrTakenOver
	case c.travels.bound == nil || c.travels.bound.Number != number:
		return ErrNotHere
	}
	why := &transport.Closed{Code: transport.CodeMoved}
	c.disconnect(why)
	cs.leave(c, why)
	return nil
}

// Bind binds a reserved seat of the room to a player, and returns the ticket for the player's
// client. The error is a refusal. Any goroutine may call it.
func (a *Admission) Bind(ticket string, who *Identity) (string, error) {
	if why := a.refusing.Load(); why != nil {
		return "", &transport.Refusal{Code: why.Code, Text: why.Text}
	}
	bound, err := a.seats.Bind(ticket, who, a.clock.Now())
	if errors.Is(err, seats.ErrTicket) && a.spectators != nil {
		return a.spectators.Bind(ticket, who)
	}
	return bound, err
}
