package tun

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// dialLimit bounds the time until a bulk flow is connected.
const dialLimit = 10 * time.Second

// Bulk sends bytes over TCP from the server to the clients, as many as the link permits, until stop
// is called. The congestion control is CUBIC. It returns the flow that counts the bytes.
func (l *Link) Bulk() (f Flow, stop func(), err error) {
	var listener net.Listener
	err = l.Clients.Do(func() (err error) { listener, err = net.Listen("tcp4", l.Clients.Addr+":0"); return err })
	if err != nil {
		return f, nil, fmt.Errorf("listen within the clients' host: %w", err)
	}
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	defer cancel()
	var sender net.Conn
	err = l.Server.Do(func() (err error) {
		sender, err = (&net.Dialer{Control: cubic}).DialContext(ctx, "tcp4", listener.Addr().String())
		return err
	})
	if err != nil {
		return f, nil, fmt.Errorf("dial within the server's host: %w", err)
	}
	receiver, err := listener.Accept()
	if err != nil {
		_ = sender.Close()
		return f, nil, fmt.Errorf("accept within the clients' host: %w", err)
	}
	var works sync.WaitGroup
	works.Go(func() { _, _ = io.Copy(io.Discard, receiver) }) // They end when stop closes both.
	works.Go(func() {
		for block := make([]byte, 16<<10); ; {
			if _, err := sender.Write(block); err != nil {
				return
			}
		}
	})
	const tcp = 6
	f = Flow{tcp, uint16(listener.Addr().(*net.TCPAddr).Port)}
	return f, func() { _ = sender.Close(); _ = receiver.Close(); works.Wait() }, nil
}
