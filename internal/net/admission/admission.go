package admission

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/net/udpbatch"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/transport"
)

// Visitor is a connection whose cryptographic handshake is complete.
type Visitor interface {
	// Carrier is what brings it.
	Carrier() transport.Carrier
	// Open returns it as soon as a hello can be read from it. Once ctx has ended it returns an
	// error, that of ctx or another. An error that is a *transport.Refusal is what the peer shall
	// read.
	Open(ctx context.Context) (driver.Conn, error)
	// Context ends with the connection.
	Context() context.Context
	RemoteAddr() net.Addr
	// Close ends it at once. It waits for nobody.
	Close(code transport.Code, text string)
	// Peers tell how long what has come from there waited to be read; nil: nobody knows.
	Peers() *udpbatch.Peers
}

// Door lets connections in, whatever carries them.
type Door struct {
	cfg       Config
	serving   sync.WaitGroup // Add is called while refuse is nil under mu, or by one that it counts
	strangers *strangers
	heard     *rate.Limiter // of those who come while nobody can come in
	chunks    driver.Chunks

	mu       sync.Mutex
	visitors map[Visitor]*transport.Link // nil while it is a stranger
	admitted int                         // of visitors
	maxConns int                         // bounds that
	refuse   *transport.Refusal          // nil: dials are welcome
	told     panicguard.Throttle[string] // of what the log is told
}

// New makes a door.
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

// AskForProof tells whether a peer whose first packet has come shall prove its address first. Every
// peer does while nobody can come in: only proven addresses use up the rate at which some are heard
// all the same.
func (d *Door) AskForProof(addr net.Addr) bool {
	code, hear := d.cfg.Refusing()
	return d.strangers.askForProof(addr, code != 0 && hear)
}

// Place is that of a connection among the strangers, from its first packet on.
type Place struct {
	door *Door
	*stranger
}

// Begin gives a connection that begins a place, or nil, before it has cost anything. A proven
// address is one that nobody can have forged. Who has a place calls Enter or Abandon.
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

// Abandon gives back the place of a connection that ends before it has been let in. It may be
// called more than once, and after Enter.
func (p *Place) Abandon() { p.door.strangers.abandon(p.stranger) }

// refusing tells whether a connection is refused because the server can let in nobody.
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

// Verdict is what somebody who comes from an address now is refused for, or nil. It takes no place
// and counts nothing: pages ask for it, because browsers tell them no reasons.
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

// Enter serves a connection, on a goroutine of its own, or closes it and says why.
func (p *Place) Enter(v Visitor) {
	d := p.door
	d.cfg.Stats.Handshakes[v.Carrier()].Add(1)
	if r := d.enter(v, p.stranger); r != nil {
		d.strangers.leave(p.stranger)
		d.cfg.Stats.Refused.Add(1)
		v.Close(r.Code, r.Text)
	}
}

// enter starts to serve a connection, or says why it is refused.
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

// errBusy is what a stranger is told for whom there is no place, or not any more.
var errBusy = &transport.Refusal{Code: transport.CodeBusy, Text: "too many want to come in: try again"}

// dismiss tells a stranger to make room. It is being served, so serving counts it.
func (d *Door) dismiss(v Visitor) {
	d.cfg.Stats.Refused.Add(1)
	d.serving.Go(func() { v.Close(errBusy.Code, errBusy.Text) })
}

// entered notes that a connection has become a session.
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

// SetMaxConns replaces Config.MaxConns. Who is in stays.
func (d *Door) SetMaxConns(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.maxConns = n
}

// Refuse answers every new dial at once with code and text; who is in stays.
func (d *Door) Refuse(code transport.Code, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = &transport.Refusal{Code: code, Text: text}
}

// Close ends every session with the reason given to Refuse, or CodeClosing, and returns
// when every goroutine of the door has ended. Sessions get until the end of ctx, and
// at most carrier.Linger, to bring out what was sent. An admission that ignores its context it
// leaves behind carrier.CloseGrace after the end of ctx, which the log says. Later connections are
// refused. It is called once.
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
	if !driver.WaitUntil(ctx, d.serving.Wait) { // New dials are still answered meanwhile.
		d.cfg.Log.Error("an admission does not return: the server ends without it")
	}
	stop()
}

// closeAll closes what is left without waiting for anybody.
func (d *Door) closeAll(why transport.Refusal) {
	d.mu.Lock()
	visitors := slices.Collect(maps.Keys(d.visitors))
	d.mu.Unlock()
	for _, v := range visitors {
		v.Close(why.Code, why.Text)
	}
}

// Failed tells the log what went wrong here when somebody came: of each kind once in ten seconds,
// and how often it was not told, because whoever comes again and again must not fill it.
func (d *Door) Failed(what string, attrs ...any) {
	d.mu.Lock()
	kept, news := d.told.News(what, d.cfg.Clock())
	d.mu.Unlock()
	if news {
		d.cfg.Log.Error(what, append(attrs, "unlogged_before", kept)...)
	}
}

// Strangers tells how many connections are half open with an address that may be forged, and how
// many are connected and have not been let in.
func (d *Door) Strangers() (halfOpen, connected int) { return d.strangers.count() }
