package netloop

import (
	"fmt"
	"reflect"
	"time"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/schema"
)

// RoomSpec describes a room. Its rates do not change while the room exists.
type RoomSpec struct {
	// Name is the name by which clients join the room, at most 256 bytes and unique on the server.
	// The name of the default room may be empty.
	Name string
	// Kind is the room's kind within the game, such as "table". The game's Open reads it, and some
	// metrics have it as a label. At most 64 bytes.
	Kind string
	// Place selects the server of a cluster that opens the room, for [Tick.OpenRoom],
	// [Server.PlaceRoom] and [Opener]. Zero means the least loaded server of this server's region
	// that has room; for Opener it means this server, to which the client is connected.
	Place Place
	// Rate is the tick rate; zero means 60 Hz. From 1 to 1 000 Hz.
	Rate Rate
	// FixedRate is the rate of the fixed steps; zero means the tick rate.
	FixedRate Rate
	// SendEvery is the number of ticks from one snapshot to the next; zero means 1. From 1 to 60.
	SendEvery int
	// MaxClients is the number of seats for clients; zero means 256. From 1 to 10 000.
	MaxClients int
	// MaxSpectators is the number of additional seats for spectators, see [Client.Spectator]. Zero
	// means none; at most 10 000.
	MaxSpectators int
	// SpectatorDelay is the delay with which spectators see the room, so that a spectator cannot
	// help a player with the positions of others. It delays the objects, the messages and the
	// room's time. Zero means no delay; at most 5 min. After the room has ended, spectators see it
	// for the remaining delay; a server that ends waits for this for at most Config.DrainTimeout.
	//
	// Delayed spectators see the same as the room's [Client.SpectatorFeed] and are not clients of
	// the room. OnAdmit is called for them, but no other hook. They take the seats of
	// MaxSpectators, and [RoomInfo] counts them. Their messages are dropped, and their calls get
	// CodeUnknownMethod, also with [ForSpectators]. Duplicate and KeepDropped apply to spectators
	// separately from players: a player may play and, over another connection, watch.
	//
	// The delay costs as much as one more client, and stores the delayed data in memory, up to 64
	// MiB. Above this limit, spectators lose messages, and get changes of state later and together.
	SpectatorDelay time.Duration
	// Private refuses clients that have neither a [Ticket] nor the room's Code, with the same
	// answer as for a room that does not exist. A player with a client in the room needs neither,
	// and takes that client over (Duplicate).
	Private bool
	// Code lets people meet in a private room: a client with this code as its client.Config Ticket
	// is admitted. If it is empty, the server generates a code: six letters and digits that are
	// hard to confuse. [Room.Spec] and the Spec of each [RoomInfo] have it, so do not send these
	// to clients. At most 64 bytes, without an @, and unique on the server. In a cluster all
	// servers know the room by its code, a tenth of a second after it has opened. Of rooms with
	// the same code, that of the client's server counts.
	Code string
	// Budget is the average number of bytes of object records that a client is sent per tick; zero
	// means 11 000, as much as the packets of a tick carry. From 1 to 1 048 576. See
	// [Client.SetBudget].
	Budget int
	// KeepDropped is the game time within which a client that has lost its connection may return:
	// see [Room.OnDrop]. Zero means 20 s; below zero the client leaves at once; at most an hour. A
	// client that closes its connection, or whose connection the server closes, leaves at once in
	// any case. So does a client that has lost its connection if a new client needs its seat, and
	// such clients of its player or address have more than a quarter of the seats of a full room.
	KeepDropped time.Duration
	// Duplicate is the policy for a new connection of a player ([Join] Subject) that already has a
	// client in the room; zero means [DuplicateTakeOver].
	Duplicate DuplicatePolicy
	// MaxRewind limits the age of a client's view (see [Tick.ViewMoment]) at the time when the
	// client makes the input with the view: an older view is replaced by a view of this age. Zero
	// means 250 ms; a value below zero disables rewinding; at most 1 s. The input runs later,
	// after half a round trip and the wait for its step. MaxRewind limits this delay as well, so
	// the step sees a state that is at most twice MaxRewind old.
	MaxRewind time.Duration
	// CloseEmpty is the game time after which an empty room closes by itself. If a seat is reserved
	// then, or a client is joining, the time starts again. Zero means 30 s, and for the default
	// room [NeverClose], as does any value below zero; at most an hour.
	CloseEmpty time.Duration
	// Sleep lets the room skip its ticks while it is idle. A room is idle when no message of its
	// clients, no posted message and no result of work is pending, no timer, Deadline or system
	// with a period is due, and each client has had a second to receive the last changes. Any of
	// these wakes the room, and so does a client that joins, leaves or returns, or an inspection of
	// the room. Systems that run in each tick do not keep the room awake, unless they change
	// replicated state; neither does a client that only sends acknowledgements or inputs of zeros.
	//
	// Tick.Number, GameTime and scaled time advance as if the skipped ticks had run, while fixed
	// steps and systems without a period do not run in them. For a system with a period, Delta is
	// the time since its last call, as always.
	Sleep bool
	// Params is data for the game's Open, which reads it with [Room.Params]: the rules of a table,
	// or the map of a match. It is a plain struct, a pointer to one, or a protobuf message. It is
	// encoded like an RPC message when the room is opened, and takes at most [MaxMessage]. Nil
	// means no parameters. In the specs that [Room.Spec] and [Server.Rooms] return, Params is nil.
	Params any

	packed     schema.Parcel // encoded Params
	handedOver bool          // the room comes from another server: see transfer.seating
}

