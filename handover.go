package netloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// A room moves to another server in these steps. Between the first and the last no tick of it runs:
//
//	this server                                            the other server
//	Store: the state is saved
//	GiveUp: the name is free ──── call "open" ───────────▶ Claim: the next incarnation
//	                                                       Open: loads the state
//	                                                       newcomers without a ticket wait
//	seats, 128 clients a call ─── call "seat" ───────────▶ a ticket for each player, bound to it
//	Depart: the frame moved; the room ends                 clients join with their tickets
//
// If a step fails, the room claims its name again and continues here.

// HandOver has the functions of a room that can move to another server. Both are called on the
// room's goroutine, between two ticks.
type HandOver struct {
	// Store stores the state of the room, so that Open on the other server finds it. No tick runs
	// afterwards, unless the hand-over fails: then its error, or Continue, is called next. ctx ends
	// after 5 s.
	Store func(ctx context.Context) error
	// Continue is called if the hand-over has failed after Store: the room continues here, and its
	// Incarnation may be larger than before. Nil is no function.
	Continue func(ctx context.Context)
}

// OnHandOver registers the functions that let the room move to another server. Package persist does
// so in Keep. Call it in [Game] Open.
func (r *Room) OnHandOver(h HandOver) {
	switch {
	case !r.opens("OnHandOver"):
	case h.Store == nil:
		r.reject(errors.New("OnHandOver: set Store, which stores the state of the room"))
	default:
		r.hooks.onHandOver = append(r.hooks.onHandOver, h)
	}
}

// HandOver moves the room to another server of the cluster, with its clients. After this tick the
// room stores its state ([Room.OnHandOver]), the other server opens a room with the same name and
// RoomSpec and the next incarnation, and each client moves there with a reserved seat, and with
// its [Join] Subject, Claims, role and reservation. Clients get new ids there: a game assigns
// objects by Subject. Then this room ends, with [CodeClosing]; OnLeave gets [CodeMoved] for each
// moved client. Messages and inputs that no tick has taken are lost, as in [Client.Move].
//
// The other server restores the rest in Open, from the stored state: for example a lock, the time
// scale and published data. The room admits newcomers there once its clients have their seats.
//
// Clients that have lost their connection return as newcomers. Delayed spectators see the end of
// the room and may join again. Tickets that are not used yet are refused with [CodeTicket].
//
// If a step fails, the room continues here. The function then, unless it is nil, is called in
// EarlyUpdate of a later tick with the error, or with nil before the room ends. HandOver panics on
// a client.
func (r *Room) HandOver(t *Tick, to Place, then func(*Tick, error)) {
	t.server("Room.HandOver")
	Go(t, func(ctx context.Context) (struct{}, error) {
		if err := r.handOver(ctx, to); err != nil {
			return struct{}{}, errors.New(err.Error()) // Only the text is recorded.
		}
		return struct{}{}, nil
	}, func(t *Tick, _ struct{}, err error) {
		if then != nil {
			then(t, err)
		}
	})
}

// transfer is the state of a room's move to another server.
type transfer struct {
	moving  atomic.Bool              // the room is being handed over, and admits nobody
	seating atomic.Int64             // time until which an arrived room keeps seats for its players
	closed  atomic.Pointer[room.End] // how the room was told to end; nil: it was not
	arrival atomic.Uint64            // key of its arrival for the inspector; 0: none
	seated  atomic.Int64             // seats of the players that come with it
	lost    bool                     // another server has the room's name; of the room's goroutine
	// superseded is true if the name was lost while a hand-over waited; of the room's goroutine.
	superseded bool

	name     sync.Mutex // guards released, and changes of the room's epoch
	released bool       // the room has ended, and has given its name back
}

// keepName sets the epoch of the name that a running room has claimed again. If the room has ended
// meanwhile, keepName gives the name back, and reports false.
func (r *Room) keepName(epoch cluster.Epoch) bool {
	r.transfer.name.Lock()
	defer r.transfer.name.Unlock()
	if r.transfer.released {
		r.server.member.Release(r.spec.Name, epoch)
		return false
	}
	r.epoch.Store(uint64(epoch))
	return true
}

