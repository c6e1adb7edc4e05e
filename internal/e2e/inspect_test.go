package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/inspect"
)

var (
	inspected = netloop.NewSchema("inspected", 1, 0)
	haulers   = netloop.NewClass[hauler](inspected, "hauler", netloop.OnMap("X", "Pos.Y"), netloop.Weight(2))
	beacons   = netloop.NewClass[beacon](inspected, "beacon")
)

type hauler struct {
	X    float32
	Pos  struct{ Y float32 }
	Fuel uint16 `net:"read=owner"`
}

type beacon struct{ N int32 }

// inspectedServer serves a room with a hauler for each client, and a beacon that no client sees.
func inspectedServer(t *testing.T) (ask func(method, path, token string) (int, string), s *netloop.Server) {
	t.Helper()
	return inspectedServerAs(t, netloop.Config{})
}

func inspectedServerAs(t *testing.T, cfg netloop.Config) (ask func(method, path, token string) (int, string), s *netloop.Server) {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("read a-token-of-a-reader\nwrite a-token-of-a-writer anna\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.AdminTokenFile, cfg.InspectRing = tokens, time.Minute
	s, _ = serveAs(t, game{inspected, func(r *netloop.Room) {
		if _, err := netloop.Fetch(r, func(context.Context) (int, error) { return 7, nil }); err != nil {
			t.Error(err)
		}
		sight := netloop.NewGrid(r, netloop.GridSpec{Radius: 40, Margin: 20, Cell: 10})
		haulers.PlaceOn(sight, func(h *hauler) (x, y, z float64) { return float64(h.X), 700, float64(h.Pos.Y) })
		r.OnStart(func(t *netloop.Tick) { beacons.Spawn(t, beacon{7}, netloop.VisibleTo(netloop.To())) })
		r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
			h := hauler{X: 1.5, Fuel: 40}
			h.Pos.Y = -25
			o := haulers.Spawn(t, h, netloop.OwnedBy(c.ID()))
			sight.SetView(t, c, netloop.ViewFrom(o), netloop.ViewAt(35, 0, 5))
			return nil
		})
		inspectedChat.Handle(r, func(*netloop.Tick, *netloop.Client, struct{ Text string }) error { return nil })
		r.On(netloop.Update, "test.drift", func(t *netloop.Tick) {
			for o := range haulers.All(t) {
				o.Edit(t).X += 0.25
			}
		})
	}}, cfg)
	ask = func(method, path, token string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.AdminAddr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	return ask, s
}

const (
	aReader = "a-token-of-a-reader"
	aWriter = "a-token-of-a-writer"
)

type inspectedObject struct {
	ID, Class    string
	Owner        uint64
	Values, Copy []any
	Shown        bool
	Weight       float64
	Acknowledged uint64
}

// inspectedState is a part of the answer of /api/state.
type inspectedState struct {
	Objects []inspectedObject
	More    int
	Grids   []struct {
		Classes              []string
		Cell, Inside, Border float64
		Eyes                 []struct {
			Cell   [2]int
			Object string
		}
	}
}

