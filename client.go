package netloop

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/netloop/netloop/internal/room"
)

// ClientID identifies a client while its server runs. 0: no client.
type ClientID uint64

// Client is one player's record on the server. Like all state of a room it is owned by the room's
// goroutine.
type Client struct {
	e      *room.Client
	room   *Room
	join   *Join
	groups []*ClientGroup // groups that have the client as a member
	spawns SpawnKey       // key of the next object that its input spawns: see Tick.SpawnKey
}

// clientOf returns the [Client] of an engine's client, the same each time; nil for nil.
func clientOf(e *room.Client) *Client {
	if e == nil {
		return nil
	}
	return e.Game.(*Client)
}

// ID returns the client's id.
func (c *Client) ID() ClientID { return ClientID(c.e.ID()) }

// Join returns the client's request to join.
func (c *Client) Join() *Join { return c.join }

// Connected reports whether the client's connection is up: false between OnDrop and OnResume, and
// after a kick.
func (c *Client) Connected() bool { return c.e.Connected() }

// LinkStats is the state of a client's connection.
type LinkStats struct {
	RTT      time.Duration // smoothed round trip
	InFlight int           // snapshots sent and not acknowledged yet
	Window   int           // the limit of InFlight
	Silent   time.Duration // game time since the last data from the client

	Inputs       uint64        // inputs that ran in their fixed step, see [Input]
	InputsMissed uint64        // fixed steps that ran without an input
	InputsLate   uint64        // inputs that arrived after their step
	InputEarly   time.Duration // from the newest input's arrival to its deadline; below 0: late
	InputMargin  time.Duration // 95 % of the last second's inputs had at least this InputEarly

	Rewind       time.Duration // age of the client's newest view at its step, see [Tick.ViewMoment]
	ViewsClamped uint64        // number of views that were moved into the allowed range

	// Mispredicted is the number of wrong predictions of objects that the client's program has
	// reported since it joined, at most once a second: Stats().Prediction.Mispredicted of package
	// client. It is the program's word: a hostile one may report any number below 2⁵³.
	Mispredicted uint64
}

// Link returns the state of the client's connection, as of the last transport.poll in EarlyUpdate.
func (c *Client) Link() LinkStats {
	rtt, inFlight, window := c.e.Link()
	inputs, early := c.e.InputStats()
	rewind, clamped := c.e.ViewStats()
	return LinkStats{
		RTT: rtt, InFlight: inFlight, Window: window, Silent: c.e.Silent(),
		Rewind: rewind, ViewsClamped: clamped, Mispredicted: c.e.Mispredicted(),
		Inputs: inputs.Applied, InputsMissed: inputs.Missed, InputsLate: inputs.Late, InputEarly: early, InputMargin: c.e.InputMargin(),
	}
}

// Kick closes the client's connection after this tick's flush; code and text are sent to the
// client. Its later messages are dropped. It leaves once the connection has ended: some ticks
// later, at most half a second. Until then, another connection of the same player that would take
// it over ([DuplicateTakeOver]) is closed with the same code and text.
func (c *Client) Kick(t *Tick, code Code, why string) {
	t.server("Client.Kick")
	c.e.Kick(code, why)
}

// SetBudget sets the average number of bytes of object records that the client is sent per tick: up
// to 1 048 576; 0 selects the room's [RoomSpec] Budget. Changes beyond it wait for a later
// snapshot, in the order that [Weight] sets. It panics on a client.
func (c *Client) SetBudget(t *Tick, bytesPerTick int) {
	t.server("Client.SetBudget")
	c.e.SetBudget(bytesPerTick)
}

// mustExist panics for a nil client. This mistake is likely, because nil is the sender of a posted
// message.
func (c *Client) mustExist(what string) {
	if c == nil {
		panic("netloop: " + what + ": the client is nil, the sender of a message of RPC.Post: check for nil first")
	}
}

// Join is a client's request to join, with the results of the game's admission.
type Join struct {
	// Subject identifies the player: it is the subject of the client's token, if the server
	// requires tokens (see [Auth]), and otherwise empty until OnAdmit sets it. With a subject, the
	// limits of messages apply to the player, over all of its connections and after their end.
	// Without a subject they apply to each connection, and after its end to its address: see
	// [RPCLimits].
	Subject string
	// Claims are the token's other claims, or results of OnAdmit, for the game's use.
	Claims map[string]any
	// Token is the credential that the client sent.
	Token string
	// Addr is the current address of the client's newest connection. The address changes if a phone
	// changes networks, or a router changes a player's port, while the connection continues. A
	// recording contains the changes.
	Addr string
	// Minor is the minor version of the schema in use: the smaller of the server's and the client's
	// version.
	Minor int
	// Ticket reports that the client has a [Ticket], and Spectator that it joins to watch.
	Ticket, Spectator bool

	params   []byte
	reserved []byte // Reservation.Params of the ticket, as JSON
}

