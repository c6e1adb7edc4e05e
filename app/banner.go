package app

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/build"
	"github.com/netloop/netloop/internal/loop"
)

// banner is the text that a server prints when it starts.
type banner struct {
	title   string
	at      addresses
	devCert bool
	cfg     netloop.Config
	network string // the effect of --simulate; empty without it
	cluster string // the cluster and the id in it; empty without one
	stages  []loop.DumpStage
}

// announce prints the banner of a server that listens.
func (p *program) announce(s *netloop.Server, cfg netloop.Config, network *simulation, joined *clusterConnection, at addresses) error {
	b := banner{
		title:   versions(p.game),
		at:      at,
		devCert: cfg.CertFile == "",
		cfg:     cfg,
		network: network.String(),
		cluster: joined.line(s),
		stages:  bridge.Netloop.Server(s).Room.Questions.View().Stages,
	}
	_, err := io.WriteString(p.stdout, b.String())
	return err
}

// page returns the URL of the pages for a browser on this machine, or, behind a proxy, for any
// browser.
func (b *banner) page() string {
	if b.cfg.WebURL != "" {
		return strings.TrimSuffix(b.cfg.WebURL, "/") + "/"
	}
	scheme := "http"
	if b.cfg.WebTLS {
		scheme = "https"
	}
	return scheme + "://" + hereOf(b.at.Web) + "/"
}

// hereOf returns an address that a browser on this machine can open.
func hereOf(at string) string {
	host, port, err := net.SplitHostPort(at)
	if err != nil || !everywhere(host) {
		return at
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// String returns the banner as text.
func (b *banner) String() string {
	var w strings.Builder
	line := func(key, format string, a ...any) {
		fmt.Fprintf(&w, "  %-9s%s\n", key, fmt.Sprintf(format, a...))
	}
	fmt.Fprintf(&w, "%s\n\n", b.title)
	line("listen", "%s (QUIC on UDP)", b.at.Listen)
	line("auth", "%s", authLine(&b.cfg))
	if b.at.Admin == "" {
		line("admin", "none (--admin 127.0.0.1:8080 serves metrics and health)")
	} else {
		line("admin", "http://%s  /metrics /healthz /readyz /ticks /loop /rooms /explain", hereOf(b.at.Admin))
		if hereOf(b.at.Admin) != b.at.Admin {
			line("", "and at every other address of this machine, for clients with a token")
		}
	}
	if b.at.Web == "" {
		line("page", "none (--web 127.0.0.1:8000 serves one, and lets browsers play)")
	} else {
		line("page", "%s", b.page())
	}
	if b.network != "" {
		line("network", "SIMULATED (--simulate), for each client address: %s", b.network)
	}
	if b.cluster != "" {
		line("cluster", "%s", b.cluster)
	}
	line("cert", "sha256 %s", b.at.CertHash)
	if b.devCert {
		line("", "for development: clients on other machines need this hash, or --tls-cert here")
	}
	room := b.cfg.Room
	fixed := room.FixedRate
	if fixed == (netloop.Rate{}) {
		fixed = room.Rate
	}
	line("tick", "%v, so %.3f ms for everything; fixed steps at %v; snapshots every %s", room.Rate,
		room.Rate.Period().Seconds()*1e3, fixed, ordinal(room.SendEvery))
	line("clients", "at most %d", room.MaxClients)
	line("seed", "%d", b.cfg.Seed)
	w.WriteString("\n")
	writeStages(&w, b.stages)
	return w.String()
}

func ordinal(n int) string {
	if n == 1 {
		return "tick"
	}
	return fmt.Sprintf("%d ticks", n)
}

// tableWidth is the column at which the names of a stage's systems wrap: the usual width of a
// terminal plus some columns for long names.
const tableWidth = 100

// writeStages prints the table of the tick: each stage with its systems in the
// order in which they run.
func writeStages(w *strings.Builder, stages []loop.DumpStage) {
	const column = 20 // column of the first system: two spaces, a digit, the longest stage name
	fmt.Fprintf(w, "  %-*s%s\n", column-2, "stage", "systems in the order of running; netloop's own in (parentheses)")
	for _, stage := range stages {
		if stage.Stage == 0 {
			fmt.Fprintf(w, "  %-*s", column-2, "not placed yet")
		} else {
			fmt.Fprintf(w, "  %d %-*s", stage.Stage, column-4, stage.Stage)
		}
		at := column
		for i, s := range stage.Systems {
			name := s.Name
			if s.Place != loop.Body {
				name = "(" + name + ")"
			}
			if i > 0 && at+1+len(name) > tableWidth {
				fmt.Fprintf(w, "\n%*s", column, "")
				at = column
			} else if i > 0 {
				w.WriteByte(' ')
				at++
			}
			w.WriteString(name)
			at += len(name)
		}
		w.WriteByte('\n')
	}
	w.WriteByte('\n')
}

// versions returns the versions of the game, netloop and Go.
func versions(g netloop.Game) string {
	hello := bridge.Netloop.Schema(g.Schema()).Hello()
	return fmt.Sprintf("%s %d.%d, netloop %s, wire protocol %d, %s %s/%s", hello.GetSchema(), hello.GetMajor(), hello.GetMinor(),
		build.Version(), hello.GetProtocol(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