// releaseName gives the name of an ended room back.
func (r *Room) releaseName() {
	r.transfer.name.Lock()
	defer r.transfer.name.Unlock()
	r.transfer.released = true
	if e := r.epoch.Load(); e != 0 {
		r.server.releaseName(r.spec.Name, cluster.Epoch(e))
	}
}

const (
	// storeTime is the time for Store, and for Continue.
	storeTime = 5 * time.Second
	// openTime is the time for the other server to open the room, and then for the seats.
	openTime = 5 * time.Second
	// reclaimTime is the time for which a room claims its name again before it continues without a
	// name, and reclaimEvery the time between two later attempts.
	reclaimTime  = 2 * time.Second
	reclaimEvery = time.Second
	// seatTTL is the time for which the seat of a moving client is reserved.
	seatTTL = 30 * time.Second
	// maxSeatBytes and maxSeatPlayers bound a call for seats, and its answer.
	maxSeatBytes   = 48 << 10
	maxSeatPlayers = 128
)

// textElsewhere is the reason for the clients of a room that has moved, and textNoSeat that for
// clients without a seat there.
const (
	textElsewhere = "the room continues on another server"
	textNoSeat    = "the room continues on another server, which has no seat for you: join it again by its name"
)

var (
	errMoving  = transport.Refuse(CodeBusy, "the room is moving to another server: try again")
	errSeating = transport.Refuse(CodeBusy, "the room has moved to this server, and its players join first: try again")
)

// Reasons for a hand-over that does not begin.
var (
	errNoMembers = errors.New("netloop: HandOver: the server has no cluster, or the room no name in it")
	errNoStore   = errors.New("netloop: HandOver: the room does not store its state: use package persist, or OnHandOver")
	errNoPlace   = errors.New("netloop: HandOver: no other server has a place for the room")
	errHandsOver = errors.New("netloop: HandOver: the room is moving already, or ends")
)

// handOver moves the room after its next tick, and waits for the outcome or the end of ctx. Clients
// that the game has moved to other rooms leave first; for their tickets the room waits for
// cluster.StoreTime at most.
func (r *Room) handOver(ctx context.Context, to Place) error {
	s := r.server
	switch {
	case s.member == nil || r.epoch.Load() == 0:
		return errNoMembers
	case len(r.hooks.onHandOver) == 0:
		return errNoStore
	case r.e.Supervisor.Ending() != nil:
		return errHandsOver
	}
	server := to.Server
	if server == "" {
		var ok bool
		if server, ok = s.member.Place(to.Region, []string{s.ID()}); !ok {
			return errNoPlace
		}
	}
	if server == s.ID() {
		return errNoPlace
	}
	until := s.clock.Now() + cluster.StoreTime
	waits := func() bool {
		return s.clock.Now() < until && slices.ContainsFunc(r.e.Clients(), (*room.Client).MoveWaits)
	}
	outcome := make(chan error, 1) // One sender, one value.
	begins := r.e.Transfer.Between(waits, func() *transport.Closed {
		why, err := r.move(server)
		if why == nil && r.transfer.superseded {
			why = r.joinNewer()
		}
		outcome <- err
		return why
	})
	if !begins {
		return errHandsOver
	}
	select {
	case err := <-outcome:
		return err
	case <-ctx.Done():
		return fmt.Errorf("netloop: HandOver: no tick has ended meanwhile: %w", context.Cause(ctx))
	}
}

