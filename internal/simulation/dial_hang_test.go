package simulation

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// Modes of questions that end a room.
const (
	hangs   = 110 + iota // the handler returns when the story is over
	exits                // the handler ends the goroutine of the room
	panicky              // the handler panics: its client gets an error, and the room continues
)

// watchdog is the time after which a tick of a dialled story counts as hung.
const watchdog = 2 * time.Second

// fatal is a room that loses its goroutine, or hangs. The documents: Config.Watchdog, and the
// comment of Supervisor.GiveUp.
//
//   - Its clients are told within the time of the watchdog, and no other room notices.
//   - Its name is free afterwards.
func (p *dialProgram) fatal(ctx context.Context) {
	b, s, mode := p.b, p.b.servers[p.at], oneOf[uint8](p.d, hangs, exits, panicky)
	name := "of " + p.subject
	spec := netloop.RoomSpec{Name: name, Rate: netloop.Hz(30)}
	if _, err := s.OpenRoom(ctx, spec); err != nil {
		b.Errorf("room %q: %v", name, err)
		return
	}
	c, err := client.Dial(ctx, p.addr(), client.Config{Schema: declare(0).schema, Transport: p.how, Room: name, Token: "guest of " + p.subject})
	if err != nil {
		b.Errorf("%s dials room %q: %v", p.subject, name, err)
		return
	}
	ran := make(chan error, 1)
	run, stop := context.WithTimeout(ctx, watchdog+finishing)
	defer stop()
	go func() { ran <- c.Run(run) }()
	ask, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err = client.Await(ask, c, declare(0).ask, question{Mode: mode})
	if err == nil {
		b.Errorf("%s asks for an end of room %q, and gets an answer", p.subject, name)
	}
	if mode == panicky {
		if _, err = client.Await(ctx, c, declare(0).ask, question{N: 3}); err != nil {
			b.Errorf("%s: after a panic of a handler: %v", p.subject, err)
		}
		stop()
		if err := <-ran; err != nil {
			b.Errorf("%s: Run returns %v", p.subject, err)
		}
		_ = c.Close()
		return
	}
	var why *netloop.Closed
	if err := <-ran; !errors.As(err, &why) || why.Code != netloop.CodeInternal {
		b.Errorf("%s is told %v of a room that has ended by mode %d", p.subject, err, mode)
	}
	_ = c.Close()
	for by := time.Now().Add(finishing); ; time.Sleep(nap) {
		if _, err = s.OpenRoom(ctx, spec); err == nil || time.Now().After(by) {
			break
		}
	}
	if err != nil {
		b.Errorf("room %q cannot be opened again: %v", name, err)
	}
}

// end answers the questions that end a room.
func (b *dialPlay) end(mode uint8) error {
	switch mode {
	case hangs:
		<-b.over
	case exits:
		runtime.Goexit()
	case panicky:
		panic("the story panics")
	}
	return nil
}
