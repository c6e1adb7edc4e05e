package netloop

import (
	"context"
	"errors"
	"fmt"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/membership"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// Messages to rooms of other servers: a room's message that finds no room of its server becomes a
// letter, which package membership carries.

// deliver queues a room's message at a room of this server. It returns room.ErrElsewhere if another
// server may have the room.
func (s *Server) deliver(name string, it rpcqueue.Item) error {
	to, ok := s.rooms.Get(name)
	switch {
	case ok:
		return to.e.Mailbox.Receive(it)
	case s.member != nil:
		return room.ErrElsewhere
	}
	return room.ErrEnded
}

// mailOf returns the message for another server.
func mailOf(to string, l *room.Letter) membership.Mail {
	return membership.Mail{
		RoomMessage: &clusterv1.RoomMessage{
			To: []byte(to), From: []byte(l.From.Room), Kind: []byte(l.From.Kind), Program: l.Program,
			Method: []byte(l.Method), Stage: uint32(l.Stage), Payload: l.Payload,
		},
		Done: func(err error) {
			if errors.Is(err, membership.ErrNoAnswer) {
				err = room.ErrNoAnswer
			}
			l.Done(err)
		},
	}
}

// mailReceived queues a message of another server at a room of this one.
func (s *Server) mailReceived(m membership.Mail) {
	r, ok := s.rooms.Get(string(m.GetTo()))
	if !ok || r == s.room {
		m.Done(room.ErrNoRoom)
		return
	}
	stage := loop.Stage(min(m.GetStage(), maxStage))
	r.e.Mailbox.Accept(&room.Letter{
		From: room.Sender{Room: string(m.GetFrom()), Kind: string(m.GetKind())}, Program: m.GetProgram(),
		Method: string(m.GetMethod()), Stage: stage, Payload: m.GetPayload(), Done: m.Done,
	})
}

// maxStage is larger than each valid stage.
const maxStage = 255

// postElsewhere sends a message of the program to a room of another server, and waits for the
// outcome.
func (e *RPC[M]) postElsewhere(ctx context.Context, s *Server, name string, m M) error {
	if err := e.m.Belongs(s.schema.s); err != nil {
		return fmt.Errorf("netloop: RPC.PostRoom: %w", err)
	}
	outcome := make(chan error, 1) // One sender, one value.
	l, err := room.NewLetter(e.m, schema.Erase(m), func(err error) { outcome <- err })
	if err != nil {
		return fmt.Errorf("netloop: RPC.PostRoom: %w", err)
	}
	s.member.Send(mailOf(name, l))
	select {
	case err := <-outcome:
		return public(err)
	case <-ctx.Done():
		return fmt.Errorf("netloop: RPC.PostRoom: %w", context.Cause(ctx))
	}
}
