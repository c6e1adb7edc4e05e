package driver

import (
	"cmp"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// Config configures Run.
type Config struct {
	Conn   Conn
	Link   *transport.Link
	Clock  func() time.Duration
	Chunks *Chunks
	// Peer is the peer's address that the session's owner has; nil if the owner does not use it.
	Peer net.Addr
	// Follow starts to measure the time for which datagrams from an address wait in the socket. If
	// it is nil, the time is not measured.
	Follow func(net.Addr) Arrivals
}

// Arrivals are the times at which packets of a followed address arrived at the socket.
type Arrivals interface {
	// Waited returns the time between the arrival of a datagram of size bytes, which has just been
	// read, and now.
	Waited(size int, now time.Time) time.Duration
	// Leave stops the measurement for the address.
	Leave()
}

// unmeasured implements Arrivals for a socket that does not measure.
type unmeasured struct{}

func (unmeasured) Waited(int, time.Time) time.Duration { return 0 }
func (unmeasured) Leave()                              {}

// rttPeriod is the interval at which a link gets the round trip.
const rttPeriod = 200 * time.Millisecond

// Run moves bytes until the connection is closed and all of its goroutines have ended, and returns
// the reason. The caller then ends the session. One goroutine reads datagrams, one sends the
// datagrams of each tick, and the calling goroutine reads the stream. The goroutines that write the
// stream and that close the connection exist only while they have work.
func Run(cfg Config) transport.Closed {
	d := driver{Config: cfg}
	if with, ok := cfg.Conn.(WithBeside); ok {
		d.beside.Beside = with.Beside()
	}
	return d.run()
}

// driver moves a session's bytes over one connection.
type driver struct {
	Config
	beside   beside
	arrivals atomic.Pointer[Arrivals] // arrivals from the peer's address
	flush    Flusher                  // Conn, if it is a Flusher

	wake   chan struct{}     // holds one signal that datagrams may be ready
	begun  chan struct{}     // closed once the stream's first bytes have been written
	frames onDemand          // writes the stream
	end    onDemand          // closes the connection
	remote *transport.Closed // the peer's close frame; only for the goroutine of Run

	simulation atomic.Pointer[simulation] // nil: never simulated
	simulating sync.Mutex                 // held by simulate
	ended      bool                       // under simulating
}

func (d *driver) run() transport.Closed {
	d.wake, d.begun = make(chan struct{}, 1), make(chan struct{})
	d.flush, _ = d.Conn.(Flusher)
	d.frames.work, d.end.work = d.writeStream, d.close
	d.Link.OnWake(d.wakeDatagrams, d.wakeStream)
	d.Link.OnSimulate(d.simulate)
	d.wakeDatagrams() // For data that was sent before OnWake.
	d.wakeStream()
	var wg sync.WaitGroup
	if d.Follow == nil {
		d.Follow = func(net.Addr) Arrivals { return unmeasured{} }
	}
	first := d.Follow(d.Conn.RemoteAddr())
	d.arrivals.Store(&first)
	wg.Go(d.writeDatagrams)
	if both, merged := d.Conn.(Merged); merged {
		d.readBoth(both)
	} else {
		wg.Go(d.readDatagrams)
		d.readStream()
	}
	<-d.Conn.Context().Done()
	d.wakeWriter()
	wg.Wait()
	d.endSimulation()
	if d.beside.Beside != nil {
		d.beside.Stop()
	}
	d.frames.stop()
	d.end.stop()
	(*d.arrivals.Load()).Leave()
	if d.remote != nil {
		return *d.remote
	}
	return d.Conn.Closed()
}

// wakeDatagrams sends the pending datagrams: at once beside the connection, if possible, or else on
// the writer's goroutine, which may still be blocked by the connection.
func (d *driver) wakeDatagrams() {
	if d.besideActive() {
		_ = d.Link.SendDatagrams(d.Clock, d.sendBeside) // sendBeside never fails.
	} else {
		d.wakeWriter()
	}
}

// wakeWriter wakes the writer's goroutine.
func (d *driver) wakeWriter() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
	if d.flush != nil {
		d.flush.Hurry()
	}
}

// wakeStream starts to write the pending bytes of the stream. The link also calls it when the
// session wants to close; then it also starts to close the connection.
func (d *driver) wakeStream() {
	d.frames.ask()
	if d.closing() {
		d.end.ask()
	}
}

// close ends the connection of a closing session, unless the peer has closed it within Linger. It
// reports false, so that onDemand does not run it again.
func (d *driver) close() bool {
	why, _ := d.Link.Cause()
	if why.Code != transport.CodeSlow { // A slow peer does not read the close frame: do not wait.
		select {
		case <-d.Conn.Context().Done():
			return false
		case <-time.After(Linger):
		}
	}
	d.Conn.Close(why.Code, why.Text)
	return false
}

// readDatagrams reads until the connection ends or the session wants to close, because a client
// that is disconnected for too much data may continue to send.
func (d *driver) readDatagrams() {
	for !d.closing() {
		b, err := d.Conn.ReceiveDatagram() // It returns when the connection ends.
		if err != nil {
			return
		}
		waited := (*d.arrivals.Load()).Waited(len(b), time.Now())
		if d.beside.Beside != nil {
			d.beside.PeerReturned()
		}
		if s := d.simulation.Load(); s != nil {
			s.up.datagram(b)
			continue
		}
		d.beside.receiving.Lock()
		d.Link.ReceiveWaited(d.Clock(), waited, b) // ReceiveDatagram gave b away.
		d.beside.receiving.Unlock()
	}
}