// move moves the room to a server. It returns the reason for the end of the room, or the error with
// which the room continues.
func (r *Room) move(server string) (*transport.Closed, error) {
	s, began := r.server, r.server.clock.Now()
	if r.e.Supervisor.Ending() != nil {
		return nil, errHandsOver
	}
	r.transfer.moving.Store(true)
	defer r.transfer.moving.Store(false)
	step := r.beginTransfer(server, began)
	if err := r.store(); err != nil {
		step(inspect.MoveFailed, err.Error())
		s.metrics.HandedOver.Add(1, "save")
		r.e.Log().Error("state cannot be stored, the room is not handed over", "server", server, "error", err)
		r.resume()
		return nil, fmt.Errorf("netloop: HandOver: %w", err)
	}
	err := r.openOn(server)
	if err != nil {
		if server, err = r.reclaim(server, err); err != nil {
			step(inspect.MoveReturned, err.Error())
			return nil, err
		}
	} else {
		s.metrics.HandedOver.Add(1, "ok")
	}
	if e := r.transfer.closed.Load(); e != nil && e.Drain == 0 { // The room has no time left there.
		step(inspect.MoveArrived, "the room was closed meanwhile")
		r.forwardClose(server)
		return &e.Why, nil
	}
	moved, left := r.depart(server)
	step(inspect.MoveArrived, fmt.Sprintf("clients: %d with a seat on server %s, %d without", moved, server, left))
	r.e.Log().Info("room was handed over", "server", server, "clients", moved, "without_seat", left, "took", s.clock.Now()-began)
	r.forwardClose(server)
	// For the clients that are left.
	return &transport.Closed{Code: CodeClosing, Text: textNoSeat}, nil
}

// beginTransfer stores the beginning of a hand-over for the inspector. The returned function stores
// a later step.
func (r *Room) beginTransfer(server string, began time.Duration) (step func(inspect.MoveState, string)) {
	s, key, name := r.server, randomNumber(), r.spec.Name
	s.beginMove(key, inspect.Move{
		Out: true, FromServer: s.ID(), FromRoom: name, ToServer: server, ToRoom: name, State: inspect.MoveBegun,
	}, began)
	return func(state inspect.MoveState, text string) { s.moveStep(key, state, text) }
}

// beginArrival stores for the inspector that this server was to open a room of another one, with
// the result.
func (s *Server) beginArrival(from, name string, began time.Duration, err error) {
	key := randomNumber()
	move := inspect.Move{FromServer: from, FromRoom: name, ToServer: s.ID(), ToRoom: name, State: inspect.MoveBegun}
	if err != nil {
		move.State, move.Text = inspect.MoveFailed, err.Error()
	} else if r, ok := s.rooms.Get(name); ok {
		r.transfer.arrival.Store(key)
	}
	s.beginMove(key, move, began)
}

// store calls the functions Store of the game.
func (r *Room) store() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	return r.between("OnHandOver", func() (err error) {
		for _, h := range r.hooks.onHandOver {
			if err = h.Store(ctx); err != nil {
				break
			}
		}
		return err
	})
}

// resume calls the functions Continue of the game.
func (r *Room) resume() {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	_ = r.between("OnHandOver", func() error { // The error is logged.
		for _, h := range r.hooks.onHandOver {
			if h.Continue != nil {
				h.Continue(ctx)
			}
		}
		return nil
	})
}

// between calls a function of the game between two ticks. The watchdog observes it.
func (r *Room) between(hook string, fn func() error) error {
	ended := r.e.Watched(hook, storeTime)
	defer ended()
	return r.e.Call(hook, fn)
}

// openOn gives the name of the room up and opens it on another server.
func (r *Room) openOn(server string) error {
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	s := r.server
	if err := s.member.GiveUp(ctx, r.spec.Name, cluster.Epoch(r.epoch.Load())); err != nil {
		return clusterError(err)
	}
	spec := r.spec
	spec.Place, spec.handedOver = Place{}, true
	_, err := s.openAt(ctx, server, spec)
	return err
}

// reclaim takes the name of a room back whose hand-over has failed with cause, so that the room
// continues: then the error is not nil. If another server has the name, its id is returned, and the
// clients can move there.
func (r *Room) reclaim(server string, cause error) (holder string, err error) {
	s, log := r.server, r.e.Log()
	ctx, cancel := context.WithTimeout(context.Background(), reclaimTime)
	defer cancel()
	epoch, err := s.member.Claim(ctx, r.spec.Name)
	if errors.Is(err, cluster.ErrTaken) {
		if holder, err = s.member.Holder(ctx, r.spec.Name); err == nil && holder == server {
			s.metrics.HandedOver.Add(1, "ok") // The room is open there, and the answer was late.
			return holder, nil
		}
		s.metrics.HandedOver.Add(1, "lost")
		log.Error("another server has opened a room of this name during a hand-over, the room ends", "server", holder, "error", cause)
		return holder, nil
	}
	s.metrics.HandedOver.Add(1, "refused")
	if err == nil {
		r.epoch.Store(uint64(epoch))
		log.Warn("room cannot be handed over, it continues on this server", "server", server, "error", cause)
	} else {
		log.Error("room cannot be handed over, it continues on this server, and admits nobody until the cluster answers", "server", server, "error", cause)
		go r.reclaimLater()
	}
	r.resume()
	return "", fmt.Errorf("netloop: HandOver: server %s: %w", server, cause)
}

