package netloop

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// hooks are the functions of a game that a room calls on events. They implement the [room.Game] of
// the engine. They can be registered only while Open runs, because admissions read them on other
// goroutines, and a client that has already joined would miss its OnJoin.
type hooks struct {
	room     *Room
	onStart  []func(*Tick)
	onAdmit  []func(context.Context, *Join) error
	onJoin   []func(*Tick, *Client) error
	onDrop   []func(*Tick, *Client)
	onResume []func(*Tick, *Client)
	onRole   []func(*Tick, *Client)
	onLeave  []func(*Tick, *Client, *Closed)
	onDrain  []func(*Tick, time.Duration)
	onClose  []func(context.Context, *Closed) error
	// see handover.go
	onHandOver  []HandOver
	onDuplicate []func(*Tick) bool
	perClient   []interface {
		make(ClientID)
		free(ClientID)
	}
}

// ServerOpener is a [Game] with resources that its rooms share, such as a database. A replay calls
// neither function: the work that uses the resources does not run there.
type ServerOpener interface {
	// OpenServer is called once by [New], before the default room opens. Its error is that of New.
	OpenServer(s *Server) error
	// CloseServer is called once after OpenServer has returned nil: after the last room has ended,
	// or has not opened. The error of [Server.Run] includes its error. The context ends after 5 s;
	// then the server ends without it, and netloop_left_behind_total counts it.
	CloseServer(ctx context.Context) error
}

// closeServerTimeout bounds CloseServer.
const closeServerTimeout = 5 * time.Second

// openServer calls the game's OpenServer, if it has one.
func (s *Server) openServer() (err error) {
	game, ok := s.game.(ServerOpener)
	if !ok || s.cfg.recorded {
		return nil
	}
	defer s.recoverInto("OpenServer", "the game's OpenServer", &s.cfg.Room, &err)
	if err := game.OpenServer(s); err != nil {
		return fmt.Errorf("netloop: the game's OpenServer: %w", err)
	}
	s.opened = game
	return nil
}

// closeServer calls the game's CloseServer, once, if OpenServer has succeeded.
func (s *Server) closeServer() error {
	game := s.opened
	if game == nil {
		return nil
	}
	s.opened = nil
	ctx, cancel := context.WithTimeout(context.Background(), closeServerTimeout)
	defer cancel()
	closing := func() error { return game.CloseServer(ctx) }
	return s.callWithin("CloseServer", "the game's CloseServer", closeServerTimeout+cancelGrace, &s.cfg.Room, closing)
}

// OnStart registers a function that is called once, at Initialization of the first tick, before any
// client can join: spawn the first objects here. A panic in it is logged and counted, and the room
// continues.
func (r *Room) OnStart(fn func(*Tick)) {
	if r.opens("OnStart") {
		r.hooks.onStart = append(r.hooks.onStart, fn)
	}
}

// Start implements room.Game.
func (h *hooks) Start() {
	for _, fn := range h.onStart {
		// The error is logged.
		_ = h.room.e.Call("OnStart", func() error { fn(&h.room.tick); return nil })
		if h.room.e.GivenUp() {
			return
		}
	}
	h.room.starter.Remove()
}

// RunTimers implements room.Game.
func (h *hooks) RunTimers() { h.room.timers.Run(&h.room.tick, &h.room.now) }

// TimersDue implements room.Game.
func (h *hooks) TimersDue(s loop.Scale) time.Duration { return h.room.timers.Due(s) }

// OnAdmit registers a function that checks every client before it joins. It runs on its own
// goroutine, may block until ctx ends ([Config] AdmitTimeout) and must not touch state of the room.
// The text of an error is sent to the refused client.
func (r *Room) OnAdmit(fn func(ctx context.Context, j *Join) error) {
	if r.opens("OnAdmit") {
		r.hooks.onAdmit = append(r.hooks.onAdmit, fn)
	}
}

// Admit implements room.Game.
func (h *hooks) Admit(ctx context.Context, request *room.Join) error {
	j := &Join{
		Subject: request.Subject, Claims: request.Claims, Token: request.Token, Addr: request.Addr, Minor: request.Minor, Ticket: request.Ticket,
		Spectator: request.Spectator, params: request.Params, reserved: request.Reserved,
	}
	for _, fn := range h.onAdmit {
		admit := func() error { defer h.room.offTick.enter()(); return fn(ctx, j) }
		if err := h.room.e.CallAside("OnAdmit", admit); err != nil {
			return err
		}
	}
	j.Ticket, j.Spectator = request.Ticket, request.Spectator // The game cannot change these.
	request.Subject, request.Claims, request.Game = j.Subject, j.Claims, j
	return nil
}

// Enter implements room.Game.
func (h *hooks) Enter(e *room.Client) {
	join, ok := e.Join().Game.(*Join)
	if !ok { // The spectator feed has no admission.
		join = &Join{Spectator: true}
		e.Join().Game = join
	}
	c := &Client{e: e, room: h.room, join: join}
	e.Game = c
	for _, p := range h.perClient {
		p.make(c.ID())
	}
}

