package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/net/memnet"
	"github.com/netloop/netloop/internal/netvar/replica"
	declared "github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// The model of sessions. Programs connect, break, reconnect, replace each other, are kicked and
// meet a restarted server, all at random, while both sides number their messages. The test keeps
// the expected state of each side:
//
//   - a life is a program's time as one client, from its join until it cannot resume;
//   - in a life all reliable messages arrive once each and in order, in both directions, whatever
//     connections break; at most the last ones of an ended life are missing;
//   - a client keeps its id, its object and its record while it is in the room;
//   - the game's hooks run for each client: join, then drops and resumes in turn, then leave.
var (
	lifeSchema = netloop.NewSchema("lives", 1, 0)
	pawns      = netloop.NewClass[pawn](lifeSchema, "pawn")
	upward     = netloop.NewRPC[numbered](lifeSchema, "up")
	downward   = netloop.NewRPC[numbered](lifeSchema, "down")
)

type pawn struct{ Moves int32 }

// numbered is a message of a life, with its number.
type numbered struct{ Program, Life, Seq uint32 }

const (
	lifeRate  = 20
	lifeGrace = 3 * time.Second
	lifeLost  = time.Second
)

// sessionModel is one run of the model.
type sessionModel struct {
	t            *testing.T
	seed         uint64
	rng          *rand.Rand
	net          *memnet.Network
	game         *lifeGame
	programs     []*program
	all          []*program // also forgotten ones: their data may be in flight
	programsMade uint32
}

func (w *sessionModel) fatalf(format string, a ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d, tick %d: %s", w.seed, w.game.tick, fmt.Sprintf(format, a...))
}

// lifeGame is one instance of a server, with its expected state.
type lifeGame struct {
	w      *sessionModel
	server bridge.Server
	base   time.Duration // of the network's time, at its start
	tick   uint64
	quiet  bool
	perID  *netloop.PerClient[lifeRecord]
	heard  map[[2]uint32]uint32 // the last message of each life
	state  map[netloop.ClientID]string
	kicked map[netloop.ClientID]bool
	// How often each player joined anew, and at which of these counts a secret was issued.
	turns, issued map[string]int
}

// lifeRecord is the game's record of a client.
type lifeRecord struct {
	join *netloop.Join
	life uint32
	sent uint32
	pawn *netloop.Object[pawn]
}

func (*lifeGame) Schema() *netloop.Schema { return lifeSchema }

func (g *lifeGame) Open(r *netloop.Room) error {
	g.perID = netloop.NewPerClient[lifeRecord](r)
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Subject = j.Token; return nil })
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		g.become(c, "", "there")
		delete(g.kicked, c.ID()) // A player that rejoins at once may get the old id.
		*g.perID.Of(c) = lifeRecord{join: c.Join(), pawn: pawns.Spawn(t, pawn{}, netloop.OwnedBy(c.ID()))}
		return nil
	})
	r.OnDrop(func(_ *netloop.Tick, c *netloop.Client) { g.become(c, "there", "dropped") })
	r.OnResume(func(_ *netloop.Tick, c *netloop.Client) {
		if g.state[c.ID()] != "there" {
			g.become(c, "dropped", "there")
		}
		record := g.perID.Of(c)
		if record.pawn == nil || !record.pawn.Alive() || record.pawn.Owner() != c.ID() {
			g.w.fatalf("client %d is back without its object", c.ID())
		}
		if record.join != c.Join() { // Another program.
			record.join, record.sent = c.Join(), 0
			record.life++
		}
	})
	r.OnLeave(func(_ *netloop.Tick, c *netloop.Client, _ *netloop.Closed) {
		if g.state[c.ID()] == "" {
			g.w.fatalf("client %d leaves and was not there", c.ID())
		}
		delete(g.state, c.ID())
	})
	r.On(netloop.Update, "model.play", g.play)
	upward.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m numbered) error {
		life := [2]uint32{m.Program, m.Life}
		if m.Seq != g.heard[life]+1 {
			g.w.fatalf("program %d, life %d: message %d after %d", m.Program, m.Life, m.Seq, g.heard[life])
		}
		g.heard[life] = m.Seq
		return nil
	})
	return nil
}

