package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/agones/agonestest"
)

// sidecar runs a double of the sidecar of Agones, and returns it with the environment of a server
// beside it.
func sidecar(t *testing.T) (*agonestest.Sidecar, []string) {
	t.Helper()
	s := agonestest.New(1)
	s.Update(func(s *agonestest.Sidecar) {
		s.SetState("Scheduled")
		s.Declare(map[string]agonestest.Counter{"rooms": {Capacity: 10}, "players": {Capacity: 100}}, map[string]agonestest.List{"rooms": {Capacity: 10}})
	})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, []string{agonesPortKey + "=" + server.URL[strings.LastIndexByte(server.URL, ':')+1:]}
}

// await waits for a condition of the server and its sidecar.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for limit := time.After(patience); !is(); {
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// A server is Ready when clients may join, Allocated by its first client, drains when Agones ends
// it, and tells its end last.
func TestAgonesSeesTheLifeOfAServer(t *testing.T) {
	s, environ := sidecar(t)
	g := newGame()
	var last []string // the requests before the game has saved
	g.open = func(r *netloop.Room) error {
		r.OnClose(func(context.Context, *netloop.Closed) error {
			last = s.Requests()
			return nil
		})
		return nil
	}
	r := start(t, g, environ, "--agones", "--drain", "1m")
	_, listen, _ := strings.Cut(r.banner(), "listen   ")
	listen, _, _ = strings.Cut(listen, " ")
	await(t, "Ready", func() bool { return s.State() == "Ready" })
	labels := func() map[string]string { labels, _ := s.Labels(); return labels }
	await(t, "the labels", func() bool {
		return len(labels()["agones.dev/sdk-netloop-schema"]) == 32 && labels()["agones.dev/sdk-netloop-game"] == "shooter"
	})
	await(t, "the version", func() bool {
		_, annotations := s.Labels()
		return strings.HasPrefix(annotations["agones.dev/sdk-netloop-version"], "shooter 2.1, netloop ")
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := client.Dial(ctx, listen, client.Config{Schema: shooter})
	if err != nil {
		t.Fatal(err)
	}
	step(t, c, func() bool { return s.State() == "Allocated" })
	step(t, c, func() bool { return s.Counter("players").Count == 1 && s.Counter("rooms").Count == 1 })
	was := s.Count("health")
	step(t, c, func() bool { return s.Count("health") > was+1 })

	s.Update(func(s *agonestest.Sidecar) { s.SetState("Shutdown") })
	step(t, c, func() bool { return c.State().Closing > 0 })
	_ = c.Close() // The drain ends when the last client leaves.
	exit, log := r.wait()
	if exit != 0 || !strings.Contains(log, "this server is ended by Agones: its state is Shutdown") {
		t.Errorf("exit %d: %s", exit, log)
	}
	if slices.Contains(last, "shutdown") || s.Count("shutdown") != 1 {
		t.Errorf("shutdown was told before the game had saved, or not once: %v", s.Requests())
	}
}

// A tick that hangs ends the health requests, though the process lives, and they continue with the
// ticks.
func TestAHangingTickEndsTheHealthRequests(t *testing.T) {
	s, environ := sidecar(t)
	hang, release := make(chan struct{}), make(chan struct{})
	g := newGame()
	g.open = func(r *netloop.Room) error {
		r.On(netloop.Update, "shooter.hang", func(*netloop.Tick) {
			select {
			case <-hang:
				<-release
			default:
			}
		})
		return nil
	}
	r := start(t, g, environ, "--agones", "--watchdog", "100ms")
	r.banner()
	await(t, "health requests", func() bool { return s.Count("health") > 0 })
	close(hang)
	// The period is a second, so that a request would arrive each half second.
	silence, was := time.Now(), s.Count("health")
	await(t, "no health request for 3 s", func() bool {
		if n := s.Count("health"); n != was {
			silence, was = time.Now(), n
		}
		return time.Since(silence) > 3*time.Second
	})
	close(release)
	await(t, "health requests after the tick", func() bool { return s.Count("health") > was })
	if exit, log := r.stop(); exit != 0 || strings.Count(log, "Agones gets no health requests") != 1 {
		t.Errorf("exit %d: %s", exit, log)
	}
}

// Without a sidecar, or with one that answers wrongly, the server serves, and ends with 0.
func TestAServerNeedsNoSidecar(t *testing.T) {
	s, environ := sidecar(t)
	s.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = w.Write([]byte("<html>"))
		return true
	})
	for _, environ := range [][]string{environ, {agonesPortKey + "=1"}} {
		ticks := make(chan struct{}, 1)
		g := newGame()
		g.open = func(r *netloop.Room) error {
			r.On(netloop.Update, "shooter.count", func(t *netloop.Tick) {
				if t.Number() == 20 {
					ticks <- struct{}{}
				}
			})
			return nil
		}
		r := start(t, g, environ, "--agones")
		r.banner()
		<-ticks
		if exit, log := r.stop(); exit != 0 || strings.Count(log, "the sidecar of Agones does not answer") == 0 {
			t.Errorf("exit %d: %s", exit, log)
		}
	}
}

func TestThePortOfTheSidecarIsChecked(t *testing.T) {
	for _, text := range []string{"0", "65536", "http://localhost", "-1"} {
		exit, log := start(t, newGame(), []string{agonesPortKey + "=" + text}, "--agones").wait()
		if exit != 2 {
			t.Errorf("%s: exit %d", text, exit)
		}
		oneLineOf(t, log, "server: AGONES_SDK_HTTP_PORT: ", text, "use the port of the sidecar of Agones, 1 to 65535")
	}
	if port, err := (&options{Agones: true}).agonesPort([]string{agonesPortKey + "="}); port != 9358 || err != nil {
		t.Errorf("without a port: %d, %v", port, err)
	}
}

// In a cluster the address of players is that of Agones, unless it is set.
func TestAgonesNamesTheAddressOfPlayers(t *testing.T) {
	s, environ := sidecar(t)
	for name, tt := range map[string]struct {
		o    options
		want string
	}{
		"by Agones":         {options{Agones: true, Cluster: "nats://127.0.0.1:1"}, "127.0.0.1:7777"},
		"set":               {options{Agones: true, Cluster: "nats://127.0.0.1:1", PublicAddr: "192.0.2.1:4433"}, "192.0.2.1:4433"},
		"without a cluster": {options{Agones: true}, ""},
		"without Agones":    {options{Cluster: "nats://127.0.0.1:1"}, ""},
	} {
		c, err := newConfiguration(newGame())
		if err != nil {
			t.Fatal(err)
		}
		*c.options = tt.o
		port, err := tt.o.agonesPort(environ)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.nameAddress(t.Context(), port); err != nil || c.options.PublicAddr != tt.want {
			t.Errorf("%s: address %q, not %q: %v", name, c.options.PublicAddr, tt.want, err)
		}
	}
	s.Fail(func(http.ResponseWriter, *http.Request) bool { return true })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	c, err := newConfiguration(newGame())
	if err != nil {
		t.Fatal(err)
	}
	c.options.Agones, c.options.Cluster = true, "nats://127.0.0.1:1"
	port, err := c.options.agonesPort(environ)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.nameAddress(ctx, port); err == nil || !strings.Contains(err.Error(), "public-addr") || !strings.Contains(err.Error(), "names no address") {
		t.Errorf("without an answer: %v", err)
	}
}
