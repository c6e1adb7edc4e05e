package sealed

import (
	"encoding/binary"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// tickPeriod is the interval at which the paths of a table are checked.
const tickPeriod = 50 * time.Millisecond

// Config configures a table.
type Config struct {
	// Write sends a record. It must not wait for the network, and must not keep b.
	Write func(b, control []byte, to *net.UDPAddr) error
	Stats *Stats // nil: not counted
	// Clock is monotonic.
	Clock func() time.Duration
	// After calls do once, after the time wait, on its own goroutine.
	After func(wait time.Duration, do func())
}

// Stats are counts of records. Any goroutine may read them.
type Stats struct {
	Sent, Received atomic.Uint64
	Unsent         atomic.Uint64 // the socket had no room
	Unknown        atomic.Uint64 // records that belong to no connection
	Invalid        atomic.Uint64 // malformed, repeated or too old
	Forged         atomic.Uint64 // the tag is wrong
	Throttled      atomic.Uint64 // not examined, because the address has sent many forged ones
	Begins         atomic.Uint64 // changes of a connection's datagrams from QUIC to records
	Returns        atomic.Uint64 // changes from records to QUIC
	Moves          atomic.Uint64 // changes of a client's address
	Active         atomic.Int64  // channels whose datagrams travel as records
}

// Table holds the channels of one socket by their ids.
type Table struct {
	cfg      Config
	throttle throttle // owned by the socket's reader

	mu       sync.RWMutex
	channels map[uint32]*Channel
	ticking  bool       // tick runs, or a timer will call it
	all      []*Channel // scratch of tick
}

// NewTable returns an empty table.
func NewTable(cfg Config) *Table {
	if cfg.Stats == nil {
		cfg.Stats = new(Stats)
	}
	t := &Table{cfg: cfg, channels: make(map[uint32]*Channel)}
	t.throttle.init()
	return t
}

// now returns the time. It is never 0.
func (t *Table) now() time.Duration { return t.cfg.Clock() + 1 }

// add adds a channel, unless another one has its id.
func (t *Table) add(c *Channel) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.channels[c.id] != nil {
		return false
	}
	t.channels[c.id] = c
	if !t.ticking {
		t.ticking = true
		t.cfg.After(tickPeriod, t.tick)
	}
	return true
}

func (t *Table) remove(c *Channel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.channels[c.id] == c {
		delete(t.channels, c.id)
	}
}

// tick checks all paths.
func (t *Table) tick() {
	t.mu.Lock()
	t.all = slices.AppendSeq(t.all[:0], maps.Values(t.channels))
	t.mu.Unlock()
	now := t.now()
	for _, c := range t.all {
		c.tick(now)
	}
	clear(t.all)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ticking = len(t.channels) > 0; t.ticking {
		t.cfg.After(tickPeriod, t.tick)
	}
}

// Receive handles a record that arrived at the socket, and decrypts it in place. Only one
// goroutine calls it. control holds the control messages for answers, and waited is the time for
// which the record waited in the socket.
func (t *Table) Receive(b []byte, from netip.AddrPort, control []byte, waited time.Duration) {
	if len(b) < Overhead {
		t.cfg.Stats.Invalid.Add(1)
		return
	}
	t.mu.RLock()
	c := t.channels[binary.BigEndian.Uint32(b[8:])]
	t.mu.RUnlock()
	switch {
	case c == nil:
		t.cfg.Stats.Unknown.Add(1)
		return
	case t.throttle.full(c.counter(from), t.now()):
		t.cfg.Stats.Throttled.Add(1)
		return
	}
	switch err := c.take(b, from, control, waited); {
	case err == nil:
		t.cfg.Stats.Received.Add(1)
	case forged(err):
		t.throttle.add(c.counter(from), t.now())
		t.cfg.Stats.Forged.Add(1)
	default:
		t.cfg.Stats.Invalid.Add(1)
	}
}
