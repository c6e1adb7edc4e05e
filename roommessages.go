package netloop

import (
	"context"
	"fmt"

	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
)

// Messages between rooms, and between rooms and the program around the server. Rooms share no
// memory: what one sends is copied, and waits in a queue for a tick of the other.

// Sender is a room that has sent a message.
type Sender struct {
	Room string // its name
	Kind string
}

// SendRoom sends a message to another room of the server, or to this one: it runs there exactly
// once, in a later tick, at the stage that the declaration or [RunAt] names, and those of one
// sender for one stage in the order in which they were sent. A room that sleeps wakes for it. What
// it refers to is copied. An RPC for rooms alone is [ServerOnly].
//
// Unless it is nil, then is called in EarlyUpdate of a later tick with what has become of the
// message: nil once its handler has returned, whatever that was, and otherwise a [*Refusal], which
// is counted in netloop_queue_drops_total{queue="room_message"} or, with the reasons of
// [RPCOption], in netloop_rpcs_total:
//
//	CodeRoomUnknown    there is no such room, or it has ended before the handler ran
//	CodeBusy           too many messages wait there, or this room has sent 1 024, or 1 MiB, in
//	                   this tick
//	CodeUnknownMethod  nothing handles it there
//
// With 1 024 works and messages under way of which something waits for the end, nothing is sent
// and the error is [ErrTooMuchWork]. A room that has ended is told nothing.
//
// It panics as [RPC.Send] does.
func (e *RPC[M]) SendRoom(t *Tick, name string, m M, then func(*Tick, error), o ...SendOption) {
	r := t.server("RPC.SendRoom")
	e.mail(t, "RPC.SendRoom", "room "+name, m, then, o, func(it rpcqueue.Item) error {
		to, ok := r.server.hall.Get(name)
		if !ok {
			return room.ErrEnded
		}
		return to.e.Receive(it)
	})
}

// mail sends a message to where deliver hands it over.
func (e *RPC[M]) mail(t *Tick, what, to string, m M, then func(*Tick, error), o []SendOption, deliver func(rpcqueue.Item) error) {
	r := t.server(what)
	if err := e.m.Belongs(r.schema.s); err != nil {
		panic("netloop: " + what + ": " + err.Error())
	}
	send := schema.SendWith(o)
	switch {
	case !send.AllowedBy(e.m):
		panic(fmt.Sprintf("netloop: %s: method %q does not run at %s: its declaration allows %v", what, e.m.Queue.Name, send.Stage, e.m.Queue.Stages))
	case send.WithState:
		panic("netloop: " + what + ": WithState is for messages to clients")
	}
	mail := room.Mail{To: to, Method: e.m, Stage: send.Stage, Msg: schema.Erase(m), Deliver: deliver}
	if then != nil {
		mail.Then = func(err error) { then(&r.tick, refusalOfWork(err)) }
	}
	if !r.e.Mail(mail) {
		t.AfterFunc(0, func(t *Tick) { then(t, ErrTooMuchWork) })
	}
}

// HandleRoom sets the function that runs for each message of this kind that a room sends, see
// [RPC.SendRoom]; from is nil for one that the program has posted. It belongs into [Game] Open, and
// takes the place of Handle: what clients send of the kind does not run, and is counted as
// forbidden. An error is counted and logged; the sender hears nothing of it.
func (e *RPC[M]) HandleRoom(r *Room, fn func(t *Tick, from *Sender, m M) error) {
	r.handled(r.e.HandleRoom(e.m, func(from *room.Sender, it *rpcqueue.Item) error {
		return fn(&r.tick, (*Sender)(from), schema.Open[M](it.Msg))
	}))
}

// PostRoom is [RPC.Post] for a room that is known by its name: it waits until ctx ends for one that
// is being opened. Without such a room the error is a [*Refusal] with [CodeRoomUnknown]. Any
// goroutine may call it but those of rooms, which call SendRoom.
func (e *RPC[M]) PostRoom(ctx context.Context, s *Server, name string, m M) error {
	r, ok := s.hall.Find(ctx, name)
	if !ok {
		return public(errNoRoom(name))
	}
	return e.Post(r, m)
}

// SendServer sends a message to the program around the server, where it runs exactly once if
// [RPC.HandleServer] has set a function for it. What is said of SendRoom holds for it too; what is
// under way when the server ends reaches the program before Run returns.
func (e *RPC[M]) SendServer(t *Tick, m M, then func(*Tick, error)) {
	s := t.server("RPC.SendServer").server
	e.mail(t, "RPC.SendServer", "server", m, then, nil, s.desk.Receive)
}

// HandleServer sets the function that runs for each message of this kind that a room sends to the
// program, one at a time and in their order, on a goroutine of the server's that no tick waits for;
// 4 096 of them may wait, 256 of one room. When all rooms have ended, ctx has DrainTimeout of the
// [Config] left. A function that ignores the end of ctx for a second is left behind, and counted in
// netloop_left_behind_total. Call it before Run, once for each RPC; a game's Open is called for
// each room.
func (e *RPC[M]) HandleServer(s *Server, fn func(ctx context.Context, from *Sender, m M)) error {
	if err := e.m.Belongs(s.schema.s); err != nil {
		return fmt.Errorf("netloop: RPC.HandleServer: %w", err)
	}
	err := s.desk.Handle(&e.m.Queue, func(ctx context.Context, from *room.Sender, msg any) error {
		return s.room.e.CallAside("HandleServer", func() error { fn(ctx, (*Sender)(from), schema.Open[M](msg)); return nil })
	})
	if err != nil {
		return fmt.Errorf("netloop: RPC.HandleServer: %w", err)
	}
	return nil
}

// openDesk hands over what rooms send to the program. What it returns ends that, when all rooms
// have ended.
func (s *Server) openDesk() (end func()) {
	if !s.desk.Open() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	stop, served := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(served)
		for !s.serveDesk(ctx, stop) { // A function has ended its goroutine: the next one goes on.
			s.log.Error("a function of HandleServer called runtime.Goexit")
		}
	}()
	return func() {
		defer cancel()
		close(stop)
		within, over := context.WithTimeout(ctx, s.cfg.DrainTimeout)
		defer over()
		select {
		case <-served:
		case <-within.Done():
			cancel()
			s.await("HandleServer", served, cancelGrace)
		}
	}
}

// serveDesk delivers messages on a goroutine of its own until stop is closed. It reports false if a
// function has ended that goroutine.
func (s *Server) serveDesk(ctx context.Context, stop <-chan struct{}) bool {
	done := make(chan bool, 1) // One sender, one value.
	go func() {
		all := false
		defer func() { done <- all }()
		s.desk.Serve(ctx, stop)
		all = true
	}()
	return <-done
}
