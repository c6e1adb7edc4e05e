package client

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// The data of a rig's server.
var (
	rigSchema = netloop.NewSchema("rig", 1, 0)
	rigPlaces = netloop.NewClass[rigPlace](rigSchema, "place")
	rigWords  = netloop.NewRPC[rigWord](rigSchema, "words")
	rigLoose  = netloop.NewRPC[rigWord](rigSchema, "loose", netloop.Unreliable())
	rigAsk    = netloop.NewCall[rigWord, rigWord](rigSchema, "ask", netloop.Timeout(time.Second))
)

type (
	rigPlace struct{ X int32 }
	rigWord  struct{ N uint64 }
)

// rig is a client without a network: the test plays the transport and the server.
type rig struct {
	*Client
	t     *testing.T
	clock *clock.Virtual
	link  *transport.Link
	said  strings.Builder // the log
}

// newRig returns a rig with a client that remains closed after a break, and accepts any silence.
func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOf(t, Config{Schema: rigSchema, Reconnect: Reconnect{Off: true}})
}

func newRigOf(t *testing.T, cfg Config) *rig {
	t.Helper()
	r := &rig{t: t, clock: clock.NewVirtual()}
	cfg.Log = slog.New(slog.NewTextHandler(&r.said, nil))
	c, err := newClient(cfg, r.clock)
	if err != nil {
		t.Fatal(err)
	}
	r.Client = c
	if cfg.LostAfter == 0 {
		c.conn.cfg.LostAfter = math.MaxInt64
	}
	return r
}

// connect brings a connection with this welcome.
func (r *rig) connect(w *netloopv1.Welcome) { r.link = welcomed(r.Client, w) }

// welcomed brings a client its first connection.
func welcomed(c *Client, w *netloopv1.Welcome) *transport.Link {
	e := c.conn.newAttempt()
	s, link := transport.NewSession(e.config)
	e.finish(s, w, nil)
	c.connected(e)
	return link
}

// newJoined is a rig that has been let in, at 10 Hz.
func newJoined(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	hz := &netloopv1.Rate{Num: 10, Den: 1}
	r.connect(&netloopv1.Welcome{
		Protocol: 1, ClientId: 1, TickRate: hz, FixedRate: hz, SendEvery: 1, Minor: 3, Epoch: &netloopv1.Epoch{Tick: 1},
	})
	return r
}

// frame lets time go on, and runs a frame.
func (r *rig) frame(d time.Duration) {
	r.clock.Advance(d)
	r.Step(d)
}

// arrives runs a frame with the given arrivals.
func (r *rig) arrives(all ...transport.Arrival) {
	r.t.Helper()
	for _, a := range all {
		if a.Session = r.conn.session; !r.conn.session.Inbox().Push(a) {
			r.t.Fatal("the inbox does not take it")
		}
	}
	r.frame(0)
}

// sent flushes, and returns the kinds of the arrivals at the server.
func (r *rig) sent() (kinds []transport.ArrivalKind) {
	r.t.Helper()
	for _, a := range r.served() {
		kinds = append(kinds, a.Kind)
	}
	return kinds
}

// served flushes, and returns the arrivals at the server.
func (r *rig) served() []transport.Arrival {
	r.t.Helper()
	inbox := transport.NewInbox(0, nil)
	_, far := transport.NewSession(transport.SessionConfig{Inbox: inbox})
	r.conn.session.Flush(r.clock.Now())
	_ = r.link.SendDatagrams(r.clock.Now, func(b []byte) error { // It never fails.
		far.ReceiveDatagram(0, bytes.Clone(b))
		return nil
	})
	if err := far.ReceiveStream(0, r.link.AppendStream(nil, 1<<20)); err != nil {
		r.t.Fatal(err)
	}
	return inbox.Swap(nil)
}

// word is a message of the server.
func word(n uint64, tick uint64) transport.Arrival {
	m := bridge.Netloop.Method(rigWords)
	return transport.Arrival{
		Kind: transport.MessageArrived, Size: 1, Message: transport.Message{Method: m.Queue.ID, Tick: tick},
		Decoded: schema.Erase(rigWord{n}),
	}
}

// states is the state of a server, sent to a rig.
type states struct {
	world  *netvar.World
	peer   *netvar.Peer
	places []*rigPlace
	all    []*state.Object
}

func (r *rig) states(places int) *states {
	s := &states{world: netvar.NewWorld(r.schema.Classes())}
	s.peer = s.world.NewPeer(1)
	for range places {
		p := new(rigPlace)
		s.places = append(s.places, p)
		s.all = append(s.all, s.world.Spawn(bridge.Netloop.Class(rigPlaces).State, unsafe.Pointer(p), 0, 1))
	}
	return s
}

// at changes all places, and returns the packets of a tick that arrive at a time.
func (s *states) at(tick uint64, now time.Duration) (all []transport.Arrival) {
	for i, p := range s.places {
		p.X = int32(tick)
		s.world.Edit(s.all[i])
	}
	s.world.Capture(tick)
	packets, _ := s.peer.AppendSnapshot(nil, tick, netvar.Limit{Packets: 8, PacketSize: packet.MaxSize})
	for _, p := range packets {
		all = append(all, transport.Arrival{Kind: transport.State, State: p, At: now})
	}
	return all
}
