package loadtest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// idleBot is a bot that never plays.
type idleBot struct{}

var nothing = netloop.NewSchema("nothing", 1, 0)

func (idleBot) Schema() *netloop.Schema      { return nothing }
func (idleBot) Join(int) any                 { return nil }
func (idleBot) Start(*client.Client, *Meter) {}

func TestErrorsNameInvalidFlags(t *testing.T) {
	for _, c := range []struct{ args, names string }{
		{"--clinets 5", "--clinets, did you mean --clients?: loadclient --help"},
		{"run --clinets 5", "--clinets, did you mean --clients?: loadclient --help"},
		{"--nonsense 5", "--nonsense: loadclient --help"},
		{"walk", `"walk" is not a command (there are run, find, soak, compare and report)`},
		{"run extra", `"extra" is one word too many: loadclient run takes only flags`},
		{"--clients many", `--clients: "many" cannot be used: loadclient --help`},
		{"--clients 0", "--clients"},
		{"--clients 10001", "--clients"},
		{"--addr here", "--addr"},
		{"--addr :4433", "--addr"},
		{"--addr 127.0.0.1:0", "--addr"},
		{"--ramp -1s", "--ramp"},
		{"--warmup 1h", "--warmup"},
		{"--duration 0s", "--duration"},
		{"--duration 5", "--duration"},
		{"--seed -1", "--seed"},
		{"--frame-rate 0.5", "--frame-rate"},
		{"--frame-rate 5000", "--frame-rate"},
		{"--admin ftp://x", "--admin"},
		{"--admin http://", "--admin"},
		{"--out xml", "--out"},
		{"--out json=", "--out"},
		{"--out json --out csv", "--out: json csv cannot be used: name a file"},
		{"--out json=/does/not/exist/x.json", "--out"},
		{"--ca /does/not/exist.pem", "--ca"},
		{"--cert-hash 12", "--cert-hash"},
		{"--ca a --cert-hash b", "--cert-hash"},
		{"--token-key /does/not/exist", "--token-key: /does/not/exist cannot be used: give --token-audience too"},
		{"--token-audience arena-1", "--token-audience: arena-1 cannot be used: give --token-key too"},
		{"--token-key /does/not/exist --token-audience arena-1", "--token-key: /does/not/exist cannot be used: name the private key"},
		{"--token-key x --token-audience arena-1 --token-subject bot", `--token-subject: "bot" cannot be used: put a * where`},
		{"--verify -1", "--verify"},
		{"--per-socket 0", "--per-socket: 0 cannot be used: use 1 to 1000"},
		{"--per-socket 1001", "--per-socket"},
		{"--transport tcp", "--transport"},
		{"--threshold snapshot.agee.p99<1ms", "--threshold: \"snapshot.agee.p99\" is no metric, did you mean snapshot.age.p99?"},
		{"--transport quic=1,websocket=1", "--transport: quic=1,websocket=1 cannot be used: give --web too"},
		{"--web 127.0.0.1:1", "--web: 127.0.0.1:1 cannot be used: leave it out"},
		{"--schedule stairs", "--schedule: stairs cannot be used: use const, step or line"},
		{"--churn 1%", "--churn"},
		{"--churn 100%/s --clients 10000 --duration 1h", "--churn: 100%/s cannot be used: it would replace 36000000 clients"},
		{"--storm=30s", "--storm"},
		{"--storm --storm-by walk", "--storm-by: walk cannot be used: use leave or drop"},
		{"--storm-by drop", "--storm-by: drop cannot be used: give --storm too"},
		{"--storm --storm-by drop --reconnect=false", "--storm-by: drop cannot be used"},
		{"--slow-readers 101%", "--slow-readers"},
		{"--ui gui", "--ui: gui cannot be used: use auto, tui, plain or quiet"},
		{"--profile play", "--profile: play cannot be used: leave it out"},
		{"--rooms 3", "--rooms: 3 cannot be used: give --room too"},
		{"--rooms 1001 --room a*", "--rooms"},
		{"find --from 0", "--from: 0 cannot be used: use 1 to --clients"},
		{"find --out csv", "--out: csv cannot be used: find writes text, json and html"},
		{"soak walk", `"walk" is one word too many`},
		{"compare a", "compare takes two results, and got 1"},
		{"compare a b --tolerance 5", "--tolerance: 5 cannot be used: use a share, as in 5%"},
		{"compare a b --metric snapshot.ages.p99", "did you mean snapshot.age.p99?"},
		{"--simulate los=5%", `--simulate: "los" is not a key`},
	} {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), append([]string{"/usr/bin/loadclient"}, strings.Fields(c.args)...), &stdout, &stderr, idleBot{})
		said := stderr.String()
		if code != exitUsage || strings.Count(said, "\n") != 1 || !strings.Contains(said, c.names) || !strings.HasPrefix(said, "loadclient: ") {
			t.Errorf("%s: exit %d, said %q", c.args, code, said)
		}
		if stdout.Len() > 0 {
			t.Errorf("%s: wrote to stdout: %q", c.args, stdout.String())
		}
	}
}

