package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/connlimit"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/token"
	"github.com/netloop/netloop/internal/web"
)

// finding is the result of one check, printed as one line.
type finding struct {
	about  string
	is     string // the state
	remedy string // what to change; empty if the state is fine
	note   bool   // the remedy is advice: the state may be as the game's author wants it
}

// doctorCommand makes the command that checks this machine for a server.
func (p *program) doctorCommand(c *configuration) *cobra.Command {
	running := adminFlags{flag: "running"}
	var room string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the game, this machine and the settings for a server",
		Long: "Looks at the game's schema, at this machine and at the settings, as the user who is to run the\n" +
			"server, and says for each thing that it is ok, or what to do. It changes nothing, and takes the\n" +
			"ports for a moment: run it where the server does not run yet. With --running it looks at the game\n" +
			"alone, also at what the running server has sent and how long its systems take: let players or bots\n" +
			"play first. The exit status is 0 if all is ok or a note, else 1.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(cmd.Flags(), p.env); err != nil {
				return err
			}
			if running.address == "" {
				return p.tellFindings(append(examineGame(p.game, nil), c.examine(cmd.Context(), p.env)...))
			}
			query := url.Values{}
			if cmd.Flags().Changed("room") {
				query.Set("room", room)
			}
			running.tokens = c.options.AdminTokens
			found, err := p.examineRunning(cmd.Context(), &running, query)
			if err != nil {
				return err
			}
			return p.tellFindings(found)
		},
	}
	c.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&running.address, "running", "", "admin address of a running server, host:port or a URL: check the game in it")
	cmd.Flags().StringVar(&room, "room", "", "with --running: name of the room; without it the default one")
	return cmd
}

// tellFindings prints a line for each finding, and its remedy below it.
func (p *program) tellFindings(all []finding) error {
	wrong := 0
	for _, f := range all {
		mark, rest := "ok  ", ""
		if f.remedy != "" {
			mark, rest = "note", "\n      "+strings.Repeat(" ", 12)+f.remedy
		}
		if f.remedy != "" && !f.note {
			mark = "FAIL"
			wrong++
		}
		if _, err := fmt.Fprintf(p.stdout, "%s  %-12s%s%s\n", mark, f.about, f.is, rest); err != nil {
			return &failure{err}
		}
	}
	if wrong > 0 {
		return &failure{fmt.Errorf("doctor: %d of %d checks failed", wrong, len(all))}
	}
	return nil
}

// examine runs all checks.
func (c *configuration) examine(ctx context.Context, environ []string) []finding {
	now := time.Now()
	return []finding{
		examineBuffers(udpBuffers(wantBuffer)),
		examineProcessors(runtime.GOMAXPROCS(0), runtime.NumCPU(), cpuLimit(os.DirFS("/"))),
		c.examineFiles(connlimit.Files()),
		examineClock(clockSynchronised()),
		c.examineCertificate(now),
		c.examineListen(),
		c.examineAdmin(ctx),
		c.examineSecret(environ),
		c.examinePlayers(),
	}
}

// wantBuffer is the buffer size that quic-go requests, because the packets of many clients wait in
// one socket.
const wantBuffer = 7 << 20

func examineBuffers(receive, send int, err error) finding {
	f := finding{about: "UDP buffers"}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		f.is = "unknown on this system"
	case err != nil:
		f.is, f.remedy = err.Error(), "let this user open UDP sockets"
	default:
		const kib = 1 << 10
		f.is = fmt.Sprintf("%d KiB to receive, %d KiB to send", receive/kib, send/kib)
		if min(receive, send) < wantBuffer {
			f.remedy = "sysctl -w net.core.rmem_max=7500000 net.core.wmem_max=7500000, and the same in /etc/sysctl.d: otherwise bursts of many clients are lost"
		}
	}
	return f
}

