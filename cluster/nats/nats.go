package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/cluster/internal/answers"
	"github.com/netloop/netloop/internal/clock"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// Cluster implements [cluster.Cluster]. Its goroutines are one for heartbeats, one for names, one
// for its board, those of the NATS client, and one for each call that it serves.
type Cluster struct {
	cfg    Config
	prefix string // of all subjects
	start  time.Time
	run    uint64 // random number of the process

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	group  sync.WaitGroup
	tidy   chan struct{} // size 1: there may be work on names
	board  chan struct{} // size 1: the board has changed, or was requested
	log    *answers.Log

	// Set by Join.
	id   string
	self cluster.Member
	js   jetstream.JetStream

	mu         sync.Mutex
	joined     bool
	closed     bool
	main, news link
	logged     []string // reasons of outages since the newest connection
	handler    cluster.Handler
	peers      peers
	own        own
	sent       uint64          // version of the own board that others have been sent
	wants      map[string]bool // servers that need the whole board
	calls      map[string]*outgoing
	serving    int // running calls of others
	store      store
	records    records
	lease      lease
	held       map[string]*hold
	// The names with a claim under way; their callers wait, so they are few.
	claiming map[string]bool
	doubts   map[string]*doubt
	dropped  uint64 // malformed messages
}

// New returns a server's Cluster. It connects in Join.
func New(cfg Config) (*Cluster, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		cfg: cfg, prefix: "netloop." + cfg.Name + ".", start: time.Now(), run: random(),
		tidy: make(chan struct{}, 1), board: make(chan struct{}, 1),
		log:   answers.NewLog(cluster.MaxCalls, cluster.MaxAnswers),
		peers: peers{beat: cfg.Beat, all: map[string]*peer{}},
		own:   own{changed: map[string]bool{}}, wants: map[string]bool{}, calls: map[string]*outgoing{},
		held: map[string]*hold{}, claiming: map[string]bool{}, doubts: map[string]*doubt{}, lease: lease{term: 1, claimed: true},
	}
	c.main, c.news = link{c: c}, link{c: c, news: true}
	c.records = natsRecords{c}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// now returns the uptime of the server.
func (c *Cluster) now() time.Duration { return time.Since(c.start) }

// Join implements cluster.Cluster.
func (c *Cluster) Join(ctx context.Context, m cluster.Member) error {
	if err := m.Server.Check(); err != nil {
		return err
	}
	if c.joined {
		return cluster.ErrTaken
	}
	c.id, c.self = m.Server.ID, m
	if err := c.connect(); err != nil {
		c.disconnect()
		return fmt.Errorf("cluster/nats: connect: %w", err)
	}
	c.mu.Lock()
	c.joined = true
	c.mu.Unlock()
	first := make(chan error, 1)
	c.group.Go(func() { c.beats(first) })
	c.group.Go(c.tidyNames)
	c.group.Go(c.sendBoard)
	select {
	case err := <-first:
		return err
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.main.busy(c.now())
	}
}

// connect makes both connections, and subscribes to the messages of the others.
func (c *Cluster) connect() error {
	err := errors.Join(c.main.connect(), c.news.connect())
	if err != nil {
		return err
	}
	if c.js, err = jetstream.New(c.main.conn); err != nil {
		return err
	}
	return errors.Join(c.main.subscribe("to."+c.id, c.onDirect), c.news.subscribe("lease.*", c.onLease), c.news.subscribe("board.*", c.onChanges))
}

// disconnect ends both connections.
func (c *Cluster) disconnect() {
	for _, l := range []*link{&c.main, &c.news} {
		if l.conn != nil {
			l.conn.Close()
		}
	}
}

// handler handles a message. The subject of the message ends in id.
type handler func(id string, data []byte, now time.Duration) error

// onLease handles a heartbeat of another server.
func (c *Cluster) onLease(id string, data []byte, now time.Duration) error {
	l, err := decodeLease(id, data)
	if err != nil || id == c.id {
		return err
	}
	c.mu.Lock()
	changed, want := c.peers.beatOf(l, now)
	c.mu.Unlock()
	c.after(id, changed, want)
	return nil
}

// onChanges handles changes of another server's board.
func (c *Cluster) onChanges(id string, data []byte, now time.Duration) error {
	m, err := decodeChanges(id, data)
	if err != nil || id == c.id {
		return err
	}
	c.mu.Lock()
	changed, want := c.peers.changes(m, now)
	c.mu.Unlock()
	c.after(id, changed, want)
	return nil
}

// after reports a change, and requests a whole board.
func (c *Cluster) after(id string, changed, want bool) {
	if want {
		c.send(id, &clusterv1.Direct{From: c.id, Content: &clusterv1.Direct_WholeBoard{WholeBoard: &clusterv1.WholeBoard{}}})
	}
	if changed && c.self.Changed != nil {
		c.self.Changed()
	}
}

// onDirect handles a message to this server.
func (c *Cluster) onDirect(_ string, data []byte, now time.Duration) error {
	d, err := decodeDirect(data)
	if err != nil {
		return err
	}
	switch m := d.GetContent().(type) {
	case *clusterv1.Direct_Call:
		c.onCall(d.GetFrom(), m.Call, now)
	case *clusterv1.Direct_Answer:
		c.onAnswer(d.GetFrom(), m.Answer)
	case *clusterv1.Direct_WholeBoard:
		c.mu.Lock()
		if len(c.wants) < cluster.MaxServers {
			c.wants[d.GetFrom()] = true
		}
		c.mu.Unlock()
		signal(c.board)
	case *clusterv1.Direct_Part:
		c.mu.Lock()
		changed := c.peers.partOf(d.GetFrom(), m.Part)
		c.mu.Unlock()
		c.after(d.GetFrom(), changed, false)
	}
	return nil
}

