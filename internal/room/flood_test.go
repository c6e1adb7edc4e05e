package room_test

import (
	"fmt"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/internal/transport"
)

// The defaults of netloop.RPCLimits.
const (
	perSecond = 1000
	burst     = 2000
	kickAfter = 10_000
)

// A client that sends only empty frames is treated like a client that sends as many messages: it
// is kicked within a second, by the limits of messages. A client that sends as many in a second as
// a limit permits permanently is not kicked.
func TestAClientThatSendsEmptyFramesIsKicked(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	hostile, newer := b.join(), b.join()
	b.step()
	ticks := 0
	for closing := false; !closing && ticks < 60; ticks++ {
		if err := hostile.ReceiveStream(0, make([]byte, burst)); err != nil {
			t.Fatal(err)
		}
		// Kinds of a later version, for instance.
		if err := newer.ReceiveStream(0, make([]byte, perSecond/60)); err != nil {
			t.Fatal(err)
		}
		b.step()
		_, closing = hostile.Cause()
	}
	if c, closing := hostile.Cause(); !closing || c.Code != netloop.CodeFlood {
		t.Errorf("after %d ticks of %d frames each the client was told %v", ticks, burst, c)
	}
	if want := (2*burst+kickAfter)/burst + 1; ticks != want {
		t.Errorf("kicked after %d ticks, want %d", ticks, want)
	}
	for range 60 {
		if err := newer.ReceiveStream(0, make([]byte, perSecond/60)); err != nil {
			t.Fatal(err)
		}
		if err := hostile.ReceiveStream(0, make([]byte, 10)); err != nil { // It ignores the close.
			t.Fatal(err)
		}
		b.step()
	}
	if c, closing := newer.Cause(); closing {
		t.Errorf("the client within the limits was told %v", c)
	}
}

// Data that arrives from a client after its kick is only counted.
func TestDataOfAKickedClientIsCounted(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	s := b.join()
	b.push(s, transport.Arrival{Kind: transport.Discarded, Value: 2*burst + kickAfter + 1})
	b.push(s, transport.Arrival{Kind: transport.Discarded, Value: 7})
	b.step()
	b.room.Report()
	if line := `netloop_queue_drops_total{queue="rpc",reason="kicked"} 7`; !b.scraped(line) {
		t.Error("the scrape lacks", line)
	}
}

// Regardless of the number of flooding clients, the log has one line per rung in ten seconds, with
// the number of suppressed lines.
func TestFloodersDoNotFillTheLog(t *testing.T) {
	core, logs := logtest.New(zapcore.InfoLevel)
	b := newBareAs(t, netloop.Config{Log: logging.Slog(zap.New(core)), Room: netloop.RoomSpec{MaxClients: 100}}, func(*netloop.Room) {})
	const flooders, seconds = 80, 12
	for second := range seconds {
		for n := range flooders / 10 {
			from := b.joinFrom(fmt.Sprintf("10.0.%d.%d:1", second, n))
			b.push(from, transport.Arrival{Kind: transport.Discarded, Value: 2*burst + kickAfter + 1})
		}
		for range 60 {
			b.step()
		}
		if second == 0 && logs.Len() != 3 {
			t.Errorf("%d lines at once, want each of the three rungs", logs.Len())
		}
	}
	unlogged := int64(0)
	for _, e := range logs.All() {
		unlogged += int64(e.ContextMap()["unlogged_before"].(uint64))
	}
	if logs.Len() != 6 || unlogged != 3*(flooders/10*10-1) {
		t.Errorf("%d lines, which say that %d more were left out", logs.Len(), unlogged)
	}
}
