package netloop

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/certificate"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/inspect/history"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/membership"
	"github.com/netloop/netloop/internal/membership/places"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/inproc"
	"github.com/netloop/netloop/internal/net/origin"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/net/sealed"
	"github.com/netloop/netloop/internal/net/udpbatch"
	"github.com/netloop/netloop/internal/net/wsnet"
	"github.com/netloop/netloop/internal/net/wtnet"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/token"
	"github.com/netloop/netloop/internal/tracedump"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/watchdog"
	"github.com/netloop/netloop/internal/watchfile"
	"github.com/netloop/netloop/internal/web"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Server owns the ports, the sessions, the admin listener and the rooms of a process.
type Server struct {
	cfg       Config
	game      Game
	schema    *Schema
	system    *clock.System
	clock     *clockSource
	log       *slog.Logger
	metrics   *metrics.Metrics
	transport *transport.Stats
	socket    udpbatch.Stats
	records   sealed.Stats
	instance  [16]byte // random number of this start, by which clients detect a restart
	// incarnation is the number of the default room: see Room.Incarnation.
	incarnation    uint64
	room           *Room // the default room, which exists as long as the server
	rooms          *directory.Directory[*Room]
	member         *membership.Member // nil without a cluster
	confirms       confirms           // reports of arrivals to other servers
	places         *places.Places     // nil: players may be in several rooms
	listing        *directory.Listing[listingEntry]
	inbox          *room.ServerInbox // messages from rooms to the program
	openings       directory.SiteLimiter[netip.Prefix]
	invalidTickets directory.SiteLimiter[netip.Prefix] // tickets that matched no room
	supervisor     supervisor
	lastID         atomic.Uint64
	draining       atomic.Bool
	leaving        atomic.Bool // its rooms are being handed over, and it opens no room
	ready          atomic.Bool // clients may connect
	used           atomic.Bool // Run or Close has begun
	ended          atomic.Bool // Run or Close has ended

	idle           time.Duration // idle timeout of connections, set by tests; 0: the default
	network        *netem.Config // simulated network; nil: none
	listener       *quicnet.Listener
	local          inproc.Host // for clients in this process
	listensOffline bool        // Listen has succeeded on an offline server
	admin          *admin.Server
	web            *web.Server       // nil without Config.Web
	sockets        *wsnet.Server     // served by web
	tabSockets     *wsnet.Server     // of tabs of the inspector; nil if offline
	traces         *tracedump.Dumper // nil without a TraceDir

	adminCounts admin.Counts
	lines       inspect.Log    // the newest log lines, for the inspector
	moves       *inspect.Moves // the newest moves between servers; nil without a cluster
	rings       *history.Rings // nil without Config.InspectRing
	copies      history.Copies // of the ticks of rings, which the inspector shows
	watching    sync.Mutex     // held while it is decided whether a room gets a log of ticks
	webCounts   web.Counts
	origins     *origin.Set // origins of pages that may connect
	proxies     web.Proxies
	opened      ServerOpener                  // nil unless its OpenServer has succeeded
	public      struct{ scheme, host string } // of WebURL

	// nil before Listen, and if Config.TLS selects the certificate at each handshake
	certificate atomic.Pointer[certificate.Keeper]
	tokens      *token.Verifier // nil if players need no tokens
	keysWatch   *watchfile.Watcher
}

// supervisor starts the rooms and keeps the errors with which they ended.
type supervisor struct {
	sync.Mutex
	ctx          context.Context // context of Run; nil before Run
	start        func(*Room)     // in a test world, starts a room; otherwise nil
	defaultEnded chan struct{}   // closed at the end of the default room
	err          error           // error of the default room
	// spectatorRooms counts the running rooms of delayed spectators. Each begins before its room,
	// and ends after it.
	spectatorRooms sync.WaitGroup
	roomErrs       error // errors of other rooms that failed while the server ended
}

// clockSource is the clock that a server and its rooms share. It is the machine's clock, unless a
// test or a replay sets another clock before the first tick.
type clockSource struct{ loop.Clock }

