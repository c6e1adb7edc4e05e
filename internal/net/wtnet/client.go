package wtnet

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/transport"
)

// noDeadline removes a deadline.
var noDeadline time.Time

// Client returns WebTransport for programs that connect like browsers, but without an origin.
func Client() *quicnet.Protocol {
	return &quicnet.Protocol{ALPN: ALPN, Kind: transport.WebTransport, Open: open, Close: closeConn}
}

// open requests a session and opens its stream.
func open(ctx context.Context, conn *quic.Conn, host string) (driver.Conn, error) {
	stop := context.AfterFunc(ctx, func() { closeConn(conn, transport.CodeLeft, "") })
	defer stop()
	s, err := connect(ctx, conn, host)
	if err != nil {
		return nil, why(err)
	}
	return s, nil
}

func connect(ctx context.Context, conn *quic.Conn, host string) (*session, error) {
	h3 := http3.Transport{EnableDatagrams: true, AdditionalSettings: settings()}
	req, err := h3.NewRawClientConn(conn).OpenRequestStream(ctx)
	if err != nil {
		return nil, err
	}
	err = req.SendRequestHeader(&http.Request{
		Method: http.MethodConnect, Proto: protocol, Host: host, Header: http.Header{},
		URL: &url.URL{Scheme: "https", Host: host, Path: endpoint.Path},
	})
	if err != nil {
		return nil, err
	}
	rsp, err := req.ReadResponse() //nolint:bodyclose // The body is the CONNECT stream.
	if err != nil {
		return nil, err
	}
	if rsp.StatusCode != http.StatusOK {
		return nil, &transport.Refusal{Code: transport.CodeRefused, Text: fmt.Sprintf("server answered %s", rsp.Status)}
	}
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	head := quicvarint.Append(quicvarint.Append(nil, frameBidirectional), uint64(req.StreamID()))
	if _, err := stream.Write(head); err != nil {
		return nil, err
	}
	return newSession(conn, stream, req, req.StreamID()), nil
}
