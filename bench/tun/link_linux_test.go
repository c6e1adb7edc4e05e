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
	var took []time.Duration
	buf := make([]byte, 64)
	for i := range 20 {
		began := time.Now()
		if err := client.SetReadDeadline(began.Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := client.WriteTo([]byte{byte(i)}, server.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		if n, _, err := client.ReadFrom(buf); err != nil || n != 1 || buf[0] != byte(i) {
			t.Fatalf("ping %d: %d bytes, %v", i, n, err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("%v to %v, half of them at most %v", took[0], took[len(took)-1], took[len(took)/2])
	// The quickest ping counts: a busy machine delays others.
	if took[0] < 60*time.Millisecond || took[0] > 61*time.Millisecond {
		t.Errorf("a ping took %v, want 60ms", took[0])
	}
	up, down := l.Counts(netem.Up), l.Counts(netem.Down)
	port := uint16(client.LocalAddr().(*net.UDPAddr).Port)
	const size = 20 + 8 + 1
	for _, c := range []Counts{up, down} {
		if c.Passed != 20 || c.Bytes[Flow{17, port}] != 20*size || len(c.Bytes) != 1 {
			t.Errorf("%+v", c)
		}
	}
}

// TCP fills a link of 8 Mbit/s nearly, and no more.
func TestTCPFillsTheRate(t *testing.T) {
	l := open(t, "rtt=10ms,rate=8Mbit/s,buffer=30ms")
	flow, stop, err := l.Bulk()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // Real time is under test.
	before, began := l.Counts(netem.Down).Bytes[flow], time.Now()
	time.Sleep(time.Second)
	bytes, took := l.Counts(netem.Down).Bytes[flow]-before, time.Since(began)
	stop()
	if rate := float64(bytes) * 8 / took.Seconds(); rate < 6.5e6 || rate > 8.1e6 {
		t.Errorf("%.2f Mbit/s", rate/1e6)
	}
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
		limit := time.Now().Add(10 * time.Second)
		for usersOf(t, hosts) > 0 {
			if time.Now().After(limit) {
				t.Fatalf("%v: the hosts %v are still there", signal, hosts)
			}
			time.Sleep(10 * time.Millisecond)
		}
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
