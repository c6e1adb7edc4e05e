package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/cluster"
)

// TestDialledStories plays the stories of programs that use package client as a game does: Dial, a
// goroutine with Run, and Await on others, over all transports. Two servers on loopback form a
// cluster, and the programs move between them. It is in real time, so a story is not the same each
// time. The documents: the comments of client.Dial, Run, Await and Close, and SCALING.md.
//
//   - Dial returns a client that is admitted, or the reason of the server.
//   - A call has its own answer, or the error of the server or of the context.
//   - A program that was sent to another server is there within some seconds, with its subject, and
//     has one seat; one that has closed its client has none.
func TestDialledStories(t *testing.T) {
	n := uint64(3)
	if testing.Short() {
		n = 1
	}
	first := *from
	if *count > 0 {
		n = min(*count, 100) // Each takes a few seconds.
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playDialled(t, seed)
		})
	}
}

// dialPlay is one story.
type dialPlay struct {
	*testing.T
	hub     *cluster.Memory
	servers []*netloop.Server
	over    chan struct{} // closed when the programs have ended

	mu    sync.Mutex
	seats map[string]map[string]int // by the subject and the room
}

// dialGame is the game of a server. Its rooms have the names of their servers.
type dialGame struct {
	b    *dialPlay
	name string
}

func (dialGame) Schema() *netloop.Schema { return declare(0).schema }

func (g dialGame) Open(r *netloop.Room) error {
	b, where := g.b, g.name+"/"+r.Spec().Name
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		if j.Subject == "" {
			j.Subject = j.Token
		}
		if j.Subject == "nobody" {
			return netloop.Refuse(netloop.CodeRefused, "the story refuses")
		}
		return nil
	})
	r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error { b.seat(c.Join().Subject, where, 1); return nil })
	r.OnLeave(func(_ *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { b.seat(c.Join().Subject, where, -1) })
	declare(0).ask.Handle(r, func(t *netloop.Tick, from *netloop.Client, q question) (answer, error) {
		switch id := from.ID(); q.Mode {
		case refused:
			return answer{}, netloop.Refuse(netloop.CodeGame, "the story refuses")
		case never:
			return answer{}, errors.New("a fault of the game")
		case hangs, exits, panicky:
			return answer{}, b.end(q.Mode)
		case sendOn:
			to := b.other(g.name)
			t.Reserve(to, netloop.Reservation{TTL: 5 * time.Second}, func(t *netloop.Tick, all []netloop.Ticket, err error) {
				if c, ok := t.Client(id); ok && err == nil {
					c.Move(t, all[0])
				}
			})
		}
		return answer{q.N}, nil
	})
	return nil
}

// sendOn is the mode of a question that the game answers, and then sends the client to the room of
// the other server.
const sendOn = 100

func (b *dialPlay) other(name string) string {
	if name == "x" {
		return "y"
	}
	return "x"
}

func (b *dialPlay) seat(subject, where string, by int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seats[subject] == nil {
		b.seats[subject] = map[string]int{}
	}
	if b.seats[subject][where] += by; b.seats[subject][where] == 0 {
		delete(b.seats[subject], where)
	}
}

// has reports whether a subject has a seat in exactly these rooms.
func (b *dialPlay) has(subject string, where ...string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Equal(slices.Sorted(maps.Keys(b.seats[subject])), where)
}

// wait waits until a subject has a seat in exactly these rooms.
func (b *dialPlay) wait(subject string, where ...string) bool {
	for by := time.Now().Add(finishing); !b.has(subject, where...); time.Sleep(nap) {
		if time.Now().After(by) {
			b.Errorf("%s has seats in %v after %v, want %v", subject, b.seats[subject], finishing, where)
			return false
		}
	}
	return true
}

func playDialled(t *testing.T, seed uint64) {
	began := time.Now()
	b := &dialPlay{T: t, over: make(chan struct{}), seats: map[string]map[string]int{}}
	b.hub = cluster.NewMemory(1, func() time.Duration { return time.Since(began) })
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			b.hub.Settle()
			time.Sleep(cluster.BoardInterval)
		}
	})
	for _, name := range []string{"x", "y"} {
		b.servers = append(b.servers, b.serve(ctx, &all, name))
	}
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 291))}
	var programs sync.WaitGroup
	for n := range 3 + d.IntN(3) {
		p := &dialProgram{b: b, d: &drawer{Rand: rand.New(rand.NewPCG(seed, 300+uint64(n)))}, subject: fmt.Sprint("program ", n), at: d.IntN(2)}
		p.how = []client.Transport{client.QUIC, client.WebTransport, client.WebSocket}[(uint64(n)+seed)%3]
		programs.Go(p.run)
	}
	programs.Wait()
	close(b.over)
	cancel()
	all.Wait()
}

