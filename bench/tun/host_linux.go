package tun

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Host is a network namespace with one TUN device. One thread of the program belongs to this
// namespace. The namespace exists until the thread and the programs that were started on it have
// ended.
type Host struct {
	Addr   string // the device's IPv4 address, in 192.0.2.0/24
	device io.ReadWriteCloser
	calls  chan func()
	ended  chan struct{}
}

// openHost makes a namespace and a TUN device with an address.
func openHost(addr [4]byte) (*Host, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("a network namespace with a TUN device needs root: %w", fs.ErrPermission)
	}
	h := &Host{
		Addr:  fmt.Sprintf("%d.%d.%d.%d", addr[0], addr[1], addr[2], addr[3]),
		calls: make(chan func()), ended: make(chan struct{}),
	}
	opened := make(chan error)
	go h.run(addr, opened)
	if err := <-opened; err != nil {
		<-h.ended
		return nil, err
	}
	return h, nil
}

// run is the goroutine of the host's thread. It never unlocks the thread, so that the runtime ends
// the thread with the goroutine.
func (h *Host) run(addr [4]byte, opened chan<- error) {
	runtime.LockOSThread()
	defer close(h.ended)
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		opened <- fmt.Errorf("a network namespace: %w", err)
		return
	}
	var err error
	if h.device, err = openDevice(addr); err != nil {
		opened <- err
		return
	}
	opened <- nil
	for call := range h.calls {
		call()
	}
}

// Do calls f on the host's thread: the sockets that f opens and the programs that it starts belong
// to the host. Do must not be called after the link is closed.
func (h *Host) Do(f func() error) error {
	done := make(chan error, 1)
	h.calls <- func() { done <- f() }
	return <-done
}

// Start starts a program in the host. If this program ends first, the kernel kills the started one.
func (h *Host) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return h.Do(cmd.Start)
}

func (h *Host) close() {
	_ = h.device.Close() // Calls of Read and Write then return an error.
	close(h.calls)
	<-h.ended
}

// openDevice makes a TUN device in the namespace of this thread, and switches it and the loopback
// on.
func openDevice(addr [4]byte) (io.ReadWriteCloser, error) {
	const device, loopback = "path0", "lo"
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	err = errors.Join(
		request(fd, unix.TUNSETIFF, device, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI); return nil }),
		setUp(device, addr), setUp(loopback, [4]byte{127, 0, 0, 1}),
	)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), device), nil
}

// setUp gives a device an address in a network of 24 bits, and switches it on.
func setUp(device string, addr [4]byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	mask := []byte{255, 255, 255, 0}
	return errors.Join(
		request(fd, unix.SIOCSIFADDR, device, func(r *unix.Ifreq) error { return r.SetInet4Addr(addr[:]) }),
		request(fd, unix.SIOCSIFNETMASK, device, func(r *unix.Ifreq) error { return r.SetInet4Addr(mask) }),
		request(fd, unix.SIOCSIFFLAGS, device, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP); return nil }),
	)
}

// request makes one request of ioctl about a device.
func request(fd int, number uint, device string, set func(*unix.Ifreq) error) error {
	r, err := unix.NewIfreq(device)
	if err == nil {
		err = set(r)
	}
	if err == nil {
		err = unix.IoctlIfreq(fd, number, r)
	}
	if err != nil {
		return fmt.Errorf("request %#x about the device %s: %w", number, device, err)
	}
	return nil
}

// cubic sets the congestion control of a TCP socket to CUBIC, the default of most systems.
func cubic(_, _ string, c syscall.RawConn) error {
	var err error
	failed := c.Control(func(fd uintptr) { err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic") })
	return errors.Join(failed, err)
}