// closing reports whether the session wants to close.
func (d *driver) closing() bool {
	select {
	case <-d.Link.Closing():
		return true
	default:
		return false
	}
}

// readStream reads the stream. It holds no buffer while the stream is idle.
func (d *driver) readStream() {
	var first [1]byte
	d.readAll(func() error {
		if _, err := d.Conn.Peek(first[:]); err != nil {
			return err
		}
		return d.readChunk()
	})
}

// readBoth reads the stream and datagrams from one sequence.
func (d *driver) readBoth(from Merged) {
	d.readAll(func() error {
		datagram, err := from.Next()
		switch {
		case err != nil:
			return err
		case !datagram:
			return d.readChunk()
		}
		b, err := from.ReceiveDatagram()
		if s := d.simulation.Load(); s != nil && err == nil {
			s.up.datagram(b)
		} else if err == nil {
			d.Link.ReceiveDatagram(d.Clock(), b)
		}
		return err
	})
}

// readAll calls next until it fails or the session wants to close.
func (d *driver) readAll(next func() error) {
	for !d.closing() {
		if err := next(); err != nil {
			d.streamEnded(err)
			return
		}
	}
}

// readChunk reads some bytes of the stream. It returns the error of the link, if the link stops
// reading, or else of the connection.
func (d *driver) readChunk() error {
	buf := d.Chunks.take()
	defer d.Chunks.put(buf)
	n, err := d.Conn.Read(buf[:])
	if s := d.simulation.Load(); s != nil {
		return cmp.Or(s.up.write(buf[:n]), err)
	}
	return cmp.Or(d.Link.ReceiveStream(d.Clock(), buf[:n]), err)
}

// streamEnded handles the error that ended the reading of the stream. It answers a close of the
// peer. A stream that ends without a close frame violates the protocol, unless this end closed
// first. The link has already answered other protocol errors, and an ended connection has its own
// error.
func (d *driver) streamEnded(err error) {
	if s := d.simulation.Load(); s != nil {
		err = cmp.Or(s.up.drain(), err)
	}
	var why *transport.Closed
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		d.Link.Shutdown(transport.CodeProtocol, "stream ended without a close frame")
	case errors.As(err, &why) && why.Remote:
		d.remote = why
		d.Conn.Close(why.Code, "")
	}
}

// writeDatagrams sends datagrams until the connection ends. It waits for the first bytes of the
// stream, the server's welcome, so that a client that reads its welcome first loses no datagram.
// The loop waits for one channel only: it runs in each tick, and a select on two channels costs 1.5
// times as much.
func (d *driver) writeDatagrams() {
	select {
	case <-d.begun:
	case <-d.Conn.Context().Done():
		return
	}
	d.begin()
	nextRTT := d.Clock()
	for range d.wake {
		if d.Conn.Context().Err() != nil || d.Link.SendDatagrams(d.Clock, d.sendDatagram) != nil {
			return
		}
		if d.flush != nil && d.simulation.Load() == nil {
			d.flush.Flush()
		}
		if at := d.Clock(); at >= nextRTT || d.beside.news.Swap(false) {
			d.setRTT()
			d.follow()
			nextRTT = at + rttPeriod
		}
	}
}

// follow tells the owner that the peer's address has changed, because the peer is in another
// network or its router has assigned another port.
func (d *driver) follow() {
	at := d.Conn.RemoteAddr() // The pointer changes only with the address.
	if d.besideActive() {
		at = d.beside.RemoteAddr()
	}
	if d.Peer == nil || at == d.Peer {
		return
	}
	if at.String() == d.Peer.String() || d.Link.Moved(at.String()) {
		d.Peer = at
		next := d.Follow(at)
		(*d.arrivals.Swap(&next)).Leave()
	}
}

// setRTT passes the round trip of the datagrams' path to the session.
func (d *driver) setRTT() {
	rtt := d.Conn.RTT()
	if d.besideActive() {
		rtt = d.beside.RTT()
	}
	if s := d.simulation.Load(); s != nil {
		rtt += s.roundTrip()
	}
	d.Link.SetRTT(rtt)
}

// writeStream writes the pending bytes, and the end of the stream when the session closes. It
// reports false when no more bytes can be written.
func (d *driver) writeStream() bool {
	if d.writeChunks() != nil {
		if !Ended(d.Conn) { // Only the stream has failed.
			d.Conn.Close(transport.CodeProtocol, "stream cannot be written")
		}
		return false
	}
	d.begins()
	why, ended := d.Link.CloseRequested()
	if ended && why.Code != transport.CodeSlow {
		if s := d.simulation.Load(); s != nil {
			_ = s.down.drain() // An error ends the connection.
		}
		_ = d.Conn.CloseWrite() // The peer reads up to the end and closes the connection.
	}
	return !ended
}

// begins allows datagrams to be sent. The goroutine that writes the stream calls it after each
// write.
func (d *driver) begins() {
	select {
	case <-d.begun:
	default:
		close(d.begun)
	}
}

// writeChunks writes all pending bytes of the stream.
func (d *driver) writeChunks() (err error) {
	buf := d.Chunks.take()
	for {
		b := d.Link.AppendStream(buf[:0], chunkSize)
		if len(b) == 0 {
			d.Chunks.put(buf) // Written streams do not keep the buffer.
			return nil
		}
		if s := d.simulation.Load(); s != nil {
			err = s.down.write(b)
		} else {
			_, err = d.Conn.Write(b)
		}
		if err != nil {
			return err
		}
	}
}
