package netloop

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/netloop/netloop/internal/loop"
)

// Config is the configuration of a server. Its zero value works: it listens on the loopback address
// with a development certificate.
type Config struct {
	// Listen is the UDP address for clients. Default 127.0.0.1:4433; port 0 picks a free one. An
	// address that other machines reach needs Auth.
	Listen string
	// Offline opens no UDP port and needs no certificate: only clients of this process can connect,
	// with client.Config Local. If it is false, clients of the network can connect too.
	Offline bool
	// Auth is how joining clients authenticate.
	Auth Auth
	// Admin is the TCP address of the admin listener, which serves /metrics, /healthz, /readyz,
	// /ticks, /ticks/last, /ticks/slow, /loop, /rooms and /explain. Empty is none. Without an
	// AdminTokenFile it must be an address of this machine alone, such as 127.0.0.1:8080.
	Admin string
	// AdminTokenFile is a file with the tokens that the admin listener demands, for all pages but
	// /healthz and /readyz: lines of a role, read or write, and a token of 16 characters or more.
	// It is read again when it changes. With it /debug/pprof and /rooms/close are served, to the
	// write role.
	AdminTokenFile string
	// Web is the TCP address of the game's pages, for browsers: the files of WebFiles, and
	// /connect.json, which has the address of the game. Empty is none.
	Web string
	// WebTLS serves the pages as HTTPS, with the certificate that clients see. Without it they are
	// plain HTTP, which suits this machine only: a browser lets a page use WebTransport if the page
	// was served by HTTPS, or from localhost.
	WebTLS bool
	// WebURL is the public URL of the pages if a proxy is in front of Web, such as
	// https://play.example.org, without a path. Pages then find the server there, and pages of this
	// origin may connect.
	WebURL string
	// WebProxies are the addresses of such proxies, or prefixes such as 10.0.0.0/8. In their
	// requests, the last entry of X-Forwarded-For that is not a proxy is the player's address, for
	// all limits of a site (an IPv4 address, an IPv6 /56). That header in other requests, and any
	// other header of the kind, is ignored. They need WebURL. Without them all players behind a
	// proxy are of one site.
	WebProxies []string
	// WebFiles are the pages, with index.html at their top: see [WebGame]. Listen reads them once.
	// Nil is a page that describes the server.
	WebFiles fs.FS
	// Origins are the origins of pages on other servers that may connect, such as
	// https://example.org; "*" is all. Pages that the server itself serves may always connect, and
	// so may programs, which send no origin. Empty allows no other pages.
	Origins []string
	// CertFile and KeyFile are PEM files with the certificate that clients see and its key. They
	// are read again when they change: new connections see the new certificate, existing
	// connections are kept. Files that cannot be used leave the certificate unchanged.
	CertFile, KeyFile string
	// TLS is for other TLS settings, and for a certificate of the program's own if CertFile is
	// empty. With neither the server makes a self-signed one for development, which clients accept
	// from loopback addresses only; it is renewed before it ends, which changes its hash.
	TLS *tls.Config
	// Secret is the source of the server's keys that must survive a crash and a restart: with it
	// clients notice a restart within milliseconds, instead of after ten seconds of silence. It has
	// at least 32 random bytes, is the same from start to start, and differs between servers: with
	// a shared secret, an attacker that sees the packets of two servers could end connections of
	// one by asking the other. Empty generates one.
	Secret []byte
	// Incarnation is the number of the default room, and each room that is opened later has a
	// larger one: see [Room.Incarnation]. 0 takes the microseconds of the wall clock since 1970. A
	// program that keeps files passes a number above all that its earlier processes have used, as
	// the server command does with --state-dir. At most 1<<62.
	Incarnation uint64
	// Room describes the default room. A game may have values for its zero fields: see
	// [RoomDefaulter].
	Room RoomSpec
	// MaxRooms is the largest number of rooms, including the default one. Default 1024; at most 100
	// 000.
	MaxRooms int
	// MaxClients is the largest number of clients in all rooms together. Default 10 000; at most
	// 100 000.
	MaxClients int
	// RPC bounds the cost of clients' messages.
	RPC RPCLimits
	// AdmitTimeout bounds the OnAdmit functions of one client. Default 5 s.
	AdmitTimeout time.Duration
	// LostAfter is the silence, in game time, after which a client's connection counts as lost even
	// if QUIC keeps it up, because its program hangs. Default 5 s; at least 1 s.
	LostAfter time.Duration
	// DrainTimeout is how long each room keeps ticking after Run's context has ended while clients
	// are still in it: time to finish a round. The clients are told this time, and newcomers are
	// refused. A longer drain of [Server.CloseRoom] that runs then is shortened. Default 0: clients
	// are disconnected at once. Work given to Go has 5 s after that.
	DrainTimeout time.Duration
	// Watchdog is how long a tick may take before it counts as hung: the log then names the place,
	// with the stacks of all goroutines, and /readyz and /healthz fail. At the end of a room it
	// applies to OnDrain, each OnLeave and the results of work given to Go too, and to OnClose
	// beyond its own 60 s. Default 10 s, longer than any garbage collection, swapping or lock that
	// a server recovers from; at least 100 ms. Negative is never.
	Watchdog time.Duration
	// WatchdogExit lets Run return an error when a tick hangs, after it has told the clients; once
	// Run's context has ended it does so anyway. It does not wait for OnLeave and OnClose, which
	// run on the goroutine that hangs. That goroutine is leaked: end the process.
	WatchdogExit bool
	// TraceDir is a directory for execution traces, made if need be: when a tick takes longer than
	// its period, a trace of the seconds before is written there, for go tool trace. It gets at
	// most one file in 30 s, and 20 files or 64 MiB are kept. Go has one flight recorder per
	// process: servers in one process share it, and Listen fails if the program runs its own.
	// Recording costs some per cent of the CPU. Empty is none.
	TraceDir string
	// CheckEdits makes the server look for fields that a game changed without Edit, through a
	// pointer or a slice that it kept, and name them in the log; and [Object.State] panics in work
	// given to [Go] and in OnAdmit. It is for development: every object is compared with its last
	// capture in every tick, which costs more than a snapshot of a world with little movement.
	// Clients see no difference.
	CheckEdits bool
	// CheckValues makes the server reject values that do not fit their field, for development:
	// clients keep the former value instead of the nearest one that fits, and the log names the
	// field.
	CheckValues bool
	// PlainSocket leaves the UDP socket as Go makes it. On Linux the server otherwise batches its
	// sends, and under load reads in rounds two milliseconds apart, which takes a third less of a
	// processor; elsewhere it makes no difference.
	PlainSocket bool
	// QUICDatagrams makes all datagrams of native clients travel over QUIC. Otherwise they travel
	// beside it, as encrypted packets on the same port, which cost the server half as much, and
	// over QUIC while a client gets none of these packets.
	QUICDatagrams bool
	// Seed seeds the rooms' random numbers, and with them the ids of objects that not all clients
	// have: with the seed, their number can be computed from ids. 0 draws one.
	Seed uint64
	// Record receives a recording of the default room, from which [NewReplay] runs it again: a
	// head, and then one Write per tick on the tick's goroutine, so it should not block. An error
	// ends the recording, not the room. A recording contains the data that clients send, their
	// tokens included. Nil is none.
	Record io.Writer
	// RecordRoom returns the writer for the recording of a room other than the default one, or nil.
	// It is called for each room that is opened, before the first tick of the room, possibly on
	// several goroutines at once; its error keeps the room from opening. The writer is closed when
	// the room has ended. Nil records none.
	RecordRoom func(RoomInfo) (io.WriteCloser, error)
	// RecordNotes is stored in the head of the recording, for the replaying program
	// ([Replay.Notes]), such as the game's own settings. The whole head takes at most 1 MiB.
	RecordNotes map[string]string
	// Registerer receives the server's metrics too, besides the registry that the admin listener
	// serves. Nil is none.
	Registerer prometheus.Registerer
	// Log receives the server's and the game's log. Nil is silent. Its handler should be bounded
	// and never block: the tick logs too.
	Log *slog.Logger
	// LogsDropped returns how many lines the handler of Log has dropped so far, for the metrics.
	// Nil is none.
	LogsDropped func() uint64

	recorded bool      // Room is that of a recording, with all fields set
	fetched  []fetched // by the recorded room's Open
}

