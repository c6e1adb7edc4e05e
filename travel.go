package netloop

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/membership"
	"github.com/netloop/netloop/internal/membership/places"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Clients move between the servers of a cluster by calls of their servers:
//
//	room, or a hello ─▶ bindElsewhere ─▶ call "bind" ─▶ the ticket is bound to the player
//	frame moved, or refused.moved ─▶ the client connects to the other server
//	its first data there ─▶ Arrived ─▶ call "arrived" ─▶ the old room frees the seat

// serverTravel implements room.Travel for the rooms of a server.
type serverTravel struct{ s *Server }

// travel returns the access of the server's rooms to other servers, or nil without a cluster.
func (s *Server) travel() room.Travel {
	if s.member == nil {
		return nil
	}
	return serverTravel{s}
}

// openTravel prepares the calls.
func (s *Server) openTravel() {
	membership.Handle(s.member, "bind", s.bindCalled)
	membership.Handle(s.member, "arrived", s.arrivedCalled)
	if p := s.cfg.Cluster.Duplicate; p == DuplicateTakeOver || p == DuplicateRefuse {
		s.places = places.New(places.Config{Member: s.member, Refuses: p == DuplicateRefuse, Drops: s.metrics.Drops})
	}
	membership.Handle(s.member, "place", s.placeCalled)
	s.confirms.ctx, s.confirms.cancel = context.WithCancel(context.Background())
	s.confirms.slots = make(chan struct{}, maxConfirms)
}

// placesRoom implements places.Room.
type placesRoom struct{ r *Room }

// KickPlayer implements places.Room.
func (p placesRoom) KickPlayer(ctx context.Context, subject string, code Code, text string) {
	p.r.e.Commands.KickPlayer(ctx, subject, code, text)
}

// places returns the places of the room's players, or nil if players may be in several rooms.
func (r *Room) places() room.Places {
	if r.server.places == nil {
		return nil
	}
	return r.server.places.Of(placesRoom{r})
}

// placeCalled gives the name of a player to another server.
func (s *Server) placeCalled(ctx context.Context, _ string, q *clusterv1.TakePlace) (proto.Message, error) {
	done := &clusterv1.Reply{}
	if s.places == nil {
		return done, nil
	}
	return done, s.places.Take(ctx, q.GetPlayer(), q.GetNumber())
}

// lostPlayer ends the place of a player whose name another server has claimed meanwhile.
func (s *Server) lostPlayer(player string, e cluster.Epoch) {
	if s.places != nil {
		s.places.Lost(player, e)
	}
}

// Bind implements room.Travel.
func (v serverTravel) Bind(ctx context.Context, b room.Binding) (room.Bound, error) {
	name, here, q := v.s.ticketFor(ctx, b.Ticket)
	switch {
	case here:
		return room.Bound{Local: true}, nil
	case name == "":
		return room.Bound{}, v.s.unknownTicket(b.Addr)
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.StoreTime)
	defer cancel()
	from := room.Origin{Room: b.Room, Client: b.Client, Number: randomNumber()}
	move := inspect.Move{Out: true, Client: b.Client, FromServer: v.s.ID(), FromRoom: b.Room, ToRoom: name, State: inspect.MoveReserved}
	began := v.s.clock.Now()
	var m *transport.MovedTo
	server, err := v.s.member.Find(ctx, name)
	if err != nil {
		err = callError(name, err)
	} else {
		move.ToServer = server
		m, err = v.s.bindElsewhere(ctx, server, name, q, b.Join, from)
	}
	if err != nil {
		move.State, move.Text = inspect.MoveFailed, err.Error()
	}
	v.s.beginMove(from.Number, move, began)
	if err != nil {
		return room.Bound{}, err
	}
	if v.s.places != nil {
		v.s.places.Moves(b.Join.Subject, from.Number)
	}
	return room.Bound{Ticket: m.Ticket, Number: from.Number, To: m.To}, nil
}

