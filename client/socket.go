package client

import (
	"context"

	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/net/wsnet"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// dialSocket connects over a WebSocket. The address is that of the server's pages, host:port, or
// the socket's URL.
func (d *Dialer) dialSocket(ctx context.Context, addr string, cfg *Config, e *entry) (*transport.Session, *netloopv1.Welcome, error) {
	to, err := wsnet.URL(addr, quicnet.OnLoopback(addr))
	if err != nil {
		return nil, nil, err
	}
	conf := cfg.TLS.Clone()
	if conf == nil {
		if conf, err = quicnet.ClientTLS(wsnet.HostOf(to), quicnet.Trust{}); err != nil {
			return nil, nil, err
		}
		conf.ServerName = "" // The URL contains it.
	}
	conf.NextProtos = []string{"http/1.1"}
	return d.sockets.Dial(ctx, wsnet.DialConfig{URL: to, TLS: conf, Greeting: e.greeting(), Session: e.config, Quiet: e.quiet})
}
