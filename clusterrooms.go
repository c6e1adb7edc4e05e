package netloop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// The rooms of a cluster: opened, reserved and closed on the server that has them.
//
//	PlaceRoom ─▶ Place: this server, or another ─▶ call "open" ─▶ OpenRoom there: claims the name
//	Reserve   ─▶ own room, or Find ──────────────▶ call "reserve" ─▶ the room decides

// maxTried is the number of servers that are asked to open a room.
const maxTried = 3

// PlaceRoom opens a room on the server that [RoomSpec] Place selects, and waits for it at most
// until ctx ends, or 30 s. Without a cluster that is this server. A server that has no place for
// the room passes it on to the next one. If the error is [ErrClusterBusy], or that of ctx, the room
// may open later; it then closes as an empty one. Any goroutine may call it except the goroutine of
// a room, which calls [Tick.OpenRoom].
func (s *Server) PlaceRoom(ctx context.Context, spec RoomSpec) (RoomInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.MaxCallTime)
	defer cancel()
	if s.member == nil {
		return s.openInTime(ctx, spec)
	}
	if err := spec.pack(); err != nil {
		return RoomInfo{}, fmt.Errorf("netloop: PlaceRoom: %w", err)
	}
	// The store decides about the names of suspect servers.
	if _, ok := s.member.Lists(spec.Name); ok || s.rooms.Taken(spec.Name) {
		return RoomInfo{}, ErrRoomExists
	}
	var tried []string
	for {
		to := spec.Place.Server
		if to == "" {
			var ok bool
			if to, ok = s.member.Place(spec.Place.Region, tried); !ok {
				return RoomInfo{}, ErrTooManyRooms
			}
		}
		info, err := s.openAt(ctx, to, spec)
		tried = append(tried, to)
		full := errors.Is(err, ErrTooManyRooms) || errors.Is(err, ErrClosing) || errors.Is(err, cluster.ErrGone)
		if !full || spec.Place.Server != "" || len(tried) == maxTried {
			return info, err
		}
	}
}

// placeFor opens the room of OpenFor on the server that its Place selects. The error is [GoTo] with
// a ticket for the client, unless the room cannot be opened.
func (s *Server) placeFor(ctx context.Context, spec RoomSpec, spectator bool) error {
	if _, err := s.PlaceRoom(ctx, spec); err != nil {
		return err
	}
	tickets, err := s.Reserve(ctx, spec.Name, Reservation{TTL: s.cfg.AdmitTimeout, Spectator: spectator})
	if err != nil {
		return err
	}
	return GoTo(tickets[0])
}

// errOpenBusy is the refusal if the cluster does not tell whether another server has the room.
var errOpenBusy = transport.Refuse(CodeBusy, "no room can be opened while the cluster does not answer: try again later")

// openAt opens a room on a server of the cluster.
func (s *Server) openAt(ctx context.Context, server string, spec RoomSpec) (info RoomInfo, err error) {
	if server == s.ID() {
		return s.openInTime(ctx, spec)
	}
	s.member.Asked(server)
	text, err := json.Marshal(spec)
	if err != nil {
		return info, fmt.Errorf("netloop: PlaceRoom: %w", err)
	}
	var opened clusterv1.RoomOpened
	q := &clusterv1.OpenRoom{Spec: text, Params: []byte(spec.packed), HandedOver: spec.handedOver}
	if err := s.member.Call(ctx, server, "open", q, &opened); err != nil {
		return info, openError(err)
	}
	if err := json.Unmarshal(opened.GetInfo(), &info); err != nil {
		return info, fmt.Errorf("netloop: PlaceRoom: malformed answer of server %s: %w", server, err)
	}
	return info, nil
}

// openInTime opens a room on this server, and waits for it until ctx ends. The game's Open may
// ignore the context; at most as many of its calls can hang as the server may have rooms.
func (s *Server) openInTime(ctx context.Context, spec RoomSpec) (RoomInfo, error) {
	type answer struct {
		info RoomInfo
		err  error
	}
	answers := make(chan answer, 1) // One sender, one value.
	go func() {
		a := answer{err: errOpenExited}
		defer func() { answers <- a }()
		var r *Room
		if r, a.err = s.OpenRoom(ctx, spec); a.err == nil {
			a.info = r.info()
		}
	}()
	select {
	case a := <-answers:
		return a.info, a.err
	case <-ctx.Done():
		return RoomInfo{}, context.Cause(ctx)
	}
}

