package app

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/testing/golden"
)

func TestBanner(t *testing.T) {
	named := func(place loop.Place, names ...string) (all []loop.DumpSystem) {
		for _, name := range names {
			all = append(all, loop.DumpSystem{Name: name, Place: place})
		}
		return all
	}
	var stages []loop.DumpStage
	for _, s := range loop.Stages() {
		stages = append(stages, loop.DumpStage{Stage: s, Systems: named(loop.Head, "rpc.drain")})
	}
	fixed := &stages[loop.FixedUpdate-1].Systems
	for range 3 {
		*fixed = append(*fixed, named(loop.Body, "shooter.movement", "shooter.projectiles", "shooter.collisions")...)
	}
	stages = append(stages, loop.DumpStage{Systems: named(loop.Body, "shooter.late")})
	b := banner{
		title:   "shooter 2.1, netloop v1.0.0",
		at:      addresses{Listen: "127.0.0.1:4433", Admin: "127.0.0.1:8080", Web: "0.0.0.0:8443", CertHash: strings.Repeat("0a", 32)},
		devCert: true,
		cfg:     netloop.Config{Seed: 42, WebTLS: true, Room: netloop.RoomSpec{Rate: netloop.Hz(60), FixedRate: netloop.Rate{Num: 30000, Den: 1001}, SendEvery: 1, MaxClients: 256}},
		stages:  stages,
	}
	golden.Check(t, "testdata/banner.txt", b.String())
	b.at.Admin, b.at.Web, b.devCert, b.cfg.Room.SendEvery, b.stages = "", "", false, 3, nil
	b.network = "rtt=150ms,loss=5%"
	golden.Check(t, "testdata/banner_bare.txt", b.String())
}

func TestHelpNamesUnitsAndRanges(t *testing.T) {
	r := command(t, newGame(), nil, "run", "--help")
	if r.exit != 0 || r.stderr != "" {
		t.Errorf("exit %d: %s", r.exit, r.stderr)
	}
	golden.Check(t, "testdata/help.txt", r.stdout)
}

func TestVersion(t *testing.T) {
	r := command(t, newGame(), nil, "version")
	if r.exit != 0 {
		t.Errorf("exit %d: %s", r.exit, r.stderr)
	}
	oneLineOf(t, r.stdout, "shooter 2.1, netloop ", "wire protocol 1, go1.")
}

// Open sees the configuration, the game's log is written to stderr, and the game saves at the end.
func TestServesUntilItsContextEnds(t *testing.T) {
	g := newGame()
	var bots int
	var saved bool
	g.open = func(r *netloop.Room) error {
		bots = g.config.(*settingsStruct).Bots
		r.On(netloop.FixedUpdate, "shooter.move", func(*netloop.Tick) {})
		r.OnClose(func(context.Context, *netloop.Closed) error { saved = true; return nil })
		return nil
	}
	file := filepath.Join(t.TempDir(), "addr.json")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, g, []string{"NETLOOP_SHOOTER_BOTS=7", "NETLOOP_SHOOTER_BOST=8"}, "--addr-file", file, "--log-format", "json")
	text := r.banner()
	if want := "3 FixedUpdate     (rpc.drain) shooter.move\n"; !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
	exit, log := r.stop()
	if exit != 0 || bots != 7 || !saved {
		t.Errorf("exit %d, %d bots, saved %v: %s", exit, bots, saved, log)
	}
	var at addresses
	if b, err := os.ReadFile(file); err != nil || json.Unmarshal(b, &at) != nil {
		t.Errorf("the address file holds %q: %v", b, err)
	}
	for _, part := range []string{at.Listen, "http://" + at.Admin + " ", at.CertHash} {
		if len(part) < 10 || !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	var said []string
	for line := range strings.Lines(log) {
		var entry struct{ Msg, Because, Listen string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("%v in %q", err, line)
		}
		if strings.HasPrefix(entry.Msg, "failed to sufficiently increase") {
			continue // quic-go's, where this user gets small buffers
		}
		said = append(said, entry.Msg+entry.Because+entry.Listen)
	}
	lines(t, strings.Join(said, "\n"), strings.Join([]string{
		"environment variable NETLOOP_SHOOTER_BOST is not a setting and is ignored: did you mean NETLOOP_SHOOTER_BOTS?",
		"serving" + at.Listen, "closing: clients get the reason, the game savessignal interrupt", "closed",
	}, "\n"))
}

