package loadtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/netem"
)

// openSockets opens the sockets of all clients: few, or with --simulate one for each, because
// clients on a shared link would share its bottleneck.
func (r *run) openSockets() error {
	r.perSocket = r.opts.perSocket
	if r.simulated != nil {
		r.perSocket = 1
	}
	for n := range (r.opts.clients + r.perSocket - 1) / r.perSocket {
		d, err := r.openSocket(uint64(n))
		if err != nil {
			return err
		}
		r.dialers = append(r.dialers, d)
	}
	for n, slow := range r.opts.slowOf {
		if slow == "" {
			continue
		}
		socket, err := r.socket(uint64(n))
		if err != nil {
			return err
		}
		r.slowReaders[n] = &slowReader{run: r}
		r.slowDialers[n] = r.slow(socket, r.slowReaders[n])
	}
	return nil
}

// openSocket opens the n-th socket.
func (r *run) openSocket(n uint64) (*client.Dialer, error) {
	if r.simulated == nil {
		return client.NewDialer()
	}
	socket, err := r.socket(n)
	if err != nil {
		return nil, err
	}
	return bridge.Client.NewDialer(socket).(*client.Dialer), nil
}

// socket opens a UDP socket, with --simulate behind a network with the n-th seed.
func (r *run) socket(n uint64) (net.PacketConn, error) {
	if r.simulated == nil {
		return net.ListenUDP("udp", nil)
	}
	return netem.Dial(netem.Config{Spec: r.opts.network, Seed: r.opts.seed + n, Stats: r.simulated})
}

// dialer returns the dialer of a client.
func (r *run) dialer(n int) *client.Dialer {
	if d := r.slowDialers[n]; d != nil {
		return d
	}
	return r.dialers[n/r.perSocket]
}

// dialTimeout bounds the connection of one client: handshake and admission.
const dialTimeout = 20 * time.Second

// dial connects a client.
func (r *run) dial(ctx context.Context, e event) (*player, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	n, began := e.client, r.now()
	addr, trust := r.opts.target(n)
	if s := r.slowReaders[n]; s != nil {
		s.joined.Store(0)
	}
	c, err := r.dialer(n).Dial(ctx, addr, client.Config{
		Schema: r.bot.Schema(), Join: r.bot.Join(n), TLS: trust, Transport: r.opts.over[n], QUICDatagrams: r.opts.datagrams == "quic",
		Room:      r.opts.roomOf(n),
		Tokens:    func(context.Context) (string, error) { return r.token(n) },
		Reconnect: client.Reconnect{Off: !r.opts.reconnect},
		Log:       r.screen.logger().With("client", n),
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			r.dialErrors.add(reason(err))
		}
		return nil, err
	}
	r.joins.add(began, r.now())
	r.admitted.Add(1)
	r.connected.Add(1)
	return r.player(c, e), nil
}

// player makes the player of a connected client.
func (r *run) player(c *client.Client, e event) *player {
	n, stream := e.client, uint64(e.client)
	if e.again {
		stream |= uint64(e.at) << 14 // Its random numbers are not those of the left client.
	}
	p := &player{client: c, meter: Meter{n: n, rand: rand.New(rand.NewPCG(r.opts.seed, stream))}, again: e.again, left: make(chan struct{})}
	p.meter.varies = r.varies[n]
	if r.opts.slowOf != nil {
		p.meter.slow = r.opts.slowOf[n] != ""
	}
	if r.opts.profileOf != nil {
		p.meter.profile = r.opts.profileOf[n]
	}
	before, verifies := r.opts.verifies(n)
	if p.order = before; !verifies {
		bridge.Client.Blind(c)
		p.meter.blind = true
	}
	if p.meter.blind || p.meter.slow {
		p.verify = spared
	}
	return p
}

// begin hands a client to its worker, which anchors its scheduled calls at the time of its join.
func (r *run) begin(p *player, anchor time.Duration) {
	p.meter.anchor = anchor
	if s := r.slowReaders[p.meter.n]; s != nil {
		s.joined.Store(int64(max(r.now(), 1)))
	}
	r.slots[p.meter.n].Store(p)
	r.workers[p.meter.n%len(r.workers)].add <- p
}

// ramp connects the clients of the ramp at their times, and returns when each is connected or has
// failed. It returns the time at which the ramp began.
func (r *run) ramp(ctx context.Context, first *player, all []event) (origin time.Duration) {
	origin = r.now()
	r.entered.Add(1)
	r.begin(first, origin)
	var dials sync.WaitGroup
	for _, e := range all[1:] {
		if r.clock.WaitUntil(ctx, origin+e.at) != nil {
			break
		}
		dials.Go(func() { r.join(ctx, e, origin) })
	}
	dials.Wait()
	return origin
}

// join connects a client for the first time.
func (r *run) join(ctx context.Context, e event, origin time.Duration) {
	p, err := r.dial(ctx, e)
	if err != nil {
		if ctx.Err() == nil {
			r.failed.Add(1)
		}
		return
	}
	r.entered.Add(1)
	r.begin(p, origin+e.at)
}

// startEvents makes the changes of the population in the window that begins at from, until the
// returned function is called. It returns when no further client can join.
func (r *run) startEvents(ctx context.Context, from time.Duration, all []event) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var under sync.WaitGroup
	under.Go(func() {
		for _, e := range all {
			if r.clock.WaitUntil(ctx, from+e.at) != nil {
				return
			}
			switch {
			case e.drop:
				if p := r.slots[e.client].Load(); p != nil {
					p.breaking.Store(true)
				}
			case e.again:
				under.Go(func() { r.rejoin(ctx, e, from) })
			default:
				under.Go(func() { r.join(ctx, e, from) })
			}
		}
	})
	return func() {
		cancel()
		under.Wait()
	}
}

// The waits between two attempts of a client to join anew: the first and the longest.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 4 * time.Second
)

// rejoin lets a client leave, and another join in its place. A client that has not joined, was lost
// or is rejoining is left alone.
func (r *run) rejoin(ctx context.Context, e event, from time.Duration) {
	p := r.slots[e.client].Swap(nil)
	if p == nil {
		return
	}
	p.leaving.Store(true)
	<-p.left // It leaves in its next frame.
	if !p.departed {
		return
	}
	defer r.rejoining.Add(-1)
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		if p, err := r.dial(ctx, e); err == nil {
			r.begin(p, from+e.at)
			return
		}
		// The clock's exact wait has a file for each waiting goroutine: too many in a storm.
		if !clock.Sleep(ctx, wait) {
			return
		}
	}
}
