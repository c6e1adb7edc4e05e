package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/netloop/netloop/bench/measure"
	"github.com/netloop/netloop/internal/metrics/ticks"
)

// reading is the state of a server and its clients at one moment.
type reading struct {
	at             time.Time
	server, player time.Duration // processor time
	ticks          ticks.Snapshot
	counters       map[string]float64
}

// sample holds the results of one measurement window.
type sample struct {
	server, player float64 // busy cores
	ticks          ticks.Snapshot
	out, in        float64 // datagrams per client and tick
	outBytes       float64 // size of one sent datagram
	inBytes        float64 // of one received datagram
	allocations    float64 // per client and tick, with a profile
	resident       float64 // bytes of the server's memory per client
	snapshots      float64 // per second of the median client; 0 for bare quic-go
	late           float64 // delay of the clients' frames in ms, p99
	saturated      string  // why the window is invalid, if the clients were too slow; else empty
}

// maxBusy is the highest share of its core that the clients' program may use: above it the program
// queues, and the measured cost of the server depends on that.
const maxBusy = 0.9

// fewest is the least share of ticks for which clients must receive a snapshot: a server that sends
// fewer snapshots does less work, so its cost cannot be compared.
const fewest = 0.95

// turn is the setup of one measurement: the program, its roles as server and client with their
// arguments, and the number of clients.
type turn struct {
	program    string
	serve      string   // roles
	play       string   //
	serverArgs []string // in addition to the arguments of every server
	playerArgs []string
	clients    int
}

// take starts the server and the clients, and measures them over a window.
func (b *bench) take(ctx context.Context, t turn) (s sample, err error) {
	server, at, err := b.startServer(ctx, t.program, t.serve, t.serverArgs...)
	if err != nil {
		return s, err
	}
	defer server.Stop()
	empty := measure.Resident(server.PID())
	result := filepath.Join(b.dir, "result")
	_ = os.Remove(result) // Remove the file of the previous clients.
	ramp := time.Duration(t.clients) * 10 * time.Millisecond
	player, err := start(t.program, b.playerCore, b.playersEnv(), t.play, append([]string{
		"--addr", cmp.Or(at.Web, at.Listen), "--clients", strconv.Itoa(t.clients), "--ramp", ramp.String(),
		"--warmup", b.opts.warmup.String(), "--duration", (b.windows() + time.Second/2).String(), "--out", "json=" + result,
	}, t.playerArgs...)...)
	if err != nil {
		return s, err
	}
	defer player.Stop()
	s, err = b.window(ctx, at.Admin, server, player, t.clients)
	s.resident = (measure.Resident(server.PID()) - empty) / float64(t.clients)
	if errors.Is(err, errEnded) {
		s.saturated = err.Error() // A program that failed is an error, a slow one is not.
		return s, player.Wait(ctx, startLimit, exitShort)
	}
	if errors.Is(err, errNotIn) {
		s.saturated = err.Error()
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if err := player.Wait(ctx, startLimit, exitShort); err != nil {
		return s, err
	}
	return s, s.judge(result, t.clients, b.opts.rate)
}

// windows returns the measured time.
func (b *bench) windows() time.Duration {
	if b.profiling { // Allocations are counted first, without those of the profiles.
		return 2*b.opts.window + time.Second
	}
	return b.opts.window
}

// window waits until all clients play, and measures.
func (b *bench) window(ctx context.Context, admin string, server, player *measure.Process, clients int) (s sample, err error) {
	if err := b.allIn(ctx, admin, player, clients); err != nil {
		return s, err
	}
	if err := measure.Sleep(ctx, b.opts.warmup+time.Second/4); err != nil {
		return s, err
	}
	var allocations float64
	if b.profiling {
		if allocations, err = b.allocations(ctx, admin); err != nil {
			return s, err
		}
	}
	before, err := read(ctx, admin, server, player)
	if err != nil {
		return s, err
	}
	wait := func() error { return measure.Sleep(ctx, b.opts.window) }
	if b.profiling {
		wait = func() error { return b.profileBoth(ctx, admin, player) }
	}
	if err := wait(); err != nil {
		return s, err
	}
	after, err := read(ctx, admin, server, player)
	if err != nil {
		return s, err
	}
	s, err = between(before, after, clients)
	s.allocations = allocations / float64(s.ticks.Ticks*uint64(clients))
	return s, err
}

// errEnded is the error of a window in which the clients ended before the measurement.
var errEnded = errors.New("the clients were done before they had been measured, because the machine had other work")

// errNotIn is the error of clients that did not connect in time.
var errNotIn = errors.New("the clients did not come in in time")

// allIn waits until all clients are in the server.
func (b *bench) allIn(ctx context.Context, admin string, player *measure.Process, clients int) error {
	limit := time.Now().Add(b.patience)
	for {
		c, err := counters(ctx, admin)
		if err != nil {
			return err
		}
		if int(c["netloop_clients"]) >= clients {
			return nil
		}
		if player.Gone() {
			return errEnded
		}
		if err := measure.Sleep(ctx, pollEvery); err != nil {
			return err
		}
		if time.Now().After(limit) {
			return fmt.Errorf("%w: %.0f of %d within %v", errNotIn, c["netloop_clients"], clients, b.patience)
		}
	}
}

func read(ctx context.Context, admin string, server, player *measure.Process) (r reading, err error) {
	text, err := get(ctx, admin, "/ticks")
	if err != nil {
		return r, err
	}
	if r.ticks, err = ticks.Decode(text); err != nil {
		return r, err
	}
	if r.counters, err = counters(ctx, admin); err != nil {
		return r, err
	}
	r.at = time.Now()
	if r.server, err = measure.CPUTime(server.PID()); err != nil {
		return r, err
	}
	if r.player, err = measure.CPUTime(player.PID()); err != nil && player.Gone() {
		return r, errEnded
	}
	return r, err
}

// adminToken permits the profiling of a server. The servers run for some seconds, and only on this
// machine.
const adminToken = "measured-on-loopback"

func get(ctx context.Context, admin, page string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+page, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s of the server: %s", page, res.Status)
	}
	return io.ReadAll(res.Body)
}

