package app

import (
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/internal/loop"
	weborigin "github.com/netloop/netloop/internal/net/origin"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/web"
)

// options are the settings of a server for any game, in the order of --help.
type options struct {
	Listen        string        `name:"listen" help:"UDP address for clients, host:port; port 0 picks a free one"`
	Auth          string        `name:"auth" help:"how players authenticate: token, or none, for loopback addresses only"`
	AuthKeys      string        `name:"auth-keys" help:"PEM file with the public key that signs tokens, or folder of such files; read again when they change"`
	AuthAudience  string        `name:"auth-audience" help:"name of this server in its tokens (aud): tokens for another server are refused"`
	InsecureAuth  bool          `name:"insecure-no-auth" help:"admit clients without tokens, although other machines reach --listen or --web"`
	Admin         string        `name:"admin" help:"TCP address of /metrics, /healthz, /readyz, /ticks, /loop, /rooms and /explain, host:port; empty is none"`
	AdminTokens   string        `name:"admin-token-file" help:"file of tokens for --admin, lines such as: read TOKEN or write TOKEN; without it only this machine may use --admin"`
	InspectRing   time.Duration `name:"inspect-ring" help:"keep this time of past ticks in memory for the inspector of --admin, such as 60s, up to 10m; 0 is none"`
	Web           string        `name:"web" help:"TCP address of the game's pages, for browsers, host:port; empty is none"`
	WebTLS        bool          `name:"web-tls" help:"serve --web as HTTPS, with the certificate that clients see; without it only browsers on this machine can play"`
	WebURL        string        `name:"web-url" help:"URL of the pages for browsers if a proxy is in front of --web, such as https://play.example.org; empty is the URL of --web"`
	WebProxies    proxies       `name:"web-proxies" help:"addresses of the proxies in front of --web, such as 127.0.0.1,10.0.0.0/8: only their X-Forwarded-For is used"`
	Origin        origins       `name:"origin" help:"pages of other servers that may connect, such as https://example.org,https://example.net; * is all"`
	TickRate      rate          `name:"tick-rate" help:"ticks a second, 1 to 1000, or a fraction such as 30000/1001"`
	FixedRate     rate          `name:"fixed-rate" help:"fixed steps a second, 1 to 1000, or a fraction; 0 is the tick rate"`
	SendEvery     int           `name:"send-every" help:"every n-th tick sends snapshots, 1 to 60"`
	MaxClients    int           `name:"max-clients" help:"clients in the room at once, 1 to 10000"`
	KeepDropped   time.Duration `name:"keep-dropped" help:"how long a client with a broken connection keeps its seat, up to 1h; 0 is none"`
	MaxRewind     time.Duration `name:"max-rewind" help:"how far back in time a shot may hit, up to 1s; 0 is only the present"`
	LostAfter     time.Duration `name:"lost-after" help:"time without a packet after which a client's connection counts as broken, 1s or more"`
	SamePlayer    string        `name:"same-player" help:"policy for a second connection of a player: take-over closes the first, refuse refuses the second, allow makes it another client"`
	ClientBudget  int           `name:"client-budget" help:"bytes of object records per client and tick, 1 to 1048576"`
	ClientRate    float64       `name:"client-rate" help:"messages a second that a client may send, of all kinds; -1 is unlimited"`
	ClientBurst   int           `name:"client-burst" help:"messages that a client may send at once, 1 to 65536"`
	ClientKick    int           `name:"client-kick" help:"messages of a client that limits may drop before it is kicked; -1 is never"`
	LimitsDry     bool          `name:"limits-dry" help:"count messages beyond the limits, without drops and kicks"`
	For           time.Duration `name:"for" help:"stop by itself after this time, such as 20s; 0 is never"`
	Seed          uint64        `name:"seed" help:"seed of the game's random numbers; 0 draws one and prints it"`
	Drain         time.Duration `name:"drain" help:"time for clients to finish once the server closes, such as 30s; 0 closes at once"`
	Watchdog      time.Duration `name:"watchdog" help:"time after which a tick counts as hung, 100ms or more: the log has its stack; negative is never"`
	WatchdogExit  bool          `name:"watchdog-exit" help:"end with status 1 when a tick hangs, so that a service manager restarts it"`
	TraceDir      string        `name:"trace-dir" help:"directory for the execution traces of ticks over budget, for go tool trace; empty is none"`
	CheckEdits    bool          `name:"check-edits" help:"for development: name fields that the game changes without Edit; costs time in each tick"`
	CheckValues   bool          `name:"check-values" help:"for development: refuse and name values that do not fit their field, instead of sending the nearest value"`
	PlainSocket   bool          `name:"plain-socket" help:"use Go's UDP socket, without batches of sent and received packets"`
	Datagrams     string        `name:"datagrams" help:"how the datagrams of Go clients travel: auto makes each an encrypted packet of its own, on the same port, and uses QUIC while those do not arrive; quic always uses QUIC"`
	Simulate      netem.Spec    `name:"simulate" help:"a bad network for every client, such as rtt=150ms,jitter=20ms,loss=5%; also dup, reorder, corrupt, rate, buffer, hole and rebind; empty is none"`
	Cluster       string        `name:"cluster" help:"NATS of the cluster, such as nats://10.0.0.5:4222, several with commas; embed starts one in this process, for development and up to three machines; empty is no cluster"`
	ClusterName   string        `name:"cluster-name" help:"name of the cluster, if several share a NATS: letters, digits, - and _"`
	ClusterCreds  string        `name:"cluster-creds" help:"file with the credentials of this server for NATS, as nsc makes it, or with the seed of its key, as nk does; a name and password may be in the URL instead"`
	ClusterCA     string        `name:"cluster-ca" help:"PEM file with the authority of the certificate of NATS; without it, the system's authorities count for tls:// URLs"`
	ClusterListen string        `name:"cluster-listen" help:"TCP address of the embedded NATS for the servers of other processes, host:port; empty is a free port of this machine"`
	ClusterRoutes string        `name:"cluster-routes" help:"addresses of the three embedded NATS servers for each other, this server's own first: host:port,host:port,host:port"`
	Region        string        `name:"region" help:"region of this server in its cluster: rooms open in the region of their asker"`
	Zone          string        `name:"zone" help:"zone of this server within its region"`
	PublicAddr    string        `name:"public-addr" help:"address at which players reach --listen, for moves from other servers; empty is that of --listen"`
	OnePlace      string        `name:"cluster-one-place" help:"a player who joins a second room of the cluster: take-over closes the client in the first one, refuse refuses the newcomer; default: a player may be in several rooms"`
	LocalTokens   bool          `name:"cluster-local-tokens" help:"while the cluster does not answer, accept a token once at each server; without, players with tokens are refused then"`
	HandOver      bool          `name:"hand-over" help:"at the end of the server, move rooms that store their state to other servers of the cluster first"`
	TLSCert       string        `name:"tls-cert" help:"PEM file with the certificate that clients see, read again when it changes; empty makes one for development"`
	TLSKey        string        `name:"tls-key" help:"PEM file with the key of --tls-cert"`
	StateDir      string        `name:"state-dir" help:"directory for the state that outlives the process, created if missing: clients then notice a restart at once; empty is systemd's StateDirectory, or none"`
	SecretFile    string        `name:"secret-file" help:"file with 32 secret bytes or more, instead of the secret in --state-dir"`
	LogLevel      string        `name:"log-level" help:"lowest level that is logged to stderr: debug, info, warn or error"`
	LogFormat     string        `name:"log-format" help:"format of the log: text or json"`
	Agones        bool          `name:"agones" help:"report ready, health, allocation and shutdown to the sidecar of Agones on this machine, port AGONES_SDK_HTTP_PORT or 9358"`
	AddrFile      string        `name:"addr-file" help:"file for the addresses, as JSON, written once clients may connect"`
	Record        string        `name:"record" help:"new file for a recording of the game, for the command replay; it has all client data, including tokens"`
	RecordRooms   string        `name:"record-rooms" help:"folder, created if missing, for recordings of all rooms except the default one, in files named by time and room"`
	Config        string        `name:"config" help:"YAML file with settings; flags and NETLOOP_ variables override it"`
}

