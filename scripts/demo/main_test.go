package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// bins makes a folder with files in place of both programs.
func bins(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"server", "loadclient", "cards-server", "cards-load"} {
		if err := os.WriteFile(program(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestInvalidFlagsAreRefusedBeforeTheStart(t *testing.T) {
	bin := bins(t)
	for args, want := range map[string]string{
		"foo":                              `"foo" is one word too many`,
		"-clients 5 foo -nope":             `"foo" is one word too many`,
		"-clients 0":                       "-clients: 0 cannot be used: use 1 to 10000",
		"-clients 10001":                   "use 1 to 10000",
		"-clients many":                    `"many" for flag -clients`,
		"-duration 0":                      "-duration: 0s cannot be used: use 100ms to 24h",
		"-duration 25h":                    "use 100ms to 24h",
		"-nope":                            "-nope: demo -help lists the flags",
		"-capacity a -players arena,chess": `-players: "chess" cannot be used: use arena, idle and cards`,
		"-capacity a -rates 20,fast":       `-rates: "fast" cannot be used: use ticks a second`,
		"-capacity a -rates 1001":          `-rates: "1001"`,
		"-bin /does/not/exist":             "make build puts the programs into bin",
	} {
		_, err := parse(append([]string{"-bin", bin}, strings.Fields(args)...), new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestProgramsAreNotSearchedInPath(t *testing.T) {
	for _, bin := range []string{".", "", "./", "bin"} {
		if path := program(bin, "server"); filepath.Base(path) == path {
			t.Errorf("%q gives %q", bin, path)
		}
	}
}

func TestFlagsOfTheLoadClientFollowTwoDashes(t *testing.T) {
	o, err := parse([]string{"-bin", bins(t), "-clients", "5", "--", "--ramp", "1s"}, new(bytes.Buffer))
	if err != nil || o.clients != 5 || !slices.Equal(o.extra, []string{"--ramp", "1s"}) {
		t.Errorf("%+v, %v", o, err)
	}
	var out bytes.Buffer
	if _, err := parse([]string{"-help"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "-clients") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// The bots continue while the server has more players than them, and end with the last player.
func TestBotsContinueWhileAnotherPlayerIsConnected(t *testing.T) {
	answers := []string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE netloop_clients gauge\nnetloop_clients_dropped 9\nnetloop_clients %s\n", answers[0])
		answers = answers[1:]
	}))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://")
	plays := func(say ...string) (played bool) {
		answers = say
		stay(t.Context(), at, 100, time.Microsecond, func(ctx context.Context) {
			played = true
			<-ctx.Done()
		})
		return played
	}
	if plays("0") || plays("") || plays("3", "1", "1", "0") {
		t.Error("bots continue without other players")
	}
	if !plays("1", "1", "1", "1", "101", "102", "100") || len(answers) != 0 {
		t.Error("bots do not continue until the last player has left:", answers)
	}
}

// Prometheus scrapes the server at its address, and ends with the demo.
func TestPrometheusIsRunAndEnded(t *testing.T) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed (Debian package prometheus)")
	}
	scrapes := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "netloop_clients 1")
		select {
		case scrapes <- struct{}{}:
		default:
		}
	}))
	defer server.Close()
	free := httptest.NewServer(nil)
	o := options{deploy: filepath.Join("..", "..", "deploy", "prometheus"), prometheus: strings.TrimPrefix(free.URL, "http://")}
	free.Close()
	stop, err := runPrometheus(t.Context(), program, o, strings.TrimPrefix(server.URL, "http://"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	<-scrapes
	stop()
	if resp, err := http.Get("http://" + o.prometheus + "/-/ready"); err == nil {
		_ = resp.Body.Close()
		t.Error("Prometheus still runs")
	}
	used := httptest.NewServer(http.NotFoundHandler())
	defer used.Close()
	o.prometheus = strings.TrimPrefix(used.URL, "http://")
	stop, err = runPrometheus(t.Context(), program, o, "127.0.0.1:1", t.TempDir())
	stop()
	if err == nil || !strings.Contains(err.Error(), "prometheus: ") {
		t.Errorf("on a port in use: %v", err)
	}
}

// A quarter of the bots read their state, and at least one; the user's flag overrides this.
func TestAQuarterOfTheBotsRead(t *testing.T) {
	for clients, want := range map[int]string{1: "1", 4: "1", 5: "2", 100: "25"} {
		args := bots(t.Context(), options{clients: clients, extra: []string{"--verify", "3"}}, addresses{}, time.Second).Args
		if i := slices.Index(args, "--verify"); i < 0 || args[i+1] != want || !slices.Equal(args[len(args)-2:], []string{"--verify", "3"}) {
			t.Errorf("%d bots: %v", clients, args)
		}
	}
}
