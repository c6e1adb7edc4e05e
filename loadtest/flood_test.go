package loadtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/testing/proctest"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/loadtest"
)

// The attacks of a flooding client. Each sends as fast as its connection permits, and reconnects
// as soon as the server has kicked it.
var attacks = map[string]func() transport.Message{
	"standings": func() transport.Message {
		return call(bridge.Netloop.Method(arena.Standings).Queue.ID, 0, 5)
	},
	"unknown method": func() transport.Message { return call(60_000, 0) },
	"wrong stage": func() transport.Message {
		return call(bridge.Netloop.Method(arena.Standings).Queue.ID, netloop.EarlyUpdate, 5)
	},
	"say":   func() transport.Message { return oneWay(arena.Say) },
	"large": func() transport.Message { return call(60_000, 0, make([]byte, 15<<10)...) },
	"datagrams": func() transport.Message {
		m := oneWay(arena.Say)
		m.Reliable, m.Payload = false, make([]byte, 1000)
		return m
	},
	"rejoin": func() transport.Message { return oneWay(arena.Say) },
	"shots":  nil, // floodInputs
	"noise":  nil, // floodInputs
}

func call(method uint32, stage netloop.Stage, payload ...byte) transport.Message {
	return transport.Message{Method: method, Stage: uint8(stage), Call: 1, Reliable: true, Payload: payload}
}

func oneWay(rpc any) transport.Message {
	return transport.Message{Method: bridge.Netloop.Method(rpc).Queue.ID, Reliable: true}
}

// flooder is one hostile client.
type flooder struct {
	addr   string
	attack string
	msg    transport.Message
	calls  uint64
	joins  int
	refuse int
	stayed time.Duration // the longest connection
}

