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

// Visitor is a connection with a complete cryptographic handshake.
type Visitor interface {
	// Carrier is the connection's transport.
	Carrier() transport.Carrier
	// Open returns the connection as soon as a hello can be read from it. Once ctx has ended it
	// returns an error, that of ctx or another. The text of a *transport.Refusal is sent to the
	// peer.
	Open(ctx context.Context) (driver.Conn, error)
	// Context ends with the connection.
	Context() context.Context
	RemoteAddr() net.Addr
	// Close ends the connection at once, without waiting for the peer.
	Close(code transport.Code, text string)
}

// Timed is a Visitor whose socket measures how long datagrams wait in it.
type Timed interface {
	Follow(net.Addr) driver.Arrivals
}

// Door admits connections of every transport.
type Door struct {
	cfg       Config
	serving   sync.WaitGroup // Add: with mu held and refuse nil, or by a counted goroutine
	strangers *strangers
	heard     *rate.Limiter // connections tried while the server admits no client
	chunks    driver.Chunks

	mu       sync.Mutex
	visitors map[Visitor]*transport.Link // nil: not admitted yet
	admitted int                         // number of admitted visitors
	maxConns int                         // limit of admitted
	refuse   *transport.Refusal          // nil: new connections are accepted
	told     panicguard.Throttle[string] // limits repeated log messages
}

// New returns a Door with the defaults of cfg filled in.
func New(cfg Config) *Door {
	cfg = cfg.complete()
	d := &Door{
		cfg: cfg, visitors: make(map[Visitor]*transport.Link), heard: rate.NewLimiter(heardRate, heardBurst),
		maxConns:  cfg.MaxConns,
		strangers: newStrangers(cfg.MaxStrangers, max(cfg.MaxConns, minBurst), cfg.Stats),
	}
	d.strangers.dismiss = d.dismiss
	return d
}

// AskForProof reports whether a peer must prove its address after its first packet. Every peer must
// while the server admits no client: then only proven addresses use the rate at which some
// connections are tried all the same.
func (d *Door) AskForProof(addr net.Addr) bool {
	code, hear := d.cfg.Refusing()
	return d.strangers.askForProof(addr, code != 0 && hear)
}

// Place is a connection's place among the unadmitted connections, held from its first packet on.
type Place struct {
	door *Door
	*stranger
}

// Begin returns a place for a new connection, or nil before the connection has used any resources.
// A proven address cannot be forged. The caller calls Enter or Abandon.
func (d *Door) Begin(addr net.Addr, proven bool) *Place {
	if d.refusing(proven) {
		return nil
	}
	st := d.strangers.begin(addr, proven)
	if st == nil {
		return nil
	}
	return &Place{d, st}
}

// Abandon returns the place of a connection that ends before it is admitted. It may be called more
// than once, and after Enter.
func (p *Place) Abandon() { p.door.strangers.abandon(p.stranger) }

// refusing reports whether a connection is refused because the server admits no client now.
func (d *Door) refusing(proven bool) bool {
	code, hear := d.cfg.Refusing()
	switch {
	case code == 0, hear && proven && d.heard.Allow():
		return false
	case hear && !proven:
		d.cfg.Stats.Drop(transport.DropUnproven, 1)
	case code == transport.CodeFull:
		d.cfg.Stats.Drop(transport.DropFull, 1)
	default:
		d.cfg.Stats.Drop(transport.DropOverload, 1)
	}
	return true
}

// Verdict returns the refusal that a connection from this address would get now, or nil. It takes
// no place and counts no refusal: the web server calls it for pages, because browsers do not show
// why a connection failed.
func (d *Door) Verdict(addr net.Addr) *transport.Refusal {
	d.mu.Lock()
	refuse := d.refuse
	d.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	switch code, _ := d.cfg.Refusing(); {
	case code == transport.CodeFull:
		return &transport.Refusal{Code: code, Text: "the server is full"}
	case code != 0:
		return &transport.Refusal{Code: code, Text: "the server is overloaded: try again later"}
	case d.strangers.crowded(addr):
		return errBusy
	}
	return nil
}