// ConfigError returns the error for an invalid configuration value: one line that names the key and
// the remedy. A game's Open returns it for its own configuration.
func ConfigError(key string, value any, remedy string, a ...any) error {
	return fmt.Errorf("%s: %v cannot be used: %s", key, value, fmt.Sprintf(remedy, a...))
}

// Defaults and bounds of Config.
const (
	defaultListen       = "127.0.0.1:4433"
	defaultMaxClients   = 256
	defaultMaxRooms     = 1024
	maxMaxRooms         = 100_000
	defaultAllClients   = 10_000
	maxAllClients       = 100_000
	defaultCloseEmpty   = 30 * time.Second // rooms with invented names must not fill the server
	maxCloseEmpty       = time.Hour
	maxMaxClients       = 10_000
	maxSendEvery        = 60
	defaultAdmitTimeout = 5 * time.Second
	defaultLostAfter    = 5 * time.Second
	minLostAfter        = time.Second
	defaultKeepDropped  = 20 * time.Second
	maxKeepDropped      = time.Hour
	defaultMaxRewind    = 250 * time.Millisecond
	maxMaxRewind        = time.Second
	defaultWatchdog     = 10 * time.Second
	minWatchdog         = 100 * time.Millisecond
	minSecret           = 32
	maxIncarnation      = 1 << 62 // so that no number of a room exceeds an int64
	maxRoomName         = 256     // the longest name that a client can ask for
)