// reclaimLater claims the name of a room until the cluster answers, or the room ends.
func (r *Room) reclaimLater() {
	s := r.server
	for clock.Sleep(r.e.Supervisor.Told(), reclaimEvery) {
		epoch, err := s.member.Claim(r.e.Supervisor.Told(), r.spec.Name)
		switch {
		case err == nil && r.e.Supervisor.Told().Err() != nil:
			s.member.Release(r.spec.Name, epoch)
			return
		case err == nil && !r.keepName(epoch):
			return
		case err == nil:
			r.e.Transfer.Between(nil, func() *transport.Closed { r.resume(); return nil })
			return
		case errors.Is(err, cluster.ErrTaken):
			r.loseName()
			return
		}
	}
}

// depart lets the clients of the room leave for a server. It returns the numbers of those with and
// without a seat there.
func (r *Room) depart(server string) (moved, left int) {
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	moves := r.seats(ctx, server)
	before := len(r.e.Clients())
	if err := r.e.Transfer.Depart(moves, textElsewhere); err != nil {
		r.e.Log().Error("clients cannot leave for another server", "error", err)
	}
	return len(moves), before - len(moves)
}

// seats reserves seats for the clients of the room on another server, and returns the moves by the
// ids of the clients.
func (r *Room) seats(ctx context.Context, server string) map[uint64]transport.MovedTo {
	moves := map[uint64]transport.MovedTo{}
	to := r.server.destination(server)
	if err := to.Check(); err != nil {
		r.e.Log().Error("server cannot be reached by players", "server", server, "error", err)
		return moves
	}
	q, ids, size := &clusterv1.SeatPlayers{Room: []byte(r.spec.Name)}, []uint64(nil), 0
	ask := func() {
		var seated clusterv1.PlayersSeated
		if err := r.server.member.Call(ctx, server, "seat", q, &seated); err != nil {
			r.e.Log().Error("seats of clients cannot be reserved on another server", "server", server, "clients", len(ids), "error", err)
		}
		for i, ticket := range seated.GetTickets() {
			if i < len(ids) && len(ticket) > 0 {
				moves[ids[i]] = transport.MovedTo{Ticket: string(ticket), To: to}
			}
		}
		q.Players, ids, size = nil, nil, 0
	}
	for _, c := range r.e.Clients() {
		if !c.Connected() || c.IsFeed() || c.OnItsWay() {
			continue
		}
		p, err := playerOf(c.Join())
		if n := proto.Size(p); err != nil || n > maxSeatBytes {
			r.e.Log().Error("client cannot move to another server: its claims are too large, or cannot be encoded", "client", c.ID(), "bytes", n, "error", err)
			continue
		} else if size += n; size > maxSeatBytes || len(ids) == maxSeatPlayers {
			ask()
			size = n
		}
		q.Players, ids = append(q.Players, p), append(ids, c.ID())
	}
	q.Last = true
	ask()
	return moves
}

// playerOf returns the player of a client for another server.
func playerOf(j *room.Join) (p *clusterv1.Player, err error) {
	p = &clusterv1.Player{Subject: []byte(j.Subject), Spectator: j.Spectator, Reserved: j.Reserved}
	if j.Claims != nil {
		p.Claims, err = json.Marshal(j.Claims)
	}
	return p, err
}

// destination returns the addresses of another server for players.
func (s *Server) destination(server string) (to transport.Destination) {
	for _, other := range s.member.Servers() {
		if other.ID == server {
			for _, a := range other.Addresses {
				to = append(to, transport.Address(a))
			}
		}
	}
	return to
}