// become moves a client from one state to another.
func (g *lifeGame) become(c *netloop.Client, from, to string) {
	if g.state[c.ID()] != from {
		g.w.fatalf("client %d becomes %s from %q", c.ID(), to, g.state[c.ID()])
	}
	g.state[c.ID()] = to
}

// play changes the objects and sends messages to clients.
func (g *lifeGame) play(t *netloop.Tick) {
	n := 0
	for c := range t.Clients() {
		n++
		if c.Connected() != (g.state[c.ID()] == "there" && !g.kicked[c.ID()]) {
			g.w.fatalf("client %d is connected: %v, and %s", c.ID(), c.Connected(), g.state[c.ID()])
		}
		if g.quiet || g.w.rng.IntN(2) == 0 {
			continue
		}
		record := g.perID.Of(c)
		record.pawn.Edit(t).Moves++
		record.sent++
		downward.Send(t, netloop.To(c.ID()), numbered{Life: record.life, Seq: record.sent})
	}
	if n != len(g.state) || n != pawns.Len(t) {
		g.w.fatalf("%d clients, %d in the mirror, %d objects", n, len(g.state), pawns.Len(t))
	}
}

// sentTo returns the number of messages sent to a client in its life.
func (g *lifeGame) sentTo(id uint64) (n uint32) {
	g.w.look(func(t *netloop.Tick) {
		if c, ok := t.Client(netloop.ClientID(id)); ok {
			n = g.perID.Of(c).sent
		}
	})
	return n
}

func (w *sessionModel) look(fn func(*netloop.Tick)) {
	room := w.game.server.Room
	if err := room.Inspect(func() { fn(w.game.server.Tick.(*netloop.Tick)) }); err != nil {
		w.fatalf("%v", err)
	}
}

// start makes a new server.
func (w *sessionModel) start() {
	g := &lifeGame{w: w, base: w.net.Now(), heard: map[[2]uint32]uint32{}, state: map[netloop.ClientID]string{}, kicked: map[netloop.ClientID]bool{}, turns: map[string]int{}, issued: map[string]int{}}
	s, err := netloop.New(netloop.Config{
		Seed: w.seed, LostAfter: lifeLost,
		Room: netloop.RoomSpec{Rate: netloop.Hz(lifeRate), MaxClients: 5, KeepDropped: lifeGrace},
	}, g)
	if err != nil {
		w.t.Fatal(err)
	}
	g.server = bridge.Netloop.Server(s)
	g.server.UseClock(lifeClock{w.net})
	w.net.Serve(lifeHandler{g.server.Handler, g})
	w.game = g
}

type lifeClock struct{ net *memnet.Network }

func (c lifeClock) Now() time.Duration                           { return c.net.Now() }
func (lifeClock) Wall() time.Time                                { return time.Time{} }
func (lifeClock) WaitUntil(context.Context, time.Duration) error { return context.Canceled }

// step runs a tick of the server and a frame of each program.
func (w *sessionModel) step() {
	g := w.game
	g.tick++
	in := g.server.Room.Timeline().Input(g.tick)
	in.Start, in.Epoch = g.base+in.GameTime, loop.Epoch{Tick: 1, At: g.base}
	w.net.Advance(in.Start)
	if err := g.server.Room.Step(in); err != nil {
		w.fatalf("%v", err)
	}
	w.net.Advance(in.Start + time.Second/lifeRate/2)
	for _, p := range w.programs {
		p.frame()
	}
}

// program is a client's program, with its expected state.
type program struct {
	w       *sessionModel
	number  uint32
	subject string

	conn    *memnet.Conn
	session *transport.Session
	inbox   *transport.Inbox
	dialled int // number of dials, to detect the answer of an older one
	over    bool

	secret, older   []byte // of the newest and the previous welcome
	game            *lifeGame
	removedByServer bool // its client was kicked or has left
	id              uint64
	life            uint32
	backlog         *transport.Backlog
	replica         *replica.Replica
	sent, heard     uint32 // messages of this life
	serverLife      uint32 // the life in the server's messages
	had, before     uint64 // reliable messages of the room, and those before this connection
	accepted        bool
}