// ticketFor returns the name of the room of a ticket, or of a private room's code, and reports
// whether this server has the room. Otherwise q is the request for another server. The name is
// empty for a code that no known room has.
func (s *Server) ticketFor(ctx context.Context, text string) (name string, here bool, q *clusterv1.Bind) {
	name, ok := room.TicketRoom(text)
	if ok {
		_, here = s.rooms.Find(ctx, name)
		return name, here, &clusterv1.Bind{Ticket: []byte(text)}
	}
	if r, ok := s.rooms.FindCode(ctx, text); ok {
		return r.spec.Name, true, nil
	}
	name, _ = s.member.WithCode(text)
	return name, false, &clusterv1.Bind{Code: []byte(text)}
}

// randomNumber returns a number that no client can guess, other than 0.
func randomNumber() uint64 {
	var b [8]byte
	rand.Read(b[:]) // Never fails.
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// bindElsewhere binds a ticket of a room of another server, or a new seat of that room, to a
// player. It returns the ticket and the server for the player's client.
func (s *Server) bindElsewhere(ctx context.Context, server, name string, q *clusterv1.Bind, who *room.Join, from room.Origin) (_ *transport.MovedTo, err error) {
	if who.Claims != nil {
		if q.Claims, err = json.Marshal(who.Claims); err != nil {
			return nil, fmt.Errorf("claims of the player's token: %w", err)
		}
	}
	if who.Subject == "" {
		q.Token = []byte(who.Token)
	}
	q.Subject, q.FromRoom, q.FromClient, q.FromNumber = []byte(who.Subject), []byte(from.Room), from.Client, from.Number
	var bound clusterv1.Bound
	if err := s.member.Call(ctx, server, "bind", q, &bound); err != nil {
		return nil, callError(name, err)
	}
	m := &transport.MovedTo{Ticket: string(bound.GetTicket()), To: s.destination(server)}
	if err := m.To.Check(); err != nil {
		return nil, fmt.Errorf("server %s cannot be reached by players: %w", server, err)
	}
	return m, nil
}

// bindCalled binds a ticket of a room of this server for another server.
func (s *Server) bindCalled(ctx context.Context, from string, q *clusterv1.Bind) (proto.Message, error) {
	if s.draining.Load() {
		return nil, errDraining
	}
	who := &room.Identity{Subject: string(q.GetSubject()), Token: string(q.GetToken()), From: room.Origin{
		Room: string(q.GetFromRoom()), Client: q.GetFromClient(), Number: q.GetFromNumber(),
	}}
	if q.GetFromClient() != 0 {
		who.From.Server = from
	}
	if len(q.GetClaims()) > 0 {
		if err := json.Unmarshal(q.GetClaims(), &who.Claims); err != nil {
			return nil, fmt.Errorf("bind: malformed claims: %w", err)
		}
	}
	text, code := string(q.GetTicket()), string(q.GetCode())
	find, key := s.rooms.Find, string(q.GetRoom())
	if text != "" {
		key, _ = room.TicketRoom(text)
	} else if code != "" {
		find, key = s.rooms.FindCode, code
	}
	r, ok := find(ctx, key)
	switch {
	case !ok && code != "":
		return nil, room.ErrTicket
	case !ok:
		return nil, errNoRoom(key)
	}
	name := r.spec.Name
	if text == "" {
		var err error
		if text, err = r.reserveNewcomer(q.GetSpectator(), code != ""); err != nil {
			return nil, err
		}
	}
	bound, err := r.e.Admission.Bind(text, who)
	if err != nil {
		return nil, err
	}
	if f := &who.From; f.Server != "" {
		s.beginMove(f.Number, inspect.Move{
			Client: f.Client, FromServer: f.Server, FromRoom: f.Room, ToServer: s.ID(), ToRoom: name, State: inspect.MoveReserved,
		}, s.clock.Now())
	}
	return &clusterv1.Bound{Ticket: []byte(bound)}, nil
}

// newcomerTTL is the time for which a seat is reserved for a client that another server sends by
// the name of the room. It is short, because a client can request many.
const newcomerTTL = 10 * time.Second

// reserveNewcomer reserves a seat for a client that has requested the room at another server, by
// its name or its code. Like a client of this server it needs a ticket for a locked room, and one
// or the code for a private room.
func (r *Room) reserveNewcomer(spectator, byCode bool) (string, error) {
	switch {
	case r.spec.Private && !byCode:
		return "", errNoRoom(r.spec.Name)
	case r.e.Admission.Locked():
		return "", transport.Refuse(CodeRefused, "the room is locked")
	}
	if err := r.hold(); err != nil {
		return "", err
	}
	texts, err := r.e.Admission.Reserve(room.Reservation{Seats: 1, TTL: newcomerTTL, Spectator: spectator})
	if err != nil {
		return "", err
	}
	return texts[0], nil
}

// sendElsewhere returns the refusal that sends a client to the server of its room: the room of the
// ticket or code hello.Ticket if byTicket is set, and otherwise hello.Room. It returns nil if no
// other server has the room.
func (s *Server) sendElsewhere(ctx context.Context, hello *netloopv1.Hello, byTicket bool, remote string) error {
	if s.member == nil {
		return nil
	}
	q, name := &clusterv1.Bind{Room: []byte(hello.GetRoom())}, hello.GetRoom()
	if byTicket {
		if name, _, q = s.ticketFor(ctx, hello.GetTicket()); name == "" {
			return nil // No room has the code.
		}
	}
	q.Spectator = hello.GetSpectate()
	reserved := len(q.GetTicket()) > 0
	if !s.openings.Allow(siteOf(remote), s.clock.Now()) {
		s.metrics.Drops.Add(1, "rooms", "site")
		return transport.Refuse(CodeBusy, "too many rooms of other servers were requested from your address, try again later")
	}
	server, ok := s.elsewhere(ctx, name)
	if !ok {
		if _, opens := s.game.(Opener); opens && !byTicket {
			s.openings.Refund(siteOf(remote)) // The opening is charged.
		}
		return nil
	}
	if s.member.Suspect(server) { // Another server may open the room when the name is free.
		return errSilent
	}
	who := &room.Join{Token: hello.GetToken(), Addr: remote, Params: hello.GetParams(), Ticket: reserved}
	if err := s.identify(ctx, who, name); err != nil {
		return err
	}
	m, err := s.bindElsewhere(ctx, server, name, q, who, room.Origin{})
	if err != nil {
		return err
	}
	refusal := &transport.Refusal{Code: CodeMoved, Text: m.Ticket}
	if hello.GetTravels() {
		refusal.Moved = m
	}
	return refusal
}

var errSilent = transport.Refuse(CodeBusy, "the server of the room does not answer: try again in a few seconds")

// lookUpTime is the time for which a client waits for the cluster's answer whether a room exists.
const lookUpTime = time.Second

// elsewhere returns the other server that has a room, if there is one. It asks the cluster for a
// room that no listing has, because the room was opened or moved in the last moment.
func (s *Server) elsewhere(ctx context.Context, name string) (server string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, lookUpTime)
	defer cancel()
	server, err := s.member.Find(ctx, name)
	return server, err == nil
}

