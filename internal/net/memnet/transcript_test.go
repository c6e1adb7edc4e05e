package memnet

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/testing/golden"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// story is a sequence of events for a client in a second of a game.
type story struct {
	name string
	link Link
	does map[int]func(w *world, p *player) // at a tick
	wait time.Duration                     // that passes after it
}

var stories = []story{
	{name: "nothing in between, and counters of the network", link: Link{}, does: map[int]func(*world, *player){
		0: func(w *world, _ *player) { w.stats = nil },
	}},
	{name: "a server's clock of its own", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		0: func(w *world, _ *player) { w.clock = func() time.Duration { return time.Hour } },
	}},
	{name: "words right behind the welcome", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		0: func(w *world, _ *player) {
			w.greeted = func(s *transport.Session) { reliable(s, []byte("welcome")); s.Flush(0) }
		},
	}},
	{name: "a good line", link: Link{Delay: 30 * ms}},
	{name: "a bad line", link: Link{Delay: 20 * ms, Jitter: 10 * ms, Loss: 0.2, Duplicate: 0.1, Reorder: 0.1}},
	{name: "a narrow line", link: Link{Delay: 20 * ms, Bandwidth: 200_000, Buffer: 60 * ms}},
	{name: "a line that gets worse", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		20: func(_ *world, p *player) { p.SetLink(Link{Delay: 80 * ms, Loss: 0.3}) },
		40: func(_ *world, p *player) { p.SetLink(Link{Delay: 10 * ms}) },
	}},
	{name: "a cut that heals", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		20: func(_ *world, p *player) { p.Cut() },
		30: func(_ *world, p *player) { p.Heal() },
	}},
	{name: "a cut of the way up", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		20: func(_ *world, p *player) { p.CutUp() },
		21: func(_ *world, p *player) { p.CutUp() },
	}, wait: 25 * time.Second},
	{name: "a cut of the way down that heals too late", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		20: func(w *world, p *player) { p.CutDown(); w.net.after(11*time.Second, p.Heal) },
	}, wait: 25 * time.Second},
	{name: "a client that vanishes", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		20: func(_ *world, p *player) { p.Drop() },
		30: func(_ *world, p *player) { p.Heal() },
	}, wait: 25 * time.Second},
	{name: "a connection that breaks", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		20: func(_ *world, p *player) { p.Break() },
	}, wait: 11 * time.Second},
	{name: "a client that stalls", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		20: func(_ *world, p *player) { p.Stall(true) },
		40: func(_ *world, p *player) { p.Stall(false) },
	}, wait: time.Second},
	{name: "a clock of its own", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		0: func(_ *world, p *player) { p.SetClock(Clock{Offset: -time.Hour, PPM: 1000}) },
	}},
	{name: "a kick over a bad line", link: Link{Delay: 20 * ms, Loss: 0.3}, does: map[int]func(*world, *player){
		30: func(_ *world, p *player) { p.server.Close(transport.CodeKicked, "cheated") },
	}, wait: 2 * time.Second},
	{name: "a client that leaves where nothing comes through", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		30: func(_ *world, p *player) {
			p.SetLink(Link{Delay: 20 * ms, Loss: 1})
			p.session.Close(transport.CodeLeft, "bye")
		},
		50: func(_ *world, p *player) { p.SetLink(Link{Delay: 20 * ms}) },
	}, wait: 2 * time.Second},
	{name: "a server that answers nobody", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		0: func(w *world, _ *player) { w.net.Serve(nil) },
	}, wait: 6 * time.Second},
	{name: "a refusal", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		0: func(w *world, _ *player) { w.refuse = transport.Refuse(transport.CodeFull, "all of them") },
	}},
	{name: "an error of the server's", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		0: func(w *world, _ *player) { w.refuse = fmt.Errorf("the disk is full") },
	}},
	{name: "tables that a client cannot play by", link: Link{Delay: 20 * ms}, does: map[int]func(*world, *player){
		0: func(w *world, _ *player) { w.tables, _ = transport.AppendTables(nil, &netloopv1.SchemaTables{}) },
	}, wait: 2 * time.Second},
	{name: "more than may be under way", link: Link{Delay: 50 * ms}, does: map[int]func(*world, *player){
		30: func(w *world, p *player) {
			for range 6 {
				reliable(p.server, bytes.Repeat([]byte("x"), transport.MaxPayload))
			}
		},
	}},
	{name: "two large messages over a narrow line", link: Link{Delay: 20 * ms, Bandwidth: 1_000_000}, does: map[int]func(*world, *player){
		30: func(w *world, p *player) {
			reliable(p.server, bytes.Repeat([]byte("x"), transport.MaxPayload))
			reliable(p.server, bytes.Repeat([]byte("x"), transport.MaxPayload))
			p.server.Flush(w.net.Now())
		},
	}, wait: time.Second},
}

