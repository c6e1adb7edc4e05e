package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netloop/netloop/bench/measure"
	"github.com/netloop/netloop/bench/tun"
	"github.com/netloop/netloop/internal/netem"
)

// This file has the command `bench path`. It runs servers and clients in network namespaces of
// their own, and emulates a path between them that transports whole IP packets.

// carriage is a variant of the transport: the additional flags of servers and clients.
type carriage struct{ server, clients []string }

// carriages are the variants by name.
var carriages = map[string]carriage{
	"quic":      {[]string{"--datagrams", "quic"}, []string{"--datagrams", "quic"}},
	"auto":      {[]string{"--datagrams", "auto"}, []string{"--datagrams", "auto"}},
	"websocket": {[]string{"--web", "192.0.2.1:0", "--web-tls"}, []string{"--transport", "websocket"}},
}

// pathOptions are the flags of `bench path`.
type pathOptions struct {
	over    []string // names of carriages
	links   []netem.Spec
	sizes   []int // sizes of a snapshot in bytes
	clients int
	shared  bool
	window  time.Duration
	warmup  time.Duration
	seed    uint64
}

const (
	allLinks = "rtt=60ms,jitter=5ms,loss=1% rtt=60ms,jitter=5ms,loss=3% rtt=150ms,jitter=20ms,loss=3% " +
		"rtt=150ms,jitter=20ms,loss=5% rtt=250ms,jitter=40ms,loss=3%"
	allSizes = "250 900 2500"
)

// parsePath reads the flags of `bench path`. The error names the expected value.
func parsePath(args []string, out io.Writer) (o pathOptions, err error) {
	flags := flag.NewFlagSet("bench path", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		fmt.Fprintln(out, "bench path [flags]: snapshots at 60 Hz over emulated paths of whole IP packets, on Linux as root")
		flags.SetOutput(out)
		flags.PrintDefaults()
	}
	over := flags.String("transport", "auto quic", "settings of the transport: quic, auto or websocket; several in quotation marks")
	links := flags.String("links", allLinks, "the paths, as --simulate has them: loss and jitter are of each direction; several in quotation marks; empty is none")
	sizes := flags.String("bytes", allSizes, "bytes of a snapshot's objects, 1 to 10240; several in quotation marks")
	flags.IntVar(&o.clients, "clients", 8, "how many clients play over each of the paths, which have no limited rate unless -links sets one")
	flags.BoolVar(&o.shared, "shared", true, "measure the shares of a link of 2 Mbit/s too: beside TCP, and of eight clients")
	flags.DurationVar(&o.window, "window", 10*time.Second, "how long each path is measured; each share is measured twice as long")
	flags.DurationVar(&o.warmup, "warmup", 5*time.Second, "how long clients play before that")
	flags.Uint64Var(&o.seed, "seed", 1, "of the lost packets and the jitter: each row has the same")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: %w: path -help lists the flags", errUsage, err)
	}
	for name := range strings.FieldsSeq(*over) {
		if _, ok := carriages[name]; !ok {
			return o, fmt.Errorf("%w: -transport: %q cannot be used: use quic, auto or websocket", errUsage, name)
		}
		o.over = append(o.over, name)
	}
	for text := range strings.FieldsSeq(*links) {
		spec, err := netem.Parse(text)
		if err != nil {
			return o, fmt.Errorf("%w: -links: %w", errUsage, err)
		}
		o.links = append(o.links, spec)
	}
	for text := range strings.FieldsSeq(*sizes) {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 || size > 10*maxCargo {
			return o, fmt.Errorf("%w: -bytes: %q cannot be used: use 1 to %d", errUsage, text, 10*maxCargo)
		}
		o.sizes = append(o.sizes, size)
	}
	if o.clients < 1 || o.clients > 100 || o.window < time.Second || o.warmup < 0 || len(o.over) == 0 || flags.NArg() > 0 {
		return o, fmt.Errorf("%w: use -clients of 1 to 100, a -window of 1s or more, a -transport, and no word besides", errUsage)
	}
	return o, nil
}

// sharedSpec is the path of the rows that share a link.
const sharedSpec = "rtt=60ms,rate=2Mbit/s,buffer=100ms"

// crowds are the rows whose clients share a link. All clients send more than their share of the
// link.
var crowds = []crossing{
	{size: 2500, clients: 1, beside: true},
	{size: 5000, clients: 1, beside: true},
	{size: 900, clients: 8},
}

// pathBench is one run of `bench path`.
type pathBench struct {
	pathOptions
	about io.Writer // progress
	self  string    // this program
	dir   string    // for the files that the programs exchange
}

// crossing is one row: clients of one server over one path.
type crossing struct {
	over    string
	link    netem.Spec
	size    int
	clients int
	beside  bool // a TCP flow shares the link
	window  time.Duration
}