// NeverClose is the [RoomSpec] CloseEmpty of a room that does not close while it is empty.
const NeverClose time.Duration = -1

// DuplicatePolicy is the policy for a new connection with the [Join] Subject of a client that is
// already in the room, connected or not.
type DuplicatePolicy uint8

// The policies for a player's second connection.
const (
	// DuplicateTakeOver gives the existing client, with its id and objects, to the new connection,
	// even if the room is full, locked or private. OnResume is called, and OnJoin is not. The older
	// connection is closed with [CodeReplaced]. Messages from the older connection that have not
	// run, and unsent messages to it, are dropped. A ticket of the new connection is used up.
	//
	// A client never changes between playing and watching. To change, a player needs a free seat of
	// the other kind, or a ticket for one. The existing client then leaves with CodeReplaced, and a
	// new client joins with the same id: OnLeave, OnJoin and [Room.OnRole] are called.
	DuplicateTakeOver DuplicatePolicy = iota + 1
	// DuplicateRefuse refuses the new connection with [CodeRefused], also while the player has lost
	// its connection and its seat is kept: see [RoomSpec] KeepDropped. The same program may resume
	// its seat.
	DuplicateRefuse
	// DuplicateAllow admits the new connection as another client.
	DuplicateAllow
)

// validate returns the spec with its defaults set, or an error that names the key.
func (s RoomSpec) validate() (RoomSpec, error) {
	if s.Rate == (Rate{}) {
		s.Rate = Hz(60)
	}
	if s.FixedRate == (Rate{}) {
		s.FixedRate = s.Rate
	}
	if s.SendEvery == 0 {
		s.SendEvery = 1
	}
	if s.MaxClients == 0 {
		s.MaxClients = defaultMaxClients
	}
	if s.Budget == 0 {
		s.Budget = defaultClientBudget
	}
	if s.Budget < 1 || s.Budget > netvar.MaxBudget {
		return s, ConfigError("Room.Budget", s.Budget, "use 1 to %d", netvar.MaxBudget)
	}
	if s.KeepDropped == 0 {
		s.KeepDropped = defaultKeepDropped
	}
	if s.KeepDropped > maxKeepDropped {
		return s, ConfigError("Room.KeepDropped", s.KeepDropped, "use 0 for %v, up to %v, or less than 0 for none", defaultKeepDropped, maxKeepDropped)
	}
	if s.MaxRewind == 0 {
		s.MaxRewind = defaultMaxRewind
	}
	if s.MaxRewind > maxMaxRewind {
		return s, ConfigError("Room.MaxRewind", s.MaxRewind, "use 0 for %v, up to %v, or less than 0 for none", defaultMaxRewind, maxMaxRewind)
	}
	if s.CloseEmpty == 0 {
		s.CloseEmpty = defaultCloseEmpty
	}
	if s.CloseEmpty > maxCloseEmpty {
		return s, ConfigError("Room.CloseEmpty", s.CloseEmpty, "use 0 for %v, up to %v, or NeverClose", defaultCloseEmpty, maxCloseEmpty)
	}
	if s.Duplicate == 0 {
		s.Duplicate = DuplicateTakeOver
	}
	if s.Duplicate > DuplicateAllow {
		return s, ConfigError("Room.Duplicate", s.Duplicate, "use DuplicateTakeOver, DuplicateRefuse or DuplicateAllow")
	}
	if err := s.Rate.check("Room.Rate"); err != nil {
		return s, err
	}
	if err := s.FixedRate.check("Room.FixedRate"); err != nil {
		return s, err
	}
	if s.SendEvery < 1 || s.SendEvery > maxSendEvery {
		return s, ConfigError("Room.SendEvery", s.SendEvery, "use 1 to %d", maxSendEvery)
	}
	if s.MaxClients < 1 || s.MaxClients > maxMaxClients {
		return s, ConfigError("Room.MaxClients", s.MaxClients, "use 1 to %d", maxMaxClients)
	}
	if s.MaxSpectators < 0 || s.MaxSpectators > maxMaxClients {
		return s, ConfigError("Room.MaxSpectators", s.MaxSpectators, "use 0 for none, up to %d", maxMaxClients)
	}
	if s.SpectatorDelay < 0 || s.SpectatorDelay > maxSpectatorDelay {
		return s, ConfigError("Room.SpectatorDelay", s.SpectatorDelay, "use 0 for none, up to %v", maxSpectatorDelay)
	}
	if err := s.checkCode(); err != nil {
		return s, err
	}
	if err := s.pack(); err != nil {
		return s, err
	}
	if len(s.Name) > maxRoomName {
		return s, ConfigError("Room.Name", s.Name, "use at most %d bytes", maxRoomName)
	}
	if len(s.Kind) > schema.MaxName {
		return s, ConfigError("Room.Kind", s.Kind, "use at most %d bytes", schema.MaxName)
	}
	return s, nil
}

