package udpbatch

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// batchPackets and batchBytes bound a batch: enough for several dozen clients in a tick.
	// Writers block while the batch that is being filled is full.
	batchPackets = 128
	batchBytes   = 160 << 10
	// callMessages is the largest number of messages in one system call: the runtime cannot preempt
	// a thread during it.
	callMessages = 16
	// callTime is the time after which the sender yields its processor, because a due tick may wait
	// for it. With a much smaller value, batches would fill up and writers would block.
	callTime = 100 * time.Microsecond
	// retryPause is the pause before a send is repeated, and maxRetries the largest number of
	// repetitions if the queue of the network interface is full (ENOBUFS).
	retryPause = time.Millisecond
	maxRetries = 10
	// maxReady is the number of full batches that wait for the sender, for packets of Offer: enough
	// for a tick of a thousand clients. In addition one batch is being filled and one is being
	// sent.
	maxReady = 14
	// closeRetries is the number of repetitions if the socket's buffer is full (EAGAIN) while the
	// socket closes. Otherwise their number is not limited.
	closeRetries = 100
)

// writer collects packets and sends them. One batch is filled while another is passed to the
// kernel; full batches wait in between.
type writer struct {
	socket int
	family uint16
	cfg    *Config
	merge  atomic.Bool // packets to one peer may be merged into one message
	hand   func(fd int, messages []mmsghdr) (int, error)

	mu    sync.Mutex
	some  sync.Cond // signals packets to send, or the end
	room  sync.Cond // signals that the sender has taken a batch
	fill  *batch
	ready []*batch    // full batches, oldest first; at most maxReady
	free  []*batch    // empty batches
	ended atomic.Bool // written under mu

	done    chan struct{} // the sender has ended
	headers [batchPackets]mmsghdr
	names   [batchPackets]sockaddr
	vectors [batchPackets]unix.Iovec
	control [batchPackets][controlBytes + 32]byte
}

func (w *writer) open(fd int, family uint16, cfg *Config) {
	w.socket, w.family, w.cfg, w.hand = fd, family, cfg, sendmmsg
	w.some.L, w.room.L = &w.mu, &w.mu
	w.fill, w.free, w.done = newBatch(), []*batch{newBatch()}, make(chan struct{})
	_, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
	w.merge.Store(err == nil)
	go w.send()
}

// close waits until all written packets are sent, and reports false if it was called before.
func (w *writer) close() bool {
	w.mu.Lock()
	first := !w.ended.Swap(true)
	w.some.Signal() // The sender's next batch makes room for writers that wait.
	w.mu.Unlock()
	<-w.done
	return first
}

// WriteMsgUDP queues a packet, and waits only for room in the batch. With a size of segments in the
// control messages, b is several packets.
func (w *writer) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	if err := w.check(b, oob, addr); err != nil {
		return 0, 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.fill.fits(len(b)) && !w.ended.Load() {
		w.room.Wait()
	}
	if w.ended.Load() {
		return 0, 0, net.ErrClosed
	}
	w.addLocked(b, oob, addr, w.merge.Load())
	return len(b), len(oob), nil
}

// ErrFull is the error of Offer while many packets wait for the kernel.
var ErrFull = errors.New("udpbatch: many packets wait for the kernel")

// Offer is WriteMsgUDP for one packet that is worth nothing later. It does not wait: the packet is
// lost if many packets wait for the kernel, or if the kernel has no room.
func (w *writer) Offer(b, oob []byte, addr *net.UDPAddr) error {
	if err := w.check(b, oob, addr); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended.Load():
		return net.ErrClosed
	case !w.fill.fits(len(b)) && len(w.ready) == maxReady:
		w.cfg.Stats.Full.Add(1)
		return ErrFull
	case !w.fill.fits(len(b)):
		w.turnLocked()
	}
	w.addLocked(b, oob, addr, false)
	w.fill.messages[len(w.fill.messages)-1].offered = true
	return nil
}

// check returns an error for a packet that cannot be sent.
func (w *writer) check(b, oob []byte, addr *net.UDPAddr) error {
	switch {
	case addr == nil, w.family == unix.AF_INET && addr.IP.To4() == nil:
		return syscall.EDESTADDRREQ
	case len(b) == 0, len(b) > messageBytes, len(oob) > controlBytes:
		return syscall.EMSGSIZE
	}
	return nil
}

// turnLocked makes the full batch wait for the sender, and begins another one.
func (w *writer) turnLocked() {
	w.ready = append(w.ready, w.fill)
	w.fill = w.emptyLocked()
}

// emptyLocked returns an empty batch.
func (w *writer) emptyLocked() *batch {
	n := len(w.free)
	if n == 0 {
		return newBatch()
	}
	b := w.free[n-1]
	w.free = w.free[:n-1]
	return b
}

// addLocked adds a packet, for which there is room.
func (w *writer) addLocked(b, oob []byte, addr *net.UDPAddr, merge bool) {
	if w.fill.empty() {
		w.some.Signal()
	}
	w.fill.add(b, oob, addr, merge)
}

