package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/bench/measure"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/metrics/ticks"
)

// The test's program plays all roles, as the command does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && roles[os.Args[1]] != nil {
		main()
		return
	}
	os.Exit(m.Run())
}

// A short run starts servers and clients on two cores and prints a line for each of them.
func TestAServerIsMeasuredBesideBareQUIC(t *testing.T) {
	if _, _, err := measure.TwoCores(); err != nil {
		t.Skip(err)
	}
	var out, about bytes.Buffer
	err := run(t.Context(), []string{"-only", "peers,4 traffic,4", "-rounds=1", "-window=200ms", "-warmup=50ms"}, &out, &about)
	if err != nil && !errors.Is(err, errSaturated) {
		t.Fatal(err, about.String())
	}
	for _, name := range []string{"peers 4, netloop", "peers 4, bare quic-go", "traffic 4, netloop", "traffic 4, bare quic-go"} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("no line of %s:\n%s", name, out.String())
		}
	}
	if err == nil && !strings.Contains(out.String(), "1.00\n") {
		t.Errorf("bare quic-go is not the measure:\n%s", out.String())
	}
}

func TestImpossibleMeasurementsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-only peers":      `"peers" cannot be used`,
		"-only peers,0":    `"peers,0" cannot be used`,
		"-only chess,50":   `"chess,50" cannot be used`,
		"-only peers,5000": `"peers,5000" cannot be used`,
		"-rounds 0":        "-rounds of 1 or more",
		"-window 99ms":     "a -window of 100ms or more",
		"-rate 1001":       "a -rate of 1 to 1000",
		"-transport tcp":   `"tcp" cannot be used: use quic`,
		"-sections taste":  `"taste" cannot be used`,
		"-nope":            "-help lists the flags",
		"foo":              `"foo" is one word too many`,
	} {
		if _, err := parse(strings.Fields(args), new(bytes.Buffer)); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	var out bytes.Buffer
	if _, err := parse([]string{"-help"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "-capacity") || !strings.Contains(out.String(), "-memory") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// Clients without messages have a frame for each of their acknowledgements, and playing clients
// have one in each tick.
func TestQuietClientsHaveAFrameForEachAcknowledgement(t *testing.T) {
	for rate, want := range map[int]int{1: 1, 20: 20, 30: 30, 39: 39, 40: 20, 60: 20, 128: 42} {
		if got := quietFrames("peers", rate); got != want || quietFrames("flips", rate) != want || quietFrames("arena", rate) != 0 || quietFrames("traffic", rate) != 0 {
			t.Errorf("%d frames a second at %d Hz, want %d, and none are set for who plays", got, rate, want)
		}
	}
}

// A window is the difference of two readings: processor time as a share of a core, datagrams for
// each client and tick.
func TestAWindowIsTheDifferenceOfTwoReadings(t *testing.T) {
	at := time.Unix(1000, 0)
	before := reading{at: at, server: time.Second, player: time.Second, ticks: ticks.Snapshot{Ticks: 100}, counters: map[string]float64{
		`netloop_transport_packets_total{direction="out"}`: 10, `netloop_transport_bytes_total{direction="out"}`: 1000,
	}}
	after := reading{at: at.Add(2 * time.Second), server: 1500 * time.Millisecond, player: 1200 * time.Millisecond, ticks: ticks.Snapshot{Ticks: 220}, counters: map[string]float64{
		`netloop_transport_packets_total{direction="out"}`: 10 + 120*5*2, `netloop_transport_bytes_total{direction="out"}`: 1000 + 120*5*2*700,
		`netloop_transport_packets_total{direction="in"}`: 120 * 5, `netloop_transport_bytes_total{direction="in"}`: 120 * 5 * 30,
	}}
	s, err := between(before, after, 5)
	if err != nil || s.server != 0.25 || s.player != 0.1 || s.out != 2 || s.in != 1 || s.outBytes != 700 || s.inBytes != 30 || s.ticks.Ticks != 120 {
		t.Errorf("%+v, %v", s, err)
	}
	if us := s.perClient(60, 5); us < 833 || us > 834 {
		t.Errorf("a client costs %v µs a tick", us)
	}
}

// A window is invalid if the clients' core was full, or their frames were late; a valid one is
// preferred to an invalid one.
func TestClientsThatAreTooSlowAreNoMeasure(t *testing.T) {
	for _, c := range []struct {
		busy   float64
		result string
		want   string
	}{
		{0.9, `{"converged":true,"clients":{"connected":5}}`, ""},
		{0.91, `{"converged":true}`, "91 % of their core"},
		{0.1, `{"converged":true,"saturated":true,"generator":{"lateness_ms":{"p99":33.5}}}`, "33.5 ms late"},
		{0.1, `{"converged":true,"snapshots":{"rate_hz":{"p50":56.9}}}`, "had 56.9 snapshots a second"},
		{0.1, `{"converged":true,"snapshots":{"rate_hz":{"p50":57}}}`, ""},
	} {
		s := sample{player: c.busy}
		if err := s.judge(write(t, c.result), 5, 60); err != nil || !strings.Contains(s.saturated, c.want) || (s.saturated == "") != (c.want == "") {
			t.Errorf("%s: %q, %v", c.result, s.saturated, err)
		}
	}
	for _, result := range []string{"", `{"converged":false}`, `{"converged":true,"clients":{"connected":5,"disconnected":1}}`} {
		s := sample{}
		if err := s.judge(write(t, result), 5, 60); err == nil {
			t.Errorf("%q is taken for a result", result)
		}
	}
	good, dear, bad := &sample{server: 0.2}, &sample{server: 0.3}, &sample{server: 0.1, saturated: "late"}
	if !better(good, dear) || better(dear, good) || !better(dear, bad) || better(bad, dear) {
		t.Error("the cheapest of the windows that count is not preferred")
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := t.TempDir() + "/result"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Bare quic-go exchanges as many datagrams, of the same sizes, as netloop's did.
func TestBareQUICHasTheSameDatagrams(t *testing.T) {
	b := &bench{opts: options{rate: 30, sharing: 2, exact: true}}
	ours := &entrant{best: &sample{out: 1.25, outBytes: 600.4, in: 0.5, inBytes: 21}}
	turn := b.bareTurn(&line{arrangement{"traffic", 7}, []*entrant{ours}})
	for _, c := range []struct{ args, want []string }{
		{turn.serverArgs, []string{"--tick-rate", "30", "--count", "1.25", "--size", "600"}},
		{turn.playerArgs, []string{"--tick-rate", "30", "--count", "0.5", "--size", "21", "--per-socket", "2", "--exact-frames"}},
	} {
		if !slices.Equal(c.args, c.want) || turn.clients != 7 {
			t.Errorf("%d clients with %v, want 7 with %v", turn.clients, c.args, c.want)
		}
	}
}

// Clients send at their own times; crowds of bots with decisions do not, and no client does without
// the flag.
func TestClientsSendAtTheirOwnTimes(t *testing.T) {
	for _, c := range []struct {
		asked   bool
		world   string
		clients int
		want    bool
	}{{true, "peers", 200, true}, {true, "arena", 100, true}, {true, "arena", 101, false}, {false, "peers", 50, false}} {
		b := &bench{opts: options{exact: c.asked}}
		args := b.netloopTurn(arrangement{c.world, c.clients}, "", client.QUIC).playerArgs
		if slices.Contains(args, "--exact-frames") != c.want {
			t.Errorf("%+v: %v", c, args)
		}
	}
}

// The memory per client is the difference between many and few clients, without the server's fixed
// part.
func TestMemoryIsThatOfOneMoreClient(t *testing.T) {
	few, many := sample{resident: 400e3}, sample{resident: 250e3, server: 0.4}
	for _, want := range []string{"adds 200 kB", "200 clients take 50.0 MB", "40.0 % of a core"} {
		if got := added(few, many); !strings.Contains(got, want) {
			t.Errorf("%s: it lacks %q", got, want)
		}
	}
}

// Servers get the garbage collector's setting of the measurement.
func TestServersCollectGarbageAsTheyAreTold(t *testing.T) {
	core, _, err := measure.TwoCores()
	if err != nil {
		t.Skip(err)
	}
	if env := new(bench).serverEnv(); env != nil {
		t.Errorf("unasked a server has %v", env)
	}
	c, err := start("/bin/sh", core, (&bench{gogc: "50"}).serverEnv(), "-c", "echo $GOGC in $HOME")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(t.Context(), startLimit, 0); err != nil || c.Said() != "50 in "+os.Getenv("HOME")+"\n" {
		t.Errorf("it has GOGC=%q, %v", c.Said(), err)
	}
}

// The cargo of the traffic has its intended size, and other bytes in each tick.
func TestTheCargoIsAlwaysNew(t *testing.T) {
	for clients, want := range map[int]int{0: 85, 50: 227, 200: 655, 4000: 1024} {
		c, r := new(cargo), rand.New(rand.NewPCG(1, 2))
		load(c, cargoBytes(clients), r)
		before := slices.Clone(c.Bytes)
		if load(c, cargoBytes(clients), r); len(before) != want || len(c.Bytes) != want || bytes.Equal(before, c.Bytes) {
			t.Errorf("with %d clients it has %d bytes and then %d, want %d", clients, len(before), len(c.Bytes), want)
		}
	}
}

// A snapshot of a given size is divided among as few objects as hold it, and no object is large.
func TestTheCargoHasTheGivenSize(t *testing.T) {
	for size, want := range map[int][2]int{0: {1, 0}, 1: {1, 1}, 128: {1, 128}, 129: {2, 64}, 250: {2, 125}, 900: {8, 112}, 10240: {80, 128}} {
		if objects, each := divided(size); objects != want[0] || each != want[1] {
			t.Errorf("%d bytes are %d objects of %d, want %v", size, objects, each, want)
		}
	}
}

// The purpose of a sample is decided by its stack: in the kernel and the runtime by the calling
// function, elsewhere by the innermost function of a known package.
func TestSamplesAreSplitByPurpose(t *testing.T) {
	shares := split([]byte(`File: floor
Type: cpu
Duration: 4s, Total samples = 720ms (18.00%)
-----------+-------------------------------------------------------
      40ms   internal/runtime/syscall/linux.Syscall6
             syscall.sendmsg
             github.com/quic-go/quic-go.(*sendQueue).Run
-----------+-------------------------------------------------------
      10ms   internal/runtime/syscall/linux.Syscall6
             golang.org/x/net/ipv4.(*payloadHandler).ReadBatch
-----------+-------------------------------------------------------
      10ms   runtime.memmove
             github.com/quic-go/quic-go.(*packetPacker).AppendPacket
-----------+-------------------------------------------------------
      10ms   crypto/internal/fips140/aes/gcm.(*GCM).Open
             github.com/quic-go/quic-go/internal/handshake.(*xorNonceAEAD).Open
             github.com/quic-go/quic-go.(*Conn).run
-----------+-------------------------------------------------------
      10ms   encoding/binary.bigEndian.PutUint32
             github.com/pion/srtp/v3.(*Context).encryptRTP
             github.com/netloop/netloop/internal/net/sealed.(*sealer).seal
             github.com/netloop/netloop/internal/room.(*Room).Step
-----------+-------------------------------------------------------
       5ms   internal/runtime/syscall/linux.Syscall6
             os.(*File).Read
             github.com/netloop/netloop/internal/clock.(*alarm).wait
-----------+-------------------------------------------------------
       5ms   github.com/netloop/netloop/internal/net/driver.(*driver).passBeside
             github.com/netloop/netloop/internal/room.(*Room).Step
-----------+-------------------------------------------------------
       5ms   runtime.mallocgc
             github.com/quic-go/quic-go.(*Conn).run
-----------+-------------------------------------------------------
       5ms   runtime.futex
             runtime.schedule
-----------+-------------------------------------------------------
      15ms   github.com/netloop/netloop/internal/codec.(*Plan).AppendDelta
             github.com/netloop/netloop/internal/netvar.(*Peer).AppendSnapshot
             github.com/netloop/netloop/internal/room.(*Room).Step
-----------+-------------------------------------------------------
       5ms   main.circle
             main.peers.Open.func2
`))
	for what, ms := range map[string]float64{
		"system calls: sending": 40, "system calls: receiving": 10, "quic-go": 10, "cryptography": 10, "allocating": 5, "sealed records": 10,
		"waiting and waking: the kernel": 5, "waiting and waking: timers": 5, "replication": 15, "sessions and sockets": 5, "room, loop and game": 5,
	} {
		if got, want := shares[what], ms/120; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	if len(shares) != 11 {
		t.Errorf("%v", shares)
	}
}

// A window with too few clients is invalid, and no error: a search continues with fewer.
func TestClientsThatDoNotComeAreNoMeasure(t *testing.T) {
	b, err := newBench(options{rate: 60}, io.Discard)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(b.close)
	b.patience = 300 * time.Millisecond
	s, err := b.take(t.Context(), turn{program: b.self, serve: "bare", play: "play-bare", clients: 2, playerArgs: []string{"--clients", "1"}})
	if err != nil || !strings.Contains(s.saturated, " of 2 within 300ms") {
		t.Errorf("%q, %v", s.saturated, err)
	}
}

// Measured sections are kept on the page if the next section fails.
func TestEachSectionIsWrittenWhenItIsMeasured(t *testing.T) {
	all := sections
	t.Cleanup(func() { sections = all })
	says := func(text string, err error) func(*bench, context.Context, *bytes.Buffer) error {
		return func(_ *bench, _ context.Context, out *bytes.Buffer) error { out.WriteString(text); return err }
	}
	sections = []section{{"table", says("full", errSaturated)}, {"memory", says("unasked", nil)}, {"profile", says("lost", errors.New("no server"))}}
	page := write(t, "")
	for _, s := range sections {
		text, _ := os.ReadFile(page)
		if err := os.WriteFile(page, append(text, "<!-- "+s.name+" -->\n<!-- end of "+s.name+" -->\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{opts: options{sections: []string{"table", "profile"}}}
	err := b.cost(t.Context(), page)
	text, _ := os.ReadFile(page)
	if err == nil || !strings.Contains(err.Error(), "no server") || !bytes.Contains(text, []byte("full")) || bytes.Contains(text, []byte("unasked")) || bytes.Contains(text, []byte("lost")) {
		t.Errorf("%v:\n%s", err, text)
	}
	b.opts.sections = []string{"table"}
	if err := b.cost(t.Context(), page); !errors.Is(err, errSaturated) {
		t.Errorf("figures that are none pass for some: %v", err)
	}
}

// The page of costs has a place for each measured section, and keeps the rest.
func TestFiguresGoIntoTheirPlaceOnThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/PERFORMANCE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		now, err := replaced(page, s.name, "\nseven of nine\n")
		if err != nil || !strings.Contains(string(now), "<!-- "+s.name+" -->\n\n```\nseven of nine\n```\n\n<!-- end of "+s.name+" -->") {
			t.Errorf("%s: %v", s.name, err)
		}
		again, err := replaced(now, s.name, "seven of nine")
		if err != nil || !bytes.Equal(now, again) || !bytes.Equal(now[:100], page[:100]) || !bytes.Equal(now[len(now)-100:], page[len(page)-100:]) {
			t.Errorf("%s: another page the second time, %v", s.name, err)
		}
	}
	if _, err := replaced(page, "weather", ""); err == nil {
		t.Error("a section that is not there is filled in")
	}
}
