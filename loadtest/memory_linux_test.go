package loadtest_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/testing/proctest"
	"github.com/netloop/netloop/internal/transport"
)

// The memory per client on the server is measured with a nearly empty room in one process and the
// clients in another.

const (
	memoryRate    = 20 // ticks a second
	memoryObjects = 20 // objects that change in every tick
)

type thing struct{ X, Y, VX, VY float32 }

var (
	memorySchema = netloop.NewSchema("memory", 1, 0)
	things       = netloop.NewClass[thing](memorySchema, "thing")
)

type memoryGame struct{}

func (memoryGame) Schema() *netloop.Schema { return memorySchema }

func (memoryGame) Open(r *netloop.Room) error {
	r.OnStart(func(t *netloop.Tick) {
		for range memoryObjects {
			things.Spawn(t, thing{VX: t.Rand().Float32(), VY: t.Rand().Float32()})
		}
	})
	r.On(netloop.Update, "memory.move", func(t *netloop.Tick) {
		for o := range things.All(t) {
			s := o.Edit(t)
			s.X, s.Y = s.X+s.VX, s.Y+s.VY
		}
	})
	return nil
}

// TestCrowd is the clients' program of TestMemoryOfAClient: they acknowledge the received state
// until the program's input ends.
func TestCrowd(t *testing.T) {
	addr, n := os.Getenv("NETLOOP_CROWD_ADDR"), 0
	if addr == "" {
		t.Skip("TestMemoryOfAClient starts it")
	}
	_, _ = fmt.Sscan(os.Getenv("NETLOOP_CROWD"), &n)
	d, err := quicnet.NewDialer()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	defer cancel()
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	inbox := transport.NewInbox(0, nil)
	schema := bridge.Netloop.Schema(memorySchema)
	replicas := map[*transport.Session]*replica.Replica{}
	var spare []transport.Arrival
	for ctx.Err() == nil {
		if len(replicas) < n {
			s, w, err := quicnet.Dial(ctx, quicnet.DialConfig{
				Addr: addr, Dialer: d, Greeting: transport.Greeting{Hello: schema.Hello()},
				Session: transport.SessionConfig{Inbox: inbox, Clock: clock},
			})
			if err != nil {
				break
			}
			r := replica.New(schema.Classes())
			r.StartAt(w.Epoch.Tick)
			replicas[s] = r
		} else {
			time.Sleep(time.Second / memoryRate)
		}
		spare = inbox.Swap(spare)
		for i := range spare {
			if a := &spare[i]; a.Kind == transport.State {
				if took, err := replicas[a.Session].Apply(a.State); err == nil && took.Ack {
					a.Session.AckState(took.Packet)
				}
			}
		}
		for s := range replicas {
			s.Flush(clock())
		}
	}
	fmt.Printf("CAME %d\n", len(replicas))
	_ = d.Close()
}

// mostPerClient is the maximum memory per additional client on the server, in bytes, including
// the unused memory of its garbage collector at GOGC=100.
const mostPerClient = 180_000

// TestMemoryOfAClient measures 400 additional real connections to a server that has 100 already,
// and has used all of its code once with them: the resident memory of its process, the
// goroutines' stacks, and the heap. NETLOOP_MEMPROFILE names a file for a profile of the heap.
func TestMemoryOfAClient(t *testing.T) {
	if os.Getenv("NETLOOP_MEMORY_SERVER") != "" {
		serveMemory(t)
		return
	}
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it needs a quiet machine: make verify runs it")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The server is a process without earlier work.
	cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestMemoryOfAClient$", "-test.v")
	cmd.Env = append(os.Environ(), "NETLOOP_MEMORY_SERVER=1")
	if os.Getenv("NETLOOP_MEMPROFILE") != "" {
		cmd.Args = append(cmd.Args, "-test.memprofilerate=512") // This setting adds some memory.
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, said, _ := strings.Cut(string(out), "MEMORY ")
	var each int
	if _, err := fmt.Sscan(said, &each); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", strings.SplitN(said, "\nEND", 2)[0])
	if each > mostPerClient {
		t.Errorf("a client takes %d bytes, more than %d", each, mostPerClient)
	}
}

// serveMemory is the measured program.
func serveMemory(t *testing.T) {
	s, err := netloop.New(netloop.Config{Listen: "127.0.0.1:0", Room: netloop.RoomSpec{Rate: netloop.Hz(memoryRate), MaxClients: 1000}}, memoryGame{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	const few, more = 100, 400
	leaveFew := connectClients(t, s, few)
	before := measureMemory()
	leaveMore := connectClients(t, s, more)
	after := measureMemory()
	if file := os.Getenv("NETLOOP_MEMPROFILE"); file != "" {
		writeProfile(t, file)
	}
	each := func(of func(*memory) uint64) int { return int(of(&after)-of(&before)) / more }
	fmt.Printf("MEMORY %d bytes of resident memory for a client more\n", each(func(m *memory) uint64 { return m.resident }))
	fmt.Printf("live heap %d, heap in use %d, heap taken from the system %d, stacks %d, goroutines %d\n",
		each(func(m *memory) uint64 { return m.live }), each(func(m *memory) uint64 { return m.HeapInuse }),
		each(func(m *memory) uint64 { return m.HeapSys - m.HeapReleased }), each(func(m *memory) uint64 { return m.StackInuse }),
		each(func(m *memory) uint64 { return m.goroutines }))
	fmt.Println("END")
	leaveFew()
	leaveMore()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// connectClients connects so many clients from a separate process, and waits until the garbage of
// their handshakes is collected.
func connectClients(t *testing.T, s *netloop.Server, n int) (leave func() string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := proctest.Command(t, self, "TestCrowd")
	cmd.Env = append(os.Environ(), "NETLOOP_CROWD_ADDR="+s.Addr().String(), fmt.Sprint("NETLOOP_CROWD=", n))
	n += players(s)
	leave = proctest.Start(t, cmd, "CAME ")
	for deadline := time.Now().Add(2 * time.Minute); players(s) < n; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d clients connected", players(s), n)
		}
	}
	time.Sleep(5 * time.Second)
	runtime.GC() // Pools are emptied in the second collection.
	runtime.GC()
	time.Sleep(10 * time.Second)
	return leave
}

func players(s *netloop.Server) (n int) {
	for r := range s.Rooms() {
		n += r.Clients
	}
	return n
}

// memory is the memory of a process.
type memory struct {
	runtime.MemStats
	resident   uint64
	live       uint64 // after a collection
	goroutines uint64
}

func measureMemory() (m memory) {
	m.resident = resident()
	runtime.ReadMemStats(&m.MemStats)
	m.goroutines = uint64(runtime.NumGoroutine())
	runtime.GC()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	m.live = after.HeapAlloc
	return m
}

// resident returns the memory that this process has in RAM.
func resident() uint64 {
	b, _ := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(b))
	pages, _ := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

func writeProfile(t *testing.T, file string) {
	debug.FreeOSMemory()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.WriteHeapProfile(f); err != nil {
		t.Error(err)
	}
	_ = f.Close()
}