// crossed holds the results of a row.
type crossed struct {
	rate      float64  // snapshots per second of the median client
	gap, most float64  // ms between two snapshots, p99 and maximum
	packets   float64  // bytes of whole IP packets for each snapshot of the median client
	tcp       float64  // bit/s of the TCP flow
	shares    []uint64 // bytes of the clients, the largest first
	took      time.Duration
	late      float64 // the share of packets that the emulator delivered late
	note      string  // why the row is invalid: the machine was too busy; else empty
}

// paths measures all rows. It prints each row as soon as it is measured.
func paths(ctx context.Context, args []string, out, about io.Writer) error {
	o, err := parsePath(args, out)
	if err != nil {
		return err
	}
	b := &pathBench{pathOptions: o, about: about}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "netloop-bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	fmt.Fprintf(out, "seed %d, %d clients, %v each\n", o.seed, o.clients, o.window)
	if len(o.links) > 0 {
		fmt.Fprintf(out, "%-36s %-9s %5s %9s  %8s %10s %10s\n", "path (loss of each direction)", "transport", "bytes", "of packets", "rate, Hz", "gap p99, ms", "gap max, ms")
	}
	for _, link := range o.links {
		for _, size := range o.sizes {
			for _, over := range o.over {
				c := crossing{over: over, link: link, size: size, clients: o.clients, window: o.window}
				r, err := b.cross(ctx, c)
				if err != nil {
					return fmt.Errorf("%v, %s, %d bytes: %w", link, over, size, err)
				}
				fmt.Fprintf(out, "%-36v %-9s %5d %10.0f  %8.1f %11.0f %11.0f%s\n", link, over, size, r.packets, r.rate, r.gap, r.most, r.note)
			}
		}
	}
	if !o.shared {
		return nil
	}
	return b.crowds(ctx, out)
}

// leastTCP and mostUneven are the limits of the rows that share a link: the share of the link that
// TCP keeps beside a client, and the bytes of the client with most divided by those of the client
// with fewest.
const leastTCP, mostUneven = 0.4, 2

// errUnfair is the error of a run in which rows exceed these limits.
var errUnfair = errors.New("clients took more than their share of the link")

// fair reports whether the limits hold. A row without a figure exceeds none.
func (r *crossed) fair(c crossing, bandwidth float64) bool {
	return r.note != "" || (!c.beside || r.tcp >= leastTCP*bandwidth) && (c.clients == 1 || r.uneven() <= mostUneven)
}

// uneven returns the bytes of the client with most, divided by those of the client with fewest.
func (r *crossed) uneven() float64 {
	return float64(r.shares[0]) / float64(max(r.shares[len(r.shares)-1], 1))
}

// crowds measures and prints the rows that share a link.
func (b *pathBench) crowds(ctx context.Context, out io.Writer) error {
	link, err := netem.Parse(sharedSpec)
	if err != nil {
		return err
	}
	bandwidth := float64(link.Ways[netem.Down].Bandwidth)
	fmt.Fprintf(out, "\nshares of a link (%v)\n", link)
	var bad error
	for _, c := range crowds {
		for _, c.over = range b.over {
			c.link, c.window = link, 2*b.window // TCP takes seconds to find its share.
			r, err := b.cross(ctx, c)
			if err != nil {
				return fmt.Errorf("%d clients that share a link, %s: %w", c.clients, c.over, err)
			}
			sum := 0.0
			for _, bytes := range r.shares {
				sum += float64(bytes) * 8 / r.took.Seconds()
			}
			text := fmt.Sprintf("%d × %d B, %s: %.0f %% of the link", c.clients, c.size, c.over, 100*sum/bandwidth)
			if c.beside {
				text += fmt.Sprintf(", TCP keeps %.0f %% (at least %.0f)", 100*r.tcp/bandwidth, 100*leastTCP)
			}
			if c.clients > 1 {
				text += fmt.Sprintf(", largest to smallest client %.2f (at most %d)", r.uneven(), mostUneven)
			}
			fmt.Fprintf(out, "%s; %.1f Hz, gap p99 %.0f ms, max %.0f ms%s\n", text, r.rate, r.gap, r.most, r.note)
			if !r.fair(c, bandwidth) {
				bad = errUnfair
			}
		}
	}
	return bad
}

