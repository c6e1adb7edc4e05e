package netloop

import (
	"context"
	"fmt"

	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
)

// Messages between rooms, and between rooms and the program around the server. Rooms share no
// memory: a message is copied, and waits in a queue for a tick of the receiving room.

// Sender is a room that has sent a message.
type Sender struct {
	Room string // its name
	Kind string
}

// SendRoom sends a message to another room of the server, or to this one. The message runs there
// exactly once, in a later tick, at the stage that the declaration or [RunAt] names; messages of
// one sender for one stage run in the order of sending. The message wakes a room that sleeps.
// Referenced data is copied. An RPC for rooms alone is [ServerOnly].
//
// Unless it is nil, then is called in EarlyUpdate of a later tick with the result: nil once the
// handler has returned, even with an error, and otherwise a [*Refusal], which is counted in
// netloop_queue_drops_total{queue="room_message"} or, with the reasons of [RPCOption], in
// netloop_rpcs_total:
//
//	CodeRoomUnknown    there is no such room, or it has ended before the handler ran
//	CodeBusy           too many messages wait there, or this room has sent 1 024, or 1 MiB, in
//	                   this tick
//	CodeUnknownMethod  the room has no handler for it
//
// If 1 024 works and messages with a pending result are under way, the message is not sent and the
// error is [ErrTooMuchWork]. After the sending room has ended, then is not called.
//
// It panics as [RPC.Send] does.
func (e *RPC[M]) SendRoom(t *Tick, name string, m M, then func(*Tick, error), o ...SendOption) {
	r := t.server("RPC.SendRoom")
	e.mail(t, "RPC.SendRoom", "room "+name, m, then, o, func(it rpcqueue.Item) error {
		to, ok := r.server.directory.Get(name)
		if !ok {
			return room.ErrEnded
		}
		return to.e.Mailbox.Receive(it)
	})
}

// mail sends a message by the function deliver.
func (e *RPC[M]) mail(t *Tick, what, to string, m M, then func(*Tick, error), o []SendOption, deliver func(rpcqueue.Item) error) {
	r := t.server(what)
	if err := e.m.Belongs(r.schema.s); err != nil {
		panic("netloop: " + what + ": " + err.Error())
	}
	send := sendWith(o)
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
	if !r.e.Mailbox.Send(mail) {
		t.AfterFunc(0, func(t *Tick) { then(t, ErrTooMuchWork) })
	}
}

// HandleRoom sets the function that runs for each message of this kind from a room, see
// [RPC.SendRoom]; from is nil for a message that the program has posted. Call HandleRoom in [Game]
// Open. It replaces Handle: clients' messages of the kind do not run, and are counted as forbidden.
// An error is counted and logged; the sender does not see it.
func (e *RPC[M]) HandleRoom(r *Room, fn func(t *Tick, from *Sender, m M) error) {
	r.handled(r.e.Messages.HandleRoom(e.m, func(from *room.Sender, it *rpcqueue.Item) error {
		return fn(&r.tick, (*Sender)(from), schema.Open[M](it.Msg))
	}))
}

// PostRoom is [RPC.Post] for a room by its name; for a room that is being opened it waits until ctx
// ends. Without such a room the error is a [*Refusal] with [CodeRoomUnknown]. Any goroutine may
// call it except those of rooms, which call SendRoom.
func (e *RPC[M]) PostRoom(ctx context.Context, s *Server, name string, m M) error {
	r, ok := s.directory.Find(ctx, name)
	if !ok {
		return public(errNoRoom(name))
	}
	return e.Post(r, m)
}

// SendServer sends a message to the program around the server, where it runs exactly once if
// [RPC.HandleServer] has set a function for it. The rules of SendRoom apply; messages under way
// when the server ends are delivered to the program before Run returns.
func (e *RPC[M]) SendServer(t *Tick, m M, then func(*Tick, error)) {
	s := t.server("RPC.SendServer").server
	e.mail(t, "RPC.SendServer", "server", m, then, nil, s.desk.Receive)
}

// HandleServer sets the function that runs for each message of this kind that a room sends to the
// program. Messages run one at a time and in their order, on a goroutine of the server that no tick
// waits for; 4 096 of them may wait, 256 of one room. When all rooms have ended, ctx has
// DrainTimeout of the [Config] left. A function that ignores the end of ctx for a second is
// abandoned, and counted in netloop_left_behind_total. Call it before Run, once for each RPC, and
// not in a game's Open, which is called for each room.
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

// openDesk starts to deliver the rooms' messages to the program. The returned function ends that,
// when all rooms have ended.
func (s *Server) openDesk() (end func()) {
	if !s.desk.Open() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	stop, served := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(served)
		for !s.serveDesk(ctx, stop) { // A function has ended its goroutine: start the next one.
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
