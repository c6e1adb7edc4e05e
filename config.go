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
	// address that other machines can reach requires Auth.
	Listen string
	// Offline opens no UDP port and needs no certificate: only clients of this process can connect,
	// with client.Config Local. If Offline is false, clients on the network can connect too.
	Offline bool
	// Auth configures how joining clients authenticate.
	Auth Auth
	// Admin is the TCP address of the admin listener, which serves /metrics, /healthz, /readyz,
	// /ticks, /ticks/last, /ticks/slow, /loop, /rooms and /explain. Empty: no admin listener.
	// Without an AdminTokenFile it must be a loopback address, such as 127.0.0.1:8080.
	Admin string
	// AdminTokenFile is a file with the tokens that the admin listener requires for all pages
	// except /healthz and /readyz. Each line is a role, read or write, and a token of 16 characters
	// or more. The server reads the file again when it changes. With the file, it also serves
	// /debug/pprof and /rooms/close, for the role write.
	AdminTokenFile string
	// InspectRing is the time of past ticks of each room that the inspector can show: states,
	// changes, messages and inputs. They are kept in memory, at most 64 MiB of all rooms together,
	// besides a copy of each room's state. It needs Admin. At most 10 min; 0 keeps none.
	InspectRing time.Duration
	// RecordingDirs are the folders of this game's recordings. The inspector lists the files there,
	// and sends them to operators with the role write: they have the clients' tokens. Empty: none.
	RecordingDirs []string
	// Web is the TCP address of the game's pages, for browsers: the files of WebFiles, and
	// /connect.json, which has the address of the game. Empty: no pages.
	Web string
	// WebTLS serves the pages as HTTPS, with the certificate for clients. Without it the pages are
	// plain HTTP, which is useful only on this machine: a browser lets a page use WebTransport only
	// if the page was served by HTTPS, or from localhost.
	WebTLS bool
	// WebURL is the public URL of the pages if a proxy is in front of Web, such as
	// https://play.example.org, without a path. Pages then connect to the server at this URL, and
	// pages of this origin may connect.
	WebURL string
	// WebProxies are the addresses of such proxies, or prefixes such as 10.0.0.0/8. In requests
	// from a proxy, the last entry of X-Forwarded-For that is not a proxy is the player's address,
	// for all limits of a site (an IPv4 address, an IPv6 /56). The header is ignored in other
	// requests, and similar headers are ignored always. WebProxies requires WebURL. Without
	// WebProxies, all players behind a proxy count as one site.
	WebProxies []string
	// WebFiles are the pages, with index.html at their top: see [WebGame]. Listen reads them once.
	// Nil: one page that describes the server.
	WebFiles fs.FS
	// Origins are the origins of pages on other servers that may connect, such as
	// https://example.org; "*" allows all. Pages that this server serves may always connect, and so
	// may programs, which send no origin. Empty allows no other pages.
	Origins []string
	// CertFile and KeyFile are PEM files with the certificate that clients see and its key. The
	// server reads them again when they change: new connections use the new certificate, existing
	// connections continue. If the files are invalid, the server keeps the current certificate.
	CertFile, KeyFile string
	// TLS has other TLS settings, and the program's own certificate if CertFile is empty. Without
	// any certificate the server makes a self-signed certificate for development, which clients
	// accept only from loopback addresses. The server renews it before it expires, which changes
	// its hash.
	TLS *tls.Config
	// Secret is the source of the server's keys that must survive a crash and a restart: with it
	// clients detect a restart within milliseconds, and not only after ten seconds of silence. It
	// has at least 32 random bytes, is the same after each start, and differs between servers: with
	// a shared secret, an attacker that sees the packets of two servers could end connections of
	// one server with data from the other. Empty generates a secret.
	Secret []byte
	// Incarnation is the number of the default room. Each room that is opened later has a larger
	// number: see [Room.Incarnation]. 0 selects the wall clock, in microseconds since 1970. A
	// program that stores files can pass a number larger than all numbers of its earlier processes,
	// as the server command does with --state-dir. At most 1<<62.
	Incarnation uint64
	// Room describes the default room. A game may set defaults for its zero fields: see
	// [RoomDefaulter].
	Room RoomSpec
	// MaxRooms is the largest number of rooms, including the default room. Default 1024; at most
	// 100 000.
	MaxRooms int
	// MaxClients is the largest number of clients in all rooms together. Default 10 000; at most
	// 100 000.
	MaxClients int
	// RPC bounds the cost of clients' messages.
	RPC RPCLimits
	// AdmitTimeout bounds the OnAdmit functions of one client. Default 5 s.
	AdmitTimeout time.Duration
	// LostAfter is the silence, in game time, after which a client's connection counts as lost,
	// even if QUIC keeps it open because only the client's program hangs. Default 5 s; at least 1
	// s.
	LostAfter time.Duration
	// DrainTimeout is the time for which each room with clients continues to tick after Run's
	// context has ended, so that players can finish a round. The clients are sent this time, and
	// new clients are refused. A longer drain of [Server.CloseRoom] that is running then is
	// shortened. Default 0: clients are disconnected at once. After that, work given to Go has 5 s.
	DrainTimeout time.Duration
	// Watchdog is the time after which a running tick counts as hung: the log then names the place,
	// with the stacks of all goroutines, and /readyz and /healthz fail. At the end of a room it
	// also applies to OnDrain, to each OnLeave and to the results of work given to Go, and to
	// OnClose in addition to its limit of 60 s. Default 10 s, longer than any garbage collection,
	// swapping or lock from which a server recovers; at least 100 ms. Negative: never.
	Watchdog time.Duration
	// WatchdogExit makes Run return an error when a tick of the default room hangs, after it has
	// sent clients the reason. Once Run's context has ended, Run returns in any case. It does not
	// wait for OnLeave and OnClose, which run on the goroutine that hangs. That goroutine is
	// leaked: end the process.
	WatchdogExit bool
	// TraceDir is a directory for execution traces, which the server creates if needed. When a tick
	// takes longer than its period, the server writes a trace of the preceding seconds there, for
	// go tool trace: at most one file in 30 s. It keeps the newest 20 files or 64 MiB. Go has one
	// flight recorder per process: servers in one process share it, and Listen fails if the program
	// runs its own. Recording costs some per cent of the CPU. Empty: no traces.
	TraceDir string
	// CheckEdits makes the server search for fields that a game changed without Edit, through a
	// stored pointer or slice, and name them in the log. It also makes [Object.State] panic in work
	// given to [Go] and in OnAdmit. It is for development: every tick compares each object with its
	// last capture, which costs more than a snapshot of a world with little movement. Clients get
	// the same data.
	CheckEdits bool
	// CheckValues makes the server reject values that do not fit their field, for development:
	// clients keep the former value and do not get the nearest valid value, and the log names the
	// field.
	CheckValues bool
	// PlainSocket uses the UDP socket as Go makes it. Without it, on Linux the server batches its
	// sends, and under load reads in rounds two milliseconds apart, which takes a third less CPU
	// time. On other systems PlainSocket has no effect.
	PlainSocket bool
	// QUICDatagrams sends all datagrams of native clients over QUIC. Without it they are sent
	// outside of QUIC, as encrypted packets on the same port, which cost the server half as much,
	// and over QUIC only while these packets do not reach a client.
	QUICDatagrams bool
	// Cluster makes the server a member of a cluster: see [Cluster].
	Cluster Cluster
	// Seed is the seed of the rooms' random numbers, and of the ids of objects that not all clients
	// have. Keep it secret: with the seed, the number of such objects can be computed from ids. 0
	// selects a random seed.
	Seed uint64
	// Record receives a recording of the default room, from which [NewReplay] runs the room again:
	// a head, and then one Write per tick. The tick's goroutine calls Write, so it should not
	// block. An error ends the recording, not the room. A recording contains the data that clients
	// send, including their tokens. Nil: no recording.
	Record io.Writer
	// RecordRoom returns the writer for the recording of a room other than the default room, or nil
	// for no recording. The server calls it for each room that is opened, before the first tick of
	// the room, possibly on several goroutines at once. If it returns an error, the room is not
	// opened. The server closes the writer when the room has ended. If RecordRoom is nil, these
	// rooms are not recorded.
	RecordRoom func(RoomInfo) (io.WriteCloser, error)
	// RecordNotes is stored in the head of the recording for the program that replays it
	// ([Replay.Notes]): the game's own settings, for example. The whole head takes at most 1 MiB.
	RecordNotes map[string]string
	// Registerer gets the server's metrics in addition to the registry that the admin listener
	// serves. Nil: no other registry.
	Registerer prometheus.Registerer
	// Log receives the log of the server and of the game. Nil: no log. Its handler should be
	// bounded and never block, because ticks write to the log too.
	Log *slog.Logger
	// LogsDropped returns the number of lines that the handler of Log has dropped so far, for the
	// metrics. Nil: the metrics show 0.
	LogsDropped func() uint64

	recorded  bool      // Room is from a recording, with all fields set
	travelled bool      // of a recorded room: its server was part of a cluster
	fetched   []fetched // by the recorded room's Open
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
	defaultCloseEmpty   = 30 * time.Second // against many rooms with invented names
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
	maxInspectRing      = 10 * time.Minute
	minSecret           = 32
	maxIncarnation      = 1 << 62 // so that the numbers of all rooms fit into an int64
	maxRoomName         = 256     // the longest name that a client can request
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
	if c.InspectRing < 0 || c.InspectRing > maxInspectRing {
		return c, ConfigError("InspectRing", c.InspectRing, "use a time up to %v, or 0 for none", maxInspectRing)
	}
	if c.InspectRing > 0 && c.Admin == "" {
		return c, ConfigError("InspectRing", c.InspectRing, "set Admin too, to the address of the inspector")
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
	if err := c.Cluster.validate(); err != nil {
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

// Period returns the time between two ticks, rounded to nanoseconds.
func (r Rate) Period() time.Duration { return loop.Rate(r).Period() }

// String formats the rate, as in "60 Hz".
func (r Rate) String() string { return loop.Rate(r).String() }

// maxRate bounds rates: above this rate a tick's period is close to the accuracy of timers.
const maxRate = 1000

// check returns an error if no room can run at the rate.
func (r Rate) check(key string) error {
	if r.Den == 0 || r.Num < r.Den || r.Num > maxRate*r.Den || r.Num > loop.MaxRatePart || r.Den > loop.MaxRatePart {
		return ConfigError(key, fmt.Sprintf("%d/%d Hz", r.Num, r.Den), "use 1 to %d Hz", maxRate)
	}
	return nil
}
