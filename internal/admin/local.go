package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
)

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
	return serverOf(ln, a.require(reader, pages.ServeHTTP), a.counts, log), nil
}