func (w *sessionModel) newProgram(subject string) *program {
	w.programsMade++
	p := &program{w: w, number: w.programsMade, subject: subject, inbox: transport.NewInbox(0, nil), backlog: new(transport.Backlog)}
	w.programs, w.all = append(w.programs, p), append(w.all, p)
	p.dial(nil)
	return p
}

// dial connects, with a resume secret or without. The older connection is dropped.
func (p *program) dial(secret []byte) {
	if p.session != nil && p.w.rng.IntN(2) == 0 {
		p.conn.Drop() // Otherwise the server must detect the newer one.
	}
	p.session = nil
	p.dialled++
	now := p.dialled
	hello := bridge.Netloop.Schema(lifeSchema).Hello()
	hello.Token = p.subject
	hello.Resume = &netloopv1.Resume{Token: secret, Received: p.had, Kept: p.replica != nil, Attempt: uint64(now)}
	link := memnet.Link{Delay: time.Duration(p.w.rng.IntN(80)) * time.Millisecond, Loss: float64(p.w.rng.IntN(3)) / 20}
	cfg := transport.SessionConfig{Inbox: p.inbox, Decode: decodeNumbered}
	p.conn = p.w.net.Dial(link, transport.Greeting{Hello: hello}, cfg, func(s *transport.Session, w *netloopv1.Welcome, err error) {
		if p.dialled == now && err == nil {
			p.welcomed(s, w)
		}
	})
}

// secretIsCurrent reports whether its player has not joined anew since its secret was issued.
func (p *program) secretIsCurrent() bool {
	return p.subject == "" || p.game.turns[p.subject] == p.game.issued[string(p.secret)]
}

func decodeNumbered(m *transport.Message) (method, decoded any, err error) {
	decoded, err = bridge.Netloop.Schema(lifeSchema).DecodeOnClient(m)
	return nil, decoded, err
}

// welcomed handles a welcome: the life continues, or a new one begins.
func (p *program) welcomed(s *transport.Session, w *netloopv1.Welcome) {
	if w.GetResumed() && (p.game != p.w.game || w.GetClientId() != p.id) {
		p.w.fatalf("program %d of client %d comes back as client %d, same server: %v", p.number, p.id, w.GetClientId(), p.game == p.w.game)
	}
	p.session, p.accepted = s, false
	if w.GetResumed() {
		p.replica.Resume()
	} else {
		p.life++
		p.removedByServer = false
		p.sent, p.heard, p.had = 0, 0, 0
		p.backlog = new(transport.Backlog)
		p.replica = replica.New(bridge.Netloop.Schema(lifeSchema).Classes())
	}
	p.older, p.secret = p.secret, w.GetResumeToken()
	p.id, p.game, p.before = w.GetClientId(), p.w.game, p.had
	s.Keep(p.backlog)
	if w.GetResumed() {
		s.AwaitPeer()
	}
}

// frame handles arrived data, and sends messages.
func (p *program) frame() {
	for _, a := range p.inbox.Swap(nil) {
		if a.Session == p.session {
			p.arrived(&a)
		}
	}
	if p.session == nil {
		return
	}
	if !p.over && p.w.rng.IntN(2) == 0 {
		p.sent++
		m := bridge.Netloop.Method(upward)
		payload, err := m.In.Append(nil, declared.Erase(numbered{p.number, p.life, p.sent}))
		if err != nil || !p.session.Send(transport.Message{Method: m.Queue.ID, Reliable: true, Payload: payload}) {
			p.w.fatalf("program %d: message %d is refused: %v", p.number, p.sent, err)
		}
	}
	p.session.Flush(p.w.net.Now())
}