// OnJoin registers a function that is called when a client joins, in EarlyUpdate and before any
// message of this client. An error closes the connection, and no message of the client runs.
// OnLeave is called in this case too, with the PerClient records and objects that were made so far.
func (r *Room) OnJoin(fn func(*Tick, *Client) error) {
	if r.opens("OnJoin") {
		r.hooks.onJoin = append(r.hooks.onJoin, fn)
	}
}

// Join implements room.Game.
func (h *hooks) Join(e *room.Client) error {
	for _, fn := range h.onJoin {
		if err := h.room.e.Call("OnJoin", func() error { return fn(&h.room.tick, clientOf(e)) }); err != nil {
			return err
		}
	}
	return nil
}

// OnDrop registers a function that is called when a client has lost its connection and may return
// within [RoomSpec] KeepDropped: the client keeps its id, its objects, its groups and its PerClient
// records, and reliable messages to it wait. Either OnResume or OnLeave is called next.
func (r *Room) OnDrop(fn func(*Tick, *Client)) {
	if r.opens("OnDrop") {
		r.hooks.onDrop = append(r.hooks.onDrop, fn)
	}
}

// Drop implements room.Game.
func (h *hooks) Drop(e *room.Client) { h.call("OnDrop", h.onDrop, e) }

// OnResume registers a function that is called when a client has returned over another connection,
// before any message from it. OnDrop was called before, unless the server had not detected the loss
// yet. If another program of the same player has taken the client over ([DuplicateTakeOver]),
// Client.Join is the request of that program.
func (r *Room) OnResume(fn func(*Tick, *Client)) {
	if r.opens("OnResume") {
		r.hooks.onResume = append(r.hooks.onResume, fn)
	}
}

// Resume implements room.Game.
func (h *hooks) Resume(e *room.Client) {
	c := clientOf(e)
	c.join = e.Join().Game.(*Join)
	c.join.Addr = e.Join().Addr
	h.call("OnResume", h.onResume, e)
}

// OnRole registers a function that is called when a player has become a spectator, or a spectator a
// player: another connection of the player has taken its client over in the other role
// ([DuplicateTakeOver]). The client in the former role has left before, with OnLeave and
// [CodeReplaced], and c has joined with the same id, with OnJoin. OnRole is not called if OnJoin
// has refused c.
//
// A player who leaves and joins again in another role is no such change, and a delayed spectator is
// no client of the room: see [RoomSpec] SpectatorDelay.
func (r *Room) OnRole(fn func(t *Tick, c *Client)) {
	if r.opens("OnRole") {
		r.hooks.onRole = append(r.hooks.onRole, fn)
	}
}

// Role implements room.Game.
func (h *hooks) Role(e *room.Client) { h.call("OnRole", h.onRole, e) }

// Move implements room.Game.
func (h *hooks) Move(e *room.Client) { clientOf(e).join.Addr = e.Join().Addr }

// call calls functions that return no error. Their panics are logged.
func (h *hooks) call(hook string, fns []func(*Tick, *Client), e *room.Client) {
	for _, fn := range fns {
		_ = h.room.e.Call(hook, func() error { fn(&h.room.tick, clientOf(e)); return nil })
	}
}

// OnLeave registers a function that is called when a client has left: exactly once for each client
// for which OnJoin was called, while its objects still exist. If a function of OnJoin fails, later
// ones are not called, and all functions of OnLeave are.
func (r *Room) OnLeave(fn func(*Tick, *Client, *Closed)) {
	if r.opens("OnLeave") {
		r.hooks.onLeave = append(r.hooks.onLeave, fn)
	}
}

// Leave implements room.Game.
func (h *hooks) Leave(e *room.Client, why *transport.Closed) {
	for _, fn := range h.onLeave {
		// The error is logged.
		_ = h.room.e.Call("OnLeave", func() error { fn(&h.room.tick, clientOf(e), &Closed{why.Code, why.Text}); return nil })
	}
}

// Left implements room.Game.
func (h *hooks) Left(e *room.Client) {
	c := clientOf(e)
	for _, p := range h.perClient {
		p.free(c.ID())
	}
	c.groups = nil
}

// Keeps implements room.Game.
func (h *hooks) Keeps(o *state.Object) bool {
	typed, ok := o.Handle.(interface{ kept() bool })
	return ok && typed.kept()
}

// OnDrain registers a function that is called when the room has been told to end; left is the time
// until its end. It is called again if that time becomes shorter: if an operator drains a room for
// an hour and the server is then told to end, the room has [Config] DrainTimeout left.
func (r *Room) OnDrain(fn func(t *Tick, left time.Duration)) {
	if r.opens("OnDrain") {
		r.hooks.onDrain = append(r.hooks.onDrain, fn)
	}
}

// Drain implements room.Game.
func (h *hooks) Drain(left time.Duration) {
	for _, fn := range h.onDrain {
		ended := h.room.e.Watched("OnDrain", 0)
		// The error is logged.
		_ = h.room.e.Call("OnDrain", func() error { fn(&h.room.tick, left); return nil })
		ended()
	}
}