// New makes a server and opens the game's default room. It opens no port yet. Run runs the server
// to its end. If Run is not called, close the server with [Server.Close].
func New(cfg Config, g Game) (*Server, error) {
	var err error
	if !cfg.recorded {
		if cfg.Room, err = cfg.Room.withDefaults(g); err != nil {
			return nil, fmt.Errorf("netloop: %w", err)
		}
	}
	if cfg, err = cfg.validate(); err != nil {
		return nil, fmt.Errorf("netloop: %w", err)
	}
	s := &Server{game: g, schema: g.Schema(), transport: new(transport.Stats)}
	if cfg.InspectRing > 0 {
		s.rings = history.NewRings(cfg.InspectRing)
	}
	if cfg.Admin != "" {
		cfg.Log = slog.New(s.lines.Tee(cfg.Log.Handler()))
	}
	s.cfg, s.log = cfg, cfg.Log
	s.system = clock.NewSystem()
	s.clock = &clockSource{s.system}
	if s.incarnation = cfg.Incarnation; s.incarnation == 0 {
		s.incarnation = uint64(s.clock.Wall().UnixMicro())
	}
	s.schema.s.Freeze()
	rand.Read(s.instance[:]) // Never fails.
	if err := s.parseWeb(); err != nil {
		return nil, fmt.Errorf("netloop: %w", err)
	}
	if s.metrics, err = metrics.New(cfg.Registerer, func() time.Duration { return s.clock.Now() }, s.schema.metrics...); err != nil {
		return nil, fmt.Errorf("netloop: Registerer: %w", err)
	}
	s.transport.FlushLag = s.metrics.ObserveFlushLag
	s.local.Handler, s.local.AdmitTimeout, s.local.Clock, s.local.Stats = admitter{s}, cfg.AdmitTimeout, s.clock.Now, s.transport
	s.socket.Lag, s.socket.Wait = s.metrics.ObserveSocketLag, s.metrics.ObserveSocketWait
	if err := s.openTokens(); err != nil {
		return nil, err
	}
	if err := s.openServer(); err != nil {
		return nil, err
	}
	s.openMember()
	if err := s.openDefault(); err != nil {
		return nil, errors.Join(err, s.closeServer())
	}
	s.metrics.Serve(serverMetrics{s})
	return s, nil
}

// openDefault opens the default room.
func (s *Server) openDefault() (err error) {
	s.rooms, s.listing, s.inbox = directory.New[*Room](s.cfg.MaxRooms), directory.NewListing[listingEntry](), room.NewServerInbox()
	s.supervisor.defaultEnded = make(chan struct{})
	place, err := s.reserveName(&s.cfg.Room)
	if err != nil {
		return err
	}
	if s.room, err = openRoom(context.Background(), s, s.cfg.Room, roomNumbers{number: place.Number(), seed: s.cfg.Seed}); err != nil {
		return err
	}
	place.Fill(s.room)
	s.room.list()
	defer func() { s.room.fetched = nil }()
	if s.cfg.Record != nil {
		if err := s.room.record(s.cfg.Record); err != nil {
			return fmt.Errorf("netloop: Record: %w", err)
		}
	}
	s.keepTicks(s.room)
	return nil
}

// spareConns is the number of admitted connections in addition to the clients of all rooms, for
// connections that are about to end.
const spareConns = 32

// minUnadmitted is the least limit of unadmitted connections.
const minUnadmitted = 32

// maxUnadmitted returns the limit of unadmitted connections for rooms with this number of clients.
func maxUnadmitted(clients int) int { return max(clients/4, minUnadmitted) }

// Listen opens the ports. Run calls it if needed; call it before Run to know the addresses first.
// If a port is in use, the error names the address. Listen fails for a server that has ended.
func (s *Server) Listen() error {
	if s.ended.Load() {
		return errUsed
	}
	if s.listener != nil || s.listensOffline {
		return nil
	}
	if s.cfg.Offline {
		err := s.listenTCP(nil, nil)
		s.listensOffline = err == nil
		return errors.Join(err, s.joinCluster(context.Background()))
	}
	conf, err := s.openCertificate()
	if err != nil {
		return err
	}
	if err := s.listen(conf); err != nil {
		s.closeCertificate()
		return err
	}
	return s.joinCluster(context.Background())
}

