package netloop

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/membership"
	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// member returns a connection to a cluster without other servers.
func member() cluster.Cluster {
	return cluster.NewMemory(1000, func() time.Duration { return 0 }).Member()
}

// The settings of a cluster are checked, and the error names the wrong one.
func TestSettingsOfAClusterAreChecked(t *testing.T) {
	long := strings.Repeat("x", cluster.MaxText+1)
	for _, c := range []struct {
		set  Cluster
		want string // in the error; "" is none
	}{
		{Cluster{}, ""},
		{Cluster{Via: member()}, ""},
		{Cluster{Via: member(), ID: "a-1", Region: "eu", Zone: "b", Addr: "play.example:7", HandOver: true}, ""},
		{Cluster{Region: "eu"}, "set Via too"},
		{Cluster{HandOver: true}, "set Via too"},
		{Cluster{Via: member(), Addr: "play.example"}, "Cluster.Addr"},
		{Cluster{Via: member(), ID: "a.1"}, "ID"},
		{Cluster{Via: member(), Region: long}, "Region"},
		{Cluster{Via: member(), Zone: long}, "Zone"},
		{Cluster{Via: member(), Addr: long + ":7"}, "Addresses"},
	} {
		err := c.set.validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.set, err, c.want)
		}
	}
}

// Errors of a cluster reach the game as errors of package netloop.
func TestErrorsOfAClusterAreTranslated(t *testing.T) {
	other := errors.New("other")
	for from, want := range map[error]error{
		nil: nil, cluster.ErrTaken: ErrRoomExists, cluster.ErrBusy: ErrClusterBusy, cluster.ErrClosed: ErrClosing, other: other,
	} {
		if got := clusterError(from); !errors.Is(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%v becomes %v, want %v", from, got, want)
		}
		if from != nil {
			if got := clusterError(fmt.Errorf("so: %w", from)); !errors.Is(got, want) {
				t.Errorf("%v becomes %v in another error, want %v", from, got, want)
			}
		}
	}
	for i, want := range openErrors {
		if got := openError(transport.Refuse(transport.Code(1+i), "so")); !errors.Is(got, want) {
			t.Errorf("code %d becomes %v, want %v", 1+i, got, want)
		}
	}
	for _, code := range []transport.Code{0, transport.Code(1 + len(openErrors))} {
		refused := transport.Refuse(code, "so")
		if got := openError(refused); !errors.Is(got, refused) {
			t.Errorf("code %d becomes %v", code, got)
		}
	}
	if got := openError(cluster.ErrBusy); !errors.Is(got, ErrClusterBusy) {
		t.Errorf("a busy cluster becomes %v", got)
	}
	for from, want := range map[error]Code{cluster.ErrGone: CodeRoomUnknown, cluster.ErrBusy: CodeBusy} {
		refused := (*transport.Refusal)(nil)
		if got := callError("oak", from); !errors.As(got, &refused) || refused.Code != want {
			t.Errorf("%v becomes %v", from, got)
		}
	}
	if got := callError("oak", other); !errors.Is(got, other) {
		t.Errorf("another error becomes %v", got)
	}
}

// A server tells the other servers the addresses at which players reach it.
func TestAddressesForPlayers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   []string // GAME and WEB are the ports
		pinned bool
	}{
		"one machine": {func(c *Config) { c.Web = "127.0.0.1:0" }, []string{
			"quic 127.0.0.1:GAME", "webtransport https://127.0.0.1:GAME" + endpoint.Path, "websocket ws://127.0.0.1:WEB" + endpoint.Path,
		}, true},
		"without pages": {func(*Config) {}, []string{"quic 127.0.0.1:GAME", "webtransport https://127.0.0.1:GAME" + endpoint.Path}, true},
		"behind a name": {func(c *Config) { c.Web, c.Cluster.Addr = "127.0.0.1:0", "play.example:7" }, []string{
			"quic play.example:7", "webtransport https://play.example:7" + endpoint.Path, "websocket ws://play.example:WEB" + endpoint.Path,
		}, true},
		"pages with TLS": {func(c *Config) { c.Web, c.WebTLS, c.Cluster.Addr = "127.0.0.1:0", true, "play.example:7" }, []string{
			"quic play.example:7", "webtransport https://play.example:7" + endpoint.Path, "websocket wss://play.example:WEB" + endpoint.Path,
		}, true},
		"behind a proxy": {func(c *Config) { c.Web, c.WebURL = "127.0.0.1:0", "https://pages.example/" }, []string{
			"quic 127.0.0.1:GAME", "webtransport https://127.0.0.1:GAME" + endpoint.Path, "websocket wss://pages.example" + endpoint.Path,
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Listen: "127.0.0.1:0", Auth: Auth{Insecure: true}}
			cfg.Cluster.Via = member()
			c.change(&cfg)
			s := newStill(t, cfg, closedGame{new(opening)})
			if err := s.Listen(); err != nil {
				t.Fatal(err)
			}
			all, err := s.addresses()
			if err != nil {
				t.Fatal(err)
			}
			_, game, _ := net.SplitHostPort(s.listener.Addr().String())
			pages := ""
			if s.web != nil {
				_, pages, _ = net.SplitHostPort(s.web.Addr().String())
			}
			var got []string
			for _, a := range all {
				got = append(got, a.Carrier+" "+a.Addr)
				if pinned := len(a.Hashes) == 1 && len(a.Hashes[0]) == 32; pinned != (a.Carrier != "websocket" && c.pinned) {
					t.Errorf("%s has %d hashes", a.Carrier, len(a.Hashes))
				}
			}
			want := strings.NewReplacer("GAME", game, "WEB", pages).Replace(strings.Join(c.want, ", "))
			if strings.Join(got, ", ") != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	for addr, want := range map[string]bool{"": false, "0.0.0.0:7": false, "[::]:7": false, "play.example:7": true} {
		cfg := Config{Listen: "0.0.0.0:0", Auth: Auth{Insecure: true}}
		cfg.Cluster.Via, cfg.Cluster.Addr = member(), addr
		s := newStill(t, cfg, closedGame{new(opening)})
		if err := s.Listen(); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "Cluster.Addr") {
			t.Errorf("for all addresses of the machine, with Addr %q: %v", addr, err)
		}
	}
}