// defaults returns the options with their default values.
func defaults() *options {
	return &options{
		Listen:       "127.0.0.1:4433",
		Auth:         authNone,
		Admin:        "127.0.0.1:8080",
		TickRate:     rate{60, 1},
		SendEvery:    1,
		MaxClients:   256,
		KeepDropped:  20 * time.Second,
		MaxRewind:    250 * time.Millisecond,
		LostAfter:    5 * time.Second,
		SamePlayer:   "take-over",
		Datagrams:    "auto",
		ClientBudget: 11_000,
		ClientRate:   1000,
		ClientBurst:  2000,
		ClientKick:   10_000,
		Watchdog:     10 * time.Second,
		LogLevel:     "info",
		LogFormat:    "text",
	}
}

// The bounds of options. netloop checks them again and names its Config fields, but the error of
// check names the operator's setting.
const (
	maxSendEvery = 60
	maxClients   = 10_000
	maxRate      = 1000 // Hz
	maxBudget    = 1 << 20

	maxClientRate  = 1_000_000
	maxClientBurst = 65_536
	maxClientKick  = 1 << 20
	minWatchdog    = 100 * time.Millisecond
	maxKeepDropped = time.Hour
	maxRewind      = time.Second
	minLostAfter   = time.Second
	maxInspectRing = 10 * time.Minute
)

