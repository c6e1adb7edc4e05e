package loadtest_test

import (
	"encoding/json"
	"net"
	"sync"
	"testing"

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
				"--ramp", "100ms", "--warmup", "200ms", "--duration", "500ms", "--quiet", "--out", "json")
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