// cross measures one row.
func (b *pathBench) cross(ctx context.Context, c crossing) (r crossed, err error) {
	fmt.Fprintf(b.about, "%s %v, %s, %d × %d B\n", time.Now().Format(time.TimeOnly), c.link, c.over, c.clients, c.size)
	link, err := tun.Open(c.link, b.seed)
	if err != nil {
		return r, err
	}
	defer link.Close()
	var bulk tun.Flow
	if c.beside {
		flow, stop, err := link.Bulk()
		if err != nil {
			return r, err
		}
		defer stop()
		bulk = flow
	}
	file, result := filepath.Join(b.dir, "addresses"), filepath.Join(b.dir, "result")
	_, _ = os.Remove(file), os.Remove(result) // Remove the files of the previous row.
	server, err := startBy(link.Server.Start, b.self, nil, "traffic", slices.Concat([]string{
		"--listen", link.Server.Addr + ":0", "--admin", "", "--insecure-no-auth", "--log-level", "warn",
		"--traffic.bytes", strconv.Itoa(c.size), "--addr-file", file,
	}, carriages[c.over].server)...)
	if err != nil {
		return r, err
	}
	defer server.Stop()
	at, err := ready(ctx, server, file)
	if err != nil {
		return r, err
	}
	addr := at.Listen
	if at.Web != "" {
		addr = "wss://" + at.Web
	}
	player, err := startBy(link.Clients.Start, b.self, nil, "play-traffic", slices.Concat([]string{
		"--addr", addr, "--cert-hash", at.CertHash, "--clients", strconv.Itoa(c.clients), "--per-socket", "1", "--ramp", "500ms", "--ui", "quiet",
		"--warmup", b.warmup.String(), "--duration", (c.window + slack).String(), "--out", "json=" + result,
	}, carriages[c.over].clients)...)
	if err != nil {
		return r, err
	}
	defer player.Stop()
	if err := r.share(ctx, link, player, c, b.warmup, bulk); err != nil {
		return r, err
	}
	if err := player.Wait(ctx, startLimit, exitShort); err != nil {
		return r, err
	}
	if err := r.read(result); err != nil {
		return r, err
	}
	r.packets = float64(r.shares[len(r.shares)/2]) / r.took.Seconds() / max(r.rate, 1)
	return r, nil
}

// maxPacketsLate is above the share of packets that a quiet machine delivers late. If more
// packets are late, the machine and not the server has caused the gaps.
const maxPacketsLate = 0.005

// slack is the additional time for which clients play after the shares were measured.
const slack = 500 * time.Millisecond

// share measures the shares of the clients and of TCP once all clients play.
func (r *crossed) share(ctx context.Context, link *tun.Link, player *measure.Process, c crossing, warmup time.Duration, bulk tun.Flow) error {
	limit := time.Now().Add(startLimit)
	for len(sharesOf(tun.Counts{}, link.Counts(netem.Down), bulk)) < c.clients {
		if player.Gone() {
			return fmt.Errorf("the clients did not connect: %w", player.Err())
		}
		if time.Now().After(limit) {
			return errNotIn
		}
		if err := measure.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
	if err := measure.Sleep(ctx, warmup+slack); err != nil {
		return err
	}
	before, began := link.Counts(netem.Down), time.Now()
	if err := measure.Sleep(ctx, c.window); err != nil {
		return err
	}
	after := link.Counts(netem.Down)
	r.took = time.Since(began)
	r.shares = sharesOf(before, after, bulk)
	r.shares = r.shares[:min(len(r.shares), c.clients)]
	r.late = float64(after.Late-before.Late) / float64(max(after.Passed-before.Passed, 1))
	r.tcp = float64(after.Bytes[bulk]-before.Bytes[bulk]) * 8 / r.took.Seconds()
	return nil
}

// sharesOf returns the bytes of each client between two counts, the largest first. It leaves out
// bulk, the TCP flow, which is not a client.
func sharesOf(before, after tun.Counts, bulk tun.Flow) (shares []uint64) {
	for f, bytes := range after.Bytes {
		if f != bulk && f.Port != 0 {
			shares = append(shares, bytes-before.Bytes[f])
		}
	}
	slices.Sort(shares)
	slices.Reverse(shares)
	return shares
}

// read reads the clients' report on themselves.
func (r *crossed) read(result string) error {
	p, err := readPlayed(result)
	if err != nil {
		return err
	}
	if x := p.Snapshots.Rate.P50; x != nil {
		r.rate = *x
	}
	if gap := p.Snapshots.Interval; gap.P99 != nil && gap.Max != nil {
		r.gap, r.most = *gap.P99, *gap.Max
	}
	switch {
	case p.Clients.Disconnected > 0:
		r.note = fmt.Sprintf(" (%d clients lost the connection)", p.Clients.Disconnected)
	case p.Saturated:
		r.note = " (NO FIGURE: the machine was too busy for the clients)"
	case r.late > maxPacketsLate:
		r.note = fmt.Sprintf(" (NO FIGURE: the machine was too busy, the emulator was late for %.1f %% of the packets)", 100*r.late)
	}
	return nil
}