// samePlayer maps the values of same-player to netloop's policies.
var samePlayer = map[string]netloop.DuplicatePolicy{
	"take-over": netloop.DuplicateTakeOver, "refuse": netloop.DuplicateRefuse, "allow": netloop.DuplicateAllow,
}

// rule is a requirement of one option or of several.
type rule struct {
	broken bool
	key    string
	value  any
	remedy string
}

// check returns an error for the first invalid option. bad makes the error.
func (o *options) check(bad func(key string, value any, remedy string) error) error {
	_, errLevel := logging.ParseLevel(o.LogLevel)
	level := rule{errLevel != nil || o.LogLevel == "", "log-level", o.LogLevel, "use debug, info, warn or error"}
	for _, r := range append(slices.Concat(o.rules(), o.authRules(), o.clusterRules()), level) {
		if r.broken {
			return bad(r.key, r.value, r.remedy)
		}
	}
	return nil
}

// rules are the requirements of options, except those of authentication and of the cluster.
func (o *options) rules() []rule {
	_, _, errURL := new(weborigin.Set).Public(o.WebURL)
	_, known := samePlayer[o.SamePlayer]
	return []rule{
		{!hostPort(o.Listen), "listen", o.Listen, "use host:port, for instance 127.0.0.1:4433; port 0 picks a free one"},
		{o.Admin != "" && !hostPort(o.Admin), "admin", o.Admin, "use host:port, for instance 127.0.0.1:8080, or nothing for no admin listener"},
		{o.InspectRing < 0 || o.InspectRing > maxInspectRing, "inspect-ring", o.InspectRing, "use a time up to 10m such as 60s, or 0 for none"},
		{o.InspectRing > 0 && o.Admin == "", "inspect-ring", o.InspectRing, "set admin too, to the address of the inspector"},
		{o.Web != "" && !hostPort(o.Web), "web", o.Web, "use host:port, for instance 127.0.0.1:8000, or nothing for no pages"},
		{o.WebTLS && o.Web == "", "web-tls", o.WebTLS, "set web too, to the address of the pages"},
		{o.WebURL != "" && o.Web == "", "web-url", o.WebURL, "set web too, to the address of the pages"},
		{len(o.WebProxies) > 0 && o.WebURL == "", "web-proxies", o.WebProxies.text(), "set web-url too, to the URL at which browsers find the pages"},
		{o.TickRate == rate{}, "tick-rate", o.TickRate, remedyRate},
		{o.SendEvery < 1 || o.SendEvery > maxSendEvery, "send-every", o.SendEvery, "use 1 to " + strconv.Itoa(maxSendEvery)},
		{o.MaxClients < 1 || o.MaxClients > maxClients, "max-clients", o.MaxClients, "use 1 to " + strconv.Itoa(maxClients)},
		{o.ClientBudget < 1 || o.ClientBudget > maxBudget, "client-budget", o.ClientBudget, "use 1 to " + strconv.Itoa(maxBudget)},
		{!(o.ClientRate == -1 || o.ClientRate >= 1 && o.ClientRate <= maxClientRate), "client-rate", o.ClientRate, "use 1 to 1000000, or -1 for any number"},
		{o.ClientBurst < 1 || o.ClientBurst > maxClientBurst, "client-burst", o.ClientBurst, "use 1 to " + strconv.Itoa(maxClientBurst)},
		{o.ClientKick == 0 || o.ClientKick < -1 || o.ClientKick > maxClientKick, "client-kick", o.ClientKick, "use 1 to " + strconv.Itoa(maxClientKick) + ", or -1 for never"},
		{o.For < 0, "for", o.For, "use a time such as 20s, or 0 to run until a signal"},
		{o.Drain < 0, "drain", o.Drain, "use a time such as 30s, or 0 to close at once"},
		{o.Watchdog >= 0 && o.Watchdog < minWatchdog, "watchdog", o.Watchdog, "use " + minWatchdog.String() + " or more, or -1s for none"},
		{o.TLSCert != "" && o.TLSKey == "", "tls-cert", o.TLSCert, "set tls-key too, to the file with its key"},
		{o.TLSCert == "" && o.TLSKey != "", "tls-key", o.TLSKey, "set tls-cert too, to the file with its certificate"},
		{o.LogFormat != "text" && o.LogFormat != "json", "log-format", o.LogFormat, "use text or json"},
		{o.WebURL != "" && errURL != nil, "web-url", o.WebURL, "use https://host or https://host:port, without a path"},
		{o.KeepDropped < 0 || o.KeepDropped > maxKeepDropped, "keep-dropped", o.KeepDropped, "use a time up to 1h such as 20s, or 0 to keep none"},
		{o.MaxRewind < 0 || o.MaxRewind > maxRewind, "max-rewind", o.MaxRewind, "use a time up to 1s such as 250ms, or 0 for only the present"},
		{o.LostAfter < minLostAfter, "lost-after", o.LostAfter, "use " + minLostAfter.String() + " or more"},
		{!known, "same-player", o.SamePlayer, "use take-over, refuse or allow"},
		{o.Datagrams != "auto" && o.Datagrams != "quic", "datagrams", o.Datagrams, "use auto or quic"},
	}
}