// openError returns the error of OpenRoom on another server. The code of a refusal is 1 + its index
// in openErrors.
func openError(err error) error {
	refused := (*transport.Refusal)(nil)
	if errors.As(err, &refused) && refused.Code >= 1 && int(refused.Code) <= len(openErrors) {
		return openErrors[refused.Code-1]
	}
	return clusterError(err)
}

// openCalled opens a room for another server.
func (s *Server) openCalled(ctx context.Context, from string, q *clusterv1.OpenRoom) (proto.Message, error) {
	var spec RoomSpec
	if err := json.Unmarshal(q.GetSpec(), &spec); err != nil {
		return nil, fmt.Errorf("malformed description of a room: %w", err)
	}
	spec.packed, spec.handedOver = schema.Parcel(q.GetParams()), q.GetHandedOver()
	began := s.clock.Now()
	info, err := s.openInTime(ctx, spec)
	if spec.handedOver {
		s.beginArrival(from, spec.Name, began, err)
	}
	for i, known := range openErrors {
		if errors.Is(err, known) {
			return nil, &transport.Refusal{Code: transport.Code(1 + i), Text: known.Error()}
		}
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(info)
	return &clusterv1.RoomOpened{Info: text}, err
}

// RoomServer returns the id of the server that has a room, or is opening it, and reports whether
// this server knows one. Rooms of other servers are known after 100 ms and the network's delay.
// Without a cluster the id is "". Any goroutine may call it.
func (s *Server) RoomServer(name string) (id string, ok bool) {
	if s.rooms.Taken(name) {
		return s.ID(), true
	}
	if s.member == nil {
		return "", false
	}
	return s.member.Where(name)
}

// reserveElsewhere reserves seats of a room of another server.
func (s *Server) reserveElsewhere(ctx context.Context, name string, res room.Reservation) ([]string, error) {
	if s.member == nil {
		return nil, errNoRoom(name)
	}
	server, err := s.member.Find(ctx, name)
	if err != nil {
		return nil, callError(name, err)
	}
	q := &clusterv1.Reserve{Room: []byte(name), Seats: uint32(res.Seats), Ttl: int64(res.TTL), Spectator: res.Spectator, Params: res.Params}
	var reserved clusterv1.Reserved
	if err := s.member.Call(ctx, server, "reserve", q, &reserved); err != nil {
		return nil, callError(name, err)
	}
	texts := make([]string, len(reserved.GetTickets()))
	for i, t := range reserved.GetTickets() {
		texts[i] = string(t)
	}
	if len(texts) != res.Seats {
		return nil, fmt.Errorf("netloop: Reserve: server %s has answered with %d tickets for %d seats", server, len(texts), res.Seats)
	}
	return texts, nil
}

// callError returns the refusal for the error of a call about a room of another server.
func callError(name string, err error) error {
	switch {
	case errors.Is(err, cluster.ErrGone):
		return errNoRoom(name)
	case errors.Is(err, cluster.ErrBusy):
		return &transport.Refusal{Code: CodeBusy, Text: cluster.ErrBusy.Error()}
	}
	return err
}

// reserveCalled reserves seats for another server.
func (s *Server) reserveCalled(ctx context.Context, _ string, q *clusterv1.Reserve) (proto.Message, error) {
	res := room.Reservation{Seats: int(q.GetSeats()), TTL: time.Duration(q.GetTtl()), Spectator: q.GetSpectator(), Params: q.GetParams()}
	if res.Seats < 1 || res.Seats > maxMaxClients || res.TTL <= 0 || res.TTL > maxTicketTTL || len(res.Params) > maxTicketParams {
		return nil, fmt.Errorf("a reservation of %d seats for %v, with %d bytes of Params, is beyond the limits", res.Seats, res.TTL, len(res.Params))
	}
	texts, err := s.reserveHere(ctx, string(q.GetRoom()), res)
	if err != nil {
		return nil, err
	}
	answer := &clusterv1.Reserved{}
	for _, text := range texts {
		answer.Tickets = append(answer.Tickets, []byte(text))
	}
	return answer, nil
}

// closeElsewhere ends a room of another server, without waiting for it.
func (s *Server) closeElsewhere(name string, drain time.Duration, c Code, text string) error {
	if s.member == nil {
		return errNoRoom(name)
	}
	server, ok := s.member.Where(name)
	if !ok {
		return errNoRoom(name)
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), cluster.StoreTime)
		defer cancel()
		q := &clusterv1.CloseRoom{Room: []byte(name), Drain: int64(drain), Code: int64(c), Text: []byte(text)}
		if err := s.member.Call(ctx, server, "close", q, nil); err != nil {
			s.log.Error("room of another server cannot be closed", "room", name, "server", server, "error", err)
		}
	}()
	return nil
}