// OnClose registers a function that is called after the last tick, when all systems have been
// removed (see [OnRemove]): save the state here. why is the reason for the end: the code and text
// of [Room.Close] or [Server.CloseRoom], [CodeClosing] for an empty room that closed or a server
// that ends, and [CodeInternal] for a room that has failed, whose state may be half changed. The
// error of Run includes the errors of these functions. Together they have 60 s until the context
// ends.
func (r *Room) OnClose(fn func(ctx context.Context, why *Closed) error) {
	if r.opens("OnClose") {
		r.hooks.onClose = append(r.hooks.onClose, fn)
	}
}

// Close implements room.Game.
func (h *hooks) Close(ctx context.Context) (err error) {
	ended := h.room.e.Shutdown.Ended()
	why := &Closed{ended.Code, ended.Text}
	for _, fn := range h.onClose {
		done := h.room.e.Watched("OnClose", room.SaveTimeout)
		err = errors.Join(err, h.room.e.Call("OnClose", func() error { return fn(ctx, why) }))
		done()
	}
	return err
}

// AppendJoin implements room.Game. Claims that cannot be recorded are left out.
func (h *hooks) AppendJoin(b []byte, joined *room.Join) ([]byte, error) {
	j := joined.Game.(*Join)
	all, err := recording.AppendValue(b, j)
	if err == nil {
		return all, nil
	}
	bare := *j
	bare.Claims = nil
	rest, bareErr := recording.AppendValue(b, &bare)
	return rest, errors.Join(err, bareErr)
}

// ReadJoin implements room.Game.
func (h *hooks) ReadJoin(b []byte, joined *room.Join) error {
	j := new(Join)
	err := recording.ReadValue(b, j)
	joined.Subject, joined.Addr, joined.Spectator, joined.Game = j.Subject, j.Addr, j.Spectator, j
	return err
}

// The hooks for the packages that build on this one: see package bridge.
var _ = setHooks()

func setHooks() bool {
	d := &bridge.Netloop
	d.Schema = func(declared any) *schema.Schema {
		s := declared.(*Schema).s
		s.Freeze()
		return s
	}
	d.Method = func(descriptor any) *schema.Method { return descriptor.(interface{ method() *schema.Method }).method() }
	d.Input = func(descriptor any) *schema.Input { return descriptor.(interface{ input() *schema.Input }).input() }
	d.Class = func(descriptor any) bridge.Class {
		c := descriptor.(interface{ class() *class }).class()
		return bridge.Class{State: c.nv, Wrap: c.wrap, Predicted: c.predicted}
	}
	d.Object = func(handle any) *state.Object { return handle.(interface{ object() *state.Object }).object() }
	d.Repoint = func(handle any, to *state.Object) {
		handle.(interface{ repoint(to *state.Object) }).repoint(to)
	}
	d.Repeat = func(descriptor, last any, missed int) any {
		return descriptor.(interface {
			repeatAny(last any, missed int) any
		}).repeatAny(last, missed)
	}
	d.Send = func(options any) schema.Send { return sendWith(options.([]SendOption)) }
	d.NewTick = func(cfg bridge.TickConfig) bridge.Tick {
		timers := new(loop.Timers[*Tick])
		t := &Tick{now: cfg.Now, store: cfg.Store, timers: timers, rand: cfg.Rand, log: cfg.Log}
		return bridge.Tick{
			Tick: t, RunTimers: func() { timers.Run(t, t.now) },
			ShiftTimers: func(game, scaled time.Duration) {
				timers.Shift(loop.GameClock, game)
				timers.Shift(loop.ScaledClock, scaled)
			},
		}
	}
	d.Systems = func(l any, reject func(error)) any { return &registry{l.(*loop.Loop[*Tick]), reject} }
	d.Room = func(r any) *room.Room { return r.(*Room).e }
	d.Replay = func(r any) *room.Replay { return r.(*Replay).e }
	d.Server = func(server any) bridge.Server {
		s := server.(*Server)
		return bridge.Server{
			Public: s, Room: s.room.e, SpectatorRoom: s.room.spectatorRoom, Tick: &s.room.tick, Schema: s.schema, Handler: admitter{s}, Local: &s.local,
			UseClock: func(c loop.Clock) { s.clock.Clock = c }, EndAdmission: s.endAdmission, CloseServer: s.closeServer,
			Join: s.joinCluster, Leave: s.leaveCluster, HandOver: func() { s.handOverAll(context.Background()) },
			Adopt: func(take func(bridge.Room)) {
				s.supervisor.start = func(r *Room) {
					take(bridge.Room{Room: r.e, SpectatorRoom: r.spectatorRoom, Tick: &r.tick, Ended: func(err error) { s.roomEnded(r, err) }})
				}
			},
			Tell: s.notify,
			Page: s.page,
			WriterPage: func(ctx context.Context, path string, query url.Values) (any, error) {
				return s.page(admin.AsWriter(ctx), path, query)
			},
			SetIdleTimeout: func(idle time.Duration) { s.idle = idle },
			Simulate:       func(cfg netem.Config) { s.network = &cfg },
		}
	}
	return true
}