// validate returns the config with its defaults filled in, or an error that
// names the key.
func (c Config) validate() (Config, error) {
	if c.Listen == "" {
		c.Listen = defaultListen
	}
	if c.Offline && (c.Web != "" || c.CertFile != "") {
		return c, ConfigError("Offline", c.Offline, "a server without a port has neither Web nor CertFile")
	}
	if c.WebURL != "" && c.Web == "" {
		return c, ConfigError("WebURL", c.WebURL, "set Web too, to the address of the pages")
	}
	if len(c.WebProxies) > 0 && c.WebURL == "" {
		return c, ConfigError("WebProxies", c.WebProxies, "set WebURL too, to the URL at which browsers find the pages")
	}
	if n := len(c.Secret); n > 0 && n < minSecret {
		return c, ConfigError("Secret", fmt.Sprintf("%d bytes", n), "use %d random bytes or more, or none", minSecret)
	}
	if c.Incarnation > maxIncarnation {
		return c, ConfigError("Incarnation", c.Incarnation, "use 0 for the wall clock, up to %d", uint64(maxIncarnation))
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return c, ConfigError("CertFile", strconv.Quote(c.CertFile), "set CertFile and KeyFile, or neither")
	}
	if err := c.validateAuth(); err != nil {
		return c, err
	}
	if c.MaxRooms == 0 {
		c.MaxRooms = defaultMaxRooms
	}
	if c.MaxRooms < 1 || c.MaxRooms > maxMaxRooms {
		return c, ConfigError("MaxRooms", c.MaxRooms, "use 1 to %d", maxMaxRooms)
	}
	if c.MaxClients == 0 {
		c.MaxClients = defaultAllClients
	}
	if c.MaxClients < 1 || c.MaxClients > maxAllClients {
		return c, ConfigError("MaxClients", c.MaxClients, "use 1 to %d", maxAllClients)
	}
	if c.AdmitTimeout == 0 {
		c.AdmitTimeout = defaultAdmitTimeout
	}
	if c.AdmitTimeout < 0 {
		return c, ConfigError("AdmitTimeout", c.AdmitTimeout, "use 0 for %v, or more", defaultAdmitTimeout)
	}
	if c.LostAfter == 0 {
		c.LostAfter = defaultLostAfter
	}
	if c.LostAfter < minLostAfter {
		return c, ConfigError("LostAfter", c.LostAfter, "use 0 for %v, or %v or more", defaultLostAfter, minLostAfter)
	}
	if c.DrainTimeout < 0 {
		return c, ConfigError("DrainTimeout", c.DrainTimeout, "use 0 to end at once, or more")
	}
	if c.Watchdog == 0 {
		c.Watchdog = defaultWatchdog
	}
	if c.Watchdog > 0 && c.Watchdog < minWatchdog {
		return c, ConfigError("Watchdog", c.Watchdog, "use 0 for %v, %v or more, or less than 0 for none", defaultWatchdog, minWatchdog)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.LogsDropped == nil {
		c.LogsDropped = func() uint64 { return 0 }
	}
	for c.Seed == 0 {
		var b [8]byte
		rand.Read(b[:]) // Never fails.
		c.Seed = binary.LittleEndian.Uint64(b[:])
	}
	if c.Room.CloseEmpty == 0 {
		c.Room.CloseEmpty = NeverClose
	}
	var roomErr, rpcErr error
	c.Room, roomErr = c.Room.validate()
	c.RPC, rpcErr = c.RPC.validate()
	return c, errors.Join(roomErr, rpcErr)
}

// Rate is a number of ticks a second, as a fraction: {60, 1} is 60 Hz and {30000, 1001} is 29.97
// Hz. A room's rate is from 1 to 1 000 Hz, and both parts are at most 2³⁰.
type Rate struct{ Num, Den uint64 }

// Hz returns the rate of n a second.
func Hz(n uint64) Rate { return Rate{n, 1} }

// Period returns the time from one tick to the next, rounded to nanoseconds.
func (r Rate) Period() time.Duration { return loop.Rate(r).Period() }

// String formats the rate, as in "60 Hz".
func (r Rate) String() string { return loop.Rate(r).String() }

// maxRate bounds rates: above it a tick's period is near the accuracy of timers.
const maxRate = 1000

// check returns an error if no room can run at the rate.
func (r Rate) check(key string) error {
	if r.Den == 0 || r.Num < r.Den || r.Num > maxRate*r.Den || r.Num > loop.MaxRatePart || r.Den > loop.MaxRatePart {
		return ConfigError(key, fmt.Sprintf("%d/%d Hz", r.Num, r.Den), "use 1 to %d Hz", maxRate)
	}
	return nil
}
