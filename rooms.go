package netloop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// A server has the default room, which New opens, and further rooms that the game, the program or,
// if the game permits it, clients open later.

// Opener is a [Game] that opens a room when a client requests an unknown name.
type Opener interface {
	// OpenFor returns the spec of the room for a client that requests a name, or refuses the
	// client, usually with [CodeRoomUnknown]. It runs on its own goroutine and may block until ctx
	// ends ([Config] AdmitTimeout). j is complete except for the results of the room's OnAdmit. The
	// room gets the requested name. A Private room admits the client for which it was opened;
	// other clients need its Code or a [Ticket]. The error of [GoTo] sends the client to another
	// room. A site (an IPv4 address, an IPv6 /56) may request 32 rooms at once, and then one more a
	// second.
	OpenFor(ctx context.Context, name string, j *Join) (RoomSpec, error)
}

// GoTo returns the error with which OpenFor sends a client to the room of a ticket, for names that
// mean any room of a kind, for instance.
func GoTo(ticket Ticket) error { return &goTo{ticket} }

type goTo struct{ ticket Ticket }

// Error implements error.
func (*goTo) Error() string { return "netloop: GoTo: return this error from OpenFor" }

// RoomInfo describes a room of a running server.
type RoomInfo struct {
	Spec       RoomSpec // as Room.Spec returns it: with the Code of a private room
	Clients    int      // in the room or joining
	Spectators int      // number of Clients that watch
	Reserved   int      // further seats that are reserved by tickets
	Locked     bool     // see [Room.Lock]
	Server     string   // the id of its server, in a cluster
}

// The errors of OpenRoom.
var (
	// ErrRoomExists is the error if another room of the server, or of its cluster, has the name.
	ErrRoomExists error = directory.ErrTaken
	// ErrTooManyRooms is the error if the server has Config.MaxRooms rooms.
	ErrTooManyRooms error = directory.ErrFull
	// ErrClosing is the error if the server ends.
	ErrClosing error = directory.ErrClosed
	// ErrClusterBusy is the error if the server's cluster does not answer in time.
	ErrClusterBusy error = cluster.ErrBusy
)

// OpenRoom opens another room on this server: it calls the game's Open and, if the server runs,
// starts to tick the room on another goroutine; otherwise Run starts it. Clients join the room by
// its name. Any goroutine may call it except the goroutine of a room, which calls
// [Tick.OpenRoom]. In a cluster the name must be free on all servers, and Listen must have joined
// the cluster before.
func (s *Server) OpenRoom(ctx context.Context, spec RoomSpec) (*Room, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("netloop: OpenRoom: %w", err)
	}
	spec, err := spec.validate()
	if err != nil {
		return nil, fmt.Errorf("netloop: OpenRoom: %w", err)
	}
	if s.draining.Load() || s.leaving.Load() {
		return nil, ErrClosing
	}
	place, err := s.reserveName(&spec)
	if err != nil {
		return nil, err
	}
	filled := false
	defer func() {
		if !filled { // This also covers an Open or OnClose of the game that ends this goroutine.
			place.Cancel()
		}
	}()
	epoch, err := s.claimName(ctx, spec.Name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if !filled {
			s.releaseName(spec.Name, epoch)
		}
	}()
	r, err := s.openGuarded(ctx, spec, place.Number(), uint64(epoch))
	if err != nil {
		return nil, err
	}
	if err := s.recordRoom(r); err != nil { // OnClose releases the resources of Open.
		defer r.unlist()
		err = errors.Join(err, r.e.Shutdown.Finish(CodeInternal, "the room cannot be recorded"))
		if r.spectatorRoom != nil {
			r.spectatorRoom.Discard()
		}
		return nil, err
	}
	if spec.handedOver {
		r.transfer.seating.Store(int64(s.clock.Now() + openTime))
	}
	s.keepTicks(r)
	r.fetched = nil
	filled = true
	place.Fill(r)
	r.list()
	s.raiseConnLimit()
	s.startRoom(r)
	return r, nil
}

// openGuarded opens a room, and turns a panic of the game's Open into an error: the other rooms
// keep running.
func (s *Server) openGuarded(ctx context.Context, spec RoomSpec, number, epoch uint64) (r *Room, err error) {
	defer s.recoverInto("Open", "the game's Open", &spec, &err)
	return openRoom(ctx, s, spec, roomNumbers{number, epoch, roomSeed(s.cfg.Seed, spec.Name, number)})
}

