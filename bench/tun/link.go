package tun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/netem"
)

// maxPacket is the largest packet that a host sends: the MTU of a TUN device.
const maxPacket = 1500

// Link is an emulated path between a server's host and its clients' host.
type Link struct {
	Server, Clients *Host

	ways  [2]*way // by netem.Direction
	stop  context.CancelFunc
	clock *clock.System
	works sync.WaitGroup
}

// way moves the packets of one direction.
type way struct {
	now      func() time.Duration
	from, to io.ReadWriter

	mu   sync.Mutex
	lane *lane
	wake context.CancelFunc // ends the wait of send; nil while it does not wait
}

// Open makes the hosts and moves packets between them until Close. The seed decides what happens to
// the n-th packet of each direction. Open refuses Corrupt and Rebind in the spec: a host drops
// damaged packets, so Corrupt is the same as loss, and the path has no router that could change an
// address. The error is fs.ErrPermission or fs.ErrNotExist if the system does not permit this
// program to make hosts.
func Open(spec netem.Spec, seed uint64) (*Link, error) {
	if spec.Rebind != 0 || spec.Ways[netem.Up].Corrupt+spec.Ways[netem.Down].Corrupt != 0 {
		return nil, errors.New("a path of whole packets has no rebind and no corrupt: leave them out")
	}
	server, err := openHost([4]byte{192, 0, 2, 1})
	if err != nil {
		return nil, fmt.Errorf("the server's host: %w", err)
	}
	clients, err := openHost([4]byte{192, 0, 2, 2})
	if err != nil {
		server.close()
		return nil, fmt.Errorf("the clients' host: %w", err)
	}
	l := &Link{Server: server, Clients: clients, clock: clock.NewSystem()}
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	ends := [2][2]io.ReadWriter{netem.Up: {clients.device, server.device}, netem.Down: {server.device, clients.device}}
	for d := range l.ways {
		w := &way{now: l.clock.Now, from: ends[d][0], to: ends[d][1], lane: newLane(spec.Ways[d], netem.Direction(d), seed)}
		l.ways[d] = w
		l.works.Go(w.receive)
		l.works.Go(func() { w.send(ctx, l.clock) })
	}
	return l, nil
}

// Close removes the hosts; packets under way are lost. Programs in the hosts must have ended.
func (l *Link) Close() {
	l.stop()
	l.Server.close()
	l.Clients.close()
	l.works.Wait()
	_ = l.clock.Close() // All goroutines that used it have ended.
}

// Counts returns the counts of a direction so far.
func (l *Link) Counts(d netem.Direction) Counts {
	w := l.ways[d]
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.lane.counts
	c.Bytes = maps.Clone(c.Bytes)
	return c
}

// receive reads packets of a host until its device is closed. It drops IPv6 packets, which Linux
// sends to find routers.
func (w *way) receive() {
	buf := make([]byte, maxPacket)
	for {
		n, err := w.from.Read(buf)
		if err != nil {
			return
		}
		if n > 0 && buf[0]>>4 == 4 {
			w.put(bytes.Clone(buf[:n]))
		}
	}
}

// put gives a packet to the lane, and wakes send if this packet is the next one.
func (w *way) put(packet []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, waited := w.lane.queue.Next()
	w.lane.put(w.now(), packet)
	if at, ok := w.lane.queue.Next(); ok && (!waited || at < before) && w.wake != nil {
		w.wake()
	}
}

// send writes each packet to the other host when it arrives.
func (w *way) send(ctx context.Context, c *clock.System) {
	for ctx.Err() == nil {
		packet, at, wait, done := w.next(ctx)
		switch {
		case packet != nil:
			_, _ = w.to.Write(packet) // An error is a loss: the host is closed.
		case at > 0:
			_ = c.WaitUntil(wait, at) // The wait ends early if put adds an earlier packet.
			done()
		default:
			<-wait.Done()
			done()
		}
	}
}

// next returns a packet that has arrived. If there is none, it returns the arrival time of the next
// packet, or 0 without a packet, and a context that ends when put adds an earlier packet.
func (w *way) next(ctx context.Context) (packet []byte, at time.Duration, wait context.Context, done context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if packet, ok := w.lane.take(w.now()); ok {
		w.wake = nil
		return packet, 0, nil, nil
	}
	at, _ = w.lane.queue.Next()
	wait, w.wake = context.WithCancel(ctx)
	return nil, at, wait, w.wake
}