// The state of a room is shown with a client's copy of it. A field with a read rule is shown to the
// role write only, and a client's copy has no field that the client may not read.
func TestTheInspectorShowsStateAndCopies(t *testing.T) {
	ask, s := inspectedServer(t)
	for range 2 {
		start(t, connectTo(t, s.Addr().String(), inspected), nil)
	}
	waitFor(t, func() bool {
		_, body := ask(http.MethodGet, "/api/clients", aReader)
		return strings.Contains(body, `"client":2,`)
	})
	look := func(token, query string) (st inspectedState) {
		t.Helper()
		status, body := ask(http.MethodGet, "/api/state?"+query, token)
		if status != http.StatusOK || json.Unmarshal([]byte(body), &st) != nil {
			t.Fatalf("%s: %d %s", query, status, body)
		}
		return st
	}
	var st inspectedState
	waitFor(t, func() bool {
		st = look(aWriter, "client=1")
		return len(st.Objects) == 3 && st.Objects[0].Copy != nil && st.Objects[1].Copy != nil
	})
	slot := func(id string) (n int) { n, _ = strconv.Atoi(strings.Split(id, ".")[0]); return n }
	if !slices.IsSortedFunc(st.Objects[:2], func(a, b inspectedObject) int { return slot(a.ID) - slot(b.ID) }) {
		t.Errorf("haulers are not in the order of their ids: %+v", st.Objects)
	}
	// Hidden objects have random ids.
	slices.SortFunc(st.Objects[:2], func(a, b inspectedObject) int { return int(a.Owner) - int(b.Owner) })
	own, theirs, hidden := st.Objects[0], st.Objects[1], st.Objects[2]
	if own.Class != "hauler" || own.Owner != 1 || own.Weight != 2 || own.Values[2] != 40.0 || own.Copy[2] != 40.0 || own.Acknowledged == 0 || !own.Shown {
		t.Errorf("%+v", own)
	}
	if theirs.Values[2] != 40.0 || theirs.Copy[2] != nil || theirs.Copy[0] == nil {
		t.Errorf("a copy has a field that its client may not read: %+v", theirs)
	}
	if hidden.Class != "beacon" || hidden.Shown || hidden.Copy != nil || hidden.Values[0] != 7.0 {
		t.Errorf("%+v", hidden)
	}
	// The map shows X and Pos.Y, which are x and z of the grid.
	if len(st.Grids) != 1 || len(st.Grids[0].Eyes) != 2 {
		t.Fatalf("the grids are %+v", st.Grids)
	}
	g := st.Grids[0]
	if follows := g.Eyes[0]; g.Cell != 10 || g.Inside != 40 || g.Border != 60 || !slices.Equal(g.Classes, []string{"hauler"}) || follows.Object != own.ID || follows.Cell[1] != -3 {
		t.Errorf("the grid is %+v", g)
	}
	if at := g.Eyes[1]; at.Object != "" || at.Cell != [2]int{3, 0} {
		t.Errorf("a viewpoint is %+v", at)
	}
	if grids := look(aReader, "").Grids; len(grids) != 1 || len(grids[0].Eyes) != 0 {
		t.Errorf("without a client the grids are %+v", grids)
	}
	for _, o := range look(aReader, "client=1").Objects {
		if o.Class == "hauler" && (o.Values[2] != nil || o.Copy[2] != nil || o.Values[0] == nil) {
			t.Errorf("a reader sees %+v", o)
		}
	}
	behind := 0 // objects after the own one
	for _, o := range st.Objects[1:] {
		if slot(o.ID) > slot(own.ID) {
			behind++
		}
	}
	for query, want := range map[string]int{"class=beacon": 1, "find=owner%3D2": 1, "find=HAULER": 2, "after=" + own.ID: behind, "find=none": 0, "find=owner%3D0": 1, "find=" + hidden.ID: 1} {
		if n := len(look(aReader, query).Objects); n != want {
			t.Errorf("%s: %d objects, want %d", query, n, want)
		}
	}
	for query, says := range map[string]string{"class=haulers": "no class", "client=99": "there are 1 2", "client=x": "whole number", "find=owner%3Dx": "such as owner=3", "after=x": "17.3", "room=none": "no room"} {
		if status, body := ask(http.MethodGet, "/api/state?"+query, aWriter); status < 400 || status >= 500 || !strings.Contains(body, says) || strings.Count(body, "\n") != 1 {
			t.Errorf("%s: %d %q", query, status, body)
		}
	}
	var costs struct {
		Seconds float64
		Bytes   uint64
		Objects []struct {
			ID, Class             string
			Owner, Bytes, Records uint64
		}
	}
	waitFor(t, func() bool { // The first request begins to count.
		_, body := ask(http.MethodGet, "/api/costs", aReader)
		return json.Unmarshal([]byte(body), &costs) == nil && len(costs.Objects) == 2
	})
	if o := costs.Objects[0]; o.Class != "hauler" || o.Owner == 0 || o.Records == 0 || o.Bytes == 0 || costs.Bytes < o.Bytes || costs.Seconds == 0 {
		t.Errorf("the costs are %+v", costs)
	}
	if status, body := ask(http.MethodGet, "/api/classes", aReader); status != 200 || !strings.Contains(body, `"read":["","","owner"],"map":["X","Pos.Y"]`) {
		t.Errorf("%d %s", status, body)
	}
}