// closeCalled ends a room for another server.
func (s *Server) closeCalled(_ context.Context, _ string, q *clusterv1.CloseRoom) (proto.Message, error) {
	r, ok := s.rooms.Get(string(q.GetRoom()))
	if !ok || r == s.room {
		return nil, errNoRoom(string(q.GetRoom()))
	}
	r.end(time.Duration(q.GetDrain()), Code(cmp.Or(q.GetCode(), int64(CodeClosing))), string(q.GetText()))
	return &clusterv1.Reply{}, nil
}

// The end of a room whose name another server has claimed: the older of two.

// OnDuplicate registers a function that is called in a tick after another server has opened a room
// of the same name, because this server was cut off from its cluster, or by CloseSuperseded. This
// room admits nobody any more. If all functions return true, and also without a function, its
// clients move to the newer room, as far as seats are free there; then this room ends with
// [CodeClosing]. If a function returns false, it ends at once. Call OnDuplicate in [Game] Open.
func (r *Room) OnDuplicate(fn func(t *Tick) (handOver bool)) {
	if r.opens("OnDuplicate") {
		r.hooks.onDuplicate = append(r.hooks.onDuplicate, fn)
	}
}

// textSuperseded is the reason for the end of a superseded room without a cluster.
const textSuperseded = "a newer room has the state of this one"

// CloseSuperseded ends the room, because the store of its state knows a newer room of its name.
// Package persist does so when the store refuses a save. In a cluster the functions of OnDuplicate
// decide about the clients, as after the cluster has told that another server has the name, which
// may be later. Without a cluster, and for the default room, the clients are closed with
// [CodeInternal]. CloseSuperseded panics on a client.
func (r *Room) CloseSuperseded(t *Tick) {
	t.server("Room.CloseSuperseded")
	if r.server.member == nil && !r.server.cfg.travelled {
		r.Close(t, CodeInternal, textSuperseded)
		return
	}
	r.hooks.NameLost()
}

// loseName tells the room in a tick that another server has its name. A room that runs no tick is
// ended.
func (r *Room) loseName() {
	ctx, cancel := context.WithTimeout(r.e.Supervisor.Told(), storeTime)
	defer cancel()
	if err := r.e.Commands.Execute(ctx, recording.Command{Kind: recording.NameLost}); err != nil {
		r.end(0, CodeClosing, textElsewhere)
	}
}

// NameLost implements room.Game.
func (h *hooks) NameLost() {
	r, handOver := h.room, true
	if r.transfer.lost { // The store of its state or the cluster has told it before.
		return
	}
	r.transfer.lost = true
	for _, fn := range h.onDuplicate {
		_ = r.e.Call("OnDuplicate", func() error { // The error is logged.
			handOver = fn(&r.tick) && handOver
			return nil
		})
	}
	switch {
	case !handOver:
		r.e.Close(CodeClosing, textElsewhere)
	case !r.server.cfg.recorded:
		// Otherwise a hand-over waits, which finds the newer room itself or calls joinNewer.
		r.transfer.superseded = !r.e.Transfer.Between(nil, r.joinNewer)
	}
}

// joinNewer lets the clients of a room that has lost its name leave for the newer room.
func (r *Room) joinNewer() *transport.Closed {
	if r == r.server.room { // It has no name in the cluster.
		return &transport.Closed{Code: CodeInternal, Text: textSuperseded}
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	r.server.metrics.HandedOver.Add(1, "lost")
	if server, err := r.newer(ctx); err != nil {
		r.e.Log().Warn("server of the newer room is not found, the clients are closed", "error", err)
	} else {
		moved, left := r.depart(server)
		r.e.Log().Info("room ends, its clients move to the newer one", "server", server, "clients", moved, "without_seat", left)
	}
	return &transport.Closed{Code: CodeClosing, Text: textNoSeat}
}

// newer returns the server that has the room's name now.
func (r *Room) newer(ctx context.Context) (server string, err error) {
	if server, ok := r.server.member.Lists(r.spec.Name); ok {
		return server, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpTime)
	defer cancel()
	if server, err = r.server.member.Holder(ctx, r.spec.Name); err == nil && server == r.server.ID() {
		err = cluster.ErrGone
	}
	return server, err
}
