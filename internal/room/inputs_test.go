package room_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

var (
	inputSchema   = netloop.NewSchema("inputs", 1, 0)
	inputControls = netloop.NewInput(inputSchema, func(last steer, missed int) steer {
		last.Fire = false
		if missed == 13 {
			panic("an unlucky number")
		}
		return last
	})
)

// steer is a typical input.
type steer struct {
	Turn, Thrust int8
	Fire         bool
	Aim          float32 `net:"quant=1/512,range=-4:4"`
}

// ranInput is one call of the game's handler.
type ranInput struct {
	step   uint64
	client uint64
	in     steer
}

type inputGame func(*netloop.Room)

func (inputGame) Schema() *netloop.Schema      { return inputSchema }
func (g inputGame) Open(r *netloop.Room) error { g(r); return nil }

// pilots is a room with client input packets written by its test.
type pilots struct {
	*bare
	all   []*pilot
	ran   []ranInput
	quiet bool // calls are not recorded
}

// pilot is a client.
type pilot struct {
	*testConn
	ring  *input.Ring
	codec *schema.InputCodec
	in    steer // scratch
}

// forget drops the inputs made so far.
func (s *pilot) forget() { s.ring = input.NewRing(s.codec.Form(), time.Second/60) }

func newPilots(t testing.TB, cfg netloop.Config, n int) *pilots {
	t.Helper()
	p := new(pilots)
	p.bare = newBareOf(t, cfg, inputGame(p.handle))
	p.server.UseClock(clock.NewVirtual()) // No tick is ever late, on any machine.
	for range n {
		p.join()
	}
	for len(p.room.Clients()) < n {
		p.step()
	}
	return p
}

func (p *pilots) handle(r *netloop.Room) {
	inputControls.Handle(r, func(t *netloop.Tick, from *netloop.Client, in steer) {
		if !p.quiet {
			p.ran = append(p.ran, ranInput{t.FixedStep(), uint64(from.ID()), in})
		}
		if in.Turn == 99 {
			panic("too much")
		}
	})
}

func (p *pilots) join() *pilot {
	p.t.Helper()
	adm, err := p.server.Handler.Admit(context.Background(), hello(inputSchema), "here")
	if err != nil {
		p.t.Fatal(err)
	}
	c := &bridge.Netloop.Input(inputControls).InputCodec
	s := &pilot{testConn: newTestConn(adm), ring: input.NewRing(c.Form(), time.Second/60), codec: c}
	p.all = append(p.all, s)
	return s
}

// make makes the input of a step.
func (s *pilot) make(step uint64, in steer) {
	s.in = in
	_ = schema.CaptureInput(s.codec, &s.in, s.ring.Add(step, input.View{From: step, To: step + 1}))
}

// send sends the newest inputs to the server.
func (p *pilots) send(s *pilot) {
	p.push(s.testConn, transport.Arrival{Kind: transport.Inputs, State: s.ring.AppendPacket(nil, transport.MaxInputs)})
}

// counts returns the outcomes of all clients' inputs.
func (p *pilots) counts() input.Counts {
	var all input.Counts
	for _, c := range p.room.Clients() {
		counts, _ := c.InputStats()
		all.Add(counts)
	}
	return all
}

// inputsOf returns the inputs of one client that ran, in order.
func (p *pilots) inputsOf(s *pilot) (all []steer) {
	for _, r := range p.ran {
		if r.client == s.Session.ID() {
			all = append(all, r.in)
		}
	}
	return all
}

// Inputs run in the order of the clients' ids, for any order of arrival.
func TestInputsRunInTheOrderOfClients(t *testing.T) {
	p := newPilots(t, netloop.Config{}, 5)
	for range 20 {
		for i := range p.all {
			s := p.all[(i*3+int(p.tick))%len(p.all)]
			s.make(p.tick+3, steer{Turn: int8(p.tick)})
			p.send(s)
		}
		p.step()
	}
	for i := 1; i < len(p.ran); i++ {
		a, b := p.ran[i-1], p.ran[i]
		if b.step < a.step || b.step == a.step && b.client != a.client+1 || b.step > a.step && (a.client != 5 || b.client != 1) {
			t.Fatalf("client %d in step %d runs after client %d in step %d", b.client, b.step, a.client, a.step)
		}
	}
	if len(p.ran) != 5*18 {
		t.Errorf("%d inputs ran, want one of each client in 18 steps", len(p.ran))
	}
}