// recoverInto is deferred around a function of the game or of the program that opens or ends a
// room. It counts a panic of the function and turns it into an error.
func (s *Server) recoverInto(hook, what string, spec *RoomSpec, err *error) {
	if v := recover(); v != nil {
		s.metrics.Panics.Add(1, hook)
		s.log.Error(what+" panicked", "room", spec.Name, "kind", spec.Kind, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		*err = fmt.Errorf("netloop: %s panicked: %v", what, v)
	}
}

// roomSeed returns the seed of a room's random numbers. It differs for each room, also for
// successive rooms with the same name.
func roomSeed(seed uint64, name string, number uint64) uint64 {
	const prime = 0x100000001b3 // FNV-1a
	h := seed ^ 0xcbf29ce484222325
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * prime
	}
	for range 8 {
		h = (h ^ number&0xff) * prime
		number >>= 8
	}
	return h
}

// recordRoom begins the recording of a room other than the default room, if RecordRoom returns a
// writer.
func (s *Server) recordRoom(r *Room) (err error) {
	if s.cfg.RecordRoom == nil {
		return nil
	}
	defer s.recoverInto("RecordRoom", "Config.RecordRoom", &r.spec, &err)
	w, err := s.cfg.RecordRoom(r.info())
	if err != nil {
		return fmt.Errorf("netloop: RecordRoom: %w", err)
	}
	if w == nil {
		return nil
	}
	if err := r.record(w); err != nil {
		return errors.Join(fmt.Errorf("netloop: RecordRoom: %w", err), w.Close())
	}
	r.recording = w
	return nil
}

// openResult is the result of OpenRoom as a recording stores it.
type openResult struct {
	Info RoomInfo
	Why  uint8 // 1 + the index of the error in openErrors, 0 if it is not in the list
}

var openErrors = [...]error{ErrRoomExists, ErrTooManyRooms, ErrClosing, ErrClusterBusy}

// OpenRoom opens another room from a tick, as [Server.PlaceRoom] does. The game's Open runs on
// another goroutine. The function then, which must not be nil, is called in EarlyUpdate of a later
// tick with the result, as by [Go]. The error is one of those of PlaceRoom, or [ErrTooMuchWork]. It
// panics on a client.
func (t *Tick) OpenRoom(spec RoomSpec, then func(*Tick, RoomInfo, error)) {
	s := t.server("Tick.OpenRoom").server
	unfit := spec.pack() // Pack now, because the game may change the data later.
	work := func(ctx context.Context) (openResult, error) {
		if unfit != nil {
			return openResult{}, fmt.Errorf("netloop: OpenRoom: %w", unfit)
		}
		info, err := s.PlaceRoom(ctx, spec)
		for i, known := range openErrors {
			if errors.Is(err, known) {
				return openResult{Why: uint8(1 + i)}, nil
			}
		}
		if err != nil {
			return openResult{}, errors.New(err.Error()) // Only the text is recorded.
		}
		return openResult{Info: info}, nil
	}
	Go(t, work, func(t *Tick, o openResult, err error) {
		if o.Why > 0 {
			err = openErrors[o.Why-1]
		}
		then(t, o.Info, err)
	})
}

// info returns the room's description. Any goroutine may call it.
func (r *Room) info() RoomInfo {
	players, spectators, reserved := r.e.Admission.Count()
	return RoomInfo{Spec: r.spec, Clients: players + spectators, Spectators: spectators, Reserved: reserved, Locked: r.e.Admission.Locked(), Server: r.server.ID()}
}

// full reports whether all seats for players are taken.
func (r *Room) full() bool { return r.e.Admission.Players() >= r.spec.MaxClients }

// Rooms iterates over the server's rooms, in the order in which they were opened. Any goroutine may
// call it.
func (s *Server) Rooms() iter.Seq[RoomInfo] {
	return func(yield func(RoomInfo) bool) {
		for _, r := range s.rooms.All() {
			if !yield(r.info()) {
				return
			}
		}
	}
}

