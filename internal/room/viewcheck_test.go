package room_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// aimer is a room with one client that sends arbitrary views.
type aimer struct {
	*pilots
	*pilot
	views []netloop.Moment // accepted views, by input
	back  []time.Duration  // their distance from the step of the input
	acked uint64           // it acknowledges all packets up to here
	mute  bool             // it acknowledges no more packets
	early time.Duration    // margin of an input before the deadline of its step
}

func newAimer(t testing.TB, cfg netloop.Config) *aimer {
	t.Helper()
	a := &aimer{pilots: new(pilots)}
	a.bare = newBareOf(t, cfg, inputGame(a.open))
	a.pilot = a.join()
	for range 60 {
		a.silent()
	}
	return a
}

func (a *aimer) open(r *netloop.Room) {
	inputControls.Handle(r, func(t *netloop.Tick, from *netloop.Client, in steer) {
		v := t.ViewMoment(from)
		a.views = append(a.views, v)
		at := (float64(v.From) + v.Alpha*float64(v.To-v.From)) / 60
		a.back = append(a.back, time.Duration((float64(t.FixedStep())/60-at)*float64(time.Second)))
	})
}

// silent runs a tick without an input. The server's packets arrive, and are acknowledged in the
// next tick.
func (a *aimer) silent() {
	a.t.Helper()
	if a.acked > 0 {
		a.push(a.testConn, transport.Arrival{Kind: transport.Acks, Acks: []transport.Range{{First: 1, Last: a.acked}}})
	}
	a.step()
	if carry(a.testConn, nil); !a.mute {
		a.acked++
	}
}

// see runs a tick with an input that was made with a view. It returns the accepted view.
func (a *aimer) see(v input.View) netloop.Moment {
	a.t.Helper()
	step := a.tick + 1
	a.ring.Done(a.tick)
	a.ring.Add(step, v)
	at := a.room.Timeline().GameTime(a.tick) - a.early
	a.push(a.testConn, transport.Arrival{Kind: transport.Inputs, At: at, State: a.ring.AppendPacket(nil, transport.MaxInputs)})
	n := len(a.views)
	if a.silent(); len(a.views) != n+1 {
		a.t.Fatalf("%d inputs ran in a step", len(a.views)-n)
	}
	return a.views[n]
}

// lagging returns the view the given number of ticks before the step of the next input.
func (a *aimer) lagging(ticks float64) input.View {
	at := float64(a.tick+1) - ticks
	from := uint64(at)
	alpha := math.Floor((at-float64(from))*64) / 64
	return input.View{From: from, To: from + 1, Alpha: float32(alpha)}
}

// wantClamped checks the number of clamped views, by reason.
func (a *aimer) wantClamped(why string, n int) {
	a.t.Helper()
	a.room.Report()
	if line := fmt.Sprintf("netloop_views_total{outcome=%q} %d", why, n); !a.scraped(line) {
		a.t.Errorf("the metrics lack %s", line)
	}
}

func (a *aimer) stats() (s netloop.LinkStats) {
	a.t.Helper()
	err := a.inspect(func(t *netloop.Tick) {
		for c := range t.Clients() {
			s = c.Link()
		}
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return s
}

// A plausible view is accepted unchanged.
func TestAnHonestViewCounts(t *testing.T) {
	a := newAimer(t, netloop.Config{})
	for n := range 250 {
		said := a.lagging(4 + float64(n)*0.04) // It drifts by a twenty-fifth of the time.
		if v := a.see(said); v != (netloop.Moment{From: said.From, To: said.To, Alpha: float64(said.Alpha)}) {
			t.Fatalf("%+v counts as %+v", said, v)
		}
	}
	a.wantClamped("as_sent", 250)
	if s := a.stats(); s.ViewsClamped != 0 || s.Rewind < 230*time.Millisecond || s.Rewind > 235*time.Millisecond {
		t.Errorf("%+v", s)
	}
}

// A view of snapshots that were not sent, or not acknowledged, is replaced by that of the newest
// acknowledged one, and not by one in the future.
func TestAViewIsOfAcknowledgedSnapshots(t *testing.T) {
	for name, make := range map[string]func(a *aimer) input.View{
		"not acknowledged": func(a *aimer) input.View { return input.View{From: a.tick - 1, To: a.tick} },
		"the future":       func(a *aimer) input.View { return input.View{From: a.tick + 100, To: a.tick + 101, Alpha: 0.5} },
		"the far future":   func(a *aimer) input.View { return input.View{From: 1<<60 - 2, To: 1<<60 - 1, Alpha: 0.5} },
		"half of it":       func(a *aimer) input.View { return input.View{From: a.tick - 6, To: a.tick} },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAimer(t, netloop.Config{})
			a.mute = true
			for range 5 {
				a.silent()
			}
			newest := a.tick - 5
			if v := a.see(make(a)); v.From > newest || v.To > newest {
				t.Errorf("%+v counts, and the client has up to %d", v, newest)
			}
			a.wantClamped("unseen", 1)
		})
	}
}

