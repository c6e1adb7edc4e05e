package quicnet

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/transport"
)

// unreadingWindow is the stream window of an unreading client: a few answers.
const unreadingWindow = 1 << 10

// unreading is a client that joins correctly and then reads neither datagrams nor its stream. QUIC
// keeps its connection open, and acknowledges for it.
type unreading struct {
	hello []byte // its first frame
	ask   transport.Message
	joins int
	ends  map[transport.Code]int
}

// run joins again after each end, until the context ends.
func (d *unreading) run(ctx context.Context, tr *quic.Transport, to net.Addr) {
	for ctx.Err() == nil {
		err := d.connect(ctx, tr, to)
		var app *quic.ApplicationError
		if errors.As(err, &app) {
			d.ends[transport.Code(app.ErrorCode)]++
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// connect joins, and asks ten questions a second until the connection ends.
func (d *unreading) connect(ctx context.Context, tr *quic.Transport, to net.Addr) error {
	conn, err := tr.Dial(ctx, to, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}}, commonQUIC(unreadingWindow))
	if err != nil {
		return err
	}
	defer closeConn(conn, transport.CodeLeft, "")
	stream, err := conn.OpenStream()
	if err == nil {
		_, err = stream.Write(d.hello)
	}
	if err == nil {
		_, err = transport.ReadFrame(stream, transport.MaxHandshake)
	}
	if err != nil {
		return err
	}
	d.joins++
	clock := sinceNow()
	s, link := transport.NewSession(transport.SessionConfig{Client: true, Inbox: transport.NewInbox(0, nil), Clock: clock})
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		d.ask.Call++
		s.Send(d.ask)
		s.RequestTime()
		s.Flush(clock())
		_, err := stream.Write(link.AppendStream(nil, 4<<10))
		if err == nil {
			err = link.SendDatagrams(clock, conn.SendDatagram)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-conn.Context().Done():
			return context.Cause(conn.Context())
		case <-every.C:
		}
	}
}

// TestUnreadingProgram is the program of loadtest's
// TestAClientThatDoesNotReadDelaysNoSnapshotOfOthers.
func TestUnreadingProgram(t *testing.T) {
	addr := os.Getenv("NETLOOP_UNREADING")
	if addr == "" {
		t.Skip("TestAClientThatDoesNotReadDelaysNoSnapshotOfOthers starts it")
	}
	first, err := hex.DecodeString(os.Getenv("NETLOOP_UNREADING_HELLO"))
	if err != nil {
		t.Fatal(err)
	}
	method, err := strconv.ParseUint(os.Getenv("NETLOOP_UNREADING_METHOD"), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	count, err := strconv.Atoi(os.Getenv("NETLOOP_UNREADING_COUNT"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, tr, to := aimAt(t, addr)
	all := make([]unreading, count)
	var running sync.WaitGroup
	for n := range all {
		ask := transport.Message{Method: uint32(method), Reliable: true, Payload: []byte{5}}
		all[n] = unreading{hello: first, ask: ask, ends: map[transport.Code]int{}}
		running.Go(func() { all[n].run(ctx, tr, to) })
	}
	running.Wait()
	_ = tr.Close()
	_ = tr.Conn.Close()
	joins, ends := 0, map[string]int{}
	for n := range all {
		joins += all[n].joins
		for code, times := range all[n].ends {
			ends[code.String()] += times
		}
	}
	fmt.Printf("UNREADING %d joins, refused or disconnected %v\n", joins, ends)
}