// serve runs a server with its room.
func (b *dialPlay) serve(ctx context.Context, all *sync.WaitGroup, name string) *netloop.Server {
	s, err := netloop.New(netloop.Config{
		Listen: "127.0.0.1:0", Web: "127.0.0.1:0", Room: netloop.RoomSpec{Rate: netloop.Hz(30)}, Log: slog.New(slog.DiscardHandler), Watchdog: watchdog,
		Cluster: netloop.Cluster{Via: b.hub.Member(), ID: name},
	}, dialGame{b, name})
	if err == nil {
		err = s.Listen()
	}
	if err != nil {
		b.Fatal(err)
	}
	all.Go(func() {
		if err := s.Run(ctx); err != nil {
			b.Errorf("Run: %v", err)
		}
	})
	if _, err := s.OpenRoom(ctx, netloop.RoomSpec{Name: name, Rate: netloop.Hz(30)}); err != nil {
		b.Fatal(err)
	}
	return s
}

// dialProgram is a program with a client.
type dialProgram struct {
	b       *dialPlay
	d       *drawer
	subject string
	how     client.Transport
	at      int // the server that it dials
	c       *client.Client
	asked   uint32
}

func (p *dialProgram) run() {
	b := p.b
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if p.d.oneIn(2) {
		p.refused(ctx)
	}
	if p.d.oneIn(2) {
		p.fatal(ctx)
	}
	room := oneOf(p.d, "", "x", "y") // By its name a room of another server is found, too.
	cfg := client.Config{Schema: declare(0).schema, Transport: p.how, Room: room, Token: p.subject}
	var err error
	if p.c, err = client.Dial(ctx, p.addr(), cfg); err != nil {
		b.Errorf("%s dials %v: %v", p.subject, p.how, err)
		return
	}
	run, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- p.c.Run(run) }()
	at := string("xy"[p.at])
	if where := at + "/" + room; room == "" || room == at {
		b.wait(p.subject, where)
	} else {
		at = room
		b.wait(p.subject, room+"/"+room)
	}
	for range 3 + p.d.IntN(4) {
		if p.ask(ctx); p.d.oneIn(2) {
			at = p.sendOn(ctx, at)
		}
	}
	stop()
	if err := <-ran; err != nil {
		b.Errorf("%s: Run returns %v", p.subject, err)
	}
	if err := p.c.Close(); err != nil {
		b.Errorf("%s: Close returns %v", p.subject, err)
	}
	if _, err := client.Await(ctx, p.c, declare(0).ask, question{}); !errors.As(err, new(*netloop.Closed)) {
		b.Errorf("%s: after Close a call returns %v", p.subject, err)
	}
	b.wait(p.subject)
}

func (p *dialProgram) addr() string {
	s := p.b.servers[p.at]
	if p.how == client.WebSocket {
		return s.WebAddr().String()
	}
	return s.Addr().String()
}

// refused dials with errors.
func (p *dialProgram) refused(ctx context.Context) {
	cfg := client.Config{Schema: declare(0).schema, Transport: p.how, Token: "nobody"}
	code := netloop.CodeRefused
	if p.d.oneIn(2) {
		cfg.Room, code = "no such room", netloop.CodeRoomUnknown
	}
	var why *netloop.Refusal
	if _, err := client.Dial(ctx, p.addr(), cfg); !errors.As(err, &why) || why.Code != code {
		p.b.Errorf("%s dials as %q for room %q: %v", p.subject, cfg.Token, cfg.Room, err)
	}
	cfg.Tokens = func(context.Context) (string, error) { return "", errors.New("no token") }
	if _, err := client.Dial(ctx, p.addr(), cfg); err == nil {
		p.b.Errorf("%s dials without a token", p.subject)
	}
}

// ask makes a call, which may be refused, or not wait for the answer.
func (p *dialProgram) ask(ctx context.Context) {
	p.asked++
	q := question{N: p.asked, Mode: oneOf[uint8](p.d, atOnce, atOnce, refused, never, badQuestion)}
	short := p.d.oneIn(6)
	if short {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.d.between(0, 40*time.Millisecond))
		defer cancel()
	}
	a, err := client.Await(ctx, p.c, declare(0).ask, q)
	switch {
	case short && errors.Is(err, context.DeadlineExceeded):
	case q.Mode == atOnce && (err != nil || a.N != q.N), q.Mode != atOnce && err == nil:
		p.b.Errorf("%s asks %+v, and is told %v, %v", p.subject, q, a, err)
	}
}

// sendOn lets the game send the client to the other server, and returns where it is then.
func (p *dialProgram) sendOn(ctx context.Context, at string) string {
	p.asked++
	if _, err := client.Await(ctx, p.c, declare(0).ask, question{N: p.asked, Mode: sendOn}); err != nil {
		p.b.Errorf("%s asks for the other server: %v", p.subject, err)
		return at
	}
	at = p.b.other(at)
	p.b.wait(p.subject, at+"/"+at)
	return at
}
