package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// The messages that rooms send each other.
var (
	between = netloop.NewSchema("between", 1, 0)
	rumours = netloop.NewRPC[roomMessage](between, "rumour", netloop.ServerOnly(), netloop.AtStage(
		netloop.Update, netloop.Initialization, netloop.EarlyUpdate, netloop.FixedUpdate, netloop.PreUpdate, netloop.PreLateUpdate, netloop.PostLateUpdate))
	known = netloop.NewClass[roomMessage](between, "known")
)

// roomMessage is a message between rooms. N is unique per sender.
type roomMessage struct {
	From  uint32 // number of the sending room; 0 is the program
	N     uint32
	Stage uint8
	Hops  uint8
}

// roomNumber distinguishes rooms that have the same name one after another.
type roomNumber struct{ N uint32 }

// messageLog records the messages of all rooms.
type messageLog struct {
	t    *testing.T
	sent map[[2]uint32]*posted // by sender and N
	next map[uint32]uint32     // N, by sender
	said map[uint32]string     // received messages and results of each room, with their ticks
	last map[string]uint32     // the newest N of a sender in a room at a stage
}

// posted is the outcome of one message.
type posted struct {
	asked, told bool
	ran         int
	err         error
}

func newMessageLog(t *testing.T) *messageLog {
	return &messageLog{t: t, sent: map[[2]uint32]*posted{}, next: map[uint32]uint32{}, said: map[uint32]string{}, last: map[string]uint32{}}
}

// gossipGame is a game of rooms that send each other random messages.
type gossipGame struct {
	book   *messageLog
	server *netloop.Server
}

func (*gossipGame) Schema() *netloop.Schema { return between }

func (g *gossipGame) Open(r *netloop.Room) error {
	book, self := g.book, roomNumber{1}
	g.server = r.Server()
	if err := r.Params(&self); err != nil {
		return err
	}
	r.OnStart(func(tick *netloop.Tick) {
		known.Spawn(tick, roomMessage{From: self.N})
		book.chat(tick, self.N)
	})
	rumours.HandleRoom(r, func(tick *netloop.Tick, from *netloop.Sender, m roomMessage) error {
		book.ran(tick, self.N, from, m)
		for o := range known.All(tick) {
			o.Edit(tick).N += m.N
		}
		if m.Hops > 0 {
			book.send(tick, self.N, from.Room, m.Hops-1)
		}
		switch tick.Rand().IntN(200) {
		case 0:
			panic("a rumour too many")
		case 1:
			return errors.New("refused by the test")
		}
		return nil
	})
	return nil
}

// chat lets a room send at random ticks.
func (b *messageLog) chat(tick *netloop.Tick, self uint32) {
	rng := tick.Rand()
	many := 1 + rng.IntN(4)
	switch rng.IntN(120) {
	case 0:
		many = 300 // More than the limit of messages waiting in a room.
	case 1:
		many = 1030 // More than the limit of a sender.
	}
	to := roomNames[rng.IntN(len(roomNames))]
	for range many {
		b.send(tick, self, to, uint8(rng.IntN(3)))
	}
	if tick.Room().Spec().Name != "" && rng.IntN(40) == 0 {
		tick.Room().Close(tick, netloop.CodeGame, "enough")
	}
	tick.AfterFunc(time.Duration(50+rng.IntN(3000))*time.Millisecond, func(tick *netloop.Tick) { b.chat(tick, self) })
}

// send sends a message to a room or to the program, and requests the result of every second one.
func (b *messageLog) send(tick *netloop.Tick, self uint32, to string, hops uint8) {
	b.next[self]++
	stages := netloop.AllStages()
	m := roomMessage{From: self, N: b.next[self], Stage: uint8(stages[tick.Rand().IntN(len(stages))]), Hops: hops}
	p := &posted{asked: m.N%2 == 0}
	b.sent[[2]uint32{self, m.N}] = p
	var then func(*netloop.Tick, error)
	if p.asked {
		then = func(tick *netloop.Tick, err error) {
			if p.told {
				b.t.Errorf("room %d gets the result of %d twice", self, m.N)
			}
			p.told, p.err = true, err
			b.said[self] += fmt.Sprint(tick.Number(), " of ", m.N, err, ";")
		}
	}
	if tick.Rand().IntN(10) == 0 {
		m.Stage = uint8(netloop.Update)
		rumours.SendServer(tick, m, then)
		return
	}
	rumours.SendRoom(tick, to, m, then, netloop.RunAt(netloop.Stage(m.Stage)))
}

// ran records an arrival, and checks the sender, the stage, and the order of that sender's
// messages.
func (b *messageLog) ran(tick *netloop.Tick, self uint32, from *netloop.Sender, m roomMessage) {
	b.said[self] += fmt.Sprint(tick.Number(), tick.Stage(), from, m, ";")
	b.once(m, fmt.Sprint(self, " ", m.Stage))
	if tick.Stage() != netloop.Stage(m.Stage) {
		b.t.Errorf("a message for %v runs at %v", netloop.Stage(m.Stage), tick.Stage())
	}
	if from == nil != (m.From == 0) || from != nil && (from.Kind == "table") != (m.From > 1) {
		b.t.Errorf("room %d got %+v from %+v", self, m, from)
	}
}