// send sends a message to a server. A lost one is sent again by its sender, or requested again.
func (c *Cluster) send(id string, m proto.Message) { c.publish("to."+id, encode(m)) }

func (c *Cluster) publish(subject string, data []byte) {
	if c.main.away() {
		return
	}
	_ = c.main.conn.Publish(c.prefix+subject, data) // Without a connection the message is lost.
}

// sendBoard sends changes of the own board, and whole boards, until Close. One goroutine sends
// both, so that a receiver gets them in the order of their versions.
func (c *Cluster) sendBoard() {
	for c.wait(c.board) {
		c.mu.Lock()
		messages := c.own.changes(c.id)
		version := c.own.version
		var whole [][]byte
		if len(c.wants) > 0 {
			whole = c.own.whole(c.id)
		}
		wants := c.wants
		c.wants = map[string]bool{}
		c.mu.Unlock()
		for _, m := range messages {
			c.publish("board."+c.id, m)
		}
		for id := range wants {
			for _, m := range whole {
				c.publish("to."+id, m)
			}
		}
		c.mu.Lock()
		c.sent = version
		c.mu.Unlock()
		if len(messages) > 0 && c.self.Changed != nil {
			c.self.Changed()
		}
		c.pause(c.boardInterval())
	}
}

const (
	// boardShare lengthens the time between two messages about the rooms of a server with each
	// server, because all of them receive the message: above 12 servers a member receives at most
	// 250 messages a second, instead of 20 from each server.
	boardShare = 4 * time.Millisecond
	// maxBoardInterval limits that time: lists are at most so much behind.
	maxBoardInterval = time.Second
)

// boardInterval returns the time between two messages about the rooms of this server.
func (c *Cluster) boardInterval() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return intervalOf(len(c.peers.all))
}

func intervalOf(servers int) time.Duration {
	return min(max(cluster.BoardInterval, time.Duration(servers)*boardShare), maxBoardInterval)
}

// wait waits for a signal, and reports false after Close.
func (c *Cluster) wait(s <-chan struct{}) bool {
	select {
	case <-s:
		return c.ctx.Err() == nil
	case <-c.ctx.Done():
		return false
	}
}

// pause waits for a time, or until Close.
func (c *Cluster) pause(d time.Duration) { clock.Sleep(c.ctx, d) }

// signal sets a channel of size 1.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Servers implements cluster.Cluster.
func (c *Cluster) Servers() []cluster.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.joined || c.closed {
		return nil
	}
	self := c.self.Server
	self.Load, self.Suspect = c.load(), false
	all := append(c.peers.servers(c.now()), self)
	slices.SortFunc(all, func(a, b cluster.Server) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func (c *Cluster) load() cluster.Load {
	if c.self.Load == nil {
		return cluster.Load{}
	}
	return c.self.Load()
}

// Announce implements cluster.Cluster.
func (c *Cluster) Announce(room string, entry []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.joined || c.closed || !c.own.announce(room, entry) {
		return false
	}
	signal(c.board)
	return true
}

// Boards implements cluster.Cluster.
func (c *Cluster) Boards() []cluster.Board {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.joined || c.closed {
		return nil
	}
	all := append(c.peers.boards(c.now()), cluster.Board{Server: c.id, Version: c.own.version, Rooms: c.own.share()})
	slices.SortFunc(all, func(a, b cluster.Board) int { return cmp.Compare(a.Server, b.Server) })
	return all
}

// Serve implements cluster.Cluster.
func (c *Cluster) Serve(h cluster.Handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handler = h
}

// Health implements cluster.Cluster.
func (c *Cluster) Health() cluster.Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	const effect = ": the rooms of this server work, new names and calls to other servers may be refused as busy"
	silence := (c.now() - c.lease.confirmed).Round(time.Second / 10)
	switch {
	case !c.joined || c.closed:
		return cluster.Health{Text: cluster.ErrClosed.Error()}
	case c.store.problem != nil:
		return cluster.Health{Text: "the cluster cannot use NATS: " + c.store.problem.Error() + effect}
	case c.main.problem(c.now()) != "":
		return cluster.Health{Text: c.main.problem(c.now()) + effect}
	case c.news.problem(c.now()) != "":
		return cluster.Health{Text: c.news.problem(c.now()) + ": other servers and their rooms may be missing in lists"}
	case c.lease.confirmed == 0 || silence >= cluster.SuspectBeats*c.cfg.Beat:
		return cluster.Health{Text: fmt.Sprintf("the store of NATS has not answered for %v%s", silence, effect)}
	case !c.lease.claimed:
		return cluster.Health{Text: "the names of this server are being claimed again" + effect}
	}
	return cluster.Health{OK: true}
}

// Close implements cluster.Cluster.
func (c *Cluster) Close(ctx context.Context) error {
	c.mu.Lock()
	first := c.joined && !c.closed
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	if !first {
		return nil
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.group.Wait()
		c.leave(ctx)
		c.disconnect()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		c.disconnect()
		return ctx.Err()
	}
}
