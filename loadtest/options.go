package loadtest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/net/wsnet"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/token"
)

// options are the command line.
type options struct {
	addr      string
	clients   int
	ramp      time.Duration
	warmup    time.Duration
	duration  time.Duration
	seed      uint64
	frameRate float64
	exact     bool // frames
	admin     string
	adminFile string // of tokens
	out       []string
	tags      map[string]string
	config    string

	thresholds []string
	ca         string
	certHash   string
	simulate   string
	quiet      bool
	reconnect  bool
	verify     int
	perSocket  int
	transport  client.Transport
	datagrams  string

	tokenKey      string
	tokenAudience string
	tokenSubject  string

	outputs []output          // of out
	bounds  []threshold       // of thresholds
	command []string          // as typed
	values  map[string]string // of all flags
	tls     *tls.Config       // of ca, certHash and addr
	signer  *token.Signer     // of tokenKey; nil without
	token   string            // of adminFile
	network netem.Spec        // of simulate
}

// Bounds of the options.
const (
	maxClients  = 10_000 // the most clients of a room
	maxPhase    = 10 * time.Minute
	minDuration = 100 * time.Millisecond
	maxDuration = 24 * time.Hour
	// maxPerSocket is the most clients of one UDP socket. The socket's buffer of 208 KiB holds one
	// snapshot for each of fifty clients; the goroutine that reads it keeps up with more.
	maxPerSocket = 1000
	minFrames    = 1
	maxFrames    = 1000
)

// flags declares the options with their defaults.
func (o *options) flags(f *pflag.FlagSet) {
	f.StringVar(&o.addr, "addr", "127.0.0.1:4433", "the server, `HOST:PORT`; with --transport websocket that of its pages (--web), or a ws:// or wss:// URL")
	f.IntVar(&o.clients, "clients", 100, "how many bots play, 1 to 10000")
	f.DurationVar(&o.ramp, "ramp", 2*time.Second, "over which time they connect, 0 to 10m")
	f.DurationVar(&o.warmup, "warmup", 3*time.Second, "how long they play before anything is counted, 0 to 10m")
	f.DurationVar(&o.duration, "duration", 20*time.Second, "how long they are measured, 100ms to 24h")
	f.Uint64Var(&o.seed, "seed", 1, "of the bots' decisions: the same seed, the same bots")
	f.Float64Var(&o.frameRate, "frame-rate", 0, "frames a second of every bot, `HZ` from 1 to 1000 (default: the tick rate of the room that it is in)")
	f.BoolVar(&o.exact, "exact-frames", false, "frames begin at their own times, as those of players do; without it those of the same millisecond begin together, which takes less processor")
	f.StringVar(&o.admin, "admin", "", "`URL` of the server's admin listener, as in http://127.0.0.1:8080: for the server's own figures")
	f.StringVar(&o.adminFile, "admin-token-file", "", "`FILE` with a token for --admin, as the server's")
	f.StringArrayVar(&o.out, "out", nil, "`FORMAT[=FILE]`: text, json, csv (the figures of each second) or hlog (the histograms), to stdout or into a file; may be repeated (default text)")
	f.StringVar(&o.config, "config", "", "YAML `FILE` with flags, as in clients: 50; the command line wins")
	f.StringToStringVar(&o.tags, "tags", nil, "`NAME=TEXT,...` to tell results apart: they are copied into the result")
	f.StringArrayVar(&o.thresholds, "threshold", nil, "`METRIC<BOUND` that a good run meets, as in snapshot.age.p99<120ms, server.tick.p99<50% (of a tick) or snapshot.age.p99<3ticks+rtt; may be repeated")
	f.StringVar(&o.ca, "ca", "", "PEM `FILE` with the authority that vouches for the server")
	f.StringVar(&o.certHash, "cert-hash", "", "SHA-256 of the server's certificate in `HEX`, instead of an authority")
	f.StringVar(&o.tokenKey, "token-key", "", "`FILE` with the private key that makes the bots' tokens, for a server with --auth token")
	f.StringVar(&o.tokenAudience, "token-audience", "", "the server's --auth-audience, `NAME`")
	f.StringVar(&o.tokenSubject, "token-subject", "bot-*", "`PATTERN` of the players' names: * is the bot's number")
	f.StringVar(&o.simulate, "simulate", "", "a bad `NETWORK` for each bot, as in "+netem.Example+"; also dup, reorder, corrupt, rate, buffer, hole and rebind")
	f.BoolVar(&o.reconnect, "reconnect", true, "bots whose connection breaks come back; without it they count as disconnected")
	f.IntVar(&o.perSocket, "per-socket", 50, "how many bots share a UDP socket and so an address, 1 to 1000; with --simulate each has its own")
	f.TextVar(&o.transport, "transport", client.QUIC, "what the bots connect over, `NAME`: quic, webtransport or websocket")
	f.StringVar(&o.datagrams, "datagrams", "auto", "how datagrams travel, `NAME`: auto, as packets of their own, and over QUIC while those do not arrive, or quic, always over QUIC")
	f.IntVar(&o.verify, "verify", 0, "how many bots read and check the state that they are sent; the others acknowledge it and count (default: all)")
	f.BoolVar(&o.quiet, "quiet", false, "no progress on stderr")
}