// moveStates are the states of a move after the steps that a room tells.
var moveStates = [...]inspect.MoveState{room.Left: inspect.MoveLeft, room.Returned: inspect.MoveReturned, room.Expired: inspect.MoveExpired}

// Step implements room.Travel.
func (v serverTravel) Step(number uint64, step room.TravelStep) {
	v.s.moveStep(number, moveStates[step], "")
}

// confirms counts the reports of arrivals that wait for the answer of another server.
type confirms struct {
	ctx     context.Context //nolint:containedctx // Of all reports; ends with the server.
	cancel  context.CancelFunc
	running sync.WaitGroup
	slots   chan struct{} // one for each running report; size maxConfirms
}

const (
	// maxConfirms bounds the reports at once: a thousand arrivals a second, if the other servers
	// answer within four seconds.
	maxConfirms = 4096
	// confirmTime is the time for which a report is repeated. The other server keeps the client's
	// seat for 10 s at least.
	confirmTime = 30 * time.Second
	// confirmEvery is the time between two attempts.
	confirmEvery = 500 * time.Millisecond
)

// Arrived implements room.Travel.
func (v serverTravel) Arrived(r *room.Room, client uint64, from room.Origin) {
	s := v.s
	s.moveStep(from.Number, inspect.MoveArrived, "")
	select {
	case s.confirms.slots <- struct{}{}:
	default:
		s.metrics.Drops.Add(1, "move", "unconfirmed")
		return
	}
	s.confirms.running.Go(func() {
		defer func() { <-s.confirms.slots }()
		s.confirm(r, client, from)
	})
}