func (p *program) arrived(a *transport.Arrival) {
	switch a.Kind {
	case transport.Accepted:
		p.accepted = true
		if !p.session.Resend(a.Value) {
			p.w.fatalf("program %d: the server has had %d messages of %d", p.number, a.Value, p.sent)
		}
	case transport.Received:
		if !p.backlog.Confirm(a.Value) {
			p.w.fatalf("program %d: the server says to have %d messages of %d", p.number, a.Value, p.sent)
		}
	case transport.MessageArrived:
		p.had = p.before + a.Number
		p.session.Received(p.had, a.Size)
		m := declared.Open[numbered](a.Decoded)
		if p.heard == 0 {
			p.serverLife = m.Life
		}
		if !p.accepted || m.Seq != p.heard+1 || m.Life != p.serverLife {
			p.w.fatalf("program %d: message %d of life %d comes after %d of %d", p.number, m.Seq, m.Life, p.heard, p.serverLife)
		}
		p.heard = m.Seq
	case transport.State:
		if applied, err := p.replica.Apply(a.State); err != nil {
			p.w.fatalf("program %d: %v", p.number, err)
		} else if applied.Ack {
			p.session.AckState(applied.Packet)
		}
	case transport.Gone:
		p.session = nil
		p.over = p.over || a.Closed.Code == transport.CodeReplaced // By another program.
	}
}

// lifeHandler checks at each admission whether a client with a secret resumes its seat.
type lifeHandler struct {
	transport.Handler
	game *lifeGame
}

func (d lifeHandler) Admit(ctx context.Context, hello *netloopv1.Hello, remote string) (*transport.Admitted, error) {
	a, err := d.Handler.Admit(ctx, hello, remote)
	secret := hello.GetResume().GetToken()
	back := err == nil && a.Welcome.GetResumed()
	var owner *program
	for _, p := range d.game.w.all {
		if len(secret) > 0 && (bytes.Equal(secret, p.secret) || bytes.Equal(secret, p.older)) && p.game == d.game {
			owner = p
		}
	}
	var refused *transport.Refusal
	overtaken := errors.As(err, &refused) && refused.Code == transport.CodeReplaced
	switch {
	case overtaken && owner != nil && bytes.Equal(secret, owner.secret) && hello.GetResume().GetAttempt() >= uint64(owner.dialled):
		d.game.w.fatalf("the newest attempt is refused as an older one")
	case overtaken:
	case back && (owner == nil || owner.id != a.Welcome.GetClientId()):
		d.game.w.fatalf("a client resumes with an unknown secret")
	case !back && owner != nil && bytes.Equal(secret, owner.secret) && !owner.removedByServer && owner.secretIsCurrent() && d.game.state[netloop.ClientID(owner.id)] != "":
		d.game.w.fatalf("program %d does not come back with its secret: %v", owner.number, err)
	}
	if err == nil {
		if !back {
			d.game.turns[hello.GetToken()]++
		}
		d.game.issued[string(a.Welcome.GetResumeToken())] = d.game.turns[hello.GetToken()]
	}
	return a, err
}

// act makes one random change.
func (w *sessionModel) act() {
	p := w.programs[w.rng.IntN(len(w.programs))]
	if p.over {
		return
	}
	switch w.rng.IntN(16) {
	case 0, 1, 2: // The connection breaks, and the program notices.
		p.dial(p.secret)
	case 3: // It breaks, and the program is silent for a while, perhaps too long.
		p.conn.Drop()
		p.session = nil
	case 4: // It reconnects twice at once.
		p.dial(p.secret)
		p.dial(p.secret)
	case 5: // The answer to its hello is lost.
		p.dial(p.secret)
		p.conn.Drop()
	case 6: // An attacker has an older secret.
		attacker := w.newProgram("")
		if attacker.conn.Drop(); len(p.older) > 0 {
			attacker.dial(p.older)
		}
	case 7: // The player starts one or two other programs.
		for range 1 + w.rng.IntN(2) {
			if p.subject != "" {
				p.over = true
				p = w.newProgram(p.subject)
			}
		}
	case 8: // The game kicks a client.
		if c, ok := w.game.server.Room.Client(p.id); ok && p.game == w.game {
			c.Kick(netloop.CodeKicked, "")
			p.removedByServer, w.game.kicked[netloop.ClientID(p.id)] = true, true
		}
	case 9: // It closes the connection.
		if p.session != nil {
			p.session.Close(transport.CodeLeft, "")
			p.removedByServer = true
		}
	case 10:
		if w.rng.IntN(4) == 0 {
			w.restart(w.rng.IntN(2) == 0)
		}
	}
	for _, p := range w.programs { // Disconnected programs reconnect at some time.
		if p.session == nil && !p.over && w.rng.IntN(20) == 0 {
			p.dial(p.secret)
		}
	}
}