// counters reads the metrics page: the value of each series, by its name with labels.
func counters(ctx context.Context, admin string) (map[string]float64, error) {
	text, err := get(ctx, admin, "/metrics")
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range bytes.Lines(text) {
		name, number, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if x, err := strconv.ParseFloat(number, 64); err == nil && !strings.HasPrefix(name, "#") {
			all[name] = x
		}
	}
	return all, nil
}

// between returns the change between two readings.
func between(before, after reading, clients int) (s sample, err error) {
	took := after.at.Sub(before.at)
	s.server = float64(after.server-before.server) / float64(took)
	s.player = float64(after.player-before.player) / float64(took)
	if s.ticks, err = after.ticks.Sub(&before.ticks); err != nil {
		return s, err
	}
	grown := func(name string) float64 { return after.counters[name] - before.counters[name] }
	each := float64(s.ticks.Ticks) * float64(clients)
	out := grown(`netloop_transport_packets_total{direction="out"}`)
	in := grown(`netloop_transport_packets_total{direction="in"}`)
	s.out, s.in = out/each, in/each
	s.outBytes = grown(`netloop_transport_bytes_total{direction="out"}`) / max(out, 1)
	s.inBytes = grown(`netloop_transport_bytes_total{direction="in"}`) / max(in, 1)
	return s, nil
}

// readPlayed reads the clients' report on themselves.
func readPlayed(result string) (p played, err error) {
	text, err := os.ReadFile(result)
	if err != nil {
		return p, err
	}
	err = json.Unmarshal(text, &p)
	return p, err
}

// judge evaluates the clients' report on themselves.
func (s *sample) judge(result string, clients, rate int) error {
	p, err := readPlayed(result)
	if err != nil {
		return err
	}
	if x := p.Generator.Lateness.P99; x != nil {
		s.late = *x
	}
	if x := p.Snapshots.Rate.P50; x != nil {
		s.snapshots = *x
	}
	switch {
	case p.Clients.Connected > 0 && p.Clients.Connected-p.Clients.Disconnected < clients:
		return fmt.Errorf("%d of %d clients stayed connected", p.Clients.Connected-p.Clients.Disconnected, clients)
	case s.player > maxBusy:
		s.saturated = fmt.Sprintf("the clients took %.0f %% of their core", 100*s.player)
	case p.Saturated:
		s.saturated = fmt.Sprintf("the clients' frames came %.1f ms late (p99)", s.late)
	case s.snapshots > 0 && s.snapshots < fewest*float64(rate):
		s.saturated = fmt.Sprintf("clients had %.1f snapshots a second", s.snapshots)
	case !p.Converged:
		return errors.New("a client that checks its state found it unequal to the server's")
	}
	return nil
}
