package client

import (
	"log/slog"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// A record that makes no sense ends the connection: nothing of a stream can be asked for again.
func TestMalformedRecordClosesTheConnection(t *testing.T) {
	c := &Client{log: slog.New(slog.DiscardHandler), replica: netvar.NewReplica(netvar.NewTable())}
	c.session = transport.NewSession(transport.SessionConfig{
		Client: true, Inbox: transport.NewInbox(0, nil), Clock: func() time.Duration { return 0 },
	})
	c.applyRecord(nil, &transport.Arrival{Kind: transport.Record, State: []byte{1, 2, 3}})
	if why, closed := c.session.Cause(); !closed || why.Code != transport.CodeProtocol || c.stats.Malformed != 1 {
		t.Errorf("closed: %v with %+v, %d counted", closed, why, c.stats.Malformed)
	}
}