// hostPort reports whether an address has a host, which may be empty, and a port.
func hostPort(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// recordingDirs returns the folders of the recordings that the server makes.
func (o *options) recordingDirs() (dirs []string) {
	if o.Record != "" {
		dirs = append(dirs, filepath.Dir(o.Record))
	}
	if rooms := o.RecordRooms; rooms != "" && !slices.Contains(dirs, filepath.Clean(rooms)) {
		dirs = append(dirs, filepath.Clean(rooms))
	}
	return dirs
}

// server makes the configuration of a server.
func (o *options) server() netloop.Config {
	c := netloop.Config{
		Listen: o.Listen,
		Auth:   netloop.Auth{Keys: o.AuthKeys, Audience: o.AuthAudience, Insecure: o.InsecureAuth},
		Admin:  o.Admin,

		AdminTokenFile: o.AdminTokens,
		InspectRing:    o.InspectRing,
		RecordingDirs:  o.recordingDirs(),

		Web:     o.Web,
		WebTLS:  o.WebTLS,
		Origins: o.Origin,

		WebURL:     o.WebURL,
		WebProxies: o.WebProxies,

		CertFile: o.TLSCert,
		KeyFile:  o.TLSKey,
		Room: netloop.RoomSpec{
			Rate:       netloop.Rate(o.TickRate),
			FixedRate:  netloop.Rate(o.FixedRate),
			SendEvery:  o.SendEvery,
			MaxClients: o.MaxClients,
			Budget:     o.ClientBudget,

			KeepDropped: o.KeepDropped,
			Duplicate:   samePlayer[o.SamePlayer],
			MaxRewind:   o.MaxRewind,
		},
		LostAfter: o.LostAfter,
		RPC: netloop.RPCLimits{
			PerSecond: o.ClientRate, Burst: o.ClientBurst, KickAfter: o.ClientKick, Dry: o.LimitsDry,
		},
		DrainTimeout:  o.Drain,
		Watchdog:      o.Watchdog,
		TraceDir:      o.TraceDir,
		WatchdogExit:  o.WatchdogExit,
		CheckEdits:    o.CheckEdits,
		CheckValues:   o.CheckValues,
		PlainSocket:   o.PlainSocket,
		QUICDatagrams: o.Datagrams == "quic",
		Seed:          o.Seed,
	}
	if o.FixedRate == (rate{}) {
		c.Room.FixedRate = c.Room.Rate // Otherwise the game's RoomDefaults would replace it.
	}
	if o.KeepDropped == 0 {
		c.Room.KeepDropped = -1 // In a RoomSpec 0 means the default.
	}
	if o.MaxRewind == 0 {
		c.Room.MaxRewind = -1 // In a RoomSpec 0 means the default.
	}
	return c
}

// proxies is a setting with addresses of proxies: a list with commas.
type proxies []string

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *proxies) UnmarshalText(text []byte) error {
	list := strings.FieldsFunc(string(text), func(r rune) bool { return r == ',' || r == ' ' })
	if _, err := web.ParseProxies(list); err != nil {
		return err
	}
	*p = list
	return nil
}