// restart ends the server, with a close frame or without, and starts another one.
func (w *sessionModel) restart(word bool) {
	if word {
		if err := w.game.server.Room.Shutdown.Finish(transport.CodeClosing, ""); err != nil {
			w.fatalf("%v", err)
		}
		if len(w.game.state) > 0 {
			w.fatalf("%d clients are left in a room that has ended", len(w.game.state))
		}
		w.net.Advance(w.net.Now() + time.Second)
	}
	for _, p := range w.programs {
		p.conn.Drop()
		p.session = nil
	}
	w.start()
}

// settle lets every active program connect, send its remaining messages and be quiet.
func (w *sessionModel) settle() {
	alive, players := w.programs[:0], map[string]bool{"": false}
	for _, p := range slices.Backward(slices.Clone(w.programs)) {
		double := players[p.subject]
		players[p.subject] = p.subject != ""
		if p.over || double || len(alive) == 5 {
			p.conn.Drop()
			continue
		}
		alive = append(alive, p)
	}
	w.programs = alive
	for range 4 * lifeRate * int(lifeGrace/time.Second) {
		for _, p := range w.programs {
			if p.session == nil && w.rng.IntN(lifeRate) == 0 {
				p.dial(p.secret)
			}
		}
		w.step()
	}
	for _, p := range w.programs {
		p.over = true // It sends no new messages.
	}
	w.game.quiet = true
	for range 2 * lifeRate {
		w.step()
	}
	for _, p := range w.programs {
		life := [2]uint32{p.number, p.life}
		if p.session == nil {
			w.fatalf("program %d is not connected", p.number)
		}
		sent := w.game.sentTo(p.id)
		if w.game.heard[life] != p.sent || p.heard != sent {
			w.fatalf("program %d: %d of %d messages arrived, and %d of %d of the server's", p.number, w.game.heard[life], p.sent, p.heard, sent)
		}
		w.compare(p)
	}
	if n := len(w.game.state); n != len(w.programs) {
		w.fatalf("%d clients for %d programs", n, len(w.programs))
	}
}

// compare compares the program's state with the server's.
func (w *sessionModel) compare(p *program) {
	for i := range 10 * lifeRate {
		if i%(lifeRate+lifeRate/4) == 0 {
			p.session.RequestDigest(4)
		}
		if w.step(); p.session == nil {
			break
		}
		if verdict, _ := p.replica.Digest(); verdict == replica.DigestEqual {
			return
		}
	}
	w.fatalf("program %d has another state", p.number)
}

// Whatever happens to connections, programs and servers, ids, objects and messages are as in the
// model.
func TestSessionsFollowTheModel(t *testing.T) {
	for seed := range seeds.Of(t, 200) {
		w := &sessionModel{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 13)), net: memnet.New(seed)}
		w.start()
		for _, subject := range []string{"", "ann", "", "bob"} {
			w.newProgram(subject)
		}
		for range 400 {
			if w.step(); w.rng.IntN(6) == 0 {
				w.act()
			}
			w.forget()
		}
		w.settle()
	}
}

// forget removes ended programs once there are many.
func (w *sessionModel) forget() {
	for i, p := range w.programs {
		if len(w.programs) > 8 && p.over {
			p.conn.Drop()
			w.programs = append(w.programs[:i:i], w.programs[i+1:]...)
			return
		}
	}
}