// listen opens the ports of a server that has a certificate.
func (s *Server) listen(conf *tls.Config) error {
	l, err := quicnet.Listen(quicnet.ServerConfig{
		Config: admission.Config{
			Clock: s.clock.Now, Handler: admitter{s}, Stats: s.transport, Log: s.log, AdmitTimeout: s.cfg.AdmitTimeout,
			MaxConns: s.maxClients() + spareConns, MaxUnadmitted: maxUnadmitted(s.cfg.Room.MaxClients),
			Refusing: s.refusing,
		},
		Protocols: []quicnet.Protocol{wtnet.Protocol(s.origins, s.transport)},
		Listen:    s.cfg.Listen, TLS: conf, Secret: s.cfg.Secret,
		Socket: &s.socket, PlainSocket: s.cfg.PlainSocket, IdleTimeout: s.idle, Through: s.simulated(),
		Records: &s.records, QUICOnly: s.cfg.QUICDatagrams,
	})
	if err != nil {
		return fmt.Errorf("netloop: Listen: %w", err)
	}
	if err := s.listenTCP(conf, l.Admission()); err != nil {
		return errors.Join(err, l.Close(context.Background()))
	}
	s.supervisor.Lock()
	s.listener = l
	s.supervisor.Unlock()
	s.raiseConnLimit() // Rooms may have been opened before Listen.
	s.watchKeys()
	return nil
}

// listenTCP opens the TCP ports of the admin listener and the pages, if they are configured, and
// the execution traces.
func (s *Server) listenTCP(conf *tls.Config, controller *admission.Controller) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeTCP())
		}
	}()
	if s.cfg.Admin != "" {
		if s.admin, err = s.listenAdmin(controller); err != nil {
			return err
		}
	}
	if s.cfg.Web != "" {
		if s.web, err = s.listenWeb(conf, controller); err != nil {
			return err
		}
	}
	return s.openTraces()
}

// closeTCP closes TCP ports that were never served.
func (s *Server) closeTCP() (err error) {
	if s.admin != nil {
		err = s.admin.Close()
		s.closeTabSockets()
		s.admin = nil
	}
	if s.web != nil {
		err = errors.Join(err, s.web.Close())
		s.sockets.Close()
		s.web = nil
	}
	return err
}

// simulated returns a function that wraps the socket in the simulated network, if there is one.
func (s *Server) simulated() func(net.PacketConn) net.PacketConn {
	if s.network == nil {
		return nil
	}
	return func(socket net.PacketConn) net.PacketConn { return netem.Listen(socket, *s.network) }
}

// simulatedStream returns a function that wraps the TCP connection of a WebSocket in the simulated
// network, if there is one.
func (s *Server) simulatedStream() func(net.Conn) net.Conn {
	if s.network == nil {
		return nil
	}
	var opened atomic.Uint64
	return func(c net.Conn) net.Conn { return netem.NewStream(c, *s.network, opened.Add(1)) }
}

// Addr returns the UDP address for clients after Listen has succeeded, and nil before.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// AdminAddr returns the TCP address of the admin listener, or nil.
func (s *Server) AdminAddr() net.Addr {
	if s.admin == nil {
		return nil
	}
	return s.admin.Addr()
}

// Run serves until ctx ends or the default room closes itself. Then it drains all rooms in
// parallel: new clients are refused, the clients of the rooms are sent the reason and leave, and
// the game's OnClose functions run. When Run returns, each goroutine that it started has ended. It
// returns an error if a port is in use, if the default room was closed with another code than
// [CodeClosing], if a critical system of the default room panicked, if the room's goroutine was
// ended or hangs (see [Config] WatchdogExit), or if OnClose of a room failed at the end. A server
// runs once; after a Run that failed to open a port, it may be run again.
func (s *Server) Run(ctx context.Context) error {
	if !s.used.CompareAndSwap(false, true) {
		return errUsed
	}
	if err := s.Listen(); err != nil {
		s.used.Store(false)
		return err
	}
	return s.serve(ctx)
}

