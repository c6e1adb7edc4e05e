package app

import (
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
)

// TestSimulatedNetwork: with --simulate a client waits for the simulated network and keeps its own
// address, and banner, log and metrics report that the network is not real.
func TestSimulatedNetwork(t *testing.T) {
	const rtt = 30 * time.Millisecond
	g := newGame()
	came := make(chan string, 2) // two clients
	g.open = func(r *netloop.Room) error {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error { came <- j.Addr; return nil })
		return nil
	}
	r := start(t, g, nil, "--simulate", "rtt=30ms,dup=100%", "--web", "127.0.0.1:0")
	text := r.banner()
	at := regexp.MustCompile(`listen +(\S+)`).FindStringSubmatch(text)
	admin := regexp.MustCompile(`http://(\S+)`).FindStringSubmatch(text)
	if at == nil || admin == nil || !strings.Contains(text, "network  SIMULATED (--simulate), for each client address: rtt=30ms,dup=100%\n") {
		t.Fatalf("the banner does not say it:\n%s", text)
	}
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := bridge.Client.NewDialer(socket).(*client.Dialer)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	if _, err := d.Dial(ctx, at[1], client.Config{Schema: g.schema}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*rtt { // The cryptographic handshake, and ours.
		t.Error("the client is in after", took)
	}
	began = time.Now()
	web := regexp.MustCompile(`page +http://(\S+?)/`).FindStringSubmatch(text)
	if web == nil {
		t.Fatalf("the banner names no pages:\n%s", text)
	}
	over, err := client.Dial(ctx, web[1], client.Config{Schema: g.schema, Transport: client.WebSocket})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 3*rtt { // TCP, the request, hello and welcome.
		t.Error("the client over a WebSocket is in after", took)
	}
	if err := over.Close(); err != nil {
		t.Error(err)
	}
	if addr := <-came; addr != socket.LocalAddr().String() {
		t.Errorf("a client at %v is said to come from %s", socket.LocalAddr(), addr)
	}
	if text := get(t, "http://"+admin[1]+"/metrics"); !regexp.MustCompile(`netloop_simulated_packets_total{direction="down",outcome="duplicated"} [1-9]`).MatchString(text) {
		t.Error("the metrics do not count it")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	exit, log := r.stop()
	if exit != 0 || !strings.Contains(log, "network is simulated") || !regexp.MustCompile(`simulated network has ended.*up: [1-9]\d* passed, [1-9]\d* duplicated; down: [1-9]`).MatchString(log) {
		t.Errorf("exit %d, logged:\n%s", exit, log)
	}
}

// get reads a page of the admin listener.
func get(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestBadSimulationsAreNamed: the error has the key of the network, too.
func TestBadSimulationsAreNamed(t *testing.T) {
	r := command(t, newGame(), nil, "run", "--simulate", "rtt=150ms,los=5%")
	if r.exit != exitUsage {
		t.Errorf("exit %d", r.exit)
	}
	oneLineOf(t, r.stderr, "server: --simulate: ", `"los" is not a key`, "rtt=150ms,jitter=20ms,loss=5%")
}
