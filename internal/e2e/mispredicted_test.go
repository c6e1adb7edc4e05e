package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/netlooptest"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// reportGame gives each client a racer that never moves. With a sum, an object has the sum of the
// mispredictions that the clients have reported.
func reportGame(sum bool) game {
	return game{racing, func(room *netloop.Room) {
		room.AllowMoves()
		room.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
			racers.Spawn(t, racer{}, netloop.OwnedBy(c.ID()))
			return nil
		})
		helm.Handle(room, func(*netloop.Tick, *netloop.Client, rudder) {})
		if !sum {
			return
		}
		var o *netloop.Object[racer]
		room.OnStart(func(t *netloop.Tick) { o = racers.Spawn(t, racer{}) })
		room.On(netloop.Update, "test.sum", func(t *netloop.Tick) {
			n := uint64(0)
			for c := range t.Clients() {
				n += c.Link().Mispredicted
			}
			o.Edit(t).X = float32(n)
		})
	}}
}

// reporter is a client. Its prediction is wrong while the flag is set.
type reporter struct {
	*client.Client
	wrong bool
}

// prepare registers the wrong prediction.
func (p *reporter) prepare(c *client.Client) *reporter {
	p.Client = c
	client.Inputs(c, helm, func(*netloop.Tick) rudder { return rudder{} })
	client.Predict(c, racers, helm, func(s *racer, _ *netloop.Tick, _ rudder) {
		if p.wrong {
			s.X++
		}
	})
	return p
}

// counted returns the mispredictions that the client has counted, in all rooms.
func (p *reporter) counted() uint64 { return p.Stats().Prediction.Mispredicted }

// reported returns the number that a room has of a client.
func reported(r *netlooptest.PlayedRoom, c *client.Client) (n uint64) {
	r.Tick(func(t *netloop.Tick) {
		if one, ok := t.Client(c.ID()); ok {
			n = one.Link().Mispredicted
		}
	})
	return n
}

// The server has at most the number that the client has counted. Once the client predicts
// correctly, the server has that number, also if reports are lost and the connection breaks. A
// client in another room begins at 0.
func TestMispredictionsAreReported(t *testing.T) {
	w := netlooptest.New(t, reportGame(false))
	other := openRoom(t, w, netloop.RoomSpec{Name: "other", Rate: netloop.Hz(30)})
	p := new(reporter).prepare(w.JoinAs(client.Config{}, netlooptest.Link{Delay: 40 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.3}))
	w.Step(120)
	before := uint64(0) // mispredictions in earlier rooms
	run := func(r *netlooptest.PlayedRoom, wrong bool, ticks int) {
		t.Helper()
		p.wrong = wrong
		for range ticks {
			w.Step(1)
			if n := reported(r, p.Client); n > p.counted()-before {
				t.Fatalf("the server has %d mispredictions of %d", n, p.counted()-before)
			}
		}
		if n := reported(r, p.Client); !wrong && (n != p.counted()-before || n == 0) {
			t.Errorf("at rest the server has %d mispredictions of %d", n, p.counted()-before)
		}
	}
	room := w.Room("")
	run(room, true, 120)
	run(room, false, 600)
	first := reported(room, p.Client)
	w.Break(p.Client)
	run(room, true, 300)
	run(room, false, 600)
	if n := reported(room, p.Client); n <= first || p.Stats().Resumes != 1 {
		t.Errorf("after %d resumes the server has %d mispredictions, before %d", p.Stats().Resumes, n, first)
	}

	if err := p.Move(seats(t, w, "other", netloop.Reservation{})[0]); err != nil {
		t.Fatal(err)
	}
	w.Step(240)
	plays(t, "a moved client", p.Client, "other")
	if before = p.counted(); reported(other, p.Client) != 0 {
		t.Errorf("the other room has %d mispredictions of none", reported(other, p.Client))
	}
	run(other, true, 120)
	run(other, false, 600)
}