// play returns the transcript of a story: for every tenth tick the arrivals, the outcomes of
// packets and the round trips, and at the end the reasons of both ends.
func (s *story) play(t *testing.T) string {
	var out strings.Builder
	w := newWorld(t, 7)
	p := w.dial(s.link)
	var tapped [2]int
	p.SetTap(func(b []byte, datagram bool) {
		if datagram {
			tapped[0] += len(b)
		} else {
			tapped[1] += len(b)
		}
	})
	kinds := map[string]int{}
	note := func(who string, as []transport.Arrival) {
		for _, a := range as {
			what := fmt.Sprintf("%s %d", who, a.Kind)
			if a.Kind == transport.MessageArrived {
				kinds[who+"'s clock"] = int(a.At)
			}
			if a.Kind == transport.TimeSample {
				kinds["time"] += int(a.T[1]-a.T[0]) + int(a.T[3]-a.T[2])
			}
			if a.Kind == transport.Gone {
				fmt.Fprintf(&out, "  %v %s has gone: %+v\n", w.net.Now(), who, *a.Closed)
			}
			kinds[what]++
		}
	}
	tick := func(n int) {
		w.run(time.Second / 60)
		if len(w.joined) > 0 {
			p.server = w.joined[0]
		}
		note("server", w.arrivals())
		note("client", p.arrivals())
		if n%10 != 0 {
			return
		}
		up, down := p.Counts()
		var facts [2]time.Duration
		if p.session != nil && p.server != nil {
			facts = [2]time.Duration{p.session.LinkFacts().SRTT, p.server.LinkFacts().SRTT}
		}
		var all []string
		for _, k := range slices.Sorted(maps.Keys(kinds)) {
			all = append(all, fmt.Sprintf("%s ×%d", k, kinds[k]))
		}
		fmt.Fprintf(&out, "  %4d up %v down %v rtt %v open %v: %s\n", n, up, down, facts, p.Open(), strings.Join(all, ", "))
	}
	for n := range 60 {
		if do := s.does[n]; do != nil {
			do(w, p)
		}
		now := w.net.Now()
		if p.server != nil {
			snapshot(p.server, now, bytes.Repeat([]byte{byte(n)}, 400), []byte("x"))
			reliable(p.server, bytes.Repeat([]byte{byte(n)}, 40*(n%8)))
		}
		if p.session != nil {
			p.session.Send(transport.Message{Method: 2, Payload: []byte{byte(n)}})
			p.session.Send(transport.Message{Method: 3, Reliable: true, Payload: []byte{byte(n)}})
			p.session.AckState(uint64(n + 1))
			p.session.RequestTime()
			p.session.Flush(now)
		}
		tick(n)
	}
	for n := range int(s.wait / time.Second) {
		w.run(time.Second - time.Second/60)
		tick(100 + 10*n)
	}
	fmt.Fprintf(&out, "  dialled %d times, by %v: %v; %d refused; %d bytes of datagrams and %d of the stream tapped; %d datagrams in\n",
		p.calls, p.at, p.err, w.net.Stats.Refused.Load(), tapped[0], tapped[1], w.net.Stats.DatagramsIn.Load())
	return out.String()
}

// A file holds the transcripts of a second of a game over all kinds of links, packet by packet: a
// change there changes every simulation.
func TestTranscript(t *testing.T) {
	var all strings.Builder
	for _, s := range stories {
		all.WriteString(s.name + "\n" + s.play(t) + "\n")
	}
	golden.Check(t, "testdata/transcript.txt", all.String())
}