// validate completes the options, or returns an error that names the flag and the remedy.
func (o *options) validate() error {
	for _, c := range []struct {
		ok           bool
		flag, remedy string
		value        any
	}{
		{o.transport == client.WebSocket || hostPort(o.addr), "addr", "use HOST:PORT, as in 127.0.0.1:4433", o.addr},
		{o.clients >= 1 && o.clients <= maxClients, "clients", "use 1 to 10000", o.clients},
		{o.ramp >= 0 && o.ramp <= maxPhase, "ramp", "use 0s to 10m", o.ramp},
		{o.warmup >= 0 && o.warmup <= maxPhase, "warmup", "use 0s to 10m", o.warmup},
		{o.duration >= minDuration && o.duration <= maxDuration, "duration", "use 100ms to 24h", o.duration},
		{o.frameRate == 0 || o.frameRate >= minFrames && o.frameRate <= maxFrames, "frame-rate", "use 1 to 1000, or leave it out for the tick rate of each bot's room", o.frameRate},
		{o.datagrams == "auto" || o.datagrams == "quic", "datagrams", "use auto or quic", o.datagrams},
		{o.perSocket >= 1 && o.perSocket <= maxPerSocket, "per-socket", "use 1 to 1000", o.perSocket},
		{o.verify >= 0, "verify", "use 1 or more, or leave it out for all", o.verify},
		{o.ca == "" || o.certHash == "", "cert-hash", "use either --ca or --cert-hash", o.certHash},
	} {
		if !c.ok {
			return badFlag(c.flag, c.value, c.remedy)
		}
	}
	if o.verify == 0 || o.verify > o.clients {
		o.verify = o.clients
	}
	return errors.Join(o.parseAdmin(), o.parseOut(), o.parseThresholds(), o.parseTrust(), o.parseToken(), o.parseNetwork())
}

// verifies reports whether client n is one of those that read their state, which are spread evenly,
// and the number of such clients before it.
func (o *options) verifies(n int) (before int, verifies bool) {
	before = n * o.verify / o.clients
	return before, (n+1)*o.verify/o.clients > before
}

func (o *options) parseNetwork() (err error) {
	if o.network, err = netem.Parse(o.simulate); err != nil {
		return fmt.Errorf("--simulate: %w", err)
	}
	return nil
}

func badFlag(flag string, value any, remedy string) error {
	return fmt.Errorf("--%s: %v cannot be used: %s", flag, value, remedy)
}

func hostPort(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	return err == nil && host != "" && port != "" && port != "0"
}

// parseAdmin completes the URL, which may be a bare host and port.
func (o *options) parseAdmin() error {
	if o.admin == "" {
		return nil
	}
	text := o.admin
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return badFlag("admin", o.admin, "use a URL, as in http://127.0.0.1:8080")
	}
	o.admin = strings.TrimSuffix(u.String(), "/")
	if o.adminFile != "" {
		if o.token, err = admin.ReadToken(o.adminFile, false); err != nil {
			return badFlag("admin-token-file", o.adminFile, err.Error())
		}
	}
	return nil
}

// parseTrust makes the TLS configuration. On loopback addresses any certificate is accepted,
// because development servers make one at every start.
func (o *options) parseTrust() error {
	flag := "addr"
	switch {
	case o.ca != "":
		flag = "ca"
	case o.certHash != "":
		flag = "cert-hash"
	}
	addr := o.addr
	if o.transport == client.WebSocket {
		u, err := wsnet.URL(addr, quicnet.OnLoopback(addr))
		if err != nil {
			return fmt.Errorf("--addr: %w", err)
		}
		addr = wsnet.HostOf(u)
	}
	conf, err := quicnet.ClientTLS(addr, quicnet.Trust{CAFile: o.ca, CertHash: o.certHash})
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	o.tls = conf
	return nil
}
