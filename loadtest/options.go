package loadtest

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
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

	from int  // of find
	soak bool // look for growth, and print a line a minute

	// The population, see plan.
	schedule, churn, storm, slow string
	stormBy                      string
	ca                           string
	certHash                     string
	simulate                     string
	ui                           string
	reconnect                    bool
	verify                       int
	perSocket                    int
	transport                    string
	web                          string // address of the pages, for WebSocket beside others
	profile                      string
	room                         string
	rooms                        int
	datagrams                    string

	tokenKey      string
	tokenAudience string
	tokenSubject  string

	bot       Bot
	outputs   []output           // of out
	bounds    []threshold        // of thresholds
	churnRate float64            // share of the clients, per second
	stormAt   time.Duration      // in the measured window; below 0 is never
	slowOf    []string           // by client: "slow" or ""
	over      []client.Transport // by client
	profileOf []string           // by client; nil without profiles
	webTLS    *tls.Config        // of web
	command   []string           // as typed
	values    map[string]string  // of all flags
	tls       *tls.Config        // of ca, certHash and addr
	signer    *token.Signer      // of tokenKey; nil without
	token     string             // of adminFile
	network   netem.Spec         // of simulate
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
	maxRooms     = 1000
	minFrames    = 1
	maxFrames    = 1000
)

// flags declares the options with their defaults.
func (o *options) flags(f *pflag.FlagSet) {
	f.StringVar(&o.addr, "addr", "127.0.0.1:4433", "the server, `HOST:PORT`; with --transport websocket that of its pages (--web), or a ws:// or wss:// URL")
	f.IntVar(&o.clients, "clients", 100, "number of bots, 1 to 10000")
	f.DurationVar(&o.ramp, "ramp", 2*time.Second, "time in which the bots connect, 0 to 10m")
	f.DurationVar(&o.warmup, "warmup", 3*time.Second, "time that the bots play before the measurement, 0 to 10m")
	f.DurationVar(&o.duration, "duration", 20*time.Second, "measured time, 100ms to 24h")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the bots' random decisions; a run with the same seed repeats them")
	f.Float64Var(&o.frameRate, "frame-rate", 0, "frames a second of every bot, `HZ` from 1 to 1000 (default: the tick rate of the room that it is in)")
	f.BoolVar(&o.exact, "exact-frames", false, "frames begin at their own times, as those of players do; without it the frames of one millisecond begin together, which takes less CPU time")
	f.StringVar(&o.admin, "admin", "", "`URL` of the server's admin listener, as in http://127.0.0.1:8080: for the server's own figures")
	f.StringVar(&o.adminFile, "admin-token-file", "", "`FILE` with a token for --admin, as the server's")
	f.StringArrayVar(&o.out, "out", nil, "`FORMAT[=FILE]`: text, json, csv (the figures of each second), hlog (the histograms) or html (a page), to stdout or into a file; may be repeated (default text)")
	f.StringVar(&o.config, "config", "", "YAML `FILE` with flags, as in clients: 50; the command line wins")
	f.StringToStringVar(&o.tags, "tags", nil, "`NAME=TEXT,...` to tell results apart: they are copied into the result")
	f.StringArrayVar(&o.thresholds, "threshold", nil, "`METRIC<BOUND` that a good run meets, as in snapshot.age.p99<120ms, server.tick.p99<50% (of a tick) or snapshot.age.p99<3ticks+rtt; may be repeated")
	f.StringVar(&o.ca, "ca", "", "PEM `FILE` with the authority that signed the server's certificate")
	f.StringVar(&o.certHash, "cert-hash", "", "SHA-256 of the server's certificate in `HEX`, instead of an authority")
	f.StringVar(&o.tokenKey, "token-key", "", "`FILE` with the private key that makes the bots' tokens, for a server with --auth token")
	f.StringVar(&o.tokenAudience, "token-audience", "", "the server's --auth-audience, `NAME`")
	f.StringVar(&o.tokenSubject, "token-subject", "bot-*", "`PATTERN` of the players' names: * is the bot's number")
	f.StringVar(&o.simulate, "simulate", "", "a bad `NETWORK` for each bot, as in "+netem.Example+"; also dup, reorder, corrupt, rate, buffer, hole and rebind")
	f.BoolVar(&o.reconnect, "reconnect", true, "bots reconnect after a broken connection; without it they count as disconnected")
	f.IntVar(&o.perSocket, "per-socket", 50, "number of bots that share a UDP socket and so an address, 1 to 1000; with --simulate each has its own")
	f.StringVar(&o.transport, "transport", "quic", "transport of the bots, `NAME`: quic, webtransport or websocket; or several by share, as in quic=80,websocket=20")
	f.StringVar(&o.web, "web", "", "the server's pages, `HOST:PORT`, for bots over websocket if others use another transport")
	f.StringVar(&o.schedule, "schedule", constant, "`SHAPE` of the number of bots over time: const, all connect in the ramp; step or line, it grows over the measured time in ten steps or evenly")
	f.StringVar(&o.churn, "churn", "", "`SHARE` of the bots that is replaced while measured, as in 1%/s: a bot leaves and another joins")
	f.StringVar(&o.storm, "storm", "", "all bots leave and join anew at once, or as --storm-by says, `AT` a time of the measured window; without a value after half of it")
	f.Lookup("storm").NoOptDefVal = halfway
	f.StringVar(&o.stormBy, "storm-by", stormLeave, "what all bots do in --storm, `NAME`: leave, and join anew; or drop, they lose their connections and resume their seats")
	f.StringVar(&o.slow, "slow-readers", "", "`SHARE` of bots that leave their sockets unread for 15 s of each 20 s while measured, as in 10%; their own figures do not count")
	f.StringVar(&o.profile, "profile", "", "`NAME` of the bots' behaviour, of those that the bot has; or several by share, as in play=90,idle=10")
	f.StringVar(&o.room, "room", "", "`NAME` of the bots' room (default: the server's default room); with --rooms, * is the number of the room")
	f.IntVar(&o.rooms, "rooms", 1, "number of rooms over which the bots are spread, 1 to 1000: see --room")
	f.StringVar(&o.datagrams, "datagrams", "auto", "way of datagrams, `NAME`: auto, as packets of their own, and over QUIC while those do not arrive, or quic, always over QUIC")
	f.IntVar(&o.verify, "verify", 0, "number of bots that read and check their state; the others only acknowledge it (default: all)")
	f.StringVar(&o.ui, "ui", uiAuto, "`NAME` of the progress on stderr: tui, a view of the terminal; plain, a line each 5 s; quiet, none; auto, tui on a terminal and plain elsewhere")
}