// A view between two snapshots that are not adjacent, in which a target would be at a place where
// it never was, is replaced by the view between the two adjacent to its time.
func TestAViewIsBetweenAdjacentSnapshots(t *testing.T) {
	a := newAimer(t, netloop.Config{})
	from := a.tick - 10
	if v := a.see(input.View{From: from, To: from + 8, Alpha: 0.5625}); v.From != from+4 || v.To != from+5 || math.Abs(v.Alpha-0.5) > 1e-6 {
		t.Errorf("%+v counts", v)
	}
	a.wantClamped("apart", 1)
	// With each second snapshot there is none between.
	a = newAimer(t, netloop.Config{Room: netloop.RoomSpec{SendEvery: 2}})
	from = a.tick&^1 - 10
	if v := a.see(input.View{From: from, To: from + 2, Alpha: 0.75}); v != (netloop.Moment{From: from, To: from + 2, Alpha: 0.75}) {
		t.Errorf("%+v counts", v)
	}
}

// A view that is too old is clamped to the room's limit before its input was made, which is half a
// round trip, and the time it waited, before its step; and never to more than twice that limit.
func TestAViewIsNotTooOld(t *testing.T) {
	for _, c := range []struct {
		most, rtt, want time.Duration
	}{
		{0, 0, 250 * time.Millisecond},
		{0, 100 * time.Millisecond, 300 * time.Millisecond},
		{0, 10 * time.Second, 500 * time.Millisecond},
		{50 * time.Millisecond, 0, 50 * time.Millisecond},
		{time.Second, 10 * time.Second, 2 * time.Second},
	} {
		a := newAimer(t, netloop.Config{Room: netloop.RoomSpec{MaxRewind: c.most}})
		a.SetRTT(c.rtt)
		for range 120 {
			a.silent()
		}
		a.see(a.lagging(125))
		if back := a.back[0]; (back - c.want).Abs() > time.Millisecond {
			t.Errorf("at most %v, round trip %v: %v back, want %v", c.most, c.rtt, back, c.want)
		}
		if c.want < 2*time.Second {
			a.wantClamped("old", 1)
		}
	}
	a := newAimer(t, netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(50), MaxRewind: 100 * time.Millisecond}})
	a.see(a.lagging(5)) // at the limit
	a.wantClamped("old", 0)
	a.wantClamped("as_sent", 1)
	a.see(a.lagging(5 + 1.0/64))
	a.wantClamped("old", 1)
	// An input that arrives at its deadline has not waited at all.
	a = newAimer(t, netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(50), MaxRewind: 100*time.Millisecond - 1}})
	a.see(a.lagging(5))
	a.wantClamped("old", 1)
}

// A view before the client's first snapshot is clamped to that snapshot, and not interpolated from
// the start of time.
func TestAViewIsOfTheFirstSnapshotAtTheEarliest(t *testing.T) {
	a := &aimer{pilots: new(pilots)}
	a.bare = newBareOf(t, netloop.Config{}, inputGame(a.open))
	for range 60 {
		a.step()
	}
	a.pilot = a.join()
	for range 6 {
		a.silent()
	}
	c, _ := a.room.Client(a.Session.ID())
	first := a.tick - 7
	for !c.Peer().Has(first) {
		first++
	}
	if v := a.see(a.lagging(10)); v != (netloop.Moment{From: first, To: first}) {
		t.Errorf("%+v counts, and the first snapshot is that of tick %d", v, first)
	}
	a.wantClamped("unseen", 1)
}