// CloseRoom ends a room from outside, as [Room.Close] does from a tick. Its clients may continue to
// play for the time drain, and then they are sent the code and the text. A second call, or the end
// of the server, can only shorten the drain. CloseRoom returns at once, with an error if no room
// has the name. A room of another server of the cluster is told, once, and the log has the error if
// that fails. If the default room ends, the server ends. Any goroutine may call it.
func (s *Server) CloseRoom(name string, drain time.Duration, c Code, text string) error {
	r, ok := s.rooms.Get(name)
	if !ok {
		return s.closeElsewhere(name, drain, c, text)
	}
	r.end(drain, c, text)
	return nil
}

// end ends the room from outside.
func (r *Room) end(drain time.Duration, c Code, text string) {
	e := room.End{Why: transport.Closed{Code: c, Text: text}, Drain: max(drain, 0)}
	r.transfer.closed.Store(&e)
	r.e.Supervisor.End(e)
}

func errNoRoom(name string) error { return room.ErrUnknown(name) }

// startRoom starts a room if the server runs.
func (s *Server) startRoom(r *Room) {
	s.supervisor.Lock()
	defer s.supervisor.Unlock()
	switch {
	case r.started:
	case s.supervisor.start != nil:
		r.started = true
		s.supervisor.start(r)
	case s.supervisor.ctx != nil:
		r.started = true
		s.startSpectatorRoom(r)
		r.e.Supervisor.Start(s.supervisor.ctx, func(err error) { s.roomEnded(r, err) })
	}
}

// roomEnded removes a room that has ended, and frees its name.
func (s *Server) roomEnded(r *Room, err error) {
	if r.recording != nil {
		err = errors.Join(err, s.closeRecording(r))
	}
	s.supervisor.Lock()
	var closed *Closed
	ordinary := err == nil || errors.As(err, &closed) && closed.Code != CodeInternal
	if r == s.room {
		s.supervisor.err = err
		close(s.supervisor.defaultEnded)
	} else if !ordinary {
		s.log.Error("room failed", "room", r.spec.Name, "kind", r.spec.Kind, "error", err)
		// The room may end before the end of the default room sets draining.
		if s.draining.Load() || s.supervisor.ctx != nil && s.supervisor.ctx.Err() != nil {
			s.supervisor.roomErrs = errors.Join(s.supervisor.roomErrs, fmt.Errorf("room %q: %w", r.spec.Name, err))
		}
	}
	s.supervisor.Unlock()
	r.unlist()
	if r.ring != nil {
		r.ring.Close()
	}
	r.releaseName() // Before Remove, for which the end of the server waits.
	s.rooms.Remove(r.spec.Name)
	s.raiseConnLimit()
}

// closeRecording closes the writer that Config.RecordRoom returned.
func (s *Server) closeRecording(r *Room) error {
	return s.callWithin("RecordRoom", "the recording's Close", room.SaveTimeout, &r.spec, r.recording.Close)
}

// callWithin calls a function of the game, or of the program, that ends a room or the server. The
// call runs on another goroutine and is waited for up to a limit, so that the end continues even if
// the function hangs. A panic and runtime.Goexit become errors.
func (s *Server) callWithin(hook, what string, limit time.Duration, spec *RoomSpec, fn func() error) error {
	done := make(chan struct{})
	answer := make(chan error, 1) // One sender, one value.
	go func() {
		defer close(done)
		err := fmt.Errorf("netloop: %s called runtime.Goexit", what)
		defer func() { answer <- err }()
		defer s.recoverInto(hook, what, spec, &err)
		err = fn()
	}()
	s.waitFor(hook, done, limit)
	select {
	case err := <-answer:
		return err
	default:
		return fmt.Errorf("netloop: %s does not return", what)
	}
}

// runRooms runs all rooms until ctx ends or the default room has ended, and then ends all rooms in
// parallel.
func (s *Server) runRooms(ctx context.Context) error {
	ctx, stop := s.handingOver(ctx)
	s.supervisor.Lock()
	s.supervisor.ctx = ctx
	s.supervisor.Unlock()
	for _, r := range s.rooms.All() {
		s.startRoom(r)
	}
	watching, endWatch := context.WithCancel(context.Background())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watchdog(watching, ctx)
	}()
	telling := make(chan struct{})
	go func() {
		defer close(telling)
		s.notifyWatchers(watching)
	}()
	synced := s.startSync(watching)
	endDesk := s.startInbox()
	<-s.supervisor.defaultEnded
	s.rooms.Close()
	stop()
	s.rooms.Wait()
	s.waitFor("Open", s.rooms.Opened(), room.WorkGrace)
	s.supervisor.spectatorRooms.Wait()
	endWatch()
	<-watched
	synced()
	s.waitFor("WatchRooms", telling, cancelGrace)
	endDesk()
	return errors.Join(s.supervisor.err, s.supervisor.roomErrs)
}