// confirm reports an arrival until the other server answers, or the time is over.
func (s *Server) confirm(r *room.Room, client uint64, from room.Origin) {
	ctx, cancel := context.WithTimeout(s.confirms.ctx, confirmTime)
	defer cancel()
	q := &clusterv1.Arrived{Room: []byte(from.Room), Client: from.Client, Number: from.Number}
	for {
		err := s.reportArrival(ctx, from.Server, q)
		refused := (*transport.Refusal)(nil)
		switch {
		case err == nil || errors.Is(err, cluster.ErrGone):
			return
		case errors.As(err, &refused) && refused.Code == CodeReplaced:
			s.metrics.Drops.Add(1, "move", "taken_over")
			s.moveStep(from.Number, inspect.MoveReplaced, "")
			kick := recording.Command{Kind: recording.Kick, Client: client, Code: uint32(CodeReplaced), Text: refused.Text}
			_ = r.Commands.Execute(ctx, kick) // After an error the client or the room has gone.
			return
		}
		if !clock.Sleep(ctx, confirmEvery) {
			s.metrics.Drops.Add(1, "move", "unconfirmed")
			s.log.Warn("the old server of a client does not answer, it keeps the client's seat until its time is over",
				"server", from.Server, "room", from.Room, "client", from.Client, "error", err)
			return
		}
	}
}

func (s *Server) reportArrival(ctx context.Context, server string, q *clusterv1.Arrived) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.StoreTime)
	defer cancel()
	return s.member.Call(ctx, server, "arrived", q, nil)
}

// arrivedCalled frees the seat of a client that has arrived at another server.
func (s *Server) arrivedCalled(ctx context.Context, _ string, q *clusterv1.Arrived) (proto.Message, error) {
	done := &clusterv1.Reply{}
	s.moveStep(q.GetNumber(), inspect.MoveArrived, "")
	r, ok := s.rooms.Get(string(q.GetRoom()))
	if !ok {
		return done, nil // The room has ended, and its seats with it.
	}
	err := r.e.Commands.Arrived(ctx, q.GetClient(), q.GetNumber())
	if errors.Is(err, room.ErrNotHere) && r.spectatorRoom != nil {
		err = r.spectatorRoom.Commands.Arrived(ctx, q.GetClient(), q.GetNumber())
	}
	switch {
	case errors.Is(err, room.ErrNotHere):
		err = nil
	case errors.Is(err, room.ErrTakenOver):
		s.moveStep(q.GetNumber(), inspect.MoveReplaced, "")
	}
	return done, err
}

// closeTravel ends the reports of arrivals, and waits for the names of players that are being
// given back, before the server leaves the cluster.
func (s *Server) closeTravel() {
	if s.confirms.cancel != nil {
		s.confirms.cancel()
		s.confirms.running.Wait()
	}
	if s.places != nil {
		s.places.Wait()
	}
}