// examineProcessors compares Go's number of processors with the machine's, and with the limit of
// the cgroup in processors; a limit of 0 means that there is none.
func examineProcessors(procs, machine int, limit float64) finding {
	f := finding{about: "processors", is: fmt.Sprintf("GOMAXPROCS %d of %d, no limit of a cgroup", procs, machine)}
	if limit > 0 {
		f.is = fmt.Sprintf("GOMAXPROCS %d of %d, the cgroup allows %.2g", procs, machine, limit)
	}
	switch {
	case limit > 0 && limit < 1:
		f.remedy = "allow 1 or more: with less the kernel stops the process in every period of 100 ms"
	case limit > 0 && float64(procs) > max(2, limit+1):
		f.remedy = "leave GOMAXPROCS out of the environment: more threads than the cgroup allows use up the quota early, and then the process stops"
	case procs == 1:
		f.remedy = "give it 2 or more: with one processor the network waits for the tick"
	}
	return f
}

// cpuLimit returns the number of processors that the cgroup of this process allows, or 0 if it sets
// no limit.
func cpuLimit(root fs.FS) float64 {
	dir := "sys/fs/cgroup"
	if text, err := fs.ReadFile(root, "proc/self/cgroup"); err == nil {
		for line := range strings.Lines(string(text)) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok {
				dir = filepath.ToSlash(filepath.Join(dir, path))
			}
		}
	}
	least := 0.0
	for ; strings.HasPrefix(dir, "sys/fs/cgroup"); dir = filepath.ToSlash(filepath.Dir(dir)) {
		var quota, period float64
		text, err := fs.ReadFile(root, dir+"/cpu.max")
		if err != nil {
			continue
		}
		if n, _ := fmt.Sscan(string(text), &quota, &period); n == 2 && period > 0 && (least == 0 || quota/period < least) {
			least = quota / period
		}
	}
	return least
}

// wantFiles is a sufficient limit of open files for a server without web pages: its clients share
// one socket, and its admin listener has at most 64 connections.
const wantFiles = 256

// files returns the number of files that a server with these settings may need. With pages it adds
// one file for each connection of a browser and for each player's WebSocket, and a quarter of the
// number of players as reserve.
func (o *options) files() uint64 {
	if o.Web == "" {
		return wantFiles
	}
	return wantFiles + web.MaxConns + uint64(o.MaxClients+o.MaxClients/4)
}

func (c *configuration) examineFiles(limit uint64, err error) finding {
	wantFiles := c.options.files()
	switch {
	case err != nil:
		return finding{about: "open files", is: "unknown on this system"}
	case limit < wantFiles:
		return finding{about: "open files", is: fmt.Sprintf("at most %d", limit), remedy: fmt.Sprintf("ulimit -n %d, or LimitNOFILE=%d in the systemd unit", wantFiles, wantFiles)}
	}
	return finding{about: "open files", is: fmt.Sprintf("at most %d", limit)}
}

func examineClock(synchronised bool, err error) finding {
	switch {
	case err != nil:
		return finding{about: "clock", is: "unknown whether it is synchronised"}
	case !synchronised:
		return finding{about: "clock", is: "not synchronised", remedy: "timedatectl set-ntp true, or chrony: certificates and tokens depend on the time"}
	}
	return finding{about: "clock", is: "synchronised"}
}

// enough is the least remaining validity of a certificate. A shorter one causes a warning here,
// and an alert at the same threshold.
const enough = 7 * 24 * time.Hour

func (c *configuration) examineCertificate(now time.Time) finding {
	o, f := c.options, finding{about: "certificate"}
	if o.TLSCert == "" {
		f.is = "one for development, made at each start"
		if !quicnet.OnLoopback(o.Listen) {
			f.remedy = "set --tls-cert and --tls-key: clients on other machines refuse it unless they pin its hash"
		}
		return f
	}
	pair, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
	if err != nil || pair.Leaf == nil {
		f.is, f.remedy = fmt.Sprint(err), "let --tls-cert and --tls-key name PEM files that belong together and that this user may read"
		return f
	}
	f.is = fmt.Sprintf("valid until %s", pair.Leaf.NotAfter.UTC().Format(time.DateTime))
	switch {
	case now.Before(pair.Leaf.NotBefore):
		f.is = "not valid before " + pair.Leaf.NotBefore.UTC().Format(time.DateTime)
		f.remedy = "set this machine's clock, or wait"
	case pair.Leaf.NotAfter.Sub(now) < enough:
		f.remedy = "renew it: the server reloads the files"
	case exposed(o.TLSKey):
		f.remedy = "chmod 600 " + o.TLSKey + ": others may read the key"
	}
	return f
}

