package main

import (
	"io"
	stdlog "log" //nolint:depguard // nano takes a logger of this package.
	"strings"
	"time"

	"github.com/lonng/nano"
	"github.com/lonng/nano/component"
	"github.com/lonng/nano/scheduler"
	"github.com/lonng/nano/serialize/protobuf"
	"github.com/lonng/nano/session"
)

// NanoRoom is the component of a nano server: a group, and a timer of nano's scheduler, whose
// goroutine runs the handlers too. The update is bytes, written once a tick and broadcast.
type NanoRoom struct {
	component.Base
	group  *nano.Group
	ticker ticker
}

// AfterInit starts the timer.
func (m *NanoRoom) AfterInit() {
	session.Lifetime.OnClosed(func(s *session.Session) { _ = m.group.Leave(s) })
	scheduler.NewTimer(time.Second/time.Duration(m.ticker.args.rate), func() {
		// The error is of a client that reads too slowly: nano has dropped its update.
		_ = m.group.Broadcast(route, m.ticker.next())
	})
}

// Join adds a client.
func (m *NanoRoom) Join(s *session.Session, _ []byte) error { return m.group.Add(s) }

// serveNano is nano's server. nano's scheduler runs its timers in rounds, of which the shortest
// take 1 ms: a timer may fire 1 ms late.
func serveNano(a serverArgs) error {
	m := &NanoRoom{group: nano.NewGroup("room"), ticker: ticker{args: a}}
	all := new(component.Components)
	all.Register(m, component.WithName("room"), component.WithNameFunc(strings.ToLower))
	nano.Listen(a.addr, nano.WithComponents(all), nano.WithSerializer(protobuf.NewSerializer()),
		nano.WithDictionary(map[string]uint16{route: routeCode}), nano.WithTimerPrecision(time.Millisecond),
		nano.WithLogger(stdlog.New(io.Discard, "", 0)))
	return nil
}

func playNano(a clientArgs) error { return playPomelo(a, false) }
