package agones_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/agones"
	"github.com/netloop/netloop/internal/agones/agonestest"
)

// patience bounds every wait of these tests: far above the needs of a busy machine.
const patience = 30 * time.Second

// sidecars runs a test with the double, and with the real sidecar if AGONES_SDK_SERVER names its
// program. Each one is new.
func sidecars(t *testing.T, test func(t *testing.T, base string)) {
	t.Run("double", func(t *testing.T) {
		s := httptest.NewServer(agonestest.New(3))
		t.Cleanup(s.Close)
		t.Cleanup(http.DefaultClient.CloseIdleConnections)
		test(t, s.URL)
	})
	t.Run("sdk-server", func(t *testing.T) {
		program := os.Getenv("AGONES_SDK_SERVER")
		if program == "" {
			t.Skip("AGONES_SDK_SERVER names no program of Agones")
		}
		port := freePort(t)
		cmd := exec.Command(program, "--local", "--address", "localhost", "--http-port", port, "--grpc-port", freePort(t))
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(http.DefaultClient.CloseIdleConnections)
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		base := "http://localhost:" + port
		eventually(t, "the sidecar answers", func() bool {
			resp, err := http.Get(base + "/none")
			if err != nil {
				return false
			}
			resp.Body.Close()
			return resp.StatusCode == http.StatusNotFound
		})
		test(t, base)
	})
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// eventually waits for a condition of another process.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	limit := time.After(patience)
	for !is() {
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("within %v: not %s", patience, what)
		}
	}
}

func TestTheDoubleAnswersAsAgones(t *testing.T) {
	sidecars(t, agonestest.Conformance)
}

// Conformance covers Agones' own list: DEFAULT_CONFORMANCE_TESTS and COUNTS_AND_LISTS_TESTS.
func TestTheConformanceListIsComplete(t *testing.T) {
	names := agonestest.Names()
	for _, want := range []string{
		"ready", "allocate", "setlabel", "setannotation", "gameserver", "health", "shutdown", "watch", "reserve",
		"getcounter", "updatecounter", "setcountcounter", "setcapacitycounter",
		"getlist", "updatelist", "addlistvalue", "removelistvalue",
	} {
		found := false
		for _, name := range names {
			found = found || name == want
		}
		if !found {
			t.Errorf("no request tests %s", want)
		}
	}
}

// The agent takes a GameServer through its life: ready, allocated by a client, ended by Agones.
func TestAnAgentThroughItsLife(t *testing.T) {
	sidecars(t, func(t *testing.T, base string) {
		_, text, err := net.SplitHostPort(base[len("http://"):])
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		server := newHost()
		server.load.Rooms = 3
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		agent := agones.New(server.config(t, port))
		go func() {
			defer close(ended)
			agent.Run(ctx)
		}()
		state := func() string { return field(t, base+"/gameserver", "status", "state") }
		server.set(func(s *host) { s.ready = nil })
		eventually(t, "the label is set", func() bool {
			return field(t, base+"/gameserver", "object_meta", "labels", "agones.dev/sdk-netloop-schema") == "abc"
		})
		server.set(func(s *host) { s.load.Used = true })
		eventually(t, "Allocated", func() bool { return state() == "Allocated" })
		eventually(t, "the counter is written", func() bool { return field(t, base+"/v1beta1/counters/rooms", "count") == "3" })
		post(t, base+"/shutdown")
		select {
		case err := <-server.ended:
			t.Log(err)
		case <-time.After(patience):
			t.Fatal("the agent does not see the state Shutdown")
		}
		cancel()
		<-ended
		if got := state(); got != "Shutdown" {
			t.Errorf("the state after the end is %s", got)
		}
	})
}