// Enter serves a connection on a goroutine of its own, or closes it with a code and a text.
func (p *Place) Enter(v Visitor) {
	d := p.door
	d.cfg.Stats.Handshakes[v.Carrier()].Add(1)
	if r := d.enter(v, p.stranger); r != nil {
		d.strangers.leave(p.stranger)
		d.cfg.Stats.Refused.Add(1)
		v.Close(r.Code, r.Text)
	}
}

// enter starts to serve a connection, or returns the refusal.
func (d *Door) enter(v Visitor, st *stranger) *transport.Refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.refuse != nil:
		return d.refuse
	case d.admitted >= d.maxConns:
		d.cfg.Stats.Drop(transport.DropFull, 1)
		return &transport.Refusal{Code: transport.CodeFull, Text: "the server has too many connections"}
	case !d.strangers.met(st, v):
		return errBusy
	}
	d.visitors[v] = nil
	d.serving.Go(func() { d.serve(v, st) })
	return nil
}

// errBusy refuses an unadmitted connection that finds no place or has lost its place.
var errBusy = &transport.Refusal{Code: transport.CodeBusy, Text: "too many want to come in: try again"}

// dismiss closes an unadmitted connection to free its place. serving counts it until then.
func (d *Door) dismiss(v Visitor) {
	d.cfg.Stats.Refused.Add(1)
	d.serving.Go(func() { v.Close(errBusy.Code, errBusy.Text) })
}

// entered records that a connection has become a session.
func (d *Door) entered(v Visitor, link *transport.Link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.admitted++
	d.visitors[v] = link
}

func (d *Door) left(v Visitor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.visitors[v] != nil {
		d.admitted--
	}
	delete(d.visitors, v)
}

// SetMaxConns replaces Config.MaxConns. Admitted connections are kept.
func (d *Door) SetMaxConns(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.maxConns = n
}

// Refuse refuses each new connection with code and text. Admitted connections are kept.
func (d *Door) Refuse(code transport.Code, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = &transport.Refusal{Code: code, Text: text}
}

// Close ends every session with the reason given to Refuse, or CodeClosing, and returns when every
// goroutine of the Door has ended. Sessions have until the end of ctx, and at most driver.Linger,
// to write their remaining data. Close waits no longer than driver.CloseGrace after the end of ctx
// for an admission that ignores its context, and logs an error then. Later connections are refused.
// It is called once.
func (d *Door) Close(ctx context.Context) {
	d.mu.Lock()
	if d.refuse == nil {
		d.refuse = &transport.Refusal{Code: transport.CodeClosing}
	}
	why := *d.refuse
	var strangers []Visitor
	for v, link := range d.visitors {
		if link != nil {
			link.Shutdown(why.Code, why.Text)
		} else {
			strangers = append(strangers, v)
		}
	}
	d.mu.Unlock()
	for _, v := range strangers {
		v.Close(why.Code, why.Text)
	}
	stop := context.AfterFunc(ctx, func() { d.closeAll(why) })
	if !driver.WaitUntil(ctx, d.serving.Wait) { // New connections are still answered.
		d.cfg.Log.Error("an admission does not return: the server ends without it")
	}
	stop()
}

// closeAll closes the remaining connections without waiting for their goroutines.
func (d *Door) closeAll(why transport.Refusal) {
	d.mu.Lock()
	visitors := slices.Collect(maps.Keys(d.visitors))
	d.mu.Unlock()
	for _, v := range visitors {
		v.Close(why.Code, why.Text)
	}
}

// Failed logs an error of a connection attempt: each kind once in ten seconds, with the number of
// messages left out before, so that a client that reconnects in a loop cannot fill the log.
func (d *Door) Failed(what string, attrs ...any) {
	d.mu.Lock()
	kept, news := d.told.News(what, d.cfg.Clock())
	d.mu.Unlock()
	if news {
		d.cfg.Log.Error(what, append(attrs, "unlogged_before", kept)...)
	}
}

// Strangers returns the number of half-open handshakes with unproven addresses, and the number of
// connected but unadmitted connections.
func (d *Door) Strangers() (halfOpen, connected int) { return d.strangers.count() }
