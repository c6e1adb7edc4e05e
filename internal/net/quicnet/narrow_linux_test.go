package quicnet

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// A narrow path: a pair of virtual network cards that carry IP packets of 1 280 bytes, the least
// that IPv6 allows, between two network namespaces. This program runs three times.
//
//	TestNarrowPath ──▶ the server, in a namespace ──▶ the client, in another
const narrowMTU = "1280"

// narrow holds the addresses of a family: of the server, and of the client before and after its
// move.
type narrow struct{ server, before, after, bits string }

var narrows = map[string]narrow{
	"IPv4": {"10.77.0.1", "10.77.0.2", "10.77.0.3", "/24"},
	"IPv6": {"fd77::1", "fd77::2", "fd77::3", "/64"},
}

// narrowPort is the server's port, free in its own namespace.
const narrowPort = 4433

// Over a path of 1 280 bytes a client joins, receives large messages and full datagrams, and
// continues when its address changes, over IPv4 and IPv6.
func TestNarrowPath(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("the test needs the program ip, of the package iproute2: ", err)
	}
	cmd := narrowProgram("TestNarrowServer", syscall.CLONE_NEWUSER|syscall.CLONE_NEWNET)
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(string(out), "NARROW SKIP"):
		t.Skipf("this machine has no network namespaces for everybody: %s", out)
	case errors.As(err, &exit):
		t.Errorf("%s", out)
	case err != nil:
		t.Skip("this machine has no network namespaces for everybody: ", err)
	default:
		t.Logf("%s", out)
	}
}

// narrowProgram returns a command that runs this program in namespaces of its own.
func narrowProgram(test string, flags uintptr) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run", "^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), "NETLOOP_NARROW=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// ip runs the program ip.
func ip(line string) error {
	out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, out)
	}
	return nil
}

// ips runs the program ip as often as it succeeds.
func ips(lines ...string) error {
	for _, line := range lines {
		if err := ip(line); err != nil {
			return err
		}
	}
	return nil
}

// TestNarrowServer is the server of TestNarrowPath, and connects its namespace to the client's.
func TestNarrowServer(t *testing.T) {
	if os.Getenv("NETLOOP_NARROW") == "" {
		t.Skip("TestNarrowPath starts it")
	}
	client := narrowProgram("TestNarrowClient", syscall.CLONE_NEWNET)
	stdin, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	client.Stdout, client.Stderr = &out, &out
	if err := client.Start(); err != nil {
		fmt.Println("NARROW SKIP", err)
		return
	}
	err = ips("link set lo up", "link add name path0 type veth peer name path1 netns "+strconv.Itoa(client.Process.Pid),
		"link set path0 mtu "+narrowMTU, "link set path0 up")
	if err != nil {
		_ = client.Process.Kill()
		_ = client.Wait()
		fmt.Println("NARROW SKIP", err)
		return
	}
	var hosts []*host
	for _, n := range narrows {
		if err := ip("address add " + n.server + n.bits + " dev path0" + nodad(n)); err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, serve(t, func(c *ServerConfig) { c.Listen = net.JoinHostPort(n.server, strconv.Itoa(narrowPort)) }))
	}
	_, _ = stdin.Write([]byte("go\n"))
	ended := make(chan error, 1)
	go func() { ended <- client.Wait() }()
	nettest.Eventually(t, "the client's end", func() bool {
		for _, h := range hosts {
			h.answer()
		}
		return len(ended) > 0
	})
	if err := <-ended; err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	for _, h := range hosts {
		moved := h.moves(h.Seen[0].Session)
		if len(moved) != 1 || !isAfter(moved[0]) {
			t.Error("the owner was told of the client's moves to", moved)
		}
	}
}

// nodad returns the option that disables duplicate address detection for IPv6.
func nodad(n narrow) string {
	if n.bits == "/64" {
		return " nodad"
	}
	return ""
}

func isAfter(addr string) bool {
	at, err := netip.ParseAddrPort(addr)
	return err == nil && (at.Addr().String() == narrows["IPv4"].after || at.Addr().String() == narrows["IPv6"].after)
}

// narrowLarge is the largest size of a state record.
const narrowLarge = 15 << 10

// answer answers each message with a large one and a full datagram, until the client has moved.
func (h *host) answer() {
	from := len(h.Seen)
	h.Poll()
	for _, a := range h.Seen[from:] {
		if a.Kind == transport.MessageArrived && a.Message.Method < 99 {
			a.Session.Send(transport.Message{Method: a.Message.Method, Reliable: true, Payload: make([]byte, narrowLarge)})
			a.Session.Send(transport.Message{Method: a.Message.Method, Payload: make([]byte, transport.MaxDatagramPayload)})
			a.Session.Flush(0)
		}
		if a.Kind == transport.MessageArrived { // Sending detects that the client has moved.
			a.Session.Send(transport.Message{Method: 99 + uint32(len(h.moves(a.Session)))})
			a.Session.Flush(0)
		}
	}
}

// TestNarrowClient is the client of TestNarrowPath.
func TestNarrowClient(t *testing.T) {
	if os.Getenv("NETLOOP_NARROW") == "" {
		t.Skip("TestNarrowPath starts it")
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return // The server has no network for it.
	}
	if err := ips("link set lo up", "link set path1 mtu "+narrowMTU, "link set path1 up"); err != nil {
		t.Fatal(err)
	}
	for family, n := range narrows {
		t.Run(family, func(t *testing.T) { playNarrow(t, n) })
	}
}

func playNarrow(t *testing.T, n narrow) {
	err := ips("address add "+n.before+n.bits+" dev path1"+nodad(n), "address add "+n.after+n.bits+" dev path1"+nodad(n))
	if err != nil {
		t.Fatal(err)
	}
	from := func(addr string) {
		if err := ip("route replace " + n.server + " dev path1 src " + addr); err != nil {
			t.Fatal(err)
		}
	}
	from(n.before)
	g := &testClient{Owner: nettest.NewOwner(nil)}
	g.Session, g.welcome, err = Dial(t.Context(), DialConfig{
		Addr: net.JoinHostPort(n.server, strconv.Itoa(narrowPort)), TLS: &tls.Config{InsecureSkipVerify: true},
		Greeting: transport.Greeting{Hello: nettest.Hello()}, Session: transport.SessionConfig{Inbox: g.Arrivals},
	})
	if err != nil {
		t.Fatal(err)
	}
	for turn, addr := range []string{n.before, n.after} {
		from(addr)
		method := uint32(turn)
		g.Send(transport.Message{Method: method, Reliable: true, Payload: make([]byte, narrowLarge)})
		g.Send(transport.Message{Method: method, Payload: make([]byte, transport.MaxDatagramPayload)})
		g.Flush(0)
		g.Find(t, "a large answer", func(a *transport.Arrival) bool {
			return a.Message.Reliable && a.Message.Method == method && len(a.Message.Payload) == narrowLarge
		})
		g.Find(t, "a full datagram", func(a *transport.Arrival) bool {
			return !a.Message.Reliable && a.Message.Method == method && len(a.Message.Payload) == transport.MaxDatagramPayload
		})
	}
	nettest.Eventually(t, "the server to know where the client is", func() bool {
		g.Send(transport.Message{Method: 99})
		g.Flush(0)
		g.Poll()
		return slices.ContainsFunc(g.Seen, func(a transport.Arrival) bool { return a.Message.Method == 100 })
	})
	g.Session.Close(transport.CodeLeft, "")
	g.Find(t, "the end", nettest.Kind(transport.Gone))
}