// send sends batches until the end.
func (w *writer) send() {
	defer close(w.done)
	for {
		b := w.take()
		if b == nil {
			return
		}
		w.write(b)
		if w.cfg.Stats.Lag != nil {
			w.cfg.Stats.Lag(time.Since(b.since))
		}
		b.reset()
		w.mu.Lock()
		w.free = append(w.free, b)
		w.mu.Unlock()
	}
}

// take waits for packets, and returns the oldest batch; nil once the writer is closed and has no
// packets.
func (w *writer) take() *batch {
	w.mu.Lock()
	for w.fill.empty() && !w.ended.Load() { // While full ones wait, it is not empty.
		w.some.Wait()
	}
	full := len(w.ready) > 0
	w.mu.Unlock()
	if !full {
		// More writers, woken by the same flush, are usually ready to run. Yielding lets them add
		// their packets to this batch; the scheduler runs some sixty of them at most.
		runtime.Gosched()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.fill
	switch {
	case len(w.ready) > 0:
		b = w.ready[0]
		w.ready = append(w.ready[:0], w.ready[1:]...)
	case b.empty():
		return nil
	default:
		w.fill = w.emptyLocked()
	}
	w.room.Broadcast()
	return b
}

// write sends a batch to the kernel.
func (w *writer) write(b *batch) {
	used := 0
	for i := range b.messages {
		used += w.pack(b, i, w.vectors[used:])
	}
	began := time.Now()
	for at, tries := 0, 0; at < len(b.messages); {
		if time.Since(began) > callTime {
			runtime.Gosched()
			began = time.Now()
		}
		n, err := w.call(w.headers[at:min(at+callMessages, len(b.messages))])
		switch {
		case err == nil:
			for i := range n {
				w.cfg.Stats.Sent.Add(uint64(b.messages[at+i].count))
			}
			at, tries = at+n, 0
		case !b.messages[at].offered && w.again(err, tries), errors.Is(err, unix.EINTR):
			tries++
		case b.messages[at].offered && buffersFull(err):
			w.cfg.Stats.Full.Add(1)
			at, tries = at+1, 0
		default:
			w.alone(b, at, err)
			at, tries = at+1, 0
		}
	}
}

// buffersFull reports whether the buffer of the socket or the queue of the interface was full.
func buffersFull(err error) bool { return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS) }

func (w *writer) call(messages []mmsghdr) (int, error) {
	w.cfg.Stats.Sends.Add(1)
	return w.hand(w.socket, messages)
}

// again reports whether to repeat a failed call: after a signal at once, and if a buffer was full,
// after a pause, until tries reaches a limit.
func (w *writer) again(err error, tries int) bool {
	most := maxRetries
	switch {
	case errors.Is(err, unix.EINTR):
		return true
	case errors.Is(err, unix.EAGAIN): // The socket's buffer is full: it drains.
		if most = closeRetries; !w.ended.Load() {
			tries = 0
		}
	case !errors.Is(err, unix.ENOBUFS):
		return false
	}
	if tries >= most {
		return false
	}
	w.cfg.Stats.Retries.Add(1)
	time.Sleep(retryPause)
	return true
}

// alone sends the packets of a refused message one by one: perhaps the kernel only refused to split
// them. Each packet gets one more attempt, because the first call on a socket may fail without a
// reason.
func (w *writer) alone(b *batch, i int, why error) {
	m := &b.messages[i]
	if errno := syscall.Errno(0); m.count > 1 && errors.As(why, &errno) && (errno == unix.EIO || errno == unix.EINVAL) {
		w.merge.Store(false) // The interface cannot split them.
	}
	h := &w.headers[i]
	h.SetIovlen(1)
	h.SetControllen(m.controlLen) // Leaves out the last one, the size of segments.
	for at := m.first; at >= 0; at = b.packets[at].next {
		for rest := b.packets[at].data; len(rest) > 0; {
			one := rest[:min(m.segment, len(rest))]
			rest = rest[len(one):]
			h.Iov.Base = &one[0]
			h.Iov.SetLen(len(one))
			w.last(w.headers[i : i+1])
		}
	}
}

// last makes the last attempt to send a packet.
func (w *writer) last(message []mmsghdr) {
	_, err := w.call(message)
	switch {
	case err == nil:
		w.cfg.Stats.Sent.Add(1)
	case errors.Is(err, unix.EMSGSIZE):
		w.cfg.Stats.TooLarge.Add(1)
	default:
		w.cfg.Stats.Unsent.Add(1)
		if w.cfg.Failed != nil {
			w.cfg.Failed(err)
		}
	}
}

// pack fills the kernel's header of a message and returns the number of vectors used.
func (w *writer) pack(b *batch, i int, vectors []unix.Iovec) (used int) {
	m, h := &b.messages[i], &w.headers[i].Msghdr
	h.Name, h.Namelen = &w.names[i][0], w.names[i].set(w.family, m.addr)
	for at := m.first; at >= 0; at = b.packets[at].next {
		data := b.packets[at].data
		vectors[used].Base = &data[0]
		vectors[used].SetLen(len(data))
		used++
	}
	h.Iov = &vectors[0]
	h.SetIovlen(used)
	control := append(w.control[i][:0], m.control[:m.controlLen]...)
	if m.count > 1 {
		control = appendSegment(control, m.segment)
	}
	h.Control = &w.control[i][0]
	h.SetControllen(len(control))
	return used
}