func TestHelpListsTheFlags(t *testing.T) {
	for _, args := range []string{"--help", "run --help"} {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), append([]string{"loadclient"}, strings.Fields(args)...), &stdout, &stderr, idleBot{})
		if code != exitOK || stderr.Len() > 0 {
			t.Errorf("%s: exit %d, said %q", args, code, stderr.String())
		}
		for _, flag := range []string{"addr", "clients", "ramp", "warmup", "duration", "seed", "frame-rate", "exact-frames", "admin", "out", "ca", "cert-hash", "simulate", "per-socket", "verify", "ui"} {
			if !strings.Contains(stdout.String(), "--"+flag) {
				t.Errorf("%s does not list --%s", args, flag)
			}
		}
	}
}

func TestAdminMayLackItsScheme(t *testing.T) {
	for in, want := range map[string]string{
		"127.0.0.1:8080":         "http://127.0.0.1:8080",
		"http://127.0.0.1:8080":  "http://127.0.0.1:8080",
		"http://127.0.0.1:8080/": "http://127.0.0.1:8080",
		"https://x.example/game": "https://x.example/game",
	} {
		o := options{admin: in}
		if err := o.parseAdmin(); err != nil || o.admin != want {
			t.Errorf("%s became %s, %v", in, o.admin, err)
		}
	}
}

// The bounds that the help names belong to their ranges.
func TestTheBoundsOfTheFlagsAreAllowed(t *testing.T) {
	least := options{addr: "127.0.0.1:1", clients: 1, perSocket: 1, datagrams: "auto", transport: "quic", duration: 100 * time.Millisecond, frameRate: 1}
	most := options{addr: "127.0.0.1:65535", clients: 10_000, perSocket: 1000, datagrams: "auto", transport: "quic", ramp: 10 * time.Minute, warmup: 10 * time.Minute, duration: 24 * time.Hour, frameRate: 1000}
	for _, o := range []options{least, most} {
		if err := o.validate(); err != nil {
			t.Error(err)
		}
	}
}

// The certificate is checked for the host of the address, which is a URL for WebSockets.
func TestTheCertificateIsThatOfTheHost(t *testing.T) {
	for addr, over := range map[string]string{"play.example:443": "quic", "wss://play.example:443/game": "websocket"} {
		o := options{addr: addr, transport: over, clients: 1, perSocket: 1, datagrams: "auto", duration: time.Second}
		if err := o.validate(); err != nil {
			t.Fatal(err)
		}
		if o.tls.ServerName != "play.example" {
			t.Errorf("the certificate of %s is checked for %q", addr, o.tls.ServerName)
		}
	}
}

// The number of verifying clients is --verify, at most all. They are spread evenly and in order.
func TestVerifyingClientsAreSpreadEvenly(t *testing.T) {
	for clients := 1; clients <= 40; clients++ {
		for asked := 0; asked <= clients+1; asked++ {
			o := options{addr: "127.0.0.1:1", clients: clients, perSocket: 1, datagrams: "auto", transport: "quic", verify: asked, duration: time.Second}
			if err := o.validate(); err != nil {
				t.Fatal(err)
			}
			want, found := asked, 0
			if asked == 0 || asked > clients {
				want = clients
			}
			for n := range clients {
				before, verifies := o.verifies(n)
				if before != found || before > n*want/clients+1 {
					t.Fatalf("%d of %d: client %d comes after %d that verify, and %d were before it", asked, clients, n, before, found)
				}
				if verifies {
					found++
				}
			}
			if found != want {
				t.Errorf("%d of %d: %d verify", asked, clients, found)
			}
		}
	}
}
