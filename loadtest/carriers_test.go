package loadtest_test

import (
	"net"
	"sync"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// Bots over every carrier play in one room: all stay, and the state of each is the server's in the
// end.
func TestBotsOfAllCarriersPlayTogether(t *testing.T) {
	s, _ := serve(t, netloop.Config{Web: "127.0.0.1:0"}, newWatched())
	at := map[client.Transport]net.Addr{client.QUIC: s.Addr(), client.WebTransport: s.Addr(), client.WebSocket: s.WebAddr()}
	var all sync.WaitGroup
	for over, addr := range at {
		all.Go(func() {
			code, _, _ := load(t, t.Context(), "run", "--addr", addr.String(), "--transport", over.String(), "--clients", "4",
				"--ramp", "100ms", "--warmup", "200ms", "--duration", "500ms", "--quiet")
			if code != 0 {
				t.Errorf("over %v the bots end with %d", over, code)
			}
		})
	}
	all.Wait()
}
