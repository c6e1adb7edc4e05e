//go:build unix

package embed_test

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/cluster/clustertest"
	"github.com/netloop/netloop/cluster/nats"
	"github.com/netloop/netloop/cluster/nats/embed"
)

// beat is the interval of heartbeats in tests: short, but long enough for a busy machine.
const beat = 300 * time.Millisecond

// bed is a cluster on NATS: the faults of a member are those of its own proxy.
type bed struct {
	t    *testing.T
	urls []string // of NATS servers
	name string
	// A member's configuration besides its URL, name and beat, and the user of its URL.
	config nats.Config
	login  string

	mu    sync.Mutex
	pipes map[cluster.Cluster]*proxy
}

func newBed(t *testing.T, urls ...string) *bed {
	return &bed{t: t, urls: urls, name: "test-" + time.Now().Format("150405.000000000")[7:], pipes: map[cluster.Cluster]*proxy{}}
}

func (b *bed) Beat() time.Duration  { return beat }
func (b *bed) Pass(d time.Duration) { time.Sleep(d) }

func (b *bed) New() cluster.Cluster {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := newProxy(b.t, b.urls[len(b.pipes)%len(b.urls)])
	cfg := b.config
	cfg.URL, cfg.Name, cfg.Beat = "nats://"+b.login+p.addr(), b.name, beat
	c, err := nats.New(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.pipes[c] = p
	return c
}

// join returns a new member of the cluster.
func (b *bed) join(id string) cluster.Cluster {
	b.t.Helper()
	c := b.New()
	if err := c.Join(within(b.t, 10*time.Second), cluster.Member{Server: cluster.Server{ID: id}}); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close(within(b.t, 5*time.Second)) })
	return c
}

func (b *bed) Freeze(c cluster.Cluster, frozen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pipes[c].hold(frozen)
}

// StoreGone cuts all members from NATS: without its store NATS has nobody to speak with.
func (b *bed) StoreGone(gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pipes {
		p.cut(gone)
	}
}

// proxy passes TCP connections on. It can hold all bytes back, which arrive later, and cut
// connections.
type proxy struct {
	listener net.Listener
	to       string
	bytes    atomic.Int64 // in both directions

	mu     sync.Mutex
	held   *sync.Cond
	stop   bool              // bytes are held back
	off    bool              // connections are cut
	conns  map[net.Conn]bool // whether its bytes are held back
	newest [2]net.Conn
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(to); err == nil && u.Host != "" {
		to = u.Host
	}
	p := &proxy{listener: l, to: to, conns: map[net.Conn]bool{}}
	p.held = sync.NewCond(&p.mu)
	go p.accept()
	t.Cleanup(func() {
		_ = l.Close()
		p.hold(false)
		p.cut(true)
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) hold(stop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop = stop
	p.held.Broadcast()
}

// holdNewest holds back the bytes of the newest connection, which is that of a member's news.
func (p *proxy) holdNewest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.newest {
		p.conns[c] = true
	}
}

func (p *proxy) cut(off bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = off
	for c := range p.conns {
		if off {
			_ = c.Close()
		}
	}
	p.held.Broadcast()
}

func (p *proxy) accept() {
	for {
		a, err := p.listener.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = a.Close()
			continue
		}
		p.mu.Lock()
		p.conns[a], p.conns[b], p.newest = false, false, [2]net.Conn{a, b}
		if p.off {
			_, _ = a.Close(), b.Close()
		}
		p.mu.Unlock()
		go p.copy(a, b)
		go p.copy(b, a)
	}
}

func (p *proxy) copy(to, from net.Conn) {
	defer func() {
		_, _ = to.Close(), from.Close()
		p.mu.Lock()
		delete(p.conns, to)
		delete(p.conns, from)
		p.mu.Unlock()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		for (p.stop || p.conns[from]) && !p.off {
			p.held.Wait()
		}
		p.mu.Unlock()
		p.bytes.Add(int64(n))
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// start starts a NATS server.
func start(t *testing.T) *embed.Server {
	t.Helper()
	s, err := embed.Start(embed.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestNATSFulfilsTheContract(t *testing.T) {
	s := start(t)
	clustertest.Run(t, func(t *testing.T, test func(*testing.T, clustertest.Bed)) {
		t.Parallel()
		test(t, newBed(t, s.URL()))
	})
}