func (p proxies) text() string { return strings.Join(p, ",") }

// MarshalText implements encoding.TextMarshaler.
func (p proxies) MarshalText() ([]byte, error) { return []byte(p.text()), nil }

// origins is a setting with the pages that may connect: a list with commas.
type origins []string

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *origins) UnmarshalText(text []byte) error {
	list := strings.FieldsFunc(string(text), func(r rune) bool { return r == ',' || r == ' ' })
	if _, err := weborigin.Parse(list); err != nil {
		return err
	}
	*o = list
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (o origins) MarshalText() ([]byte, error) { return []byte(strings.Join(o, ",")), nil }

// rate is a setting with a netloop.Rate: 60, or 30000/1001. The zero value is written as 0.
type rate netloop.Rate

const remedyRate = "use 1 to 1000 Hz, for instance 60, or a fraction such as 30000/1001"

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *rate) UnmarshalText(text []byte) error {
	num, den, fraction := strings.Cut(strings.TrimSpace(strings.TrimSuffix(string(text), "Hz")), "/")
	n, err := strconv.ParseUint(num, 10, 64)
	d := uint64(1)
	if err == nil && fraction {
		d, err = strconv.ParseUint(den, 10, 64)
	}
	if err == nil && n == 0 && d == 1 {
		*r = rate{}
		return nil
	}
	if err != nil || n > loop.MaxRatePart || d > loop.MaxRatePart || d == 0 || n < d || n > d*maxRate {
		return errors.New(remedyRate)
	}
	*r = rate{n, d}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (r rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r rate) String() string {
	switch r.Den {
	case 0:
		return "0"
	case 1:
		return strconv.FormatUint(r.Num, 10)
	}
	return strconv.FormatUint(r.Num, 10) + "/" + strconv.FormatUint(r.Den, 10)
}
