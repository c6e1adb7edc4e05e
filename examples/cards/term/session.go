package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/player"
)

// The messages to the model.
type (
	seen    struct{ view *player.View } // a new view, in another frame
	trouble struct{ text string }       // there is no connection
	refused struct{ text string }       // the reason of a refusal
	record  struct{ won cards.Won }
)

// action is an action of the player.
type action struct {
	do   deed
	sit  cards.SitDown
	code string
	card cards.Card
	suit cards.Suit
}

type deed uint8

const (
	sit deed = iota
	enter
	play
	draw
	leave
)

// session keeps a player connected: over broken connections, restarts of the server, and its
// absence.
type session struct {
	addr, name string
	local      *netloop.Server // or the server of this process
	actions    chan action     // Size 1: actions of a faster player are dropped.
	tell       func(tea.Msg)
	watching   bool // the last seat asked for is a spectator's
}

func newSession(addr, name string) *session {
	return &session{addr: addr, name: name, actions: make(chan action, 1)}
}

// act passes an action to the client's frames. It is dropped if no frame takes it.
func (s *session) act(a action) {
	select {
	case s.actions <- a:
	default:
	}
}

// again is the pause before another connection attempt.
const again = time.Second

// run connects, plays, and connects again, until ctx ends.
func (s *session) run(ctx context.Context, tell func(tea.Msg)) {
	s.tell = tell
	for room := ""; ctx.Err() == nil; {
		c, err := s.dial(ctx, room)
		if err == nil {
			room, err = s.play(ctx, c)
		}
		if err != nil && ctx.Err() == nil {
			room = s.explain(room, err)
			pause(ctx, again)
		}
	}
}

// patience is the time limit of a server's answer.
const patience = 3 * time.Second

func (s *session) dial(ctx context.Context, room string) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return client.Dial(ctx, s.addr, client.Config{Schema: cards.Schema, Local: s.local, Token: s.name, Room: room, Spectate: s.watching && room != ""})
}

// explain shows the player why there is no connection, and returns the room of the next one.
func (s *session) explain(room string, err error) string {
	code, text := netloop.Code(0), err.Error()
	if r := (*netloop.Refusal)(nil); errors.As(err, &r) {
		code, text = r.Code, r.Text
	}
	if c := (*netloop.Closed)(nil); errors.As(err, &c) {
		code, text = c.Code, c.Text
	}
	switch code {
	case netloop.CodeTicket:
		s.tell(refused{"No table opens with that code."})
		return ""
	case netloop.CodeRefused, netloop.CodeFull, netloop.CodeRoomUnknown:
		if room != "" {
			s.tell(refused{"The table is not to be had: " + text})
			return ""
		}
		s.tell(trouble{"The server does not let you in: " + text})
	case netloop.CodeReplaced:
		s.tell(trouble{"You play in another window now. Quit one of them (q)."})
	case netloop.CodeClosing:
		s.tell(trouble{fmt.Sprintf("The server at %s is closing. Looking for it again…", s.addr)})
	case netloop.CodeSchemaMismatch, netloop.CodeBadVersion:
		s.tell(trouble{"The server is of another version: " + text})
	default:
		s.tell(trouble{fmt.Sprintf("Nobody answers at %s. Is the server running? Trying again…", s.addr)})
	}
	return room
}

// play runs the client's frames until it ends, and returns its room.
func (s *session) play(ctx context.Context, c *client.Client) (room string, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p := player.New(c)
	goesBack := false
	var last *player.View
	atTable := true
	c.On(netloop.Update, "term.act", func(*netloop.Tick) {
		select {
		case a := <-s.actions:
			// The calls of delayed spectators reach no handler, so a spectator leaves without a
			// call.
			if goesBack = a.do == leave && p.View.Place < 0; goesBack {
				stop()
				return
			}
			s.perform(p, a)
		default:
		}
	})
	c.On(netloop.PostLateUpdate, "term.show", func(*netloop.Tick) {
		now := p.View
		now.Left = now.Left.Round(time.Second)
		now.State.Left = now.State.Left.Round(time.Second)
		if last == nil || !reflect.DeepEqual(last, &now) {
			last = now.Clone()
			s.tell(seen{last})
		}
		if was := atTable; !p.Busy() {
			if atTable = now.AtTable; was && !atTable {
				s.ask(c)
			}
		}
	})
	err = c.Run(ctx)
	if room = c.Room(); goesBack {
		room = ""
	}
	_ = c.Close() // It has ended, or the player has quit.
	return room, err
}

// ask asks for the player's record.
func (s *session) ask(c *client.Client) {
	client.Call(c, cards.Record, cards.RecordQuery{}, func(_ *netloop.Tick, w cards.Won, err error) {
		if err == nil {
			s.tell(record{w})
		}
	})
}

// perform performs an action of the player, in a frame.
func (s *session) perform(p *player.Player, a action) {
	if p.Busy() {
		return
	}
	done := func(err error) {
		if r := (*netloop.Refusal)(nil); errors.As(err, &r) {
			s.tell(refused{sentence(r.Text)})
		} else if err != nil {
			s.tell(refused{sentence(err.Error())})
		}
	}
	switch a.do {
	case sit:
		s.watching = a.sit.Watch
		p.Sit(a.sit, done)
	case enter:
		s.watching = false
		if err := p.Enter(a.code); err != nil {
			done(err)
		}
	case play:
		p.Play(a.card, a.suit, done)
	case draw:
		p.Draw(done)
	case leave:
		p.Leave(done)
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