// once checks that a message arrives once, and after the sender's earlier ones.
func (b *messageLog) once(m roomMessage, where string) {
	if p := b.sent[[2]uint32{m.From, m.N}]; p != nil {
		p.ran++
	}
	line := fmt.Sprint(m.From, " in ", where)
	if b.last[line] >= m.N {
		b.t.Errorf("%d of room %d runs after %d", m.N, m.From, b.last[line])
	}
	b.last[line] = m.N
}

// sumOf adds up the series of a metric family that have the given label.
func sumOf(t testing.TB, s *netloop.Server, family, label string) (n int) {
	t.Helper()
	rec := httptest.NewRecorder()
	m := bridge.Netloop.Server(s).Room.Metrics()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(rec.Body.String()) {
		series, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(series, family+"{") || !strings.Contains(series, label) {
			continue
		}
		one, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		n += one
	}
	return n
}

// While rooms are opened, closed, drained and asleep, each message between rooms and the program
// runs exactly once or is counted as lost. The sender's callback gets the same result. Messages
// of one sender keep their order. Each room's recording replays by itself.
func TestEachMessageBetweenRoomsRunsOnceOrIsCounted(t *testing.T) {
	played, ran, failed, slept := 0, 0, map[netloop.Code]int{}, 0
	seeds.Each(t, 30, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 18))
		g := &gossipGame{book: newMessageLog(t)}
		book := g.book
		files := map[uint32]*bytes.Buffer{1: {}}
		w := netlooptest.New(t, g, netlooptest.Seed(seed), netlooptest.AllowPanics(), netlooptest.Record(files[1]),
			netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(30), Sleep: seed%2 == 1}),
			netlooptest.RecordRoom(func(netloop.RoomInfo) (io.WriteCloser, error) {
				s := new(memoryFile)
				files[uint32(1+len(files))] = &s.Buffer
				return s, nil
			}))
		server := g.server
		if err := rumours.HandleServer(server, func(_ context.Context, from *netloop.Sender, m roomMessage) {
			if from == nil {
				t.Errorf("the program gets %+v from an unknown sender", m)
			}
			book.once(m, "the program")
		}); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			name := roomNames[rng.IntN(len(roomNames))]
			switch number := uint32(1 + len(files)); rng.IntN(4) {
			case 0, 1:
				spec := netloop.RoomSpec{
					Name: name, Kind: "table", Rate: netloop.Hz(uint64(5 + rng.IntN(55))), FixedRate: netloop.Hz(uint64(5 + rng.IntN(55))),
					Sleep: rng.IntN(3) > 0, Params: roomNumber{number},
				}
				_, _ = w.OpenRoom(spec) // It may be open already.
			case 2:
				book.next[0]++
				_ = rumours.PostRoom(t.Context(), server, name, roomMessage{N: book.next[0], Stage: uint8(netloop.Update)})
			default:
				if name != "" && rng.IntN(3) == 0 {
					_ = server.CloseRoom(name, time.Duration(rng.IntN(500))*time.Millisecond, netloop.CodeGame, "over")
				}
			}
			for range 10 {
				w.Step(1)
				if w.Room("").Asleep() {
					slept++
				}
			}
		}
		w.Drain(0)
		w.Step(1)
		all := 0
		for id, p := range book.sent {
			var refused *netloop.Refusal
			switch {
			case p.ran > 1:
				t.Errorf("message %v ran %d times", id, p.ran)
			case p.told && (p.err == nil) != (p.ran == 1):
				t.Errorf("message %v ran %d times, and its sender got %v", id, p.ran, p.err)
			case p.told && p.err != nil && !errors.As(p.err, &refused):
				t.Errorf("message %v: %v", id, p.err)
			}
			if refused != nil {
				failed[refused.Code]++
			}
			all += p.ran
		}
		if counted := sumOf(t, server, "netloop_queue_drops_total", `queue="room_message"`); all+counted != len(book.sent) {
			t.Errorf("%d messages: %d ran, %d were counted as lost", len(book.sent), all, counted)
		}
		ran += all
		played++
		replayEach(t, g, files)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	})
	// With the race detector there are too few seeds to reach every case.
	if played < 3 {
		return
	}
	if ran == 0 || slept == 0 || failed[netloop.CodeRoomUnknown] == 0 || failed[netloop.CodeBusy] == 0 {
		t.Errorf("%d messages ran, failed %v; rooms slept %d ticks", ran, failed, slept)
	}
}

// replayEach replays the recording of each room by itself, which must get the same messages and
// results.
func replayEach(t *testing.T, g *gossipGame, files map[uint32]*bytes.Buffer) {
	t.Helper()
	played := g.book.said
	for number, file := range files {
		g.book = newMessageLog(t)
		p, err := netloop.NewReplay(netloop.Config{Log: slog.New(slog.DiscardHandler)}, g, file)
		var last, tick netloop.ReplayTick
		for err == nil {
			if tick, err = p.Step(); err == nil {
				last = tick
			}
		}
		rest, same := strings.CutPrefix(played[number], g.book.said[number])
		// The end of a room delivers the results of messages after the last tick.
		for end := range strings.SplitSeq(strings.TrimSuffix(rest, ";"), ";") {
			same = same && (end == "" || strings.HasPrefix(end, fmt.Sprint(last.Tick, " of ")))
		}
		if !same || !errors.Is(err, io.EOF) {
			t.Errorf("room %d: the replay ends with %v; the room then got %.200q", number, err, rest)
		}
	}
}