// handingOver returns a context for the rooms that ends after ctx, when the rooms that can have
// moved to other servers.
func (s *Server) handingOver(ctx context.Context) (context.Context, context.CancelFunc) {
	if !s.cfg.Cluster.HandOver || ctx.Err() != nil {
		return context.WithCancel(ctx)
	}
	rooms, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	unused := context.AfterFunc(ctx, func() {
		defer close(done)
		defer stop()
		s.handOverAll(rooms)
	})
	return rooms, func() {
		if stop(); !unused() {
			<-done
		}
	}
}

// cancelGrace is the time that a function of the game has to return after its context has ended.
const cancelGrace = time.Second

// waitFor waits until a function of the game or of the program has returned, up to a limit. After
// the limit the end of the server continues without it.
func (s *Server) waitFor(hook string, done <-chan struct{}, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
		s.metrics.LeftBehind.Add(1, hook)
		s.log.Error("a function of the game does not return, the server ends without it", "hook", hook)
	}
}

// roomFor returns the room that a hello requests, or lets the game open it. A client with a resume
// token names the room that issued the token. If that room is no longer open, for example after a
// crash of the server, the client counts as a new client, for which the game may open the room
// again.
func (s *Server) roomFor(ctx context.Context, hello *netloopv1.Hello, remote string) (context.Context, *Room, error) {
	name, ticket := hello.GetRoom(), hello.GetTicket()
	returns := len(hello.GetResume().GetToken()) > 0
	if ticket != "" && !returns {
		r, err := s.ticketRoom(ctx, hello, remote)
		return ctx, r, err
	}
	if r, ok := s.rooms.Find(ctx, name); ok {
		return ctx, r, nil
	}
	if err := s.sendElsewhere(ctx, hello, false, remote); err != nil {
		return ctx, nil, err
	}
	opener, ok := s.game.(Opener)
	if !ok {
		return ctx, nil, errNoRoom(name)
	}
	request := &room.Join{Token: hello.GetToken(), Addr: remote, Params: hello.GetParams(), Spectator: hello.GetSpectate()}
	if err := s.identify(ctx, request, name); err != nil {
		return ctx, nil, err
	}
	if !s.openings.Allow(siteOf(remote), s.clock.Now()) {
		s.metrics.Drops.Add(1, "rooms", "site")
		return ctx, nil, transport.Refuse(CodeBusy, "too many rooms were opened from your address, try again later")
	}
	ctx = context.WithValue(ctx, identityKey{}, request)
	r, opened, err := s.openForDetached(ctx, opener, name, request)
	if to := (*goTo)(nil); errors.As(err, &to) {
		hello.Ticket = string(to.ticket)
		r, err := s.ticketRoom(ctx, hello, remote)
		return ctx, r, err
	}
	if errors.Is(err, errOpenElsewhere) { // Another server has opened the room meanwhile.
		if err = s.sendElsewhere(ctx, hello, false, remote); err == nil {
			err = errNoRoom(name)
		}
	}
	if err == nil && opened && r.spec.Private {
		err = s.reserveForOpener(r, hello)
	}
	return ctx, r, err
}

// errOpenElsewhere is the error of openFor if the name belongs to another server.
var errOpenElsewhere = errors.New("another server has the room")

// reserveForOpener reserves a seat of a private room for the client for which the room was opened,
// because that client has neither a ticket nor the code. Another client that requests the same name
// is refused.
func (s *Server) reserveForOpener(r *Room, hello *netloopv1.Hello) error {
	tickets, err := r.e.Admission.Reserve(room.Reservation{Seats: 1, TTL: s.cfg.AdmitTimeout, Spectator: hello.GetSpectate()})
	if err == nil {
		hello.Ticket = tickets[0]
	}
	return err
}