// The past ticks of a room can be taken and read with the role read, except for fields with a read
// rule. They do not change until they are taken again.
func TestTheInspectorShowsPastTicks(t *testing.T) {
	const secretSeed = 1234567
	ask, s := inspectedServerAs(t, netloop.Config{Seed: secretSeed})
	const none = "no recording is open"
	if status, body := ask(http.MethodGet, "/api/recording", aReader); status != http.StatusNotFound || !strings.Contains(body, none) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := ask(http.MethodGet, "/api/recording/file", aWriter); status != http.StatusNotFound || !strings.Contains(body, none) {
		t.Errorf("%d %s", status, body)
	}
	start(t, connectTo(t, s.Addr().String(), inspected), nil)
	var head struct {
		First, Last uint64
		Outcome     struct{ State, Text string }
	}
	take := func() {
		t.Helper()
		status, line := ask(http.MethodPost, "/api/recording/last", aReader)
		_, body := ask(http.MethodGet, "/api/recording", aReader)
		if status != http.StatusOK || json.Unmarshal([]byte(body), &head) != nil || !strings.HasSuffix(line, fmt.Sprintf(`"first":1,"last":%d}`+"\n", head.Last)) {
			t.Fatalf("%d %s%s", status, line, body)
		}
	}
	state := func(token string) string {
		t.Helper()
		_, body := ask(http.MethodGet, fmt.Sprintf("/api/recording/state?class=hauler&tick=%d", head.Last), token)
		return body
	}
	waitFor(t, func() bool { take(); return head.Last > 9 && strings.Contains(state(aReader), `"hauler"`) })
	if head.Outcome.State != "kept" || !strings.Contains(head.Outcome.Text, "of the running server") {
		t.Errorf("%+v", head)
	}
	if status, _ := ask(http.MethodGet, "/api/recording/file", aReader); status != http.StatusForbidden {
		t.Errorf("the file for the role read: %d", status)
	}
	_, file := ask(http.MethodGet, "/api/recording/file", aWriter)
	replay, err := netloop.NewReplay(netloop.Config{}, game{inspected, func(*netloop.Room) {}}, strings.NewReader(file))
	if err != nil || strings.Contains(file, fmt.Sprintf(`"Seed":"%d"`, secretSeed)) {
		t.Fatalf("%d bytes as a file, %v", len(file), err)
	}
	if _, err := replay.Step(); err == nil || !strings.Contains(err.Error(), "server inspect shows it") {
		t.Errorf("a replay of kept ticks: %v", err)
	}
	if _, err := s.OpenRoom(t.Context(), netloop.RoomSpec{Name: "other", CloseEmpty: netloop.NeverClose}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		status, _ := ask(http.MethodPost, "/api/recording/last?room=other", aReader)
		return status == http.StatusOK
	})
	_, file = ask(http.MethodGet, "/api/recording/file", aWriter)
	fetching := game{inspected, func(r *netloop.Room) {
		if n, err := netloop.Fetch(r, func(context.Context) (int, error) { return 0, nil }); n != 7 || err != nil {
			t.Errorf("the file of an opened room has %d, %v from its Open", n, err)
		}
	}}
	if _, err := netloop.NewReplay(netloop.Config{}, fetching, strings.NewReader(file)); err != nil {
		t.Error(err)
	}
	take()
	last := head.Last
	if body := state(aWriter); !strings.Contains(body, `,40]`) {
		t.Errorf("with the role write: %s", body)
	}
	if body := state(aReader); !strings.Contains(body, `,null]`) {
		t.Errorf("with the role read: %s", body)
	}
	for query, want := range map[string]string{
		"find?q=hauler.X+%3E+1": `"found":[{`, "find?q=hauler.Fuel+changed": "hauler.Fuel has a read rule", "find?q=hauler.Fule+changed": "did you mean Fuel",
		fmt.Sprintf("diff?tick=%d&with=%d", last, last+1): "is not known", "ticks": `"lanes":[{"client":1`, fmt.Sprintf("diff?tick=%d", last): `"field":"X"`,
	} {
		if _, body := ask(http.MethodGet, "/api/recording/"+query, aReader); !strings.Contains(body, want) {
			t.Errorf("%s: %s", query, body)
		}
	}
	waitFor(t, func() bool { take(); return head.Last > last })
	if status, body := ask(http.MethodPost, "/api/recording/last?room=none", aReader); status != http.StatusNotFound || !strings.Contains(body, "no room") {
		t.Errorf("%d %s", status, body)
	}
	if _, body := ask(http.MethodGet, "/api/log", aReader); !strings.Contains(body, `["action","/api/recording/last"]`) {
		t.Errorf("the log: %s", body)
	}
	if _, body := ask(http.MethodGet, "/api/overview", aReader); !strings.Contains(body, `"ring_ns":60000000000`) {
		t.Errorf("the overview: %s", body)
	}
}