// seatCalled reserves seats of a room for the players of a server that had the room before.
func (s *Server) seatCalled(ctx context.Context, _ string, q *clusterv1.SeatPlayers) (proto.Message, error) {
	r, ok := s.rooms.Find(ctx, string(q.GetRoom()))
	if !ok || r == s.room {
		return nil, errNoRoom(string(q.GetRoom()))
	}
	seated := &clusterv1.PlayersSeated{}
	for _, p := range q.GetPlayers() {
		ticket, err := r.seat(p)
		if err != nil {
			r.server.log.Warn("player has no seat in a room that continues here", "room", r.spec.Name, "subject", string(p.GetSubject()), "error", err)
		}
		if err == nil {
			r.transfer.seated.Add(1)
		}
		seated.Tickets = append(seated.Tickets, []byte(ticket))
	}
	if q.GetLast() {
		r.transfer.seating.Store(0)
		if key := r.transfer.arrival.Load(); key != 0 {
			s.moveStep(key, inspect.MoveArrived, fmt.Sprintf("clients: %d with a seat here", r.transfer.seated.Load()))
		}
	}
	return seated, nil
}

// seat reserves a seat for one player, and returns its ticket.
func (r *Room) seat(p *clusterv1.Player) (string, error) {
	who := &room.Identity{Subject: string(p.GetSubject())}
	if len(p.GetClaims()) > 0 {
		if err := json.Unmarshal(p.GetClaims(), &who.Claims); err != nil {
			return "", fmt.Errorf("malformed claims: %w", err)
		}
	}
	if len(p.GetReserved()) > maxTicketParams {
		return "", fmt.Errorf("%d bytes of parameters, at most %d", len(p.GetReserved()), maxTicketParams)
	}
	res := room.Reservation{Seats: 1, TTL: seatTTL, Spectator: p.GetSpectator(), Params: p.GetReserved()}
	texts, err := r.e.Admission.Reserve(res)
	if err != nil {
		return "", err
	}
	return r.e.Admission.Bind(texts[0], who)
}

// forwardClose tells the other server that the room was to end, if that was said during the
// hand-over.
func (r *Room) forwardClose(server string) {
	e := r.transfer.closed.Load()
	if e == nil {
		return
	}
	s := r.server
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), cluster.StoreTime)
		defer cancel()
		q := &clusterv1.CloseRoom{Room: []byte(r.spec.Name), Drain: int64(e.Drain), Code: int64(e.Why.Code), Text: []byte(e.Why.Text)}
		if err := s.member.Call(ctx, server, "close", q, nil); err != nil {
			s.log.Error("room that was handed over cannot be closed", "room", r.spec.Name, "server", server, "error", err)
		}
	}()
}

const (
	// maxHandOvers is the number of rooms that a server hands over at once when it ends.
	maxHandOvers = 8
	// handOverTime is the time for all of them, or DrainTimeout if that is longer. Service managers
	// wait longer before they kill a process.
	handOverTime = 20 * time.Second
)

// handOverAll hands all rooms over that can. It returns when the outcome of each room is known,
// and at the end of ctx at the latest.
func (s *Server) handOverAll(ctx context.Context) {
	if !s.cfg.Cluster.HandOver || s.member == nil {
		return
	}
	s.leaving.Store(true) // Other servers open no room here.
	ctx, cancel := context.WithTimeout(ctx, max(s.cfg.DrainTimeout, handOverTime))
	defer cancel()
	slots := make(chan struct{}, maxHandOvers)
	var moving sync.WaitGroup
	for _, r := range s.rooms.All() {
		if r == s.room || len(r.hooks.onHandOver) == 0 {
			continue
		}
		slots <- struct{}{} // Each hand-over ends with ctx.
		moving.Go(func() {
			defer func() { <-slots }()
			if err := r.handOver(ctx, Place{}); err != nil {
				s.log.Warn("room ends with the server", "room", r.spec.Name, "error", err)
			}
		})
	}
	moving.Wait()
}
