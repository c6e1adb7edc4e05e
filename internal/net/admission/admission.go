package admission

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/transport"
)

// Incoming is a connection with a complete cryptographic handshake.
type Incoming interface {
	// Kind is the connection's transport.
	Kind() transport.Kind
	// Open returns the connection as soon as a hello can be read from it. After the end of ctx it
	// returns an error, which may be the error of ctx. The text of a *transport.Refusal is sent to
	// the peer.
	Open(ctx context.Context) (driver.Conn, error)
	// Context ends with the connection.
	Context() context.Context
	RemoteAddr() net.Addr
	// Close ends the connection at once, without waiting for the peer.
	Close(code transport.Code, text string)
}

// Timed is an Incoming with a socket that measures the waiting times of datagrams.
type Timed interface {
	Follow(net.Addr) driver.Arrivals
}

// Controller admits connections of every network transport.
type Controller struct {
	cfg        Config
	serving    sync.WaitGroup // Add: with mu held and refuse nil, or while the counter is not 0
	unadmitted *unadmitted
	resumes    *rate.Limiter // limits connections tried while the server admits no client
	chunks     driver.Chunks

	mu       sync.Mutex
	conns    map[Incoming]*transport.Link // nil: not admitted yet
	admitted int                          // number of admitted connections
	maxConns int                          // limit of admitted
	refuse   *transport.Refusal           // nil: new connections are accepted
	logged   panicguard.Throttle[string]  // limits repeated log messages
}

// New returns a Controller with the defaults of cfg filled in.
func New(cfg Config) *Controller {
	cfg = cfg.complete()
	c := &Controller{
		cfg: cfg, conns: make(map[Incoming]*transport.Link), resumes: rate.NewLimiter(resumeRate, resumeBurst),
		maxConns:   cfg.MaxConns,
		unadmitted: newUnadmitted(cfg.MaxUnadmitted, max(cfg.MaxConns, minBurst), cfg.Stats),
	}
	c.unadmitted.dismiss = c.dismiss
	return c
}

// MustProveAddress reports whether a peer must prove its address after its first packet. While
// Config.Refusing returns a code with resume, every peer must: some connections are then still
// tried, at resumeRate, and forged addresses must not use up that rate.
func (c *Controller) MustProveAddress(addr net.Addr) bool {
	code, resume := c.cfg.Refusing()
	return c.unadmitted.mustProveAddress(addr, code != 0 && resume)
}

// Pending is the entry of a connection in the table of unadmitted connections, from its first
// packet on.
type Pending struct {
	c *Controller
	*entry
}

// Reserve returns an entry for a new connection, or nil if the connection is refused before it has
// used any resources. proven means that the peer has proved its address. The caller calls Serve or
// Release.
func (c *Controller) Reserve(addr net.Addr, proven bool) *Pending {
	if c.refuses(proven) {
		return nil
	}
	a := c.unadmitted.reserve(addr, proven)
	if a == nil {
		return nil
	}
	return &Pending{c, a}
}

// Release frees the entry of a connection that ends before it is admitted. It may be called more
// than once, and after Serve.
func (p *Pending) Release() { p.c.unadmitted.release(p.entry) }

// refuses reports, and counts, whether a connection is refused because the server admits no client
// now.
func (c *Controller) refuses(proven bool) bool {
	code, resume := c.cfg.Refusing()
	switch {
	case code == 0, resume && proven && c.resumes.Allow():
		return false
	case resume && !proven:
		c.cfg.Stats.Drop(transport.DropUnproven, 1)
	case code == transport.CodeFull:
		c.cfg.Stats.Drop(transport.DropFull, 1)
	default:
		c.cfg.Stats.Drop(transport.DropOverload, 1)
	}
	return true
}

// Refusal returns the refusal that a connection from this address would get now, or nil. It takes
// no entry and counts no refusal: the web server calls it for pages, because browsers do not show
// why a connection failed.
func (c *Controller) Refusal(addr net.Addr) *transport.Refusal {
	c.mu.Lock()
	refuse := c.refuse
	c.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	switch code, _ := c.cfg.Refusing(); {
	case code == transport.CodeFull:
		return &transport.Refusal{Code: code, Text: "server is full"}
	case code != 0:
		return &transport.Refusal{Code: code, Text: "server is overloaded: try again later"}
	case c.unadmitted.refuses(addr):
		return errBusy
	}
	return nil
}

