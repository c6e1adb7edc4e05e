package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"

	"github.com/netloop/netloop/internal/connlimit"
)

// Ask returns the handler of a page that answers a query with JSON. A *Refusal has its own status.
func Ask(ask func(context.Context, url.Values) (any, error)) http.HandlerFunc { return readJSON(ask) }

// ListenLocal binds a loopback address for pages that all clients of this machine may read and
// change. Pages of other sites have no access: see access.
func ListenLocal(address string, pages http.Handler, log *slog.Logger) (*Server, error) {
	ln, err := bind(address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%s: other machines reach it: use 127.0.0.1", address), ln.Close())
	}
	name, _, _ := net.SplitHostPort(address) // The address is valid: it was bound.
	a := &access{name: name, pages: make(chan struct{}, maxPages), counts: new(Counts)}
	pages = http.NewCrossOriginProtection().Handler(pages)
	return &Server{
		listener: connlimit.New(ln, connlimit.Config{Max: maxConns, Evicted: func() {}}),
		http: &http.Server{
			Handler: a.require(reader, pages.ServeHTTP), ConnContext: connlimit.WithConn, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
			IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
	}, nil
}