func TestAdminListener(t *testing.T) {
	file := filepath.Join(t.TempDir(), "addr.json")
	ticked := make(chan struct{})
	g := newGame()
	g.open = func(r *netloop.Room) error {
		r.OnStart(func(*netloop.Tick) { close(ticked) })
		return nil
	}
	r := start(t, g, nil, "--addr-file", file)
	r.banner()
	<-ticked // the address file exists before the first tick
	var at addresses
	b, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(b, &at) != nil {
		t.Fatalf("%q: %v", b, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.Admin+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("readyz: %s", resp.Status)
	}
	if exit, log := r.stop(); exit != 0 {
		t.Errorf("exit %d: %s", exit, log)
	}
}

func TestForEndsByItself(t *testing.T) {
	r := start(t, newGame(), nil, "--for", "50ms")
	r.banner()
	if exit, log := r.wait(); exit != 0 || !strings.Contains(log, "time of --for is over: 50ms") {
		t.Errorf("exit %d: %s", exit, log)
	}
}

// An error of a game that runs is a failure, not a mistake of the operator.
func TestRunTimeFailureExitsWithOne(t *testing.T) {
	for name, open := range map[string]func(*netloop.Room) error{
		"closed by the game": func(r *netloop.Room) error {
			r.On(netloop.Update, "shooter.end", func(t *netloop.Tick) { t.Room().Close(t, netloop.CodeGame, "no more maps") })
			return nil
		},
		"not saved": func(r *netloop.Room) error {
			r.On(netloop.Update, "shooter.end", func(t *netloop.Tick) { t.Room().Close(t, netloop.CodeClosing, "over") })
			r.OnClose(func(context.Context, *netloop.Closed) error { return errors.New("no more\nmaps") })
			return nil
		},
		"its goroutine ended": func(r *netloop.Room) error {
			r.On(netloop.Update, "shooter.end", func(*netloop.Tick) { runtime.Goexit() })
			return nil
		},
		"a tick hangs": func(r *netloop.Room) error {
			r.On(netloop.Update, "shooter.end", func(*netloop.Tick) { <-t.Context().Done() })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGame()
			g.open = open
			exit, log := start(t, g, nil, "--log-level", "error", "--watchdog", "100ms", "--watchdog-exit").wait()
			if exit != 1 {
				t.Errorf("exit %d: %s", exit, log)
			}
			if !strings.Contains(log[strings.LastIndex(strings.TrimSuffix(log, "\n"), "\n")+1:], "server: ") {
				t.Errorf("the last line is not the error: %s", log)
			}
		})
	}
}

func TestAGameThatEndsItselfExitsWithZero(t *testing.T) {
	g := newGame()
	g.open = func(r *netloop.Room) error {
		r.On(netloop.Update, "shooter.end", func(t *netloop.Tick) { t.Room().Close(t, netloop.CodeClosing, "over") })
		return nil
	}
	if exit, log := start(t, g, nil).wait(); exit != 0 {
		t.Errorf("exit %d: %s", exit, log)
	}
}