// run floods until the context ends.
func (f *flooder) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := f.connect(ctx); err != nil {
			f.refuse++
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// connect joins and floods until the server kicks it.
func (f *flooder) connect(ctx context.Context) error {
	hello := bridge.Netloop.Schema(arena.Schema).Hello()
	inbox := transport.NewInbox(0, nil)
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	dialCtx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s, _, err := quicnet.Dial(dialCtx, quicnet.DialConfig{
		Addr: f.addr, Greeting: transport.Greeting{Hello: hello}, Session: transport.SessionConfig{Inbox: inbox, Clock: clock},
	})
	if err != nil {
		return err
	}
	f.joins++
	defer s.Close(transport.CodeLeft, "")
	var spare []transport.Arrival
	joined := time.Now()
	for ctx.Err() == nil {
		spare = inbox.Swap(spare)
		if _, ended := s.Cause(); ended {
			f.stayed = max(f.stayed, time.Since(joined))
			return nil
		}
		if f.msg.Method == 0 {
			floodInputs(s, f.attack, clock)
			continue
		}
		if s.LinkFacts().StreamFree {
			for range min(500, 256<<10/(1+len(f.msg.Payload))) {
				if f.msg.Call != 0 {
					f.calls++
					f.msg.Call = f.calls
				}
				s.Send(f.msg)
			}
			s.Flush(clock())
		}
		time.Sleep(2 * time.Millisecond) // 250 000 messages a second at most.
	}
	return nil
}

// floodInputs sends as many datagrams as a client may send permanently, each with as many inputs
// as fit. Every shot has another view. Steps are random, so some inputs wait on the server. Noise
// is undecodable, from the start or in the middle.
func floodInputs(s *transport.Session, attack string, clock func() time.Duration) {
	in := bridge.Netloop.Input(arena.Controls)
	ring := input.NewRing(in.Form(), time.Second/60)
	first := 1 + rand.Uint64N(1<<16)
	for step := first; step < first+input.MinRepeats; step++ {
		view := input.View{From: rand.Uint64N(1 << 20), Alpha: rand.Float32()}
		view.To = view.From + rand.Uint64N(100)
		c := arena.Control{Thrust: step%2 == 0, Fire: true, Turn: int8(rand.IntN(3)) - 1}
		_ = schema.CaptureInput(&in.InputCodec, &c, ring.Add(step, view))
	}
	packet := ring.AppendPacket(nil, transport.MaxInputs)
	if attack == "noise" {
		packet = append(packet[:2+rand.IntN(len(packet)-2)], make([]byte, 800)...)
		for i := range packet {
			packet[i] ^= byte(rand.Uint32())
		}
	}
	s.Inputs(packet)
	s.Flush(clock())
	time.Sleep(1700 * time.Microsecond) // 590 a second
}

// TestFlooder is the flooding program of TestAFloodDelaysNoTick.
func TestFlooder(t *testing.T) {
	addr, attack, n := os.Getenv("NETLOOP_FLOOD_ADDR"), os.Getenv("NETLOOP_FLOOD"), os.Getenv("NETLOOP_FLOODERS")
	if addr == "" {
		t.Skip("TestAFloodDelaysNoTick starts it")
	}
	count, err := strconv.Atoi(n)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { // Until the parent closes the pipe.
		_, _ = os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	done := make(chan *flooder)
	for range count {
		f := &flooder{addr: addr, attack: attack}
		if message := attacks[attack]; message != nil {
			f.msg = message()
		}
		go func() { f.run(ctx); done <- f }()
	}
	joins, refused, calls, stayed := 0, 0, uint64(0), time.Duration(0)
	for range count {
		f := <-done
		stayed = max(stayed, f.stayed)
		joins, refused, calls = joins+f.joins, refused+f.refuse, calls+f.calls
	}
	fmt.Printf("FLOOD joins %d refused %d calls %d stayed %v\n", joins, refused, calls, stayed)
}

// programs are the real programs, built once.
type programs struct{ dir, server, loadclient string }

func build(t *testing.T) programs {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/", "../cmd/server", "../cmd/loadclient")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return programs{dir, filepath.Join(dir, "server"), filepath.Join(dir, "loadclient")}
}

// serve starts a server, pinned to one core or not.
func (p programs) serve(t *testing.T, pinned bool) (addr, admin string, stop func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "addr.json")
	args := []string{p.server, "run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--addr-file", file}
	if pinned {
		args = append([]string{"taskset", "-c", "0"}, args...)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...)
	log, err := os.Create(filepath.Join(t.TempDir(), "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		_ = log.Close()
	}
	var at struct{ Listen, Admin string }
	waitUntil(t, func() bool {
		b, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(b, &at) == nil
	})
	return at.Listen, at.Admin, stop
}

func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	for range 1000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the condition was not met in time")
}

// flood starts flooding clients at the lowest priority, so that their own work does not delay the
// healthy clients.
func flood(t *testing.T, addr, attack string, n int) (stop func() string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := proctest.Command(t, self, "TestFlooder")
	cmd.Env = append(os.Environ(), "NETLOOP_FLOOD_ADDR="+addr, "NETLOOP_FLOOD="+attack, "NETLOOP_FLOODERS="+strconv.Itoa(n))
	return proctest.Start(t, cmd, "FLOOD ")
}

// play runs so many healthy clients, and measures their figures and the server's. Further
// arguments are flags.
func (p programs) play(t *testing.T, addr, admin string, clients int, d time.Duration, flags ...string) (r loadtest.Result) {
	t.Helper()
	args := []string{"run", "--addr", addr, "--admin", "http://" + admin, "--clients", strconv.Itoa(clients),
		"--ramp", (time.Duration(clients) * 25 * time.Millisecond).String(), "--warmup", "1s", "--duration", d.String(), "--out", "json", "--ui", "quiet"}
	cmd := exec.CommandContext(t.Context(), p.loadclient, append(args, flags...)...)
	out, _ := cmd.Output() // The result has its findings.
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return r
}

// TestAFloodDelaysNoTick measures with real programs the effect of floods: 20 healthy clients
// with and without flooding ones, the server on one core and on all.
func TestAFloodDelaysNoTick(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it depends on timing: make verify runs it")
	}
	p := build(t)
	duration := 6 * time.Second
	for _, pinned := range []bool{true, false} {
		if _, err := exec.LookPath("taskset"); pinned && err != nil {
			continue
		}
		addr, admin, stop := p.serve(t, pinned)
		calm := p.play(t, addr, admin, 20, duration)
		stop()
		report(t, pinned, "nobody", 0, &calm, &calm, "")
		for attack := range attacks {
			if only := os.Getenv("NETLOOP_FLOOD"); only != "" && only != attack {
				continue
			}
			for _, n := range []int{1, 5} {
				addr, admin, stop := p.serve(t, pinned)
				first := flood(t, addr, attack, n)
				r := p.play(t, addr, admin, 20, duration)
				report(t, pinned, attack, n, &calm, &r, first())
				stop()
			}
		}
	}
}

// report prints the difference between a run and a calm one, and fails the test if one flooding
// client has too much effect.
func report(t *testing.T, pinned bool, attack string, n int, calm, r *loadtest.Result, said string) {
	t.Helper()
	ms := func(v *float64) float64 {
		if v == nil {
			return math.NaN()
		}
		return *v
	}
	count := func(v *uint64) uint64 {
		if v == nil {
			return 0
		}
		return *v
	}
	tick, age := ms(r.Server.Tick.P99)-ms(calm.Server.Tick.P99), ms(r.Snapshots.Age.P99)-ms(calm.Snapshots.Age.P99)
	t.Logf("pinned %-5v %-14s x%d: overruns %d, dropped %d, tick p99 %.2f ms (%+.2f) max %.2f, lateness p99 %.2f, age p99 %.1f ms (%+.1f), lost %d, generator late p99 %.2f | %s",
		pinned, attack, n, count(r.Server.Overruns), count(r.Server.DroppedTicks), ms(r.Server.Tick.P99), tick, ms(r.Server.Tick.Max), ms(r.Server.Lateness.P99),
		ms(r.Snapshots.Age.P99), age, r.Clients.Disconnected+r.Clients.Failed, ms(r.Generator.Lateness.P99), said)
	if n != 1 {
		return
	}
	if late := max(ms(calm.Generator.Lateness.P99), ms(r.Generator.Lateness.P99)); !(late < 5) {
		t.Logf("not judged: the healthy clients were late by %.1f ms", late)
		return
	}
	if count(r.Server.Overruns) > 0 || tick > 1 || age > 5 {
		t.Errorf("one flooder (%s) cost too much", attack)
	}
}