// Clients, values and the overview are those of the server, and each topic streams the same.
func TestTheInspectorsAnswers(t *testing.T) {
	ask, s := inspectedServer(t)
	start(t, connectTo(t, s.Addr().String(), inspected), nil)
	waitFor(t, func() bool {
		_, body := ask(http.MethodGet, "/api/clients", aReader)
		return strings.Contains(body, `"transport":"quic","state":"connected"`) && !strings.Contains(body, `"snapshots":0,`) && !strings.Contains(body, `"rtt_ns":0,`)
	})
	waitFor(t, func() bool { // The loss is known after 50 packets, some seconds later.
		_, body := ask(http.MethodGet, "/api/clients", aReader)
		var all struct{ Clients []inspect.Client }
		if err := json.Unmarshal([]byte(body), &all); err != nil || len(all.Clients) != 1 {
			t.Fatalf("%v: %s", err, body)
		}
		c := all.Clients[0]
		return c.Loss != nil && *c.Loss < 0.5 && c.AckAge != nil && *c.AckAge < 10*time.Second && c.Received > 0 && c.Sent > c.Bytes && c.QueuedBytes == 0 && c.Waiting == 0
	})
	waitFor(t, func() bool {
		_, body := ask(http.MethodGet, "/api/clients/traffic?client=1", aReader)
		return strings.Contains(body, `"classes":[{"class":"hauler","bytes":`) && strings.Contains(body, `"client":1,`)
	})
	if status, body := ask(http.MethodGet, "/api/clients/traffic?client=9", aReader); status != http.StatusNotFound || !strings.Contains(body, "no client 9") {
		t.Errorf("%d %s", status, body)
	}
	waitFor(t, func() bool {
		_, body := ask(http.MethodGet, "/api/metrics?prefix=clients&prefix=joins&prefix=transport_clients", aReader)
		return strings.Contains(body, `"transport_clients":[{"labels":["quic"],"value":1}]`) && strings.Contains(body, `"clients":[{"value":1}]`) && strings.Contains(body, `{"labels":["quic"],"value":1}`)
	})
	if status, body := ask(http.MethodGet, "/api/metrics", aReader); status != http.StatusBadRequest || !strings.Contains(body, "prefix") {
		t.Errorf("%d %s", status, body)
	}
	_, body := ask(http.MethodGet, "/api/overview", aReader)
	for _, want := range []string{`"game":"inspected"`, `"rooms":1`, `"write":false`, `"overload":"normal"`, `"ladder":{"room":"","level":"normal",`, `"measures":[{"name":"tick time","now":0`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	topics := []string{"overview", "rooms", "metrics", "loop", "clients", "state", "ticks", "log"}
	query := url.Values{"topic": topics, "prefix": {"clients"}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.AdminAddr().String()+"/api/stream?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+aWriter)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	missing, in := map[string]bool{}, bufio.NewScanner(resp.Body)
	in.Buffer(nil, 4<<20)
	for _, name := range topics {
		missing[name] = true
	}
	kicked := false
	for len(missing) > 0 && in.Scan() {
		if name, ok := strings.CutPrefix(in.Text(), "event: "); ok {
			delete(missing, name)
		}
		if !kicked { // An action writes a line to the log.
			kicked = true
			if status, line := ask(http.MethodPost, "/api/rooms/lock", aWriter); status != 200 || line != "the room is locked\n" {
				t.Errorf("%d %s", status, line)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("no event of %v: %v", missing, in.Err())
	}
	if _, body := ask(http.MethodGet, "/api/log", aReader); !strings.Contains(body, `["token","anna"]`) {
		t.Errorf("the log: %s", body)
	}
	if status, body := ask(http.MethodGet, "/api/log?after=x", aReader); status != http.StatusBadRequest {
		t.Errorf("%d %s", status, body)
	}
}

// Actions need the role write, and act.
func TestTheInspectorsActions(t *testing.T) {
	ask, s := inspectedServer(t)
	c := start(t, connectTo(t, s.Addr().String(), inspected), nil)
	waitFor(t, func() bool {
		_, body := ask(http.MethodGet, "/api/clients", aReader)
		return strings.Contains(body, `"client":1,`)
	})
	if status, _ := ask(http.MethodPost, "/api/clients/kick?client=1", aReader); status != http.StatusForbidden {
		t.Errorf("a reader: %d", status)
	}
	for path, says := range map[string]string{
		"/api/clients/kick?client=99": "no client 99", "/api/clients/kick?client=x": "whole number", "/api/systems/disable": "give the name",
		"/api/systems/disable?system=none": "no system", "/api/systems/enable?room=none&system=test.drift": "no room", "/api/systems/disable?system=transport.flush": "nothing would reach clients",
	} {
		if status, body := ask(http.MethodPost, path, aWriter); status < 400 || status >= 500 || !strings.Contains(body, says) {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	for query, want := range map[string]string{
		"client=9&network=rtt=1s": "404 no client 9", "client=1&network=rtt": "400 network", "client=1&network=hole=1s@1s": "400 need --simulate",
		"client=1&network=delay=60ms,jitter=2ms": "200 until its connection ends",
	} {
		status, body := ask(http.MethodPost, "/api/clients/simulate?"+query, aWriter)
		if code, says, _ := strings.Cut(want, " "); strconv.Itoa(status) != code || !strings.Contains(body, says) {
			t.Errorf("%s: %d %q", query, status, body)
		}
	}
	if status, _ := ask(http.MethodPost, "/api/clients/simulate?client=1", aReader); status != http.StatusForbidden {
		t.Errorf("a reader: %d", status)
	}
	waitFor(t, func() bool {
		_, body := ask(http.MethodGet, "/api/clients", aReader)
		var all struct {
			Clients []struct {
				Simulated string
				RTT       time.Duration `json:"rtt_ns"`
			}
		}
		return json.Unmarshal([]byte(body), &all) == nil && len(all.Clients) == 1 && all.Clients[0].Simulated == "rtt=120ms,jitter=2ms" && all.Clients[0].RTT >= 120*time.Millisecond
	})
	if status, body := ask(http.MethodPost, "/api/clients/simulate?client=1&network=", aWriter); status != 200 || !strings.Contains(body, "its own network") {
		t.Errorf("%d %q", status, body)
	}
	if status, body := ask(http.MethodPost, "/api/systems/disable?system=test.drift", aWriter); status != 200 || body != "test.drift is disabled\n" {
		t.Errorf("%d %q", status, body)
	}
	waitFor(t, func() bool {
		_, body := ask(http.MethodGet, "/loop", aReader)
		return strings.Contains(body, `"disabled":true`)
	})
	if status, body := ask(http.MethodPost, "/api/systems/enable?system=test.drift", aWriter); status != 200 || body != "test.drift is enabled\n" {
		t.Errorf("%d %q", status, body)
	}
	if status, body := ask(http.MethodPost, "/api/clients/kick?client=1&text=enough", aWriter); status != 200 {
		t.Errorf("%d %q", status, body)
	}
	waitFor(t, func() bool { return c.Closed() != nil })
	if why := c.Closed(); why.Code != netloop.CodeKicked || why.Text != "enough" {
		t.Errorf("%v", why)
	}
}

// The page is served with a policy that forbids files of other servers.
func TestTheInspectorsFiles(t *testing.T) {
	ask, _ := inspectedServer(t)
	for path, want := range map[string]int{"/inspect": 200, "/inspect/style.css": 200, "/inspect/inspect.js": 200, "/inspect/icon.svg": 200, "/inspect/none": 404, "/inspect/..%2fx": 404} {
		if status, _ := ask(http.MethodGet, path, aReader); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _ := ask(http.MethodGet, "/inspect", "none"); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
}

// The recordings of the server's folder are listed with their rooms. The role write can download
// one while it grows, which leaves a line in the log.
func TestTheInspectorListsRecordings(t *testing.T) {
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "game.rec"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	ask, _ := inspectedServerAs(t, netloop.Config{Record: file, RecordingDirs: []string{dir}, Room: netloop.RoomSpec{Name: "hall"}})
	waitFor(t, func() bool {
		status, body := ask(http.MethodGet, "/api/recordings", aReader)
		return status == http.StatusOK && strings.Contains(body, `"name":"game.rec"`) && strings.Contains(body, `"room":"hall"`)
	})
	const path = "/api/recordings/file?name=game.rec"
	if status, _ := ask(http.MethodGet, path, aReader); status != http.StatusForbidden {
		t.Errorf("a download by the role read: %d", status)
	}
	status, body := ask(http.MethodGet, path, aWriter)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if _, err := netloop.NewReplay(netloop.Config{}, game{inspected, func(r *netloop.Room) {
		_, _ = netloop.Fetch(r, func(context.Context) (int, error) { return 0, nil })
	}}, strings.NewReader(body)); err != nil {
		t.Error(err)
	}
	if status, body := ask(http.MethodGet, "/api/recordings/file?name=tokens", aWriter); status != http.StatusNotFound || !strings.Contains(body, "there is no recording") {
		t.Errorf("%d %s", status, body)
	}
	if _, body := ask(http.MethodGet, "/api/log", aReader); !strings.Contains(body, "a recording is downloaded") || !strings.Contains(body, `["token","anna"]`) {
		t.Errorf("the log: %s", body)
	}
}

// scraped returns the series of /metrics by name and labels.
func scraped(t *testing.T, ask func(method, path, token string) (int, string)) map[string]float64 {
	t.Helper()
	_, text := ask(http.MethodGet, "/metrics", aReader)
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(name, "#") {
			n, err := strconv.ParseFloat(value, 64)
			if err == nil {
				all[name] = n
			}
		}
	}
	return all
}

// ticksWithin returns the number of ticks that took at most a time, by the largest bucket of
// /metrics up to it. With above it is the smallest bucket from it on.
func ticksWithin(all map[string]float64, limit float64, above bool) (ticks float64) {
	best := math.Inf(-1)
	if above {
		best = math.Inf(1)
	}
	for name, n := range all {
		text, ok := strings.CutPrefix(name, `netloop_tick_duration_seconds_bucket{le="`)
		le, err := strconv.ParseFloat(strings.TrimSuffix(text, `"}`), 64)
		if ok && err == nil && (above && le >= limit && le <= best || !above && le <= limit && le >= best) {
			best, ticks = le, n
		}
	}
	return ticks
}

// The figures of the overview are those of /metrics: between one scrape before and one after, the
// number of ticks and the 99th percentile, then the overload level, the heap, and the queues.
func TestTheInspectorsFiguresAreThoseOfMetrics(t *testing.T) {
	ask, s := inspectedServer(t)
	start(t, connectTo(t, s.Addr().String(), inspected), nil)
	waitFor(t, func() bool { return scraped(t, ask)["netloop_ticks_total"] > 100 })
	before := scraped(t, ask)
	_, body := ask(http.MethodGet, "/api/overview", aReader)
	after := scraped(t, ask)
	var o inspect.Overview
	if err := json.Unmarshal([]byte(body), &o); err != nil || len(o.Windows) == 0 {
		t.Fatal(err, body)
	}
	w := o.Windows[len(o.Windows)-1] // five minutes
	ticks, p99 := float64(w.Ticks), w.Tick.P99.Seconds()
	if ticks < before["netloop_ticks_total"] || ticks > after["netloop_ticks_total"] {
		t.Errorf("%v ticks, and %v to %v in /metrics", ticks, before["netloop_ticks_total"], after["netloop_ticks_total"])
	}
	if n := ticksWithin(after, p99, true); n < 0.99*ticks {
		t.Errorf("p99 is %v s, and %v of %v ticks took that time or less", p99, n, ticks)
	}
	// It is rounded up by 4.4 % at most.
	if n := ticksWithin(before, p99/1.05, false); n > 0.99*ticks+1 {
		t.Errorf("p99 is %v s, and %v of %v ticks took less", p99, n, ticks)
	}
	if o.Overload != "normal" || after["netloop_overload_level"] != 0 {
		t.Errorf("overload %q, level %v", o.Overload, after["netloop_overload_level"])
	}
	heap := after["go_memory_classes_heap_objects_bytes"]
	// It changes with each collection.
	if now := float64(o.Memory.Heap); heap == 0 || now > 8*heap || now < heap/8 {
		t.Errorf("a heap of %v bytes, and %v in /metrics", now, heap)
	}
	waitFor(t, func() bool { // Entries wait in a queue for a moment.
		var values map[string][]struct {
			Labels []string
			Value  float64
		}
		_, body := ask(http.MethodGet, "/api/metrics?prefix=queue_depth", aReader)
		if err := json.Unmarshal([]byte(body), &values); err != nil || len(values["queue_depth"]) == 0 {
			t.Fatal(err, body)
		}
		all := scraped(t, ask)
		return !slices.ContainsFunc(values["queue_depth"], func(v struct {
			Labels []string
			Value  float64
		}) bool {
			n, ok := all[fmt.Sprintf("netloop_queue_depth{queue=%q}", v.Labels[0])]
			return !ok || n != v.Value
		})
	})
}