var errUsed = errors.New("netloop: a server runs once, and not after Close; make another one with New")

// Close ends a server for which Run was not called, whether it listens or not: it closes the ports,
// informs the clients that have connected, and calls the game's OnClose functions, which release
// the resources of Open. OnStart has not run in this case, so an OnClose that saves can detect that
// no game was played. Close returns the same result as Run with a context that has ended. For a
// server that runs or has ended it returns nil without an effect: end Run's context to end the
// server.
func (s *Server) Close() error {
	if !s.used.CompareAndSwap(false, true) {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return s.serve(ctx)
}

// serve runs the rooms to their end, and releases all resources of the server.
func (s *Server) serve(ctx context.Context) error {
	defer s.ended.Store(true)
	tcpCtx, stopTCP := context.WithCancel(context.Background())
	var tcp sync.WaitGroup
	var tcpErr error
	tcp.Go(func() { tcpErr = s.serveTCP(tcpCtx) })
	s.ready.Store(ctx.Err() == nil)
	err := errors.Join(s.runRooms(ctx), s.closeServer())
	s.leaveInTime()
	closeCtx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	s.local.Close(closeCtx)
	if s.listener != nil {
		err = errors.Join(err, s.listener.Close(closeCtx))
	}
	stopTCP()
	s.closeTraces()
	s.closeCertificate()
	s.closeKeys()
	tcp.Wait()
	return errors.Join(err, tcpErr, s.system.Close())
}

// serveTCP serves the TCP ports until ctx ends.
func (s *Server) serveTCP(ctx context.Context) error {
	var serving sync.WaitGroup
	var adminErr, webErr error
	if s.admin != nil {
		serving.Go(func() {
			adminErr = s.admin.Serve(ctx)
			s.closeTabSockets()
		})
	}
	if s.web != nil {
		serving.Go(func() {
			webErr = s.web.Serve(ctx)
			s.sockets.Close()
		})
	}
	serving.Wait()
	return errors.Join(adminErr, webErr)
}

// closeTimeout bounds the time to close connections: a few round trips of a very slow client.
const closeTimeout = 2 * time.Second

// openTraces starts the flight recorder for the traces of slow ticks, if the Config has a TraceDir.
func (s *Server) openTraces() (err error) {
	if s.cfg.TraceDir == "" {
		return nil
	}
	// Two servers may share a directory, so their file names differ.
	name := hex.EncodeToString(s.instance[:4])
	if s.traces, err = tracedump.Open(tracedump.Config{Dir: s.cfg.TraceDir, Name: name, Log: s.log}); err != nil {
		return fmt.Errorf("netloop: TraceDir: %w", err)
	}
	s.room.e.Stats.Trace(s.traces)
	return nil
}

// closeTraces writes the pending traces, and stops the flight recorder.
func (s *Server) closeTraces() {
	if s.traces != nil {
		s.traces.Close()
	}
}

// endAdmission refuses all further connections, with the reason that clients are sent at the end.
func (s *Server) endAdmission(code Code, text string) {
	s.draining.Store(true)
	if s.listener != nil { // A server that is closed before Listen has no listener.
		s.listener.Admission().Refuse(code, text)
	}
}

// admitter is the server's transport.Handler: it finds the room that a connection requests.
type admitter struct{ s *Server }

// Tables implements transport.Handler.
func (a admitter) Tables(hello *netloopv1.Hello) ([]byte, error) {
	if a.s.draining.Load() {
		return nil, errDraining
	}
	if err := a.s.schema.s.Accepts(hello); err != nil {
		return nil, err
	}
	return a.s.schema.s.TablesFor(hello), nil
}

// Admit implements transport.Handler.
func (a admitter) Admit(ctx context.Context, hello *netloopv1.Hello, remote string) (*transport.Admitted, error) {
	if a.s.draining.Load() {
		return nil, errDraining
	}
	if known, ok := transport.Who(ctx).(*room.Join); ok { // A move: its token was already verified.
		ctx = context.WithValue(ctx, identityKey{}, known)
	}
	ctx, r, err := a.s.roomFor(ctx, hello, remote)
	if err != nil {
		return nil, err
	}
	adm, err := r.e.Admission.Admit(ctx, hello, remote)
	if errors.Is(err, room.ErrTicket) {
		a.s.countBadTicket(remote)
	}
	return adm, err
}

var errDraining = &transport.Refusal{Code: CodeClosing, Text: "the server is closing"}

// openCertificate loads the certificate for clients, and returns the TLS configuration that uses it
// at every handshake.
func (s *Server) openCertificate() (*tls.Config, error) {
	conf := s.cfg.TLS.Clone()
	if conf == nil {
		conf = new(tls.Config)
	}
	k, err := s.keepCertificate(conf)
	if err != nil {
		return nil, err
	}
	if k != nil {
		s.certificate.Store(k)
		conf.Certificates, conf.GetCertificate = nil, k.Get
	}
	return conf, nil
}

// keepCertificate selects the source of the certificate. It returns nil if the program's own
// function selects a certificate at each handshake.
func (s *Server) keepCertificate(conf *tls.Config) (k *certificate.Keeper, err error) {
	switch {
	case s.cfg.CertFile != "":
		if k, err = certificate.Files(s.cfg.CertFile, s.cfg.KeyFile, s.log); err != nil {
			return nil, fmt.Errorf("netloop: CertFile: %w", err)
		}
		return k, nil
	case len(conf.Certificates) > 0:
		return certificate.Given(conf.Certificates[0], s.log), nil
	case conf.GetCertificate != nil || conf.GetConfigForClient != nil:
		return nil, nil
	}
	if k, err = certificate.Development(s.log); err != nil {
		return nil, fmt.Errorf("netloop: %w", err)
	}
	return k, nil
}

// closeCertificate stops the renewal of the certificate.
func (s *Server) closeCertificate() {
	if k := s.certificate.Load(); k != nil {
		k.Close()
	}
}

// CertHash returns the SHA-256 hash of the current certificate, for clients that pin the
// certificate. The hash is zero before Listen, and if [Config] TLS has a function that selects a
// certificate at each handshake. Any goroutine may call it.
func (s *Server) CertHash() [32]byte {
	k := s.certificate.Load()
	if k == nil {
		return [32]byte{}
	}
	return k.Hash()
}

func (m serverMetrics) CertificateLeft(f *metrics.Family) {
	if k := m.s.certificate.Load(); k != nil {
		if left, known := k.Left(); known {
			f.SetFloat(left.Seconds(), k.Kind())
		}
	}
}

func (m serverMetrics) CertificateReloads(f *metrics.Family) {
	if k := m.s.certificate.Load(); k != nil {
		loaded, failed := k.Counts()
		f.Set(loaded, "loaded")
		f.Set(failed, "failed")
	}
}

// watchdog checks for rooms that hang, until ctx ends. It gives up any room but the default room at
// once, because no client can play there. It gives up the default room if WatchdogExit is set, if
// the room is closing, or if the context run has ended.
func (s *Server) watchdog(ctx, run context.Context) {
	if s.cfg.Watchdog < 0 {
		return
	}
	every, pauses := room.WatchEvery(s.cfg.Watchdog), watchdog.Pauses{}
	for clock.Sleep(ctx, every) {
		if pauses.Skip(s.clock.Now(), every) {
			continue
		}
		for _, r := range s.rooms.All() {
			if r.spectatorRoom != nil {
				if err := r.spectatorRoom.Supervisor.Watch(); err != nil {
					r.spectatorRoom.Supervisor.GiveUp(err)
				}
			}
			if err := r.e.Supervisor.Watch(); err != nil && (r != s.room || s.cfg.WatchdogExit || run.Err() != nil || r.e.Admission.Closing()) {
				r.e.Supervisor.GiveUp(err)
			}
		}
	}
}
