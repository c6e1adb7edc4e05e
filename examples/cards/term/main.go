// Command term plays Crazy Eights in a terminal:
//
//	term --addr 127.0.0.1:4433 --name ann
//	term --alone                            # with bots, in this process and without a network
//
// The flow:
//
//	session.go   keeps the player connected, and runs the client's frames
//	               │ views, errors                         ▲ actions
//	               ▼                                       │
//	model.go     the screen's content, and the actions of keys: no network, no clock
//	lobby.go, table.go, screen.go   draw it
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/bot"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:4433", "the server, `host:port`")
	name := flag.String("name", os.Getenv("USER"), "who you are at the table")
	alone := flag.Bool("alone", false, "play with bots, in this process and without a network")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *addr, *name, *alone)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "term:", err)
		os.Exit(1)
	}
}

// run shows the game until the player quits.
func run(ctx context.Context, addr, name string, alone bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := newSession(addr, cmp.Or(name, "guest"))
	served := make(chan error, 1) // One sender, one value.
	if alone {
		var err error
		if s.local, err = host(); err != nil {
			return err
		}
		go func() { served <- s.local.Run(ctx) }()
	}
	err := show(ctx, s)
	stop()
	if alone {
		err = errors.Join(err, <-served)
	}
	return err
}

// show displays a session until the player quits or ctx ends, and then ends the session.
func show(ctx context.Context, s *session, o ...tea.ProgramOption) error {
	ctx, stop := context.WithCancel(ctx)
	p := tea.NewProgram(newModel(s.name, s.act), append(o, tea.WithContext(ctx))...)
	var running sync.WaitGroup
	running.Go(func() { s.run(ctx, p.Send) })
	_, err := p.Run()
	stop()
	running.Wait()
	if errors.Is(err, tea.ErrProgramKilled) { // An interrupt is a normal end.
		return nil
	}
	return err
}

// host makes a server in this process, with enough bots for a table.
func host() (*netloop.Server, error) {
	g := cards.New(bot.Host)
	g.Config().(*cards.Config).Bots = cards.MaxPlayers - 1
	return netloop.New(netloop.Config{Offline: true}, g)
}