// An input that was made earlier than half a round trip before its step, because the client's
// clock leads, may look back further by that time; a late input has not waited.
func TestAnInputThatWaitsMayLookBackFurther(t *testing.T) {
	for _, c := range []struct{ early, want time.Duration }{
		{40 * time.Millisecond, 290 * time.Millisecond}, {-40 * time.Millisecond, 250 * time.Millisecond},
	} {
		a := newAimer(t, netloop.Config{})
		a.early = c.early
		a.see(a.lagging(30))
		if back := a.back[0]; (back - c.want).Abs() > time.Millisecond {
			t.Errorf("%v early: %v back, want %v", c.early, back, c.want)
		}
		// A different margin is smoothed.
		a.early += 160 * time.Millisecond
		a.see(a.lagging(30))
		if back := a.back[1]; (back - c.want - 160*time.Millisecond/16).Abs() > 3*time.Millisecond {
			t.Errorf("%v early: %v back, after %v", a.early, back, c.want)
		}
	}
}

// For arbitrary views and acknowledgements, the accepted view is between adjacent snapshots that
// the client has, and not too old; and each of its inputs runs.
func TestWhateverAClientSaysItsViewCanBeTrue(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		a := newAimer(t, netloop.Config{Room: netloop.RoomSpec{SendEvery: 1 + int(seed)%3}})
		for range 200 {
			a.mute = rng.IntN(3) == 0
			at := func() uint64 {
				return uint64(max(0, int64(a.tick)+rng.Int64N(1<<rng.IntN(20))-rng.Int64N(1<<rng.IntN(10))))
			}
			said := input.View{From: at(), To: at(), Alpha: rng.Float32()}
			if rng.IntN(3) == 0 {
				said = a.lagging(1 + float64(rng.IntN(min(int(a.tick), 140))))
			}
			v := a.see(said)
			c, _ := a.room.Client(a.Session.ID())
			switch back := a.back[len(a.back)-1]; {
			case v == netloop.Moment{}:
			case !c.Peer().Has(v.From) || !c.Peer().Has(v.To) || v.From > v.To || v.To >= a.tick || v.Alpha < 0 || v.Alpha >= 1:
				t.Fatalf("seed %d: %+v counts as %+v", seed, said, v)
			case c.Peer().HasBetween(v.From, v.To):
				t.Fatalf("seed %d: %+v counts as %+v, and there is one between", seed, said, v)
			case back > 270*time.Millisecond: // A missing neighbour permits one more snapshot back.
				t.Fatalf("seed %d: %+v counts as %+v, %v back", seed, said, v, back)
			}
		}
	}
}

// A client that picks the best moment of the last quarter of a second for each shot gets it about
// once in a second. Its other views remain near their earlier place.
func TestAViewJumpsSeldom(t *testing.T) {
	a := newAimer(t, netloop.Config{})
	const seconds = 20
	for n := range seconds * 60 {
		a.see(a.lagging([]float64{2, 15}[n/15%2]))
	}
	far, asked := time.Duration(0), time.Duration(0)
	for n := 29; n < len(a.back); n += 15 {
		far += max(0, (a.back[n]-a.back[n-15]).Abs()-100*time.Millisecond)
		asked += 13*time.Second/60 - 100*time.Millisecond
	}
	// An eighth of the time, the drift, and the initial allowance.
	if most := seconds*(time.Second/8+time.Second/16) + 250*time.Millisecond; far > most || far < time.Second || asked < 2*most {
		t.Errorf("%v of %v of jumps counted in %d s, want at most %v", far, asked, seconds, most)
	}
	s := a.stats()
	if s.ViewsClamped < 600 || s.ViewsClamped > seconds*60 {
		t.Errorf("%d views were clamped", s.ViewsClamped)
	}
	a.wantClamped("jumped", int(s.ViewsClamped))
}

// After a permanent change of delay, as on a new route, a client's views are accepted within a
// second.
func TestAViewThatHasMovedIsBelievedSoon(t *testing.T) {
	for _, back := range [][2]float64{{3, 15}, {15, 3}} {
		a := newAimer(t, netloop.Config{})
		for range 60 {
			a.see(a.lagging(back[0]))
		}
		for range 60 {
			a.see(a.lagging(back[1]))
		}
		last := time.Duration(back[1] * float64(time.Second) / 60)
		// 200 ms are within the allowance.
		if b := a.back[60]; (b - last).Abs() > time.Millisecond {
			t.Errorf("after a jump from %v to %v ticks: %v back", back[0], back[1], b)
		}
		a.wantClamped("jumped", 0)
	}
}

