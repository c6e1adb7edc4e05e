package netloop

import (
	"testing"

	"github.com/netloop/netloop/internal/golden"
)

// What the page says of a limit that a configuration has by default is so.
func TestTheDefaultsAreThoseOfTheTable(t *testing.T) {
	row := func(subject, says string, bounds ...any) {
		t.Helper()
		golden.Row(t, "docs/ARCHITECTURE.md", subject, says, bounds...)
	}
	c, err := Config{}.validate()
	if err != nil {
		t.Fatal(err)
	}
	row("connections that were let in", "`RoomSpec.MaxClients` and %v more", spareConns)
	row("clients", "`RoomSpec.MaxClients`, %v by default;", c.Room.MaxClients)
	row("inbox, per session", "%v arrivals and `RPC.Burst`,", c.RPC.arrivals()-c.RPC.Burst)
	row("rpcqueue, per client", "%v messages a second, bursts of %v", int(c.RPC.PerSecond), c.RPC.Burst)
	row("rpcqueue, per drain", "%v messages", c.RPC.Budget)
	row("records of a snapshot, per client", "%v bytes per tick", c.Room.Budget)
	row("answers owed by `HandleLater`", "%v per client", c.RPC.Answers)
	row("grids", "16, with %v viewpoints of each client", MaxViewpoints)
	if c.RPC.Share != 0.5 || c.RPC.ClientShare != 1/20.0 {
		t.Errorf("messages may take %v of a tick, and those of a client %v", c.RPC.Share, c.RPC.ClientShare)
	}
	row("rpcqueue, all drains of a tick", "half of its period, a twentieth for each client")
}
