package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/netem"
)

// peer is a server that is measured, with its clients.
type peer struct {
	name  string // on the command line and in the results
	title string // in tables
	about string // the carrier and the encryption
	// serve and play are the roles of a peer in Go. The others have a program that is made first.
	serve func(serverArgs) error
	play  func(clientArgs) error
	// foreign builds a program in a folder. It returns the commands that start its server and its
	// client, without their arguments, and its version.
	foreign func(dir string) (serve, play []string, version string, err error)
	module  string // of a peer in Go, for its version
}

// peers lists the measured servers, in the order of the tables.
var peers = []*peer{
	netloopPeer("netloop", "netloop", "QUIC and UDP, encrypted", client.QUIC),
	netloopPeer("netloop-webtransport", "netloop, WebTransport", "WebTransport and UDP, encrypted", client.WebTransport),
	netloopPeer("netloop-websocket", "netloop, WebSocket", "WebSocket, TLS", client.WebSocket),
	{
		name: "nano", title: "nano", about: "TCP, plain", module: "github.com/lonng/nano",
		serve: serveNano, play: playNano,
	},
	{
		name: "pitaya", title: "Pitaya", about: "TCP, plain", module: pitayaModule,
		serve: func(a serverArgs) error { return servePitaya(a, false) },
		play:  func(a clientArgs) error { return playPomelo(a, false) },
	},
	{
		name: "pitaya-tls", title: "Pitaya, TLS", about: "TCP, TLS", module: pitayaModule,
		serve: func(a serverArgs) error { return servePitaya(a, true) },
		play:  func(a clientArgs) error { return playPomelo(a, true) },
	},
	{name: "colyseus", title: "Colyseus", about: "WebSocket, plain", foreign: makeColyseus},
	{name: "enet", title: "ENet", about: "UDP, plain", foreign: makeENet},
}

const pitayaModule = "github.com/topfreegames/pitaya/v3"

func netloopPeer(name, title, about string, over client.Transport) *peer {
	return &peer{
		name: name, title: title, about: about, module: "github.com/netloop/netloop",
		serve: func(a serverArgs) error { return serveNetloop(a, over) },
		play:  func(a clientArgs) error { return playNetloop(a, over) },
	}
}

func peerNamed(name string) *peer {
	i := slices.IndexFunc(peers, func(p *peer) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return peers[i]
}

// The parts of the matrix.
const (
	loopback = "loopback" // a server on one core, its clients on another
	path     = "path"     // both in namespaces, with an emulated path between them
	stalled  = "stall"    // on loopback, with a tick of 2 s
	silent   = "silent"   // over a path, beside a client that does not run
)

var parts = []string{loopback, path, stalled, silent}

// cell is one measurement.
type cell struct {
	part    string
	world   string
	rate    int // ticks a second
	clients int
	link    string // as netem.Parse reads it; empty is loopback
	peer    *peer
}

// key identifies a cell in the results.
func (c cell) key() string {
	words := []string{c.part, c.world, fmt.Sprintf("%dHz", c.rate), fmt.Sprintf("%d clients", c.clients)}
	if c.link != "" {
		words = append(words, c.link)
	}
	return strings.Join(append(words, c.peer.name), ", ")
}

// plan is the size of a matrix.
type plan struct {
	warmup, window time.Duration
	worlds         []string
	rates          []int
	clients        []int
	links          []string
	narrow         []string
	stall, silence time.Duration // the windows of these parts
	queue          time.Duration // the window of narrow links, on which queues grow for seconds
}

// The two plans: one takes 50 minutes, the other 10. fullPlan's cells contain those of quickPlan,
// but their windows are longer.
var (
	fullPlan = plan{
		warmup: 2 * time.Second, window: 4 * time.Second,
		worlds: []string{"smooth", "flips", "tenth"}, rates: []int{60, 20}, clients: []int{50, 200, 400},
		links: []string{
			"rtt=60ms", "rtt=60ms,loss=1%", "rtt=60ms,loss=3%", "rtt=60ms,loss=5%",
			"rtt=150ms", "rtt=150ms,loss=1%", "rtt=150ms,loss=3%", "rtt=150ms,loss=5%",
		},
		narrow: []string{"rtt=60ms,rate=1Mbit/s,buffer=200ms", "rtt=60ms,rate=200kbit/s,buffer=200ms"},
		stall:  7 * time.Second, silence: 20 * time.Second, queue: 12 * time.Second,
	}
	quickPlan = plan{
		warmup: time.Second, window: 2500 * time.Millisecond,
		worlds: []string{"smooth"}, rates: []int{60}, clients: []int{50, 200, 400},
		links:  []string{"rtt=60ms", "rtt=60ms,loss=1%", "rtt=150ms,loss=1%", "rtt=150ms,loss=5%"},
		narrow: []string{"rtt=60ms,rate=200kbit/s,buffer=200ms"},
		stall:  5 * time.Second, silence: 15 * time.Second, queue: 8 * time.Second,
	}
)

// pathClients is the number of clients that share an emulated path without a limited rate. A path
// with a limited rate has a single client, because it emulates one player's link.
const pathClients = 20

// usual is the world, rate and number of clients of the parts that vary something else.
const (
	usualWorld   = "smooth"
	usualRate    = 60
	usualClients = 50
)

// cells lists the cells of a plan. Peers take turns, so that a change of the machine's speed
// affects each of them.
func (p *plan) cells() (all []cell) {
	add := func(c cell) {
		for _, c.peer = range peers {
			all = append(all, c)
		}
	}
	for _, world := range p.worlds {
		for _, rate := range p.rates {
			for _, clients := range p.clients {
				add(cell{part: loopback, world: world, rate: rate, clients: clients})
			}
		}
	}
	for _, link := range p.links {
		add(cell{part: path, world: usualWorld, rate: usualRate, clients: pathClients, link: link})
	}
	for _, link := range p.narrow {
		add(cell{part: path, world: usualWorld, rate: usualRate, clients: 1, link: link})
	}
	add(cell{part: stalled, world: usualWorld, rate: usualRate, clients: usualClients})
	add(silentCell)
	return all
}

// silentCell is the cell of part silent. Its path gives TCP the buffers of an internet connection.
// Over loopback the kernel would hold megabytes for a client that reads no data.
var silentCell = cell{part: silent, world: usualWorld, rate: usualRate, clients: pathClients, link: "rtt=20ms"}

// windowOf returns the length of a cell's window.
func (p *plan) windowOf(c cell) time.Duration {
	switch {
	case c.part == stalled:
		return p.stall
	case c.part == silent:
		return p.silence
	case c.part == path && c.clients == 1:
		return p.queue
	}
	return p.window
}

// spec parses the link of a cell.
func (c cell) spec() (netem.Spec, error) { return netem.Parse(c.link) }