// An error before the first tick is one line and exit 2, and all ports are free again.
func TestBadStartIsOneLine(t *testing.T) {
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	inUse, adminInUse, folder := udp.LocalAddr().String(), tcp.Addr().String(), t.TempDir()
	notPEM := write(t, "cert.pem", "nothing")

	twice := newGame()
	twice.open = func(r *netloop.Room) error {
		r.On(netloop.Update, "shooter.move", func(*netloop.Tick) {})
		r.On(netloop.Update, "shooter.move", func(*netloop.Tick) {})
		return netloop.ConfigError("shooter.bots", 4, "use 0 to %d", 3)
	}
	few := newGame()
	few.open = func(*netloop.Room) error { return netloop.ConfigError("shooter.bots", 4, "use 0 to %d", 3) }
	for _, tt := range []struct {
		name string
		game netloop.Game
		args []string
		want []string
	}{
		{"a setting of the game", few, []string{"--shooter.bots", "4"}, []string{"server: --shooter.bots: 4 cannot be used: use 0 to 3"}},
		{"port in use", newGame(), []string{"--listen", inUse}, []string{"--listen", inUse, "the port is in use", "0 picks a free one"}},
		{"admin port in use", newGame(), []string{"--admin", adminInUse}, []string{"--admin", adminInUse, " cannot be used: the port is in use: stop the process on that port"}},
		{"address of another machine", newGame(), []string{"--insecure-no-auth", "--listen", "192.0.2.1:0"}, []string{"--listen", "choose another address"}},
		{"unknown host", newGame(), []string{"--insecure-no-auth", "--listen", "nowhere.invalid:0"}, []string{"server: --listen: \"nowhere.invalid:0\" cannot be used: host \"nowhere.invalid\" is unknown: use an address of this machine"}},
		{"admin for everybody", newGame(), []string{"--admin", "0.0.0.0:0"}, []string{"server: --admin: \"0.0.0.0:0\" cannot be used: other machines reach it: name a file of tokens with --admin-token-file, or use 127.0.0.1"}},
		{"tokens that are none", newGame(), []string{"--admin-token-file", notPEM}, []string{"server: --admin-token-file: ", "line 1: write read or write"}},
		{"no tokens", newGame(), []string{"--admin-token-file", folder}, []string{"server: --admin-token-file: ", "directory"}},
		{"unknown host of admin", newGame(), []string{"--admin", "nowhere.invalid:0"}, []string{"server: --admin: \"nowhere.invalid:0\" cannot be used: host"}},
		{"web port in use", newGame(), []string{"--web", adminInUse}, []string{"server: --web: ", adminInUse, " cannot be used: the port is in use: stop the process on that port"}},
		{"unknown host of web", newGame(), []string{"--insecure-no-auth", "--web", "nowhere.invalid:0"}, []string{"server: --web: \"nowhere.invalid:0\" cannot be used: host"}},
		{"web at no port", newGame(), []string{"--web", "localhost"}, []string{"server: --web: ", "use host:port, for instance 127.0.0.1:8000"}},
		{"encrypted pages without any", newGame(), []string{"--web-tls"}, []string{"server: --web-tls: ", "set web too"}},
		{"pages without a first one", playable{newGame(), fstest.MapFS{}}, []string{"--web", "127.0.0.1:0"}, []string{"server: --web: ", "no index.html at its top"}},
		{"origin that is none", newGame(), []string{"--origin", "https://example.org/page"}, []string{"--origin", "origin \"https://example.org/page\": use scheme://host"}},
		{"certificate that is none", newGame(), []string{"--tls-cert", notPEM, "--tls-key", notPEM}, []string{"--tls-cert", "PEM"}},
		{"address file in no folder", newGame(), []string{"--addr-file", filepath.Join(folder, "no", "a")}, []string{"--addr-file", "writable"}},
		{"address file that is a folder", newGame(), []string{"--addr-file", folder}, []string{"--addr-file", "not a regular file"}},
		{"traces in a file", newGame(), []string{"--trace-dir", notPEM}, []string{"--trace-dir", "use a directory"}},
		{"registration in Open", twice, nil, []string{"shooter.move", "; shooter.bots: 4 cannot be used: use 0 to 3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exit, log := start(t, tt.game, nil, tt.args...).wait()
			if exit != 2 {
				t.Errorf("exit %d", exit)
			}
			oneLineOf(t, log, append(tt.want, "server: ")...)
		})
	}
}

func TestStdoutThatCannotBeWritten(t *testing.T) {
	var stderr strings.Builder
	exit := run(t.Context(), []string{"server", "--listen", "127.0.0.1:0", "--admin", ""}, nil, broken{}, &stderr, newGame())
	if exit != 2 {
		t.Errorf("exit %d", exit)
	}
	oneLineOf(t, stderr.String(), "stdout cannot be written")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// If the reader of the log stops reading, the server ends all the same.
func TestBlockedLogDoesNotHoldTheEnd(t *testing.T) {
	stderr := &stuck{open: make(chan struct{})}
	defer close(stderr.open)
	done := make(chan int, 1)
	go func() {
		done <- run(context.Background(), []string{"server", "--listen", "127.0.0.1:0", "--admin", "", "--for", "1ms"}, nil, new(strings.Builder), stderr, newGame())
	}()
	select {
	case exit := <-done:
		if exit != 0 {
			t.Errorf("exit %d", exit)
		}
	case <-time.After(patience):
		t.Fatal("the server does not end")
	}
}

// stuck is an output that blocks until it is opened.
type stuck struct{ open chan struct{} }

func (s *stuck) Write(b []byte) (int, error) {
	<-s.open
	return len(b), nil
}