// Without a listener a server has the address of its Config, or none.
func TestAddressesWithoutAListener(t *testing.T) {
	cfg := Config{}
	cfg.Cluster.Via = member()
	s := newStill(t, cfg, closedGame{new(opening)})
	if all, err := s.addresses(); len(all) != 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	s.cfg.Cluster.Addr = "a:1"
	if all, err := s.addresses(); len(all) != 1 || all[0].Carrier != "quic" || all[0].Addr != "a:1" || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

// The load of a server has its rooms, its limits and whether it ends.
func TestTheLoadOfAServer(t *testing.T) {
	cfg := Config{MaxRooms: 7}
	cfg.Cluster.Via = member()
	s := newStill(t, cfg, closedGame{new(opening)})
	if l := s.load(); l.Rooms != 1 || l.MaxRooms != 7 || l.MaxClients != s.cfg.MaxClients || l.Draining || l.Clients != 0 || l.Overload != 0 {
		t.Errorf("%+v", l)
	}
	s.leaving.Store(true)
	if !s.load().Draining {
		t.Error("a server that hands its rooms over gets new ones")
	}
	s.leaving.Store(false)
	s.draining.Store(true)
	if !s.load().Draining {
		t.Error("a server that ends gets new rooms")
	}
}

// Without a cluster a server has no id, and names are free of it.
func TestWithoutACluster(t *testing.T) {
	s := newStill(t, Config{}, closedGame{new(opening)})
	epoch, err := s.claimName(t.Context(), "\xff")
	if s.ID() != "" || epoch != 0 || err != nil || s.joinCluster(context.Background()) != nil || s.leaveCluster(context.Background()) != nil {
		t.Errorf("id %q, epoch %d, %v", s.ID(), epoch, err)
	}
	s.releaseName("oak", 1)
	wait := s.startSync(t.Context())
	wait()
	if id, ok := s.RoomServer("oak"); id != "" || ok {
		t.Errorf("oak is at %q, %v", id, ok)
	}
	if err := s.closeElsewhere("oak", 0, 0, ""); err == nil {
		t.Error("a room that does not exist is closed")
	}
}

// A server that has no place for a room passes it on: three servers are asked in all.
func TestAFullServerPassesARoomOn(t *testing.T) {
	for full, want := range map[int]error{0: nil, 1: nil, 2: nil, 3: ErrTooManyRooms} {
		hub := cluster.NewMemory(1000, func() time.Duration { return 0 })
		cfg := Config{MaxRooms: 1} // The default room.
		cfg.Cluster.Via, cfg.Cluster.Addr = hub.Member(), "x:1"
		s := newStill(t, cfg, closedGame{new(opening)})
		if err := s.joinCluster(t.Context()); err != nil {
			t.Fatal(err)
		}
		asked := map[int]int{}
		for i := range 4 {
			m := membership.New(membership.Config{
				Via: hub.Member(), Load: func() cluster.Load { return cluster.Load{MaxRooms: 10, MaxClients: 10} }, Now: func() time.Duration { return 0 },
			})
			membership.Handle(m, "open", func(context.Context, string, *clusterv1.OpenRoom) (proto.Message, error) {
				if asked[i]++; len(asked) <= full {
					return nil, transport.Refuse(2, "full") // 1 + its index in openErrors.
				}
				return &clusterv1.RoomOpened{Info: []byte("{}")}, nil
			})
			self := cluster.Server{ID: fmt.Sprint("y", i), Schema: hex.EncodeToString(s.schema.s.Fingerprint())}
			if err := m.Join(t.Context(), self); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.PlaceRoom(t.Context(), RoomSpec{Name: "oak"})
		if n := len(asked); !errors.Is(err, want) || n != min(full+1, maxTried) {
			t.Errorf("%d full servers: %v, after %d were asked", full, err, n)
		}
	}
}

// The server is ready while its cluster does not answer, and says so.
func TestReadinessNamesTheCluster(t *testing.T) {
	hub := cluster.NewMemory(1000, func() time.Duration { return 0 })
	cfg := Config{}
	cfg.Cluster.Via, cfg.Cluster.Addr = hub.Member(), "x:1"
	s := newStill(t, cfg, closedGame{new(opening)})
	if err := s.joinCluster(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.ready.Store(true)
	for _, gone := range []bool{false, true} {
		hub.StoreGone(gone)
		note, err := s.readiness()
		if err != nil || strings.HasPrefix(note, "the cluster does not answer: ") != gone {
			t.Errorf("without a store %v: %q, %v", gone, note, err)
		}
	}
}

// deafCluster does not answer when its server leaves.
type deafCluster struct{ cluster.Cluster }

func (deafCluster) Close(context.Context) error { return context.DeadlineExceeded }

// A server that ends while its cluster does not answer has not failed.
func TestAServerEndsWithoutItsCluster(t *testing.T) {
	hub := cluster.NewMemory(1000, func() time.Duration { return 0 })
	cfg := Config{Listen: "127.0.0.1:0"}
	cfg.Cluster.Via = deafCluster{hub.Member()}
	s := newStill(t, cfg, closedGame{new(opening)})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}
