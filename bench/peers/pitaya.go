package main

import (
	"context"
	"crypto/tls"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus" //nolint:depguard // Pitaya's logger.
	pitaya "github.com/topfreegames/pitaya/v3/pkg"
	"github.com/topfreegames/pitaya/v3/pkg/acceptor"
	"github.com/topfreegames/pitaya/v3/pkg/component"
	"github.com/topfreegames/pitaya/v3/pkg/config"
	"github.com/topfreegames/pitaya/v3/pkg/logger"
	logruswrapper "github.com/topfreegames/pitaya/v3/pkg/logger/logrus"

	"github.com/netloop/netloop/internal/certificate"
)

// PitayaRoom is the component of a Pitaya server: a group, and one of Pitaya's timers.
type PitayaRoom struct {
	component.Base
	app    pitaya.Pitaya
	ticker ticker
}

const pitayaGroup = "room"

// AfterInit starts the timer.
func (m *PitayaRoom) AfterInit() {
	pitaya.NewTimer(time.Second/time.Duration(m.ticker.args.rate), func() {
		// The error is of one client that has left.
		_ = m.app.GroupBroadcast(context.Background(), "game", pitayaGroup, route, m.ticker.next())
	})
}

// Join adds a client.
func (m *PitayaRoom) Join(ctx context.Context, _ []byte) {
	s := m.app.GetSessionFromCtx(ctx)
	if s.Bind(ctx, strconv.FormatInt(s.ID(), 10)) != nil || m.app.GroupAddMember(ctx, pitayaGroup, s.UID()) != nil {
		return // The client gets no update, which the measurement notices.
	}
	_ = s.OnClose(func() { _ = m.app.GroupRemoveMember(context.Background(), pitayaGroup, s.UID()) })
}

// servePitaya is Pitaya's server, without a cluster. Compression is on by default, but off in
// Pitaya's example and here: it costs time, and floats hardly shrink.
func servePitaya(a serverArgs, secure bool) error {
	quiet := logrus.New() // By default it would log each update.
	quiet.SetLevel(logrus.WarnLevel)
	logger.SetLogger(logruswrapper.NewWithFieldLogger(quiet))
	conf := config.NewDefaultPitayaConfig()
	conf.Handler.Messages.Compression = false
	pitaya.SetTimerPrecision(time.Millisecond)
	b := pitaya.NewDefaultBuilder(true, "game", pitaya.Standalone, map[string]string{}, *conf)
	if secure {
		pair, err := certificate.SelfSigned()
		if err != nil {
			return err
		}
		b.AddAcceptor(acceptor.NewTLSAcceptor(a.addr, []tls.Certificate{pair}...))
	} else {
		b.AddAcceptor(acceptor.NewTCPAcceptor(a.addr))
	}
	app := b.Build()
	if err := app.GroupCreate(context.Background(), pitayaGroup); err != nil {
		return err
	}
	if err := app.SetDictionary(map[string]uint16{route: routeCode}); err != nil {
		return err
	}
	app.Register(&PitayaRoom{app: app, ticker: ticker{args: a}}, component.WithName("room"), component.WithNameFunc(strings.ToLower))
	app.Start()
	return nil
}
