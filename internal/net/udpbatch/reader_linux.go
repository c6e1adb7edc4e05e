package udpbatch

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

const (
	// Pause is the interval of reading rounds while packets keep arriving. A packet waits at most
	// that long, plus a timer's inaccuracy of a millisecond: at most 5 ms in all, independent of
	// the ticks.
	Pause = 4 * time.Millisecond
	// quiet is the time without arrivals after which the next packets are read at once, without a
	// pause.
	quiet = 2 * Pause
	// readBatch is the largest number of packets of one call of ReadBatch.
	readBatch = 32
)

// reader reads in rounds. The holder of lock owns all fields except deadline and closed.
//
//	wait for a packet ──▶ read until none is left ──▶ was it quiet before? wait again
//	                              ▲                              │ no
//	                              └── some read: Pause ◀─────────┘ none read: wait again
//
// It waits with a separate epoll, in which the socket is registered only for arrivals, one at a
// time. The runtime's epoll would be notified of each packet that arrives during a pause, and of
// each packet that the network has released.
type reader struct {
	peers *Peers

	lock     sync.Mutex
	socket   int
	cfg      *Config
	poll     *os.File // the epoll
	pollRaw  syscall.RawConn
	arm      func(poll uintptr)      // requests one notification of an arrival
	arrived  func(poll uintptr) bool // reports whether a packet has arrived
	headers  [readBatch]mmsghdr
	names    [readBatch]sockaddr
	vectors  [readBatch]unix.Iovec
	drained  bool      // the round has read all packets
	some     bool      // the round has read some packet
	pausing  bool      // packets keep arriving
	next     time.Time // earliest time of the next round
	deadline deadline
	closed   atomic.Bool
}

// open starts to watch the socket.
func (r *reader) open(fd int, cfg *Config) error {
	r.socket, r.cfg = fd, cfg
	r.peers = new(Peers)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	_ = unix.SetNonblock(poll, true) // This lets the runtime watch it.
	r.poll = os.NewFile(uintptr(poll), "epoll")
	if r.pollRaw, err = r.poll.SyscallConn(); err == nil {
		err = os.NewSyscallError("epoll_ctl", unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{}))
	}
	if err != nil {
		return errors.Join(err, r.poll.Close())
	}
	r.arm = func(poll uintptr) {
		_ = unix.EpollCtl(int(poll), unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT})
	}
	r.arrived = func(poll uintptr) bool {
		var events [1]unix.EpollEvent
		n, _ := unix.EpollWait(int(poll), events[:], 0)
		return n > 0
	}
	r.drained = true
	return nil
}

// close ends a call of ReadBatch and waits for it.
func (r *reader) close() error {
	r.closed.Store(true)
	err := r.poll.Close()
	r.lock.Lock()
	defer r.lock.Unlock()
	return err
}

// SetReadDeadline sets the time at which reads fail; zero: never.
func (r *reader) SetReadDeadline(t time.Time) error {
	r.deadline.set(t)
	return r.poll.SetReadDeadline(t)
}

// ReadBatch waits for a packet and returns the arrived packets.
func (r *reader) ReadBatch(ms []ipv4.Message, _ int) (int, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	ms = ms[:min(len(ms), readBatch)]
	for {
		if !r.drained {
			// A round of many clients takes a millisecond, and a tick within it would begin late:
			// the runtime checks timers only between two goroutines.
			runtime.Gosched()
		} else {
			r.await()
		}
		if err := r.over(); err != nil {
			return 0, err
		}
		n, err := r.receive(ms)
		r.drained = n < len(ms)
		switch {
		case n > 0:
			r.some = true
			if n = r.finish(ms[:n]); n > 0 {
				return n, nil
			}
		case err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			return 0, os.NewSyscallError("recvmmsg", err)
		}
	}
}

// over returns an error if the reader is closed or its deadline has passed, and otherwise nil.
func (r *reader) over() error {
	switch {
	case r.closed.Load():
		return net.ErrClosed
	case r.deadline.passed(time.Now()):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// await waits for the start of the next round: while packets keep arriving, Pause after the start
// of the last round, and otherwise until a packet arrives, the deadline passes or the reader is
// closed.
func (r *reader) await() {
	now := time.Now()
	if r.pausing && r.some {
		r.some = false
		r.next = r.next.Add(Pause)
		if d := r.next.Sub(now); d > 0 {
			time.Sleep(d)
		} else {
			r.next = now
		}
		return
	}
	r.some = false
	_ = errors.Join(r.pollRaw.Control(r.arm), r.pollRaw.Read(r.arrived)) // Fail only once closed.
	r.next = time.Now()
	r.pausing = r.next.Sub(now) < quiet
}

// receive reads the waiting packets from the kernel, and stores their times of arrival.
func (r *reader) receive(ms []ipv4.Message) (int, error) {
	for i := range ms {
		h, buf := &r.headers[i].Msghdr, ms[i].Buffers[0]
		r.vectors[i].Base = unsafe.SliceData(buf)
		r.vectors[i].SetLen(len(buf))
		h.Iov = &r.vectors[i]
		h.SetIovlen(1)
		h.Name, h.Namelen = &r.names[i][0], uint32(len(r.names[i]))
		h.Control = unsafe.SliceData(ms[i].OOB)
		h.SetControllen(len(ms[i].OOB))
	}
	n, err := recvmmsg(r.socket, r.headers[:len(ms)])
	r.cfg.Stats.Receives.Add(1)
	if n > 0 {
		r.cfg.Stats.Received.Add(uint64(n))
	}
	return n, err
}

// finish passes packets to Config.Take, and moves the packets that Take does not handle to the
// front. It sets the fields of their messages from the kernel's headers, and returns their number.
func (r *reader) finish(ms []ipv4.Message) (kept int) {
	now := time.Now()
	real := now.UnixNano()
	for i := range ms {
		m, h := &ms[i], &r.headers[i]
		m.N, m.NN, m.Flags = int(h.n), int(h.Controllen), int(h.Flags)
		waited := time.Duration(0)
		at, local := arrival(m.OOB[:m.NN])
		if at != 0 {
			waited = min(max(time.Duration(real-at), 0), markAge)
		}
		if i == 0 && r.cfg.Stats.Wait != nil {
			r.cfg.Stats.Wait(waited)
		}
		if r.cfg.Take != nil && r.cfg.Take(m.Buffers[0][:m.N], r.names[i].addrPort(), local, waited) {
			continue
		}
		to := &ms[kept] //nolint:gosec // kept is at most i.
		if kept < i {   // QUIC owns the buffers by their index.
			to.N, to.NN, to.Flags = copy(to.Buffers[0], m.Buffers[0][:m.N]), copy(to.OOB, m.OOB[:m.NN]), m.Flags
		}
		to.Addr = r.note(&r.names[i], now.Add(-waited), m.N)
		kept++
	}
	return kept
}

// note stores the arrival of a packet for QUIC if its address is followed, and returns the address.
func (r *reader) note(name *sockaddr, at time.Time, size int) net.Addr {
	r.peers.mu.RLock()
	defer r.peers.mu.RUnlock()
	if p := r.peers.byAddr[name.key()]; p != nil {
		p.note(at, size)
		return p.addr
	}
	return name.addr()
}
