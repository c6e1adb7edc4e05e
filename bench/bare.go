package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/certificate"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/metrics/ticks"
)

// This file has a server and clients of bare quic-go, which exchange as many datagrams of the same
// sizes as netloop's: a goroutine per connection reads, and a loop sends at the tick rate. The QUIC
// settings are netloop's.

const bareALPN = "floor"

func bareQUIC() *quic.Config {
	return &quic.Config{
		EnableDatagrams: true, InitialPacketSize: 1200, DisablePathMTUDiscovery: true,
		KeepAlivePeriod: 3 * time.Second, MaxIdleTimeout: 10 * time.Second,
	}
}

// pulse is the number and size of the datagrams that are sent in each period.
type pulse struct {
	period   time.Duration
	count    float64 // a period
	datagram []byte
}

func pulseFlags(f *flag.FlagSet) func() pulse {
	rate := f.Int("tick-rate", 60, "periods a second")
	count := f.Float64("count", 1, "datagrams a period")
	size := f.Int("size", 100, "size of a datagram, in bytes")
	return func() pulse {
		return pulse{time.Second / time.Duration(*rate), *count, make([]byte, min(max(*size, 1), 1150))}
	}
}

// peer is one connection of either side.
type peer struct {
	conn   *quic.Conn
	unsent float64 // datagrams
}

// send sends the datagrams due in one period. It waits while quic-go's queue is full.
func (p *peer) send(out pulse) {
	for p.unsent += out.count; p.unsent >= 1; p.unsent-- {
		if p.conn.SendDatagram(out.datagram) != nil {
			return // The connection has ended.
		}
	}
}

// receive reads all datagrams, until the connection ends.
func (p *peer) receive(count *atomic.Uint64) {
	for {
		if _, err := p.conn.ReceiveDatagram(context.Background()); err != nil {
			return
		}
		count.Add(1)
	}
}

// bareServer sends to all connected clients, tick by tick.
type bareServer struct {
	out   pulse
	clock *clock.System

	mu       sync.Mutex
	peers    []*peer        // under mu
	account  ticks.Snapshot // under mu
	received atomic.Uint64
}

func serveBare() {
	if err := bareMain(); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func bareMain() error {
	f := flag.NewFlagSet("bare", flag.ExitOnError)
	file := f.String("addr-file", "", "file for the addresses")
	out := pulseFlags(f)
	_ = f.Parse(os.Args[1:]) // It exits by itself.
	s := &bareServer{out: out(), clock: clock.NewSystem()}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pair, err := certificate.SelfSigned()
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, NextProtos: []string{bareALPN}}
	l, err := (&quic.Transport{Conn: socket}).Listen(conf, bareQUIC())
	if err != nil {
		return err
	}
	page, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(page, s.pages()) }() // It ends with the process.
	go s.accept(ctx, l)
	if err := writeAddresses(*file, addresses{Listen: socket.LocalAddr().String(), Admin: page.Addr().String()}); err != nil {
		return err
	}
	s.run(ctx)
	return nil
}

func (s *bareServer) accept(ctx context.Context, l *quic.Listener) {
	for {
		conn, err := l.Accept(ctx)
		if err != nil {
			return
		}
		p := &peer{conn: conn}
		s.mu.Lock()
		s.peers = append(s.peers, p)
		s.mu.Unlock()
		go p.receive(&s.received)
	}
}

// run ticks until the context ends.
func (s *bareServer) run(ctx context.Context) {
	due, start := s.clock.Now(), s.clock.Now()
	for s.clock.WaitUntil(ctx, due) == nil {
		began := s.clock.Now()
		s.mu.Lock()
		all := s.peers
		s.mu.Unlock()
		for _, p := range all {
			p.send(s.out)
		}
		took := s.clock.Now() - began
		s.mu.Lock()
		a := &s.account
		a.Ticks++
		a.Uptime, a.Budget = began-start, s.out.period
		a.Tick.Record(took)
		a.Lateness.Record(began - due)
		if took > s.out.period {
			a.Overruns++
		}
		s.mu.Unlock()
		for due += s.out.period; due < s.clock.Now()-5*s.out.period; due += s.out.period {
			s.mu.Lock()
			a.DroppedTicks++
			s.mu.Unlock()
		}
	}
}

