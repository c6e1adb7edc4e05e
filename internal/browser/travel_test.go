package browser_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/testing/nodetest"
)

var (
	travelSchema = netloop.NewSchema("travel", 1, 0)
	travelSigns  = netloop.NewClass[travelSign](travelSchema, "sign")
)

// travelSign has the name of its room.
type travelSign struct {
	Room string `net:"max=8"`
}

// travelGame has rooms with a sign that names the room.
type travelGame struct{}

func (travelGame) Schema() *netloop.Schema { return travelSchema }

func (travelGame) Open(r *netloop.Room) error {
	r.AllowMoves()
	r.OnStart(func(t *netloop.Tick) {
		travelSigns.Spawn(t, travelSign{r.Spec().Name})
	})
	return nil
}

// travelPage is a page with a client for the test.
var travelPage = fstest.MapFS{
	"index.html": {Data: []byte(`<!doctype html><title>travel</title><link rel="icon" href="data:,"><script type="module" src="page.js"></script>`)},
	"page.js": {Data: []byte(`import { connect } from "/netloop.js";
const query = new URLSearchParams(location.search);
const client = await connect({ room: query.get("room"), transports: query.get("over").split(","), log: (line) => console.info(line) });
const signs = client.class("sign");
const phases = [];
client.onStatus((s) => phases.push(s.phase));
Object.assign(globalThis, { client, phases, sign: () => [...signs].map((s) => s.state.Room).join() });
setInterval(() => client.step(), 16);
`)},
}

// travelServer returns a server of a cluster that listens and serves travelPage. Its page may come
// from the other server.
func travelServer(t *testing.T, id string, hub *cluster.Memory) *netloop.Server {
	t.Helper()
	s, err := netloop.New(netloop.Config{
		Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Web: "127.0.0.1:0", WebFiles: travelPage, Origins: []string{"*"},
		Cluster: netloop.Cluster{Via: hub.Member(), ID: id},
	}, travelGame{})
	if err == nil {
		err = s.Listen()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A page moves to a room of another server and back, over each transport, and remains where it is
// if the other server cannot be reached. The inspector shows the cluster.
func TestAPageMovesToAnotherServer(t *testing.T) {
	runSeparately(t)
	chromium(t)
	nodetest.Tool(t, "playwright-core")
	start := time.Now()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	hub := cluster.NewMemory(1000, func() time.Duration { return time.Since(start) })
	servers := map[string]*netloop.Server{}
	pages, inspectors := map[string]string{}, map[string]string{}
	for _, name := range []string{"a", "b"} {
		s := travelServer(t, name, hub)
		running.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Errorf("server %s: %v", name, err)
			}
		})
		if _, err := s.OpenRoom(t.Context(), netloop.RoomSpec{Name: name, CloseEmpty: netloop.NeverClose}); err != nil {
			t.Fatal(err)
		}
		servers[name], pages[name] = s, "http://"+s.WebAddr().String()+"/"
		inspectors[name] = "http://" + s.AdminAddr().String() + "/inspect"
	}
	running.Go(func() {
		every := time.NewTicker(20 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				hub.Settle()
			case <-ctx.Done():
				return
			}
		}
	})
	tickets := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, err := servers[r.FormValue("from")].Reserve(r.Context(), r.FormValue("room"), netloop.Reservation{})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, string(all[0]))
	}))
	t.Cleanup(tickets.Close)
	told, _ := json.Marshal(map[string]any{"pages": pages, "tickets": tickets.URL, "inspectors": inspectors})
	t.Setenv("NETLOOP_TRAVEL", string(told))
	runFile(t, "travel.test.mjs")
}