// validate completes the options, or returns an error that names the flag and the remedy.
func (o *options) validate() error {
	o.ui = cmp.Or(o.ui, uiAuto)
	for _, c := range []struct {
		ok           bool
		flag, remedy string
		value        any
	}{
		{o.transport == client.WebSocket.String() || hostPort(o.addr), "addr", "use HOST:PORT, as in 127.0.0.1:4433", o.addr},
		{o.clients >= 1 && o.clients <= maxClients, "clients", "use 1 to 10000", o.clients},
		{o.ramp >= 0 && o.ramp <= maxPhase, "ramp", "use 0s to 10m", o.ramp},
		{o.warmup >= 0 && o.warmup <= maxPhase, "warmup", "use 0s to 10m", o.warmup},
		{o.duration >= minDuration && o.duration <= maxDuration, "duration", "use 100ms to 24h", o.duration},
		{o.frameRate == 0 || o.frameRate >= minFrames && o.frameRate <= maxFrames, "frame-rate", "use 1 to 1000, or leave it out for the tick rate of each bot's room", o.frameRate},
		{slices.Contains([]string{uiAuto, uiTerm, uiPlain, uiQuiet}, o.ui), "ui", "use auto, tui, plain or quiet", o.ui},
		{o.datagrams == "auto" || o.datagrams == "quic", "datagrams", "use auto or quic", o.datagrams},
		{o.perSocket >= 1 && o.perSocket <= maxPerSocket, "per-socket", "use 1 to 1000", o.perSocket},
		{o.verify >= 0, "verify", "use 1 or more, or leave it out for all", o.verify},
		{o.rooms <= 1 || strings.Contains(o.room, "*"), "rooms", "give --room too, with a * for the number of the room", o.rooms},
		{o.rooms >= 0 && o.rooms <= maxRooms, "rooms", "use 1 to 1000", o.rooms},
		{o.ca == "" || o.certHash == "", "cert-hash", "use either --ca or --cert-hash", o.certHash},
	} {
		if !c.ok {
			return badFlag(c.flag, c.value, c.remedy)
		}
	}
	if o.verify == 0 || o.verify > o.clients {
		o.verify = o.clients
	}
	return errors.Join(o.parseAdmin(), o.parseOut(), o.parseThresholds(), o.parseSchedule(), o.parseTransport(), o.parseTrust(), o.parseToken(), o.parseNetwork())
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

// parseTransport deals the transports to the clients.
func (o *options) parseTransport() error {
	shares, err := parseShares(o.transport)
	if err != nil {
		return badFlag("transport", o.transport, "use quic, webtransport or websocket, or shares as in quic=80,websocket=20")
	}
	o.over = make([]client.Transport, o.clients)
	for n, name := range deal(shares, o.clients) {
		if err := o.over[n].UnmarshalText([]byte(name)); err != nil {
			return badFlag("transport", name, "use quic, webtransport or websocket")
		}
	}
	if mixed := len(shares) > 1; !mixed && o.web != "" {
		return badFlag("web", o.web, "leave it out: --addr is the address of the only transport")
	} else if mixed && o.web == "" && slices.Contains(o.over, client.WebSocket) {
		return badFlag("transport", o.transport, "give --web too, the address of the server's pages")
	}
	return nil
}

// target returns the address and the trust of client n.
func (o *options) target(n int) (addr string, conf *tls.Config) {
	if o.web != "" && o.over[n] == client.WebSocket {
		return o.web, o.webTLS
	}
	return o.addr, o.tls
}

// roomOf returns the name of the room of client n, empty for the server's default room.
func (o *options) roomOf(n int) string {
	return strings.ReplaceAll(o.room, "*", strconv.Itoa(n%max(o.rooms, 1)))
}

// parseProfile assigns a profile of the bot to each client: by the shares of --profile, or else
// the first one.
func (o *options) parseProfile(b Bot) error {
	var names []string
	if p, ok := b.(Profiles); ok {
		names = p.Profiles()
	}
	switch {
	case o.profile == "" && len(names) == 0:
		return nil
	case o.profile == "":
		o.profileOf = deal([]share{{names[0], 1}}, o.clients)
		return nil
	case len(names) == 0:
		return badFlag("profile", o.profile, "leave it out: this bot has one behaviour")
	}
	shares, err := parseShares(o.profile)
	if err != nil {
		return badFlag("profile", o.profile, "use one of "+strings.Join(names, ", ")+", or shares as in "+names[0]+"=100")
	}
	for _, s := range shares {
		if !slices.Contains(names, s.name) {
			return badFlag("profile", s.name, "use "+strings.Join(names, ", "))
		}
	}
	o.profileOf = deal(shares, o.clients)
	return nil
}

// parseTrust makes the TLS configurations. On loopback addresses any certificate is accepted,
// because development servers make one at every start.
func (o *options) parseTrust() (err error) {
	only := o.transport == client.WebSocket.String()
	if o.tls, err = o.trust("addr", o.addr, only); err == nil && o.web != "" {
		o.webTLS, err = o.trust("web", o.web, true)
	}
	return err
}

// trust makes the TLS configuration for an address. An error names the flag that caused it.
func (o *options) trust(flag, addr string, web bool) (*tls.Config, error) {
	if web {
		u, err := wsnet.URL(addr, quicnet.OnLoopback(addr))
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		addr = wsnet.HostOf(u)
	}
	switch {
	case o.ca != "":
		flag = "ca"
	case o.certHash != "":
		flag = "cert-hash"
	}
	conf, err := quicnet.ClientTLS(addr, quicnet.Trust{CAFile: o.ca, CertHash: o.certHash})
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return conf, nil
}