// Params decodes the value Join of the client's client.Config into dst, a pointer. The value is
// sent as JSON.
func (j *Join) Params(dst any) error {
	if len(j.params) == 0 {
		return nil
	}
	if err := json.Unmarshal(j.params, dst); err != nil {
		return fmt.Errorf("netloop: the client's join parameters: %w", err)
	}
	return nil
}

// RoleClaim is the claim that [Join.Role] reads.
const RoleClaim = "role"

// Role returns the player's role, for [MinRole]: the claim [RoleClaim], a whole number whose
// meaning the game defines, such as 0 for a player and 1 for a moderator. Role returns 0 without
// the claim, or if the claim is not a number. It accepts the numbers of a JSON token too.
func (j *Join) Role() int {
	switch role := j.Claims[RoleClaim].(type) {
	case int:
		return role
	case int64:
		return int(role)
	case float64:
		return int(role)
	}
	return 0
}

// PerClient stores a game's record for each client of a room. A record is allocated, with the value
// zero, before OnJoin runs, and freed after OnLeave has run.
type PerClient[T any] struct{ of map[ClientID]*T }

// NewPerClient makes the records of a room. Call it in [Game] Open. It panics elsewhere, because
// clients that have already joined would have no record.
func NewPerClient[T any](r *Room) *PerClient[T] {
	p := &PerClient[T]{of: map[ClientID]*T{}}
	if !r.opening {
		panic("netloop: NewPerClient belongs in the game's Open: the clients that have joined would have no record")
	}
	r.hooks.perClient = append(r.hooks.perClient, p)
	return p
}

// Of returns the client's record, which the game may read and change. It panics for a client that
// has left, and for nil, which is the sender of a posted message.
func (p *PerClient[T]) Of(c *Client) *T {
	c.mustExist("PerClient.Of")
	v, ok := p.of[c.ID()]
	if !ok {
		panic("netloop: PerClient.Of: the client has left; its record is freed once OnLeave has run")
	}
	return v
}

// All iterates over the clients and their records in the order of client ids.
func (p *PerClient[T]) All(t *Tick) iter.Seq2[*Client, *T] {
	clients := t.Clients()
	return func(yield func(*Client, *T) bool) {
		for c := range clients {
			if !yield(c, p.of[c.ID()]) {
				return
			}
		}
	}
}

func (p *PerClient[T]) make(id ClientID) { p.of[id] = new(T) }
func (p *PerClient[T]) free(id ClientID) { delete(p.of, id) }

// maxSpectatorDelay bounds RoomSpec.SpectatorDelay, because the delayed data is stored in memory.
const maxSpectatorDelay = 5 * time.Minute

// SpectatorFeed reports whether the client is the spectator feed of a room with a [RoomSpec]
// SpectatorDelay: a spectator that the room makes before any client joins, and that represents all
// spectators. Spectators see exactly what this client sees, after the delay.
//
// OnJoin and OnLeave are called for it, but not OnAdmit, OnDrop and OnResume: it has no connection,
// sends no messages, and leaves with the room. It takes no seat, and [RoomInfo] does not count it.
// [Tick.Clients] and [Everyone] include it. If a game refuses or kicks it, the spectators see no
// further changes.
func (c *Client) SpectatorFeed() bool { return c.e.IsFeed() }

// openSpectatorRoom opens the room's delayed spectator room, if it has a delay. A replay has no
// spectator room.
func (r *Room) openSpectatorRoom() (err error) {
	if r.server.cfg.recorded {
		return nil
	}
	r.spectatorRoom, err = r.e.OpenSpectatorRoom()
	return err
}

// startSpectatorRoom runs the room of r's delayed spectators on another goroutine. That room ends
// after r, when the remaining delay has been shown, or with the server.
func (s *Server) startSpectatorRoom(r *Room) {
	if r.spectatorRoom == nil {
		return
	}
	s.supervisor.spectatorRooms.Add(1)
	r.spectatorRoom.Supervisor.Start(s.supervisor.ctx, func(err error) {
		defer s.supervisor.spectatorRooms.Done()
		var closed *Closed
		if err != nil && !errors.As(err, &closed) {
			s.log.Error("spectator room failed", "room", r.spec.Name, "kind", r.spec.Kind, "error", err)
		}
	})
}