// Serve serves a connection on a new goroutine, or closes it with a code and a text.
func (p *Pending) Serve(in Incoming) {
	c := p.c
	c.cfg.Stats.Handshakes[in.Kind()].Add(1)
	if r := c.start(in, p.entry); r != nil {
		c.unadmitted.remove(p.entry)
		c.cfg.Stats.Refused.Add(1)
		in.Close(r.Code, r.Text)
	}
}

// start starts to serve a connection, or returns the refusal.
func (c *Controller) start(in Incoming, a *entry) *transport.Refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.refuse != nil:
		return c.refuse
	case c.admitted >= c.maxConns:
		c.cfg.Stats.Drop(transport.DropFull, 1)
		return &transport.Refusal{Code: transport.CodeFull, Text: "server has too many connections"}
	case !c.unadmitted.complete(a, in):
		return errBusy
	}
	c.conns[in] = nil
	c.serving.Go(func() { c.serve(in, a) })
	return nil
}

// errBusy refuses an unadmitted connection that finds no free entry or has lost its entry.
var errBusy = &transport.Refusal{Code: transport.CodeBusy, Text: "too many new connections: try again"}

// dismiss closes an unadmitted connection to free its entry, on a new goroutine. The counter of
// serving is above 0 here, because the goroutine that serves the connection has not removed the
// entry yet.
func (c *Controller) dismiss(in Incoming) {
	c.cfg.Stats.Refused.Add(1)
	c.serving.Go(func() { in.Close(errBusy.Code, errBusy.Text) })
}

// addSession records that a connection has become a session.
func (c *Controller) addSession(in Incoming, link *transport.Link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.admitted++
	c.conns[in] = link
}

func (c *Controller) remove(in Incoming) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns[in] != nil {
		c.admitted--
	}
	delete(c.conns, in)
}

// SetMaxConns replaces Config.MaxConns. Admitted connections are kept.
func (c *Controller) SetMaxConns(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maxConns = n
}

// Refuse refuses each new connection with code and text. Admitted connections are kept.
func (c *Controller) Refuse(code transport.Code, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = &transport.Refusal{Code: code, Text: text}
}

// Close ends every session with the reason given to Refuse, or CodeClosing, and returns when every
// goroutine of the Controller has ended. Sessions have until the end of ctx, and at most
// driver.Linger, to write their remaining data. Close waits no longer than driver.CloseGrace after
// the end of ctx for an admission that ignores its context, and logs an error then. Later
// connections are refused. It is called once.
func (c *Controller) Close(ctx context.Context) {
	c.mu.Lock()
	if c.refuse == nil {
		c.refuse = &transport.Refusal{Code: transport.CodeClosing}
	}
	why := *c.refuse
	var unadmitted []Incoming
	for in, link := range c.conns {
		if link != nil {
			link.Shutdown(why.Code, why.Text)
		} else {
			unadmitted = append(unadmitted, in)
		}
	}
	c.mu.Unlock()
	for _, in := range unadmitted {
		in.Close(why.Code, why.Text)
	}
	stop := context.AfterFunc(ctx, func() { c.closeAll(why) })
	if !driver.WaitUntil(ctx, c.serving.Wait) { // New connections are still answered.
		c.cfg.Log.Error("the game's admission does not return, closing without it")
	}
	stop()
}

// closeAll closes the remaining connections without waiting for their goroutines.
func (c *Controller) closeAll(why transport.Refusal) {
	c.mu.Lock()
	conns := slices.Collect(maps.Keys(c.conns))
	c.mu.Unlock()
	for _, in := range conns {
		in.Close(why.Code, why.Text)
	}
}

// Failed logs an error of a connection attempt: each kind once in ten seconds, with the number of
// messages that were left out, so that a client that reconnects in a loop cannot fill the log.
func (c *Controller) Failed(what string, attrs ...any) {
	c.mu.Lock()
	kept, news := c.logged.Allow(what, c.cfg.Clock())
	c.mu.Unlock()
	if news {
		c.cfg.Log.Error(what, append(attrs, "unlogged_before", kept)...)
	}
}

// Unadmitted returns the number of half-open handshakes with unproven addresses, and the number of
// connected but unadmitted connections.
func (c *Controller) Unadmitted() (halfOpen, connected int) { return c.unadmitted.count() }
