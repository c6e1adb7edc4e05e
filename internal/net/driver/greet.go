package driver

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// DefaultTablesTimeout bounds, at a client, the time from the first part of the server's tables to
// the last, because the context of the dial may have no deadline.
const DefaultTablesTimeout = 5 * time.Second

// Greet performs the client's half of the handshake: it sends hello, which
// [transport.Greeting.Open] made, and returns the server's welcome. tables bounds the time from the
// first part of the server's tables to the last. After an error Greet closes the connection with a
// goodbye.
func Greet(ctx context.Context, conn Conn, g *transport.Greeting, hello []byte, tables time.Duration) (*netloopv1.Welcome, error) {
	goodbye := func(err error) {
		bye := g.Goodbye(err)
		conn.Close(bye.Code, bye.Text)
	}
	stop := context.AfterFunc(ctx, func() { goodbye(ctx.Err()) })
	var w *netloopv1.Welcome
	err := hold(ctx, conn, g)
	if err == nil {
		w, err = greet(conn, g, hello, tables)
	}
	if !stop() && err == nil {
		err = ctx.Err() // The connection is being closed.
	}
	if err != nil {
		goodbye(err)
	}
	return w, err
}

// hold waits until the greeting may send its hello.
func hold(ctx context.Context, conn Conn, g *transport.Greeting) error {
	if g.Hold == nil {
		return nil
	}
	send := make(chan struct{})
	g.Hold(sync.OnceFunc(func() { close(send) }))
	select {
	case <-send:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-conn.Context().Done():
		return conn.Err()
	}
}

func greet(conn Conn, g *transport.Greeting, hello []byte, tables time.Duration) (*netloopv1.Welcome, error) {
	begun := false
	for say := hello; ; {
		if _, err := conn.Write(say); err != nil {
			return nil, cause(conn, err)
		}
		frame, err := transport.ReadFrame(conn, transport.MaxHandshake)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, &transport.Closed{Code: transport.CodeTimeout, Text: "server sent no schema in time"}
		case errors.Is(err, transport.ErrFrameTooLarge):
			return nil, err
		case err != nil:
			return nil, cause(conn, err)
		}
		var welcome *netloopv1.Welcome
		if say, welcome, err = g.Take(frame); err != nil || welcome != nil {
			return welcome, err
		}
		if reads := g.Reads(); reads != begun { // The tables begin or end with this frame.
			begun = reads
			limitTables(conn, begun, tables)
		}
	}
}

// limitTables sets or removes the read deadline for the server's tables.
func limitTables(conn Conn, begin bool, limit time.Duration) {
	var end time.Time
	if begin {
		end = time.Now().Add(limit)
	}
	_ = conn.SetReadDeadline(end) // It never fails.
}

// cause returns the error of the connection if the connection has ended, and err otherwise.
func cause(conn Conn, err error) error {
	if Ended(conn) { // A stream may fail before its connection has closed.
		return conn.Err()
	}
	return err
}