// After a jump the next one has to wait: the allowance grows by an eighth of the time, and the
// centre follows by a sixteenth meanwhile.
func TestTheNextJumpTakesTime(t *testing.T) {
	a := newAimer(t, netloop.Config{})
	for range 60 {
		a.see(a.lagging(2))
	}
	a.see(a.lagging(15)) // 217 ms: 167 beyond the band, of 250.
	before := len(a.back)
	for range 60 {
		a.see(a.lagging(2)) // 117 back: 34 are missing, and accumulate at 187 in a second.
	}
	n := before
	for a.back[n] > 2*time.Second/60+time.Millisecond {
		n++
	}
	if n -= before; n < 9 || n > 13 {
		t.Errorf("believed after %d steps", n)
	}
}

// For a step without its input, or an input without a view, the view moves on with time.
func TestTheViewOfAMissedInputMovesOn(t *testing.T) {
	a := newAimer(t, netloop.Config{})
	a.see(a.lagging(6.5))
	for range 4 {
		a.silent()
	}
	a.see(input.View{})
	for n, b := range a.back {
		if want := 13 * time.Second / 120; (b - want).Abs() > time.Microsecond {
			t.Errorf("step %d: %v back, want %v", n, b, want)
		}
	}
	if len(a.back) != 6 {
		t.Errorf("%d inputs ran", len(a.back))
	}
	a.wantClamped("as_sent", 1)
}

// There is no view before the first one, in a room without rewinds, and for another program of the
// same player.
func TestNoView(t *testing.T) {
	a := newAimer(t, netloop.Config{})
	if v := a.see(input.View{}); v != (netloop.Moment{}) {
		t.Errorf("%+v before the first", v)
	}
	a = newAimer(t, netloop.Config{Room: netloop.RoomSpec{MaxRewind: -1}})
	if v := a.see(a.lagging(3)); v != (netloop.Moment{}) {
		t.Errorf("%+v where nobody looks back", v)
	}
}

// TestViewsAreReplayed records views of all kinds with their acknowledgements, and replays the
// recording.
func TestViewsAreReplayed(t *testing.T) {
	var file bytes.Buffer
	a := newAimer(t, netloop.Config{Record: &file})
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		a.mute = rng.IntN(10) == 0
		a.SetRTT(time.Duration(rng.IntN(200)) * time.Millisecond)
		switch rng.IntN(8) {
		case 0:
			a.silent()
		case 1:
			a.see(input.View{From: a.tick - rng.Uint64N(50), To: a.tick + rng.Uint64N(3), Alpha: 0.25})
		default:
			a.see(a.lagging(2 + float64(rng.IntN(30))))
		}
	}
	again := new(aimer)
	replay, err := netloop.NewReplay(netloop.Config{}, inputGame(again.open), bytes.NewReader(file.Bytes()))
	for err == nil {
		_, err = replay.Step()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if len(again.views) < 250 || !slices.Equal(again.views, a.views) {
		t.Errorf("%d views, and %d in the replay", len(a.views), len(again.views))
	}
}

// BenchmarkViewsOf200Clients measures a tick with the inputs of 200 clients with plausible views,
// and one in a room without rewinds: the difference is the cost of views.
func BenchmarkViewsOf200Clients(b *testing.B) {
	for _, c := range []struct {
		name string
		most time.Duration
	}{{"none", -1}, {"all", 0}} {
		b.Run(c.name, func(b *testing.B) {
			p := newPilots(b, netloop.Config{Room: netloop.RoomSpec{MaxClients: 200, MaxRewind: c.most}}, 200)
			p.quiet = true
			sent := p.tick
			bring := func() {
				for _, s := range p.all {
					carry(s.testConn, nil)
					p.push(s.testConn, transport.Arrival{Kind: transport.Acks, Acks: []transport.Range{{First: 1, Last: p.tick - sent}}})
					s.ring.Done(p.tick)
					_ = schema.CaptureInput(s.codec, &s.in, s.ring.Add(p.tick+1, input.View{From: p.tick - 4, To: p.tick - 3, Alpha: 0.5}))
					p.send(s)
				}
			}
			for range 100 { // Until the clients' views and their links agree.
				bring()
				p.step()
			}
			_, before := p.room.Clients()[0].ViewStats()
			took := make([]time.Duration, b.N)
			for i := range took {
				bring()
				start := time.Now()
				p.step()
				took[i] = time.Since(start)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "µs/tick-p50")
			if _, clamped := p.room.Clients()[0].ViewStats(); clamped > before {
				b.Errorf("%d views were clamped", clamped-before)
			}
		})
	}
}