// RoomDefaulter is a [Game] with its own defaults for its default room, such as suitable rates.
type RoomDefaulter interface {
	// RoomDefaults returns defaults for the fields of the default room's spec. Fields that [Config]
	// Room or the flags of package app set take precedence, field by field; zero fields have the
	// defaults of [RoomSpec]. It is called once or twice, before the server opens any resource, and
	// must return the same result each time.
	RoomDefaults() RoomSpec
}

// withDefaults fills the zero fields of a spec with the game's RoomDefaults.
func (s RoomSpec) withDefaults(g Game) (RoomSpec, error) {
	d, ok := g.(RoomDefaulter)
	if !ok {
		return s, nil
	}
	defaults := d.RoomDefaults()
	if _, err := defaults.validate(); err != nil {
		return s, fmt.Errorf("the game's RoomDefaults: %w", err)
	}
	to, from := reflect.ValueOf(&s).Elem(), reflect.ValueOf(defaults)
	for i := range to.NumField() {
		if to.Field(i).CanSet() && to.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return s, nil
}

// pack encodes the parameters of a room, so that the room shares no memory with the caller, and a
// recording can contain the parameters.
func (s *RoomSpec) pack() error {
	if s.Params == nil {
		return nil
	}
	packed, err := schema.Pack(s.Params)
	if err != nil {
		return ConfigError("Room.Params", fmt.Sprintf("%T", s.Params), "use a plain struct or a protobuf message: %v", err)
	}
	if len(packed) > MaxMessage {
		return ConfigError("Room.Params", fmt.Sprintf("%d bytes", len(packed)), "use at most %d", MaxMessage)
	}
	s.Params, s.packed = nil, packed
	return nil
}

// Params decodes [RoomSpec] Params of the room into dst, a pointer to a value of the same type;
// without Params dst is not changed. Any goroutine may call it.
func (r *Room) Params(dst any) error {
	if r.spec.packed == "" {
		return nil
	}
	if err := r.spec.packed.Into(dst); err != nil {
		return fmt.Errorf("netloop: the parameters of room %q: %w", r.spec.Name, err)
	}
	return nil
}