// pages serves those admin pages of a netloop server that the measurement reads: /ticks and
// /metrics.
func (s *bareServer) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/ticks", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = json.NewEncoder(w).Encode(&s.account)
	})
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		in, out := s.received.Load(), float64(s.account.Ticks)*s.out.count*float64(len(s.peers))
		fmt.Fprintf(w, "netloop_clients %d\n", len(s.peers))
		fmt.Fprintf(w, "netloop_transport_packets_total{direction=\"in\"} %d\n", in)
		fmt.Fprintf(w, "netloop_transport_packets_total{direction=\"out\"} %.0f\n", out)
		fmt.Fprintf(w, "netloop_transport_bytes_total{direction=\"out\"} %.0f\n", out*float64(len(s.out.datagram)))
	})
	return mux
}

func playBare() {
	if err := playBareMain(); err != nil {
		fmt.Fprintln(os.Stderr, "play-bare:", err)
		os.Exit(1)
	}
}

// playBareMain runs clients that send at their own phases of the period, and measures their
// lateness.
func playBareMain() error {
	f := flag.NewFlagSet("play-bare", flag.ExitOnError)
	addr := f.String("addr", "", "the server")
	clients := f.Int("clients", 50, "number of clients")
	out := pulseFlags(f)
	ramp := f.Duration("ramp", time.Second, "time over which the clients connect")
	warmup := f.Duration("warmup", time.Second, "time before lateness is measured")
	duration := f.Duration("duration", time.Second, "time for which lateness is measured")
	exact := f.Bool("exact-frames", false, "send each datagram at its own time")
	perSocket := f.Int("per-socket", 1, "number of clients that share a socket")
	file := f.String("out", "", "json=FILE")
	_ = f.Parse(os.Args[1:]) // It exits by itself.
	p := &barePlayers{out: out(), clock: clock.NewSystem(), exact: *exact}
	if err := p.connect(*addr, *clients, *perSocket, *ramp); err != nil {
		return err
	}
	p.play(*warmup, *duration)
	for _, c := range p.peers {
		_ = c.conn.CloseWithError(0, "") // Errors are ignored: it ends either way.
	}
	return writeResult(*file, p.late.Percentile(99), p.out.period)
}

type barePlayers struct {
	out   pulse
	exact bool
	clock *clock.System
	peers []*peer
	got   atomic.Uint64
	late  ticks.Histogram
}

func (p *barePlayers) connect(addr string, clients, perSocket int, ramp time.Duration) error {
	server, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return err
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, NextProtos: []string{bareALPN}}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	var t *quic.Transport
	for n := range clients {
		if n%perSocket == 0 {
			socket, err := net.ListenUDP("udp", nil)
			if err != nil {
				return err
			}
			t = &quic.Transport{Conn: socket}
		}
		conn, err := t.Dial(ctx, server, conf, bareQUIC())
		if err != nil {
			return fmt.Errorf("client %d: %w", n, err)
		}
		c := &peer{conn: conn}
		go c.receive(&p.got)
		p.peers = append(p.peers, c)
		if p.clock.WaitUntil(ctx, p.clock.Now()+ramp/time.Duration(2*clients)) != nil {
			return errors.New("the clients did not connect in time")
		}
	}
	return nil
}

// play sends for each client once a period, at its own phase.
func (p *barePlayers) play(warmup, duration time.Duration) {
	start := p.clock.Now()
	from, to := start+warmup, start+warmup+duration
	n := len(p.peers)
	for period := start; period < to; period += p.out.period {
		for i, c := range p.peers {
			due := period + p.out.period*time.Duration(i)/time.Duration(n)
			p.waitUntil(due)
			if now := p.clock.Now(); now >= from {
				p.late.Record(now - due)
			}
			c.send(p.out)
		}
	}
}

// waitUntil waits as the load client does.
func (p *barePlayers) waitUntil(due time.Duration) {
	if p.exact {
		_ = p.clock.WaitUntil(context.Background(), due) // That context never ends.
		return
	}
	time.Sleep(due - p.clock.Now())
}
