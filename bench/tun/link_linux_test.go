package tun

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/testing/nettest"
)

// TestMain plays the program of TestHostsEndWithTheirProgram.
func TestMain(m *testing.M) {
	if os.Getenv("NETLOOP_TUN") == "" {
		os.Exit(m.Run())
	}
	l, err := Open(netem.Spec{}, 1)
	if err != nil {
		panic(err)
	}
	for _, h := range []*Host{l.Server, l.Clients} {
		if err := h.Do(func() error { fmt.Println(namespace("/proc/thread-self")); return nil }); err != nil {
			panic(err)
		}
	}
	if err := l.Server.Start(exec.Command("sleep", "60")); err != nil {
		panic(err)
	}
	fmt.Println("open")
	select {}
}

// namespace returns the number of a thread's network namespace.
func namespace(thread string) string {
	name, _ := os.Readlink(thread + "/ns/net") // Empty if the thread has ended.
	return name
}

// open opens a link. That needs root, and a system with TUN devices.
func open(t *testing.T, spec string) *Link {
	t.Helper()
	s, err := netem.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(s, 1)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		t.Skip("this program may have no hosts: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// socket opens a UDP socket within a host.
func socket(t *testing.T, h *Host) (c net.PacketConn) {
	t.Helper()
	err := h.Do(func() (err error) { c, err = net.ListenPacket("udp4", h.Addr+":0"); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A datagram that the server sends back at once returns after the round trip of the path.
func TestAPingTakesTheRoundTrip(t *testing.T) {
	l := open(t, "rtt=60ms")
	server, client := socket(t, l.Server), socket(t, l.Clients)
	go func() {
		buf := make([]byte, 64)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(buf[:n], from)
		}
	}()
	// One quick ping is enough: a busy machine delays others.
	const rtt, most = 60 * time.Millisecond, 100
	took, pings := time.Hour, uint64(0)
	buf := make([]byte, 64)
	for ; pings < most && took > rtt+time.Millisecond; pings++ {
		began := time.Now()
		if err := client.SetReadDeadline(began.Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := client.WriteTo([]byte{byte(pings)}, server.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		if n, _, err := client.ReadFrom(buf); err != nil || n != 1 || buf[0] != byte(pings) {
			t.Fatalf("ping %d: %d bytes, %v", pings, n, err)
		}
		took = min(took, time.Since(began))
	}
	if took < rtt || took > rtt+time.Millisecond {
		t.Errorf("the quickest of %d pings took %v, want %v", pings, took, rtt)
	}
	up, down := l.Counts(netem.Up), l.Counts(netem.Down)
	port := uint16(client.LocalAddr().(*net.UDPAddr).Port)
	const size = 20 + 8 + 1
	for _, c := range []Counts{up, down} {
		if c.Passed != pings || c.Bytes[Flow{17, port}] != pings*size || len(c.Bytes) != 1 {
			t.Errorf("%+v", c)
		}
	}
}

// TCP crosses the path, and gets no more than its rate.
func TestTCPIsBoundByTheRate(t *testing.T) {
	l := open(t, "rtt=10ms,rate=8Mbit/s,buffer=30ms")
	began := time.Now()
	flow, stop, err := l.Bulk()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	nettest.Eventually(t, "half a megabyte to arrive", func() bool {
		bytes := l.Counts(netem.Down).Bytes[flow]
		if rate := float64(bytes) * 8 / time.Since(began).Seconds(); rate > 8e6 {
			t.Errorf("%.2f Mbit/s", rate/1e6)
		}
		return bytes >= 500_000
	})
}

func TestAnImpossiblePathIsRefused(t *testing.T) {
	for _, spec := range []string{"rebind=2s", "up.corrupt=1%"} {
		s, err := netem.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(s, 1); err == nil {
			t.Errorf("%s is accepted", spec)
		}
	}
}

// When a program is killed, its hosts and the programs in them end too.
func TestHostsEndWithTheirProgram(t *testing.T) {
	open(t, "") // It skips the test where hosts are not available.
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "NETLOOP_TUN=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var hosts []string
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "open" {
			hosts = append(hosts, lines.Text())
		}
		if users := usersOf(t, hosts); len(hosts) != 2 || users < 3 {
			t.Errorf("%d hosts have %d threads", len(hosts), users)
		}
		_ = cmd.Process.Signal(signal)
		_ = cmd.Wait() // Its error names the signal.
		nettest.Eventually(t, "the end of the hosts", func() bool { return usersOf(t, hosts) == 0 })
	}
}

// usersOf counts the threads of all programs in these namespaces.
func usersOf(t *testing.T, hosts []string) (n int) {
	t.Helper()
	threads, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		if name := namespace(thread); strings.HasPrefix(name, "net:") && slices.Contains(hosts, name) {
			n++
		}
	}
	return n
}
