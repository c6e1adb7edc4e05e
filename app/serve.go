package app

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	stdlog "log" //nolint:depguard // Its output is redirected into the server's log.
	"log/slog"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/logging"
)

// logGrace is the time to write out the log at the end. After it the process ends, even if the
// reader of the log has stopped.
const logGrace = 2 * time.Second

// serve runs a server until ctx ends or its --for is over.
func (p *program) serve(ctx context.Context, c *configuration) error {
	o := c.options
	log, closeLog, err := p.openLog(o)
	if err != nil {
		return err
	}
	defer closeLog()
	defer c.reloadOnHangup(log)()
	defer takeStandardLog(log.Slog())()
	for _, w := range c.warnings {
		log.Slog().Warn(w)
	}
	sidecar, err := o.agonesPort(p.env)
	if err != nil {
		return err
	}
	record, err := c.newRecording()
	if err != nil {
		return err
	}
	rooms, err := c.newRoomRecordings(time.Now(), log.Slog())
	if err != nil {
		return errors.Join(err, record.close(false))
	}
	network := o.newSimulation()
	if err := c.nameAddress(ctx, sidecar); err != nil {
		return errors.Join(err, record.close(false))
	}
	joined, err := c.openCluster(p.env, log.Slog())
	if err != nil {
		return errors.Join(err, record.close(false))
	}
	defer joined.close()
	s, err := p.open(c, log, record, rooms, network, joined)
	if err != nil {
		return errors.Join(err, record.close(false))
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	stopAgones := p.connectAgones(sidecar, s, log.Slog(), end)
	if o.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.For, fmt.Errorf("time of --for is over: %v", o.For))
		defer cancel()
	}
	out := log.Slog()
	said := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(said)
		out.Info("closing: clients get the reason, the game saves", "because", context.Cause(ctx).Error(), "drain", o.Drain.String())
	})
	err = errors.Join(s.Run(ctx), record.close(true))
	stopAgones()
	if !stop() {
		<-said // So that this line is written first.
	}
	network.ends(out)
	if err == nil {
		out.Info("closed")
	}
	return failed(err)
}

// openLog opens the log. The returned function writes it out.
func (p *program) openLog(o *options) (log *logging.Logger, closeLog func(), err error) {
	log, err = logging.New(logging.Config{Level: o.LogLevel, Format: o.LogFormat, Out: p.stderr})
	return log, func() {
		ctx, cancel := context.WithTimeout(context.Background(), logGrace)
		defer cancel()
		_ = log.Close(ctx) // If the log fails, this error cannot be logged.
	}, err
}

// takeStandardLog redirects Go's standard log into the server's, above all quic-go's warning about
// small UDP buffers, until restore is called.
func takeStandardLog(to *slog.Logger) (restore func()) {
	out, flags := stdlog.Writer(), stdlog.Flags()
	stdlog.SetOutput(slog.NewLogLogger(to.Handler(), slog.LevelWarn).Writer())
	stdlog.SetFlags(0) // The log has a time of its own.
	return func() {
		stdlog.SetOutput(out)
		stdlog.SetFlags(flags)
	}
}

// open makes a server that listens, and writes its addresses to stdout and to the address file. An
// operator can fix the cause of any error of open.
func (p *program) open(c *configuration, log *logging.Logger, record *recordingFile, rooms *roomRecordings, network *simulation, joined *clusterConnection) (*netloop.Server, error) {
	o, cfg := c.options, c.options.server()
	var err error
	if cfg.Seed == 0 {
		cfg.Seed = drawSeed()
	}
	cfg.Log, cfg.LogsDropped = log.Slog(), log.Dropped
	if cfg.Secret, err = c.secret(p.env); err != nil {
		return nil, err
	}
	if cfg.Incarnation, err = c.incarnation(p.env, time.Now()); err != nil {
		return nil, err
	}
	if g, ok := p.game.(netloop.WebGame); ok {
		cfg.WebFiles = g.Web()
	}
	cfg.Cluster = joined.config()
	record.begin(c, &cfg)
	rooms.begin(c, &cfg)
	s, err := netloop.New(cfg, p.game)
	if err != nil {
		return nil, c.keysError(err)
	}
	network.install(s, cfg.Seed)
	file, err := c.newAddrFile()
	if err != nil {
		return nil, err
	}
	defer file.discard()
	if err := s.Listen(); err != nil {
		return nil, c.portError(err)
	}
	at := addressesOf(s, o)
	joined.addresses(&at, s)
	if err := p.announce(s, cfg, network, joined, at); err != nil {
		return nil, errors.Join(fmt.Errorf("stdout cannot be written, redirect it: %w", err), s.Close())
	}
	if err := file.publish(at); err != nil {
		return nil, errors.Join(c.bad("addr-file", o.AddrFile, "use a writable file: "+err.Error()), s.Close())
	}
	network.begins(log.Slog(), cfg.Seed)
	log.Slog().Info("serving", "listen", at.Listen, "admin", at.Admin, "web", at.Web, "cert_hash", at.CertHash, "seed", cfg.Seed)
	return s, nil
}

// portError adds to an error the operator's key of the address that could not be opened, or of the
// trace directory.
func (c *configuration) portError(err error) error {
	const remedy = "stop the process on that port or choose another port (0 picks a free one)"
	o := c.options
	text, _ := strings.CutPrefix(err.Error(), "netloop: ")
	field, text, _ := strings.Cut(text, ": ")
	var (
		op  *net.OpError
		dns *net.DNSError
	)
	switch unknown := errors.As(err, &dns); {
	case field == "Admin" && unknown:
		return c.bad("admin", o.Admin, unknownHost(dns))
	case field == "Admin" && errors.Is(err, admin.ErrOpen):
		return c.bad("admin", o.Admin, "other machines reach it: name a file of tokens with --admin-token-file, or use 127.0.0.1, which only this machine reaches")
	case field == "Admin":
		return c.bad("admin", o.Admin, strings.Replace(strings.TrimPrefix(text, "admin: "), o.Admin+" is", "the port is", 1))
	case field == "Web" && unknown:
		return c.bad("web", o.Web, unknownHost(dns))
	case field == "Web":
		return c.bad("web", o.Web, strings.Replace(text, o.Web+" is", "the port is", 1))
	case field == "Cluster":
		return c.bad("cluster", o.Cluster, text)
	case field == "CertFile":
		return c.bad("tls-cert", o.TLSCert, "tls-cert and tls-key must name PEM files that belong together: "+text)
	case field == "AdminTokenFile":
		return c.bad("admin-token-file", o.AdminTokens, text)
	case field == "TraceDir":
		return c.bad("trace-dir", o.TraceDir, strings.TrimPrefix(text, "flight: "))
	case unknown:
		return c.bad("listen", o.Listen, unknownHost(dns))
	case errors.Is(err, syscall.EADDRINUSE):
		return c.bad("listen", o.Listen, "the port is in use: "+remedy)
	case errors.As(err, &op):
		return c.bad("listen", o.Listen, fmt.Sprintf("choose another address: %v", op.Err))
	}
	return err
}

// unknownHost returns advice for the operator about a name that cannot be resolved.
func unknownHost(err *net.DNSError) string {
	return fmt.Sprintf("host %q is unknown: use an address of this machine, 127.0.0.1 for only this machine or 0.0.0.0 for all", err.Name)
}

// drawSeed draws a random seed. The app draws it, and not netloop, so that the app can print it:
// with the same seed the same game can be run again.
func drawSeed() uint64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // Never fails.
		if seed := binary.LittleEndian.Uint64(b[:]); seed != 0 {
			return seed
		}
	}
}