// openForDetached is openFor on another goroutine: a function of the game that calls
// runtime.Goexit does not end the connection's goroutine.
func (s *Server) openForDetached(ctx context.Context, game Opener, name string, request *room.Join) (*Room, bool, error) {
	type answer struct {
		r      *Room
		opened bool
		err    error
	}
	answers := make(chan answer, 1) // One sender, one value.
	go func() {
		a := answer{err: errOpenExited}
		defer func() {
			if errors.Is(a.err, errOpenExited) {
				a.err = s.room.e.Refusal(ctx, "OpenFor", a.err, request.Addr)
			}
			answers <- a
		}()
		a.r, a.opened, a.err = s.openFor(ctx, game, name, request)
	}()
	select {
	case a := <-answers:
		return a.r, a.opened, a.err
	case <-ctx.Done():
		return nil, false, s.room.e.Refusal(ctx, "OpenFor", ctx.Err(), request.Addr)
	}
}

// errOpenExited is the error of an OpenFor, or an Open, that has ended its goroutine.
var errOpenExited = errors.New("netloop: OpenFor or the game's Open called runtime.Goexit")

// openFor lets the game open a room with the name. If several clients request the name at once,
// opened is true for one of them, which opens the room; the others get the same room.
func (s *Server) openFor(ctx context.Context, game Opener, name string, request *room.Join) (r *Room, opened bool, err error) {
	within, cancel := context.WithTimeout(ctx, s.cfg.AdmitTimeout)
	defer cancel()
	j := &Join{Subject: request.Subject, Claims: request.Claims, Token: request.Token, Addr: request.Addr, Minor: request.Minor, params: request.Params}
	var spec RoomSpec
	err = s.room.e.CallAside("OpenFor", func() (err error) { spec, err = game.OpenFor(within, name, j); return err })
	if errors.As(err, new(*goTo)) {
		return nil, false, err
	}
	if err != nil {
		return nil, false, s.room.e.Refusal(ctx, "OpenFor", err, request.Addr)
	}
	if spec.Name = name; spec.Place == (Place{}) {
		r, err = s.OpenRoom(within, spec)
	} else if err = s.placeFor(within, spec, request.Spectator); errors.As(err, new(*goTo)) {
		return nil, false, err
	}
	if errors.Is(err, ErrRoomExists) {
		s.openings.Refund(siteOf(request.Addr)) // Another client opened the room.
		if r, ok := s.rooms.Find(within, name); ok {
			return r, false, nil
		}
		return nil, false, errOpenElsewhere
	}
	switch {
	case errors.Is(err, ErrClusterBusy), errors.Is(err, cluster.ErrGone):
		return nil, false, errOpenBusy
	case errors.Is(err, ErrTooManyRooms):
		return nil, false, errManyRooms
	case errors.Is(err, ErrClosing):
		return nil, false, errDraining
	case err != nil:
		return nil, false, s.room.e.Refusal(ctx, "OpenFor", err, request.Addr)
	}
	return r, true, nil
}

var errManyRooms = &transport.Refusal{Code: CodeFull, Text: "server has the maximum number of rooms"}

// raiseConnLimit sets the limit of connections to maxClients plus spareConns, after rooms were
// opened or have ended.
func (s *Server) raiseConnLimit() {
	s.supervisor.Lock()
	defer s.supervisor.Unlock()
	if s.listener != nil {
		s.listener.Admission().SetMaxConns(s.maxClients() + spareConns)
	}
}

// maxClients returns the number of seats of all rooms, including seats for spectators, but at most
// Config.MaxClients.
func (s *Server) maxClients() (n int) {
	for _, r := range s.rooms.All() {
		n += r.spec.MaxClients + r.spec.MaxSpectators
	}
	return min(n, s.cfg.MaxClients)
}

// refusing returns the code with which every new connection is refused, or 0 if this depends on the
// room. resume reports whether a connection may nevertheless send a hello.
func (s *Server) refusing() (code Code, resume bool) {
	if _, opens := s.game.(Opener); opens || s.rooms.Len() > 1 {
		return 0, true
	}
	return s.room.e.Admission.Refusing()
}

// roomServer implements room.Server for one room of a server.
type roomServer struct{ r *Room }

// NextID implements room.Server.
func (h roomServer) NextID() uint64 { return h.r.server.lastID.Add(1) }

// Ticked implements room.Server.
func (h roomServer) Ticked() { h.r.updateListing() }

// EndAdmission implements room.Server. The end of the default room also ends the server.
func (h roomServer) EndAdmission(code Code, text string) {
	if s := h.r.server; s.room == h.r {
		s.endAdmission(code, text)
	}
}
