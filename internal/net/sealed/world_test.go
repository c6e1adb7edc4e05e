package sealed

import (
	"bytes"
	"cmp"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// session returns the exporter of a connection with a number. The id of the connection is that of
// phase 0.
func session(n byte) exporter {
	return func(label string, context []byte, length int) ([]byte, error) {
		b, err := hkdf.Expand(sha256.New, []byte{n}, label+string(context), length)
		binary.BigEndian.PutUint32(b, 0x0a0b0c00+uint32(n)+uint32(context[3])<<24)
		return b, err
	}
}

func keysOf(n byte) *keyring { return newKeyring(tls.TLS_AES_128_GCM_SHA256, session(n)) }

// world is the two ends of a connection, on a network in virtual time.
type world struct {
	t              *testing.T
	now            time.Duration
	timers         []timer
	client, server *end
	delay          time.Duration
	drops          func(p packet) bool // nil: none
	sent           []packet            // all packets, also dropped ones
}

type timer struct {
	at time.Duration
	do func()
}

type packet struct {
	b        []byte
	from, to netip.AddrPort
	control  string
}

func (p packet) kind() byte { return p.b[1] &^ phaseBit }

// end is one end with its socket.
type end struct {
	*Channel
	w       *world
	addr    netip.AddrPort
	local   string // control message of records that arrive at the socket
	stats   Stats
	keys    *keyring
	got     []uint32 // numbers of the datagrams
	waited  time.Duration
	nudges  int
	changes int
	failing bool // the socket has no room
}

// newWorld returns a world with started channels and a round trip of 40 ms, in which packets are
// dropped from the first one on.
func newWorld(t *testing.T, drops ...func(w *world, p packet) bool) *world {
	w := &world{t: t, delay: 20 * time.Millisecond}
	for _, drops := range drops {
		w.drops = func(p packet) bool { return drops(w, p) }
	}
	w.client = w.end("192.0.2.2:1000", 1)
	w.server = w.end("192.0.2.1:4433", 1)
	w.client.open(w.server, func() { w.client.nudges++ })
	w.server.open(w.client, nil)
	w.server.start()
	w.client.start()
	return w
}

// end returns an end with the keys of a session and without a channel.
func (w *world) end(addr string, session byte) *end {
	return &end{w: w, addr: netip.MustParseAddrPort(addr), local: "at " + addr, keys: keysOf(session)}
}

func (e *end) open(peer *end, nudge func()) {
	table := NewTable(Config{
		Stats: &e.stats, Clock: func() time.Duration { return e.w.now }, After: e.w.after,
		Write: func(b, control []byte, to *net.UDPAddr) error {
			if e.failing {
				return errors.New("no room")
			}
			e.w.send(packet{bytes.Clone(b), e.addr, to.AddrPort(), string(control)})
			return nil
		},
	})
	e.Channel = table.open(e.keys, net.UDPAddrFromAddrPort(peer.addr), nudge)
}

func (e *end) start() {
	e.Start(func(b []byte, at int, number uint32, waited time.Duration) {
		if string(b[at:]) != "data" {
			e.w.t.Errorf("datagram %d is %q", number, b[at:])
		}
		e.got, e.waited = append(e.got, number), waited
	}, func() { e.changes++ })
}

func (w *world) after(wait time.Duration, do func()) {
	w.timers = append(w.timers, timer{w.now + wait, do})
	slices.SortStableFunc(w.timers, func(a, b timer) int { return cmp.Compare(a.at, b.at) })
}

// send sends a packet. It arrives at the end that has the address on arrival.
func (w *world) send(p packet) {
	w.sent = append(w.sent, p)
	if w.drops != nil && w.drops(p) {
		return
	}
	w.after(w.delay, func() { w.arrive(p) })
}

func (w *world) arrive(p packet) {
	for _, e := range w.ends() {
		if e.addr == p.to && Is(p.b) {
			e.table.Receive(bytes.Clone(p.b), p.from, []byte(e.local), 3*time.Millisecond)
		}
	}
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	for end := w.now + d; ; {
		if len(w.timers) == 0 || w.timers[0].at > end {
			w.now = end
			return
		}
		next := w.timers[0]
		w.timers = w.timers[1:]
		w.now = next.at
		next.do()
	}
}

// play lets both ends send a datagram every 20 ms where the path is active, and returns how many of
// each end arrived.
func (w *world) play(d time.Duration) (atClient, atServer int) {
	before := [2]int{len(w.client.got), len(w.server.got)}
	for end := w.now + d; w.now < end; w.run(20 * time.Millisecond) {
		for _, e := range w.ends() {
			if e.Active() {
				e.Send(uint32(len(w.sent)), []byte("data"))
			}
		}
	}
	return len(w.client.got) - before[0], len(w.server.got) - before[1]
}

// count counts the sent packets for which is is true.
func (w *world) count(is func(p packet) bool) (n int) {
	for _, p := range w.sent {
		if is(p) {
			n++
		}
	}
	return n
}

func (w *world) ends() []*end { return []*end{w.client, w.server} }

// active checks that both ends send records, or that none does, and the counts of active channels.
func (w *world) active(want bool) {
	w.t.Helper()
	for _, e := range w.ends() {
		if n := e.stats.Active.Load(); n < 0 || n > 1 || (n == 1) != e.Active() {
			w.t.Fatalf("at %v of one channel %d are active", w.now, n)
		}
	}
	if c, s := w.client.Active(), w.server.Active(); c != want || s != want {
		w.t.Fatalf("at %v the client's end is active: %v, the server's: %v, want %v", w.now, c, s, want)
	}
}
