package loadtest_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/loadtest"
)

// Bots over every transport play in one room: none is lost, and finally the state of each equals
// the server's.
func TestBotsOfAllTransportsPlayTogether(t *testing.T) {
	s, _ := serve(t, netloop.Config{Web: "127.0.0.1:0"}, newWatched())
	at := map[client.Transport]net.Addr{client.QUIC: s.Addr(), client.WebTransport: s.Addr(), client.WebSocket: s.WebAddr()}
	var all sync.WaitGroup
	for over, addr := range at {
		all.Go(func() {
			_, stdout, _ := load(t, t.Context(), "run", "--addr", addr.String(), "--transport", over.String(), "--clients", "4",
				"--ramp", "100ms", "--warmup", "200ms", "--duration", "500ms", "--ui", "quiet", "--out", "json")
			var r loadtest.Result // The exit code also depends on the lateness of the bots.
			if err := json.Unmarshal([]byte(stdout), &r); err != nil {
				t.Errorf("over %v: %v", over, err)
			}
			if want := (loadtest.Clients{Wanted: 4, Connected: 4, Verifying: 4}); r.Clients != want || !r.Converged {
				t.Errorf("over %v: %+v, converged %v", over, r.Clients, r.Converged)
			}
		})
	}
	all.Wait()
}

// One run mixes transports and profiles, replaces bots, lets all reconnect at once, and has slow
// readers. None of these disturbances is a failure, and every goroutine of the replaced bots ends
// (TestMain checks it).
func TestARunDisturbsItsBots(t *testing.T) {
	s, _ := serve(t, netloop.Config{Web: "127.0.0.1:0"}, newWatched())
	code, r, stderr := result(t, t.Context(), s, "--web", s.WebAddr().String(), "--transport", "quic=50,websocket=50", "--clients", "8",
		"--profile", "poll=3,idle=1", "--churn", "100%/s", "--storm", "--slow-readers", "25%", "--warmup", "200ms", "--duration", "1500ms",
		"--threshold", "join.rate>8Hz")
	// Two are slow readers, and on a busy machine another may be on its way back at the end.
	if want := (loadtest.Clients{Wanted: 8, Connected: 8, Verifying: r.Clients.Verifying, SlowReaders: 2, SlowDrops: r.Clients.SlowDrops}); r.Clients != want || want.Verifying < 4 || want.Verifying > 6 || !r.Converged {
		t.Errorf("%+v, converged %v: %s", r.Clients, r.Converged, stderr)
	}
	// 8 join, 8 reconnect, and up to 11 are replaced.
	if r.Joins.Admitted < 16 || r.Joins.Admitted > 27 || len(r.Joins.Refused) > 0 {
		t.Errorf("%+v", r.Joins)
	}
	// Most bots ask in a closed loop, more than twice and less than five times a second.
	if r.RPC.Answered < 8 && !r.Saturated || r.RPC.Answered == 0 || r.RPC.Answered > 8*8 || r.RPC.Answered > r.RPC.Sent {
		t.Errorf("%+v", r.RPC)
	}
	for _, p := range r.Series.Points {
		if p.Clients > 8 {
			t.Errorf("%d of 8 bots play", p.Clients)
		}
	}
	if r.Verdict.Exit != code || !r.Verdict.Thresholds[0].Met {
		t.Errorf("exit %d, %+v", code, r.Verdict)
	}
	all := scrape(t, s)
	quic, socket := all[`netloop_joins_total{transport="quic"}`], all[`netloop_joins_total{transport="websocket"}`]
	// A dial that the end of the window cancels may have been admitted.
	if quic == 0 || socket == 0 || quic+socket < float64(r.Joins.Admitted) || quic+socket > float64(r.Joins.Admitted+8) {
		t.Errorf("the server admitted %v and %v, the bots count %d", quic, socket, r.Joins.Admitted)
	}
}

// All bots lose their connections at once, and resume their seats over each transport. A server
// that keeps no seats admits them anew. The run disturbs no figure of losses.
func TestAStormOfBrokenConnections(t *testing.T) {
	for keep, resumes := range map[time.Duration]int{0: 6, -1: 0} {
		s, _ := serve(t, netloop.Config{Web: "127.0.0.1:0", Room: netloop.RoomSpec{KeepDropped: keep}}, newWatched())
		code, r, stderr := result(t, t.Context(), s, "--web", s.WebAddr().String(), "--transport", "quic=1,websocket=1,webtransport=1", "--clients", "6",
			"--storm=200ms", "--storm-by", "drop", "--warmup", "200ms", "--duration", "2s")
		if want := (loadtest.Clients{Wanted: 6, Connected: 6, Verifying: 6, Drops: 6, Resumes: resumes}); r.Clients != want || !r.Converged || code != 0 && !r.Saturated {
			t.Errorf("exit %d, %+v: %s", code, r.Clients, stderr)
		}
	}
}

// scrape returns the server's metrics.
func scrape(t *testing.T, s *netloop.Server) map[string]float64 {
	t.Helper()
	rsp, err := http.Get("http://" + s.AdminAddr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return loadtest.Samples(string(text))
}

// Two runs of one seed make the same calls at the same offsets, and a run of another seed does not.
// They run again and again against one server, which refuses none.
func TestRunsOfOneSeedMakeTheSameCalls(t *testing.T) {
	s, _ := serve(t, netloop.Config{}, newWatched())
	var got [3]loadtest.Result
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			_, got[i], _ = result(t, t.Context(), s, "--clients", "3", "--ramp", "100ms", "--warmup", "900ms", "--duration", "1s", "--seed", []string{"1", "1", "2"}[i])
		})
	}
	all.Wait()
	for i, r := range got {
		if r.Clients.Connected != 3 || r.RPC.Sent < 5 {
			t.Errorf("run %d: %+v, %+v", i, r.Clients, r.RPC)
		}
		if !r.Run.OnTime {
			t.Skip("this machine is too busy for the planned times")
		}
	}
	if one, two, other := got[0].Run.Schedule, got[1].Run.Schedule, got[2].Run.Schedule; one != two || one == other {
		t.Errorf("the schedules are %s and %s, and with another seed %s", one, two, other)
	}
}