// For a step without its input, repeat is applied to the last received input.
func TestAMissedInputIsRepeatedAndCounted(t *testing.T) {
	p := newPilots(t, netloop.Config{}, 1)
	s := p.all[0]
	first := p.tick + 1
	for step := first; step < first+3; step++ {
		s.make(step, steer{Turn: int8(step - first), Fire: true})
	}
	p.send(s)
	for range 5 {
		p.step()
	}
	s.make(first+6, steer{Turn: 7})
	p.send(s)
	for range 2 {
		p.step()
	}
	want := []steer{{Fire: true}, {Turn: 1, Fire: true}, {Turn: 2, Fire: true}, {Turn: 2}, {Turn: 2}, {Turn: 2}, {Turn: 7}}
	if got := p.inputsOf(s); !slices.Equal(got, want) {
		t.Errorf("%+v ran, want %+v", got, want)
	}
	if c := p.counts(); c.Applied != 4 || c.Missed != 3 {
		t.Errorf("%+v", c)
	}
}

// A client that sends more inputs than there are steps, inputs for steps far ahead or in the past,
// or different inputs for one step, gains no advantage.
func TestCheatersGetOneInputAStep(t *testing.T) {
	p := newPilots(t, netloop.Config{}, 3)
	fast, again, late := p.all[0], p.all[1], p.all[2]
	begin := p.tick + 1
	for range 100 {
		done := p.tick
		for n := range uint64(10) { // Ten times as many as the steps of the time.
			fast.make(begin+(done+1-begin)*10+n, steer{Turn: 1})
		}
		p.send(fast)
		again.make(done+1, steer{Turn: 1})
		p.send(again)
		again.make(done+1, steer{Turn: 2, Fire: true})
		p.send(again)
		if done > begin {
			late.make(done, steer{Turn: 3})
			p.send(late)
			late.forget()
			late.make(done+uint64(input.Window(time.Second/60))+1, steer{Turn: 4})
			p.send(late)
			late.forget()
		}
		p.step()
	}
	if n := len(p.inputsOf(fast)); n > 100 {
		t.Errorf("%d inputs ran in 100 steps", n)
	}
	for _, in := range p.inputsOf(again) {
		if in != (steer{Turn: 1}) {
			t.Errorf("%+v ran, and was not the first for its step", in)
		}
	}
	if n := len(p.inputsOf(late)); n > 100 {
		t.Errorf("%d late inputs ran in 100 steps", n)
	}
	for _, in := range p.inputsOf(late) {
		if in != (steer{Turn: 3}) {
			t.Errorf("%+v ran, and was too far ahead", in)
		}
	}
	c := p.counts()
	p.room.Report()
	for outcome, n := range map[string]uint64{
		"applied": c.Applied, "missed": c.Missed, "late": c.Late, "duplicate": c.Duplicate, "ahead": c.Ahead, "malformed": c.Malformed,
	} {
		if line := fmt.Sprintf(`netloop_inputs_total{outcome="%s"} %d`, outcome, n); !p.scraped(line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if c.Late != 98 || c.Ahead < 98 || c.Duplicate < 100 || c.Malformed != 0 {
		t.Errorf("%+v", c)
	}
}

// Log lines of an input's handler name its client, later lines of a system name no client.
func TestLogLinesOfAnInputNameItsClient(t *testing.T) {
	core, logs := logtest.New(zapcore.InfoLevel)
	p := new(pilots)
	p.bare = newBareOf(t, netloop.Config{Log: logging.Slog(zap.New(core))}, inputGame(func(r *netloop.Room) {
		inputControls.Handle(r, func(tick *netloop.Tick, from *netloop.Client, in steer) {
			tick.Log().Info(fmt.Sprint("client ", from.ID()))
			if in.Turn == 99 {
				panic("too much")
			}
		})
		r.On(netloop.FixedUpdate, "behind", func(tick *netloop.Tick) { tick.Log().Info("client <nil>") })
	}))
	lines := map[string]int{}
	for _, turn := range []int8{1, 99} {
		p.join()
		p.step()
		for _, s := range p.all {
			s.make(p.tick+1, steer{Turn: turn})
			p.send(s)
		}
		p.step()
	}
	for _, e := range logs.All() {
		if strings.HasPrefix(e.Message, "client") {
			if got := fmt.Sprint("client ", e.ContextMap()["client"]); got != e.Message {
				t.Errorf("logged %q about %q", e.Message, got)
			}
			lines[e.Message]++
		}
	}
	if len(lines) != 3 {
		t.Errorf("logged %v", lines)
	}
}

// A panic in a handler or a repeat affects one input of one client.
func TestAPanicInAnInputCostsThatOneAlone(t *testing.T) {
	p := newPilots(t, netloop.Config{}, 3)
	first := p.tick + 1
	for range 20 {
		for i, s := range p.all {
			turn := int8(i)
			if i == 1 && p.tick == first {
				turn = 99
			}
			if i != 2 || p.tick < first+2 {
				s.make(p.tick+1, steer{Turn: turn})
				p.send(s)
			}
		}
		p.step()
	}
	for i, s := range p.all {
		if n := len(p.inputsOf(s)); n != 20 {
			t.Errorf("%d inputs of client %d ran in 20 steps", n, i)
		}
	}
	for _, place := range []string{"input", "NewInput.repeat"} {
		if line := `netloop_system_panics_total{system="` + place + `"} 1`; !p.scraped(line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// For a kicked client no input runs; for a client without a connection repeat runs.
func TestInputsOfAbsentClients(t *testing.T) {
	p := newPilots(t, netloop.Config{}, 2)
	for _, s := range p.all {
		s.make(p.tick+1, steer{Turn: 5, Fire: true})
		p.send(s)
	}
	p.step()
	kicked, _ := p.room.Client(p.all[0].Session.ID())
	kicked.Kick(netloop.CodeKicked, "")
	for _, s := range p.all {
		s.make(p.tick+1, steer{Turn: 6})
		p.send(s)
	}
	p.step()
	p.room.Report()
	if line := `netloop_inputs_total{outcome="unhandled"} 1`; !p.scraped(line) {
		t.Errorf("the metrics lack %s", line)
	}
	if n := len(p.inputsOf(p.all[0])); n != 1 {
		t.Errorf("%d inputs of the client that was kicked ran", n)
	}
	if n := len(p.inputsOf(p.all[1])); n != 2 {
		t.Errorf("%d inputs of the other client ran", n)
	}
}

// The feedback on inputs names the newest received input, the ones before it, its margin, and the
// missed inputs.
func TestAClientIsToldOfItsInputs(t *testing.T) {
	p := newPilots(t, netloop.Config{}, 1)
	s := p.all[0]
	told := func() *transport.InputStatus {
		p.t.Helper()
		client, link := transport.NewSession(transport.SessionConfig{Client: true, Inbox: transport.NewInbox(0, nil)})
		for range 5 { // It waits for a datagram that is sent anyway, but not for long.
			p.step()
			carry(s.testConn, &testConn{client, link})
		}
		for _, a := range client.Inbox().Swap(nil) {
			if a.Kind == transport.InputsTold {
				return a.Status
			}
		}
		return nil
	}
	// It is not a packet.
	p.push(s.testConn, transport.Arrival{Kind: transport.Inputs, State: []byte{1}})
	if st := told(); st != nil {
		t.Errorf("told of no inputs: %+v", st)
	}
	if st := told(); st != nil {
		t.Errorf("told of no inputs, only later: %+v", st)
	}
	base := p.tick
	for _, step := range []uint64{2, 3, 5} {
		s.make(base+step, steer{})
	}
	at := time.Duration(base) * time.Second / 60
	p.push(s.testConn, transport.Arrival{Kind: transport.Inputs, At: at, State: s.ring.AppendPacket(nil, transport.MaxInputs)})
	st := told()
	if st == nil || st.Newest != base+5 || st.Before != 0b110 || st.Missed != 1 {
		t.Fatalf("told %+v, want step %d, and those 2 and 3 before it, and that step %d was missed", st, base+5, base+4)
	}
	// Tick 1 was due at 0, so the tick of step base+5 is due base+4 ticks later.
	if want := loop.Hz(60).Period() * 4; (st.Early - want).Abs() > time.Microsecond {
		t.Errorf("early by %v, want %v", st.Early, want)
	}
	st = told()
	if st == nil || st.Newest != base+5 || st.Missed < 4 {
		t.Errorf("told %+v, want what was missed since", st)
	}
}

// A room with client inputs reports their margins: the least and the median of its clients, and 0
// without recent inputs.
func TestHowEarlyInputsComeIsMeasured(t *testing.T) {
	p := newPilots(t, netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(50)}}, 4)
	margins := func(least, median string) {
		t.Helper()
		p.room.Report()
		for kind, want := range map[string]string{"least": least, "median": median} {
			if line := fmt.Sprintf("netloop_input_margin_seconds{kind=%q} %s", kind, want); !p.scraped(line) {
				t.Errorf("the metrics lack %s", line)
			}
		}
	}
	margins("0", "0")
	for _, c := range p.room.Clients() {
		if counts, early := c.InputStats(); counts != (input.Counts{}) || early != 0 {
			t.Errorf("without inputs: %+v, %v early", counts, early)
		}
	}
	line := p.room.Timeline()
	const ms = time.Millisecond
	for i, early := range []time.Duration{0, 75 * ms, 25 * ms, 50 * ms} { // The first sends none.
		if s := p.all[i]; early > 0 {
			s.make(p.tick+1, steer{})
			at := line.GameTime(p.tick) - early
			p.push(s.testConn, transport.Arrival{Kind: transport.Inputs, At: at, State: s.ring.AppendPacket(nil, transport.MaxInputs)})
		}
	}
	p.step()
	margins("0.025", "0.05")
	for range 52 {
		p.step()
	}
	margins("0", "0")
	other := newBare(t, func(*netloop.Room) {})
	other.room.Report()
	if strings.Contains(other.scrape(), "netloop_input_margin_seconds{") {
		t.Error("the metrics tell how early inputs come in a room whose clients make none")
	}
}

// The margin of an input packet is that of its oldest new input: for the first packet that is the
// newest input, because the first step of the client is unknown, and for a later packet the oldest
// input that it can have brought.
func TestTheMarginIsOfTheOldestNewInput(t *testing.T) {
	p := newPilots(t, netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(50)}}, 1)
	s, first := p.all[0], p.tick+1
	bring := func(due uint64, early time.Duration, steps ...uint64) {
		t.Helper()
		for _, step := range steps {
			s.make(first+step, steer{})
		}
		at := time.Duration(first+due-1)*20*time.Millisecond - early
		p.push(s.testConn, transport.Arrival{Kind: transport.Inputs, At: at, State: s.ring.AppendPacket(nil, transport.MaxInputs)})
		p.step()
		if got := p.room.Clients()[0].InputMargin(); got != early {
			t.Errorf("steps %v: the margin is %v, want that %v of step %d", steps, got, early, due)
		}
	}
	bring(2, 9*time.Millisecond, 0, 1, 2)
	bring(3, 7*time.Millisecond, 3, 4, 5)
	bring(6, 5*time.Millisecond, 6)
	bring(26-input.MinRepeats, 3*time.Millisecond, 25) // A packet has no more.
	p.room.Report()
	if !p.scraped(`netloop_input_margin_seconds{kind="least"} 0.003`) {
		t.Error("the least margin is not that of the only client")
	}
}

// Malformed bytes, a packet of half its length, and a packet to a room without an input handler
// are each counted.
func TestPacketsOfInputsThatMakeNoSense(t *testing.T) {
	p := newPilots(t, netloop.Config{}, 1)
	s := p.all[0]
	for n := range uint64(10) {
		s.make(p.tick+1+n, steer{Turn: int8(n * 11), Aim: float32(n) / 3})
	}
	whole := s.ring.AppendPacket(nil, transport.MaxInputs)
	for _, bad := range [][]byte{{}, {1}, whole[:len(whole)/2]} {
		p.push(s.testConn, transport.Arrival{Kind: transport.Inputs, State: bad})
	}
	p.step()
	if c := p.counts(); c.Malformed != 3 {
		t.Errorf("%+v", c)
	}
	b := newBareOf(t, netloop.Config{}, inputGame(func(*netloop.Room) {}))
	steering := (&pilots{bare: b}).join()
	b.step()
	b.push(steering.testConn, transport.Arrival{Kind: transport.Inputs, State: whole})
	b.step()
	b.room.Report()
	if line := `netloop_inputs_total{outcome="unhandled"} 1`; !b.scraped(line) {
		t.Errorf("the metrics lack %s", line)
	}
}

// TestInputsAreReplayed records inputs in many orders of arrival, and replays the recording.
func TestInputsAreReplayed(t *testing.T) {
	var file bytes.Buffer
	p := newPilots(t, netloop.Config{Record: &file}, 3)
	for n := range 50 {
		for i, s := range p.all {
			if n%(i+2) == 0 {
				s.make(p.tick+uint64(n%5), steer{Turn: int8(n)})
			}
			if n%7 > i {
				p.send(s)
			}
		}
		p.step()
	}
	again := new(pilots)
	replay, err := netloop.NewReplay(netloop.Config{}, inputGame(again.handle), bytes.NewReader(file.Bytes()))
	for err == nil {
		_, err = replay.Step()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if len(again.ran) == 0 || !slices.Equal(again.ran, p.ran) {
		t.Errorf("%d inputs ran, and %d in the replay", len(p.ran), len(again.ran))
	}
}

// crowded is a room of 200 clients. bring delivers a packet of each, with seven inputs of which
// one is new, and tick runs a tick.
func crowded(t testing.TB) (bring, tick func()) {
	p := newPilots(t, netloop.Config{Room: netloop.RoomSpec{MaxClients: 200}}, 200)
	p.quiet = true
	packet := make([]byte, 0, transport.MaxInputs)
	bring = func() {
		for i, s := range p.all {
			s.make(p.tick+3, steer{Turn: int8(p.tick / 16), Thrust: 127, Fire: p.tick%8 == 0, Aim: float32(p.tick%100)/32 + float32(i)/512})
			s.ring.Confirm(p.tick-4, 0xffff, 0)
			packet = s.ring.AppendPacket(packet[:0], transport.MaxInputs)
			p.room.Inbox().Push(transport.Arrival{Kind: transport.Inputs, Session: s.Session, State: packet})
		}
	}
	return bring, p.step
}

func TestInputsAllocateNothing(t *testing.T) {
	bring, tick := crowded(t)
	both := func() { bring(); tick() }
	for range 200 {
		both()
	}
	if n := testing.AllocsPerRun(100, both); n > 0 {
		t.Errorf("a tick with the inputs of 200 clients allocates %v times", n)
	}
}

// BenchmarkInputsOf200Clients measures a tick with the inputs of 200 clients, and a tick without:
// the difference is the cost of inputs.
func BenchmarkInputsOf200Clients(b *testing.B) {
	bring, tick := crowded(b)
	for name, bring := range map[string]func(){"none": func() {}, "all": bring} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			took := make([]time.Duration, b.N)
			for i := range took {
				bring()
				start := time.Now()
				tick()
				took[i] = time.Since(start)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "µs/tick-p50")
		})
	}
}

// The due time of a step follows the epoch, whatever was cached before.
func TestWhenAStepIsDueFollowsTheEpoch(t *testing.T) {
	p := newPilots(t, netloop.Config{Room: netloop.RoomSpec{FixedRate: netloop.Hz(50)}}, 0)
	line := p.room.Timeline()
	for _, e := range []loop.Epoch{{Tick: 1}, {Tick: 1, At: time.Second}, {Tick: 7, At: time.Second}, {Tick: 1}} {
		for _, step := range []uint64{1, 17, 18, 33, 1, 1 << 40} {
			want := e.At + line.GameTime((step*6+4)/5) - line.GameTime(e.Tick)
			if got := p.room.StepDue(step, e); got != want {
				t.Errorf("%+v: step %d is due at %v, want %v", e, step, got, want)
			}
		}
	}
}