// A client sends a report at most once a second, and none without a misprediction.
func TestMispredictionsCostAReportASecond(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		w := netlooptest.New(t, reportGame(false))
		p := new(reporter).prepare(w.Join("", nil, perfect))
		w.Step(120)
		datagrams, reports := 0, 0
		w.Forge(p.Client, func(b []byte, datagram bool) []byte {
			var d netloopv1.Datagram
			if datagram {
				if err := proto.Unmarshal(b, &d); err != nil {
					t.Fatal(err)
				}
				datagrams++
				if d.GetMispredicted() > 0 {
					reports++
				}
			}
			return b
		}, nil)
		p.wrong = wrong
		w.Step(600)
		if datagrams < 500 || wrong != (reports > 0) || reports > 11 {
			t.Errorf("wrong %t: %d reports in %d datagrams of 10 s", wrong, reports, datagrams)
		}
	}
}

// Reports neither keep a room awake nor wake it, even if a hostile client sends one with each
// datagram. The room has the number once it is awake.
func TestReportsOfMispredictionsLetARoomSleep(t *testing.T) {
	w := netlooptest.New(t, reportGame(false), netlooptest.Room(sleepingSpec))
	p := new(reporter).prepare(w.Join("", nil, netlooptest.Link{Delay: 30 * time.Millisecond}))
	w.Step(60)
	sent := uint64(0)
	w.Forge(p.Client, func(b []byte, datagram bool) []byte {
		if datagram {
			sent++
			b = protowire.AppendVarint(protowire.AppendTag(b, 10, protowire.VarintType), sent)
		}
		return b
	}, nil)
	asleep := func() bool { return w.Room("").Asleep() }
	reported(w.Room(""), p.Client) // A look between two ticks wakes the room.
	w.Step(5)
	w.Until(200, asleep)
	for range 100 {
		if w.Step(1); !asleep() {
			t.Fatal("the room wakes")
		}
	}
	reported(w.Room(""), p.Client)
	w.Step(2)
	if n := reported(w.Room(""), p.Client); n < 100 || n > sent || p.State().Phase != client.Playing {
		t.Errorf("the server has %d of %d mispredictions", n, sent)
	}
}

// A game that reads the number replays to the same state, because a recording has the reports.
func TestReportedMispredictionsReplay(t *testing.T) {
	var file bytes.Buffer
	w := netlooptest.New(t, reportGame(true), netlooptest.Record(&file))
	p := new(reporter).prepare(w.Join("", nil, bad))
	w.Step(120)
	p.wrong = true
	w.Step(300)
	sum := float32(0)
	w.Look(p.Client, func(t *netloop.Tick) {
		for o := range racers.Owned(t, 0) {
			sum = o.State().X
		}
	})
	if sum == 0 {
		t.Fatal("nothing was reported")
	}
	w.Drain(0)
	r, err := netloop.NewReplay(netloop.Config{}, reportGame(true), bytes.NewReader(file.Bytes()))
	for err == nil {
		_, err = r.Step()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// The inspector and the metrics of a server show the numbers of clients over QUIC and a WebSocket.
func TestTheInspectorShowsMispredictions(t *testing.T) {
	for _, carrier := range []client.Transport{client.QUIC, client.WebSocket} {
		t.Run(carrier.String(), func(t *testing.T) {
			s, _ := serveAs(t, reportGame(false), netloop.Config{Web: "127.0.0.1:0"})
			addr := s.Addr().String()
			if carrier == client.WebSocket {
				addr = s.WebAddr().String()
			}
			c, err := client.Dial(t.Context(), addr, client.Config{Schema: racing, Transport: carrier})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			p := new(reporter).prepare(c)
			p.wrong = true
			waitFor(t, func() bool { c.Step(5 * time.Millisecond); return p.counted() > 3 })
			p.wrong = false
			waitFor(t, func() bool {
				c.Step(5 * time.Millisecond)
				all := shownClients(t, s)
				return len(all) == 1 && all[0].Mispredicted == p.counted()
			})
			waitFor(t, func() bool {
				c.Step(5 * time.Millisecond)
				_, body := page(t, s, "/metrics")
				return strings.Contains(body, fmt.Sprintf("\nnetloop_mispredictions_reported_total %d\n", p.counted()))
			})
		})
	}
}

// shownClients returns the clients in /api/clients.
func shownClients(t *testing.T, s *netloop.Server) []inspect.Client {
	t.Helper()
	var all inspect.Clients
	_, body := page(t, s, "/api/clients")
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	return all.Clients
}