func (c *configuration) examineListen() finding {
	f := finding{about: "listen", is: c.options.Listen + " is free"}
	addr, err := net.ResolveUDPAddr("udp", c.options.Listen)
	if err == nil {
		var socket *net.UDPConn
		if socket, err = net.ListenUDP("udp", addr); err == nil {
			_ = socket.Close() // It was opened as a test.
		}
	}
	return f.port(c.options.Listen, err)
}

func (c *configuration) examineAdmin(ctx context.Context) finding {
	o, f := c.options, finding{about: "admin", is: "none"}
	if o.Admin == "" {
		return f
	}
	if o.AdminTokens != "" {
		if _, err := admin.ReadToken(o.AdminTokens, false); err != nil {
			return finding{about: "admin", is: err.Error(), remedy: "let --admin-token-file name a file with a line such as: read TOKEN"}
		}
		if exposed(o.AdminTokens) {
			return finding{about: "admin", is: "others may read the tokens", remedy: "chmod 600 " + o.AdminTokens}
		}
	} else if !quicnet.OnLoopback(o.Admin) {
		return finding{about: "admin", is: o.Admin + " is reached by other machines", remedy: "set --admin-token-file, or use 127.0.0.1"}
	}
	f.is = o.Admin + " is free"
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "tcp", o.Admin)
	if err == nil {
		_ = ln.Close() // It was opened as a test.
	}
	return f.port(o.Admin, err)
}

// port returns the finding for an address that cannot be opened.
func (f finding) port(addr string, err error) finding {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		f.is, f.remedy = addr+" is in use", "stop the process on that port (the server itself?), or choose another port"
	case err != nil:
		f.is, f.remedy = err.Error(), "use an address of this machine, and a port that this user may open"
	}
	return f
}

// examineSecret checks the files that must outlive the process. It does not make them, because the
// server's user must own them.
func (c *configuration) examineSecret(environ []string) finding {
	o, f := c.options, finding{about: "keys", is: "new ones at each start"}
	path, dir := o.SecretFile, o.stateDir(environ)
	if path == "" && dir == "" {
		f.remedy = "set --state-dir: clients then notice a crash at once instead of after 10 s"
		return f
	}
	if path == "" {
		path = filepath.Join(dir, "secret")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			f.is = "made at the first start, in " + path
			return f
		}
	}
	_, err := readSecret(path)
	switch f.is = "derived from " + path; {
	case err != nil:
		f.is, f.remedy = err.Error(), "create a file of 32 random bytes that this user may read"
	case exposed(path):
		f.remedy = "chmod 600 " + path + ": others may read it"
	}
	return f
}

// examinePlayers reports which players the server admits.
func (c *configuration) examinePlayers() finding {
	o, f := c.options, finding{about: "players", is: "only from this machine, without tokens"}
	exposed, _ := o.exposed()
	switch {
	case o.Auth == authToken:
		keys, err := token.LoadKeys(o.AuthKeys)
		if err != nil {
			return finding{about: "players", is: err.Error(), remedy: "let --auth-keys name public keys in PEM: server token keygen makes a pair"}
		}
		f.is = fmt.Sprintf("with tokens for %q, signed with %s", o.AuthAudience, strings.Join(keys.IDs(), " or "))
	case exposed != "":
		f.is, f.remedy = "all, without tokens (--insecure-no-auth)", "set --auth token (docs/SECURITY.md)"
	}
	return f
}
