package door

import (
	"cmp"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/netloop/netloop/internal/transport"
)

const (
	// defaultMaxConns bounds the connections that have been let in, at about 100 KB each, and
	// defaultMaxStrangers those that have not.
	defaultMaxConns     = 4096
	defaultMaxStrangers = defaultMaxConns / 4
	// maxHalfOpen bounds the handshakes that are half open with an address that may be
	// forged: more than players cause who come as they like. From then on addresses are
	// to be proven by a Retry, which costs a newcomer a round trip and the server little.
	maxHalfOpen = 12
	// retryRate is how many Retries a second are sent, at once retryBurst. A flood with
	// forged addresses is not to be answered with a tenth of its bytes, and a Retry for
	// each first packet would be more.
	retryRate  = 250
	retryBurst = 50
	// MaxPerSite bounds the strangers of one household or machine.
	MaxPerSite = 8
	// dismissAfter is how long a stranger keeps its place at least, unless it is one of
	// many from its site: longer than a player over a bad link takes to come in.
	dismissAfter = time.Second
	// siteRate and allRate are how many handshakes a second of one household or machine,
	// and of all, are taken in the long run, each of less than a millisecond of a core. At
	// once there may be as many as have a place on the server, and minBurst at least.
	siteRate = 50
	allRate  = 200
	minBurst = 64
	// heardRate and heardBurst are how many connections a second a server takes that can let
	// in nobody: players who only want their seat back, and others to be told so in words.
	heardRate  = 10
	heardBurst = 20
)

// Config is what a door needs to know.
type Config struct {
	// MaxConns bounds the connections that have been let in; who comes when there are as
	// many is told CODE_FULL. 0: 4096.
	MaxConns int
	// MaxStrangers bounds the connections that have not been let in, beside the others.
	// 0: 1024.
	MaxStrangers int
	// Refusing says why nobody can come in now, whoever it is: CODE_FULL, or another code
	// for overload; 0 if somebody may. Some of them are heard all the same, if it says so.
	// It is asked before a connection costs anything, on a goroutine of its carrier, so it must
	// not wait. nil: always 0.
	Refusing func() (code transport.Code, hear bool)
	Stats    *transport.Stats // nil: not counted
}

// Door is the one of a server. Any goroutine may use it.
type Door struct {
	cfg       Config
	strangers *strangers
	heard     *rate.Limiter // of those who come while nobody can come in

	mu       sync.Mutex
	admitted int // under mu
	maxConns int // under mu; bounds that
}

// New makes a door.
func New(cfg Config) *Door {
	cfg.MaxConns = cmp.Or(cfg.MaxConns, defaultMaxConns)
	cfg.MaxStrangers = cmp.Or(cfg.MaxStrangers, defaultMaxStrangers)
	if cfg.Stats == nil {
		cfg.Stats = new(transport.Stats)
	}
	if cfg.Refusing == nil {
		cfg.Refusing = func() (transport.Code, bool) { return 0, true }
	}
	return &Door{
		cfg: cfg, maxConns: cfg.MaxConns, heard: rate.NewLimiter(heardRate, heardBurst),
		strangers: newStrangers(cfg.MaxStrangers, max(cfg.MaxConns, minBurst), cfg.Stats),
	}
}

// AskForProof tells whether a peer shall prove its address before it gets a place: if it must,
// and the rate of such questions allows one more. They go to whoever the address belongs to.
func (d *Door) AskForProof(addr net.Addr) bool { return d.strangers.askForProof(addr) }

// Refusing tells whether a connection is refused because the server can let in nobody.
func (d *Door) Refusing() bool {
	code, hear := d.cfg.Refusing()
	switch {
	case code == 0, hear && d.heard.Allow():
		return false
	case code == transport.CodeFull:
		d.cfg.Stats.Drop(transport.DropFull, 1)
	default:
		d.cfg.Stats.Drop(transport.DropOverload, 1)
	}
	return true
}

// Begin gives a connection that begins a place among the strangers, or nil.
func (d *Door) Begin(addr net.Addr, proven bool) *Stranger { return d.strangers.begin(addr, proven) }

// Meet notes that the handshake of a connection is complete, which proves its address, and how to
// tell it that it has to go: dismiss must not wait. It returns why the connection is refused, if
// it is.
func (d *Door) Meet(st *Stranger, dismiss func()) *transport.Refusal {
	d.mu.Lock()
	full := d.admitted >= d.maxConns
	d.mu.Unlock()
	switch {
	case full:
		d.cfg.Stats.Drop(transport.DropFull, 1)
		return &transport.Refusal{Code: transport.CodeFull, Text: "the server has too many connections"}
	case !d.strangers.met(st, dismiss):
		return ErrBusy
	}
	return nil
}

// ErrBusy is what a stranger is told for whom there is no place, or not any more.
var ErrBusy = &transport.Refusal{Code: transport.CodeBusy, Text: "too many want to come in: try again"}

// Abandon takes out a stranger whose connection has ended, if its handshake was still half
// open. Otherwise it keeps its place until its admission returns.
func (d *Door) Abandon(st *Stranger) { d.strangers.abandon(st) }

// Leave takes a stranger out: it is a player now, or gone. Only the first time counts.
func (d *Door) Leave(st *Stranger) { d.strangers.leave(st) }

// Admit counts a connection that has been let in.
func (d *Door) Admit() { d.count(1) }

// Left counts the end of a connection that had been let in.
func (d *Door) Left() { d.count(-1) }

func (d *Door) count(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.admitted += n
}

// SetMaxConns replaces Config.MaxConns. Who is in stays.
func (d *Door) SetMaxConns(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.maxConns = n
}
