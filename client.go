package netloop

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/room"
)

// ClientID names a client for as long as its server runs. 0 is nobody.
type ClientID uint64

// Client is one player's record on the server. Like everything of a room it
// belongs to the room's goroutine.
type Client struct {
	e      *room.Client
	room   *Room
	join   *Join
	groups []*ClientGroup // that it is in
	spawns Born           // of the next object that its input spawns: see FromInput
}

// clientOf is the one handle of a client; nil for none.
func clientOf(e *room.Client) *Client {
	if e == nil {
		return nil
	}
	return e.Game.(*Client)
}

// ID returns the client's id.
func (c *Client) ID() ClientID { return ClientID(c.e.ID()) }

// Join returns what the client said when it asked to come in.
func (c *Client) Join() *Join { return c.join }

// Connected reports whether the client's connection is up: false between OnDrop and OnResume, and
// once it has been kicked.
func (c *Client) Connected() bool { return c.e.Connected() }

// LinkStats says how a client's connection is doing.
type LinkStats struct {
	RTT      time.Duration // smoothed round trip
	InFlight int           // snapshots sent and not acknowledged yet
	Window   int           // how many may be
	Silent   time.Duration // of game time since something came from the client

	Inputs       uint64        // that ran in their fixed step, see [Input]
	InputsMissed uint64        // fixed steps that ran without theirs
	InputsLate   uint64        // inputs that came after their step
	InputEarly   time.Duration // before its deadline the newest input came; below 0 is late
	InputMargin  time.Duration // before theirs 95 of 100 inputs of the last second came, at least

	Rewind       time.Duration // before its step the client's newest view lay, see [Tick.View]
	ViewsClamped uint64        // views that counted as others
}

// Link returns how the client's connection was doing at the last poll.
func (c *Client) Link() LinkStats {
	rtt, inFlight, window := c.e.Link()
	inputs, early := c.e.InputStats()
	rewind, clamped := c.e.SightStats()
	return LinkStats{
		RTT: rtt, InFlight: inFlight, Window: window, Silent: c.e.Silent(),
		Rewind: rewind, ViewsClamped: clamped,
		Inputs: inputs.Applied, InputsMissed: inputs.Missed, InputsLate: inputs.Late, InputEarly: early, InputMargin: c.e.InputMargin(),
	}
}

// Kick closes the client's connection after this tick's flush; code and text
// reach the client. What it sends from now on is dropped. It leaves once the
// connection has ended: some ticks later, at most half a second.
func (c *Client) Kick(t *Tick, code Code, why string) {
	t.server("Client.Kick")
	c.e.Kick(code, why)
}

// SetBudget sets how many bytes of object records the client is sent per tick, on average: up to
// 1 048 576; 0 is the room's [RoomSpec] Budget. What does not fit waits for a later snapshot,
// see [Weight] for what goes first. It panics on a client.
func (c *Client) SetBudget(t *Tick, bytesPerTick int) {
	t.server("Client.SetBudget")
	c.e.SetBudget(bytesPerTick)
}

// need panics for no client. That is a mistake which is easily made: nil is the sender of a
// posted message.
func (c *Client) need(what string) {
	if c == nil {
		panic("netloop: " + what + ": the client is nil, which is who sends a message of RPC.Post: look for that first")
	}
}

// Join is what a client said when it asked to come in, and what the game's
// admission made of it.
type Join struct {
	// Subject names the player: it is that of its token, if the server asks for tokens (see
	// [Auth]), and otherwise empty until OnAdmit sets it. The limits of messages are then
	// the player's, over all of its connections, and outlive them. Without it they are each
	// connection's, and outlive it at its address: see [RPCLimits].
	Subject string
	// Claims is what else the token says, or what OnAdmit found out, for the game's use.
	Claims map[string]any
	// Token is what the client sent to prove who it is.
	Token string
	// Addr is the address that the client comes from: that of its newest connection, and where
	// this is now. A phone that changes networks keeps its connection, and so does a
	// player whose router changes its port; a recording holds the changes.
	Addr string
	// Minor is the minor version of the schema that is in force: the smaller of the
	// server's and the client's.
	Minor int
	// Ticket says that it comes with a [Ticket], and Spectator that it comes to watch.
	Ticket, Spectator bool

	params   []byte
	reserved []byte // of the ticket
}

// Params decodes the value that the client gave as client.Config Join into dst,
// a pointer. It travels as JSON.
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

// Role returns what the player may do, for [MinRole]: the claim [RoleClaim], a
// whole number that the game gives its meaning, such as 0 for a player and 1 for a
// moderator. Without the claim, or with one that is no number, it is 0. Claims of
// a JSON token are numbers too.
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
