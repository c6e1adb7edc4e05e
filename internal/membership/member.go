package membership

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/cluster"
)

// Config describes a server's membership.
type Config struct {
	Via cluster.Cluster
	// Load returns the server's present load. It must not wait.
	Load func() cluster.Load
	// Lost is called when a newer claim of the name of a room exists. It must not wait, and not
	// call the Member.
	Lost func(room string, e cluster.Epoch)
	// LostPlayer is called when a newer claim of the name of a player exists, as Lost is.
	LostPlayer func(player string, e cluster.Epoch)
	Now        func() time.Duration
	Log        *slog.Logger
}

// Member is a server in its cluster. Any goroutine may use it.
type Member struct {
	cfg      Config
	handlers map[string]handler
	self     cluster.Server // set by Join
	joined   atomic.Bool    // self is set, and Via may be called
	changed  chan struct{}  // size 1: signals that servers or boards have changed
	releases sync.WaitGroup // names that are being given back
	rooms    rooms
	asked    asked
	mail     mail
}

// New returns a server that has not joined. Handle follows, then Join.
func New(cfg Config) *Member {
	m := &Member{cfg: cfg, handlers: map[string]handler{}, changed: make(chan struct{}, 1)}
	m.mail = mail{m: m, lookups: map[string][]Mail{}, boxes: map[string]*outbox{}, senders: map[string]*sender{}}
	m.mail.ctx, m.mail.cancel = context.WithCancel(context.Background())
	return m
}

// The beginnings of the names of rooms and of used tokens in the cluster.
const (
	roomPrefix  = "room/"
	tokenPrefix = "token/"
)

// Join makes the server a member, once. If the cluster does not answer before the end of ctx, the
// server continues to join, and the error is nil.
func (m *Member) Join(ctx context.Context, self cluster.Server) error {
	m.self = self
	m.cfg.Via.Serve(m.serve)
	err := m.cfg.Via.Join(ctx, cluster.Member{
		Server: self, Load: m.cfg.Load, Changed: m.wake,
		Lost: func(name string, e cluster.Epoch) {
			if room, ok := strings.CutPrefix(name, roomPrefix); ok {
				m.cfg.Lost(room, e)
			}
			if player, ok := strings.CutPrefix(name, playerPrefix); ok {
				m.cfg.LostPlayer(player, e)
			}
		},
	})
	if errors.Is(err, cluster.ErrBusy) {
		m.cfg.Log.Warn("cluster does not answer, the server continues to join", "server", self.ID, "health", m.cfg.Via.Health().Text)
		err = nil
	}
	if err == nil {
		m.joined.Store(true)
	}
	return err
}

// ID returns the id of this server, or "" before Join.
func (m *Member) ID() string {
	if !m.joined.Load() {
		return ""
	}
	return m.self.ID
}

// Health returns the state of the connection to the cluster.
func (m *Member) Health() cluster.Health { return m.cfg.Via.Health() }

// Servers returns all members.
func (m *Member) Servers() []cluster.Server {
	if !m.joined.Load() {
		return nil
	}
	return m.cfg.Via.Servers()
}

// Boards returns the boards of all servers, this one included. Callers must not change them.
func (m *Member) Boards() []cluster.Board {
	if !m.joined.Load() {
		return nil
	}
	return m.cfg.Via.Boards()
}

// Claim takes the name of a room until Release. The error is one of package cluster.
func (m *Member) Claim(ctx context.Context, room string) (cluster.Epoch, error) {
	if !m.joined.Load() {
		return 0, cluster.ErrBusy
	}
	return m.cfg.Via.Claim(ctx, roomPrefix+room, 0)
}

// Use marks a token as used, by its id, for a time. The error is [cluster.ErrTaken] if a server has
// done so before, or [cluster.ErrBusy].
func (m *Member) Use(ctx context.Context, token string, keep time.Duration) error {
	if !m.joined.Load() {
		return cluster.ErrBusy
	}
	_, err := m.cfg.Via.Claim(ctx, tokenPrefix+token, max(keep, time.Second))
	return err
}

// GiveUp gives the name of a room back, for another server that is about to claim it. The room's
// entry remains on the board. The error is [cluster.ErrBusy] if the store has not answered.
func (m *Member) GiveUp(ctx context.Context, room string, e cluster.Epoch) error {
	return m.cfg.Via.Release(ctx, roomPrefix+room, e)
}

// Hold reports whether a room still has its name: see [cluster.Cluster].
func (m *Member) Hold(room string, e cluster.Epoch) error {
	return m.cfg.Via.Hold(roomPrefix+room, e)
}

// Announce sets the room's entry on this server's board; nil removes it. It reports false for an
// entry beyond the limits.
func (m *Member) Announce(room string, entry []byte) bool {
	return m.joined.Load() && m.cfg.Via.Announce(room, entry)
}

// Release gives the name of a room back. It does not wait: Close, which begins later, does.
func (m *Member) Release(room string, e cluster.Epoch) {
	m.Announce(room, nil)
	m.releases.Go(func() {
		if err := m.cfg.Via.Release(context.Background(), roomPrefix+room, e); err != nil {
			m.cfg.Log.Warn("name of a room is free later", "room", room, "error", err)
		}
	})
}

// Find returns the id of the other server that has a room. It asks the store for rooms that no
// board has, and for those of suspect servers: another one may have opened them since, or may do
// so. The error is one of package cluster.
func (m *Member) Find(ctx context.Context, room string) (server string, err error) {
	if server, ok := m.Lists(room); ok {
		return server, nil
	}
	if !m.joined.Load() {
		return "", cluster.ErrBusy
	}
	h, err := m.cfg.Via.Find(ctx, roomPrefix+room)
	if err == nil && (h.Server == "" || h.Server == m.self.ID) {
		err = cluster.ErrGone
	}
	return h.Server, err
}

// Holder returns the id of the server that has the name of a room, as the store tells: this
// server's too. The error is one of package cluster.
func (m *Member) Holder(ctx context.Context, room string) (server string, err error) {
	if !m.joined.Load() {
		return "", cluster.ErrBusy
	}
	h, err := m.cfg.Via.Find(ctx, roomPrefix+room)
	return h.Server, err
}

// Changed returns a channel that is ready to receive after a change of servers or boards.
func (m *Member) Changed() <-chan struct{} { return m.changed }

func (m *Member) wake() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// Close leaves the cluster, when the names of rooms have been given back and its calls with
// messages have ended, and at the end of ctx at the latest.
func (m *Member) Close(ctx context.Context) error {
	m.mail.close()
	released := make(chan struct{})
	go func() { m.releases.Wait(); m.mail.calls.Wait(); close(released) }()
	select {
	case <-released:
	case <-ctx.Done():
	}
	if !m.joined.Load() {
		return nil
	}
	return m.cfg.Via.Close(ctx)
}
