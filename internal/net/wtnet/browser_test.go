//go:build unix

package wtnet

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/certificate"
	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/net/origin"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/testing/nodetest"
	"github.com/netloop/netloop/internal/transport"
)

// page is the page in the browser: it runs plays, one after another, and returns their results.
const page = `<!doctype html><title>netloop</title><script type="module">
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
const tell = what => fetch("/told", {method: "POST", body: JSON.stringify(what)});
for (const play of await (await fetch("/plays")).json()) {
	try {
		const wt = new WebTransport(play.URL, {serverCertificateHashes: [{algorithm: "sha-256", value: bytes(play.Hash)}]});
		await wt.ready;
		const stream = await wt.createBidirectionalStream();
		await stream.writable.getWriter().write(bytes(play.Hello));
		const answer = await stream.readable.getReader().read();
		await wt.datagrams.writable.getWriter().write(bytes(play.Datagram));
		const heard = await wt.datagrams.readable.getReader().read();
		await tell({Welcome: answer.value.length, Datagram: heard.value.length, Largest: wt.datagrams.maxDatagramSize});
		if (play.Leaves) {
			wt.close({closeCode: 1234, reason: "had enough"});
		}
		const {closeCode, reason} = await wt.closed;
		await tell({Code: closeCode, Text: reason});
	} catch (e) {
		await tell({Error: String(e)});
	}
}
</script>`

// play is a task of the page, and told its result.
type (
	play struct {
		URL                   string
		Hash, Hello, Datagram []byte
		Leaves                bool
	}
	told struct {
		Welcome, Datagram, Largest int
		Code                       transport.Code
		Text, Error                string
	}
)

// browser is a real browser with the page.
type browser struct {
	pages *httptest.Server
	told  chan told
}

// browse serves the page, to a browser that Open starts.
func browse(t *testing.T, plays *[]play) *browser {
	t.Helper()
	b := &browser{told: make(chan told, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page)) })
	mux.HandleFunc("GET /plays", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(plays) })
	mux.HandleFunc("POST /told", func(_ http.ResponseWriter, r *http.Request) {
		var what told
		if err := json.NewDecoder(r.Body).Decode(&what); err == nil {
			b.told <- what
		}
	})
	b.pages = httptest.NewServer(mux)
	t.Cleanup(b.pages.Close)
	return b
}

func (b *browser) next(t *testing.T) told {
	t.Helper()
	select {
	case what := <-b.told:
		return what
	case <-time.After(nettest.Patience):
		t.Fatal("the browser tells nothing")
		return told{}
	}
}

// A browser plays over its stream and in datagrams, gets the reason of the server's close, and the
// server gets that of its own. A page of another origin is refused.
func TestARealBrowser(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it takes seconds to start a browser")
	}
	pair, err := certificate.SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	trusted := func(c *quicnet.ServerConfig) { c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}} }
	pages := new(origin.Set)
	h, closed := serve(t, pages, trusted), serve(t, nil, trusted)
	say, err := transport.AppendHello(nil, nettest.Hello())
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(pair.Certificate[0])
	first := play{URL: "https://" + h.listener.Addr().String() + endpoint.Path, Hash: hash[:], Hello: say, Datagram: []byte{1 << 3, 1}}
	second, third := first, first
	second.Leaves, third.URL = true, "https://"+closed.listener.Addr().String()+endpoint.Path
	b := browse(t, &[]play{first, second, third})
	pages.Serves("http", b.pages.Listener.Addr())
	nodetest.Browse(t, b.pages.URL)
	for _, p := range []play{first, second} {
		s := <-h.sessions
		nettest.Eventually(t, "the page's datagram", func() bool { return h.stats.DatagramsIn.Swap(0) > 0 })
		s.Send(transport.Message{Method: 7})
		s.Flush(0)
		if what := b.next(t); what.Welcome == 0 || what.Datagram == 0 || what.Largest < transport.MaxDatagram {
			t.Errorf("the page tells %+v", what)
		}
		want := told{Code: transport.CodeKicked, Text: "cheated"}
		if p.Leaves {
			want = told{Code: 1234, Text: "had enough"}
		} else {
			s.Close(want.Code, want.Text)
		}
		if what := b.next(t); what != want {
			t.Errorf("the page tells %+v, want %+v", what, want)
		}
		a := h.Find(t, "the end", func(a *transport.Arrival) bool { return nettest.Kind(transport.Gone)(a) && a.Session == s })
		if got := *a.Closed; got != (transport.Closed{Code: want.Code, Text: want.Text, Remote: p.Leaves}) {
			t.Errorf("the server tells %+v", got)
		}
	}
	if what := b.next(t); what.Error == "" || closed.stats.Dropped(transport.DropOrigin) != 1 {
		t.Errorf("a page of another origin tells %+v, and is counted %d times", what, closed.stats.Dropped(transport.DropOrigin))
	}
}
