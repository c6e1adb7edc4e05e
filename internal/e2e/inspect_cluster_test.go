package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/netlooptest"
)

// clusterOf returns a server's answer of /api/cluster.
func clusterOf(t *testing.T, s *netloop.Server, find string) inspect.Cluster {
	t.Helper()
	v, err := bridge.Netloop.Server(s).Page(t.Context(), "/api/cluster", url.Values{"find": {find}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%v, %s", err, text)
	}
	return v.(inspect.Cluster)
}

// clusterRooms returns the rooms of an answer as texts.
func clusterRooms(c inspect.Cluster) string {
	var all []string
	for _, r := range c.Rooms {
		line := fmt.Sprint(r.Server, " ", r.Name, " ", r.Kind, " ", r.State, " ", r.Players, "/", r.Max)
		if r.Locked {
			line += " locked"
		}
		all = append(all, line)
	}
	return strings.Join(all, ", ")
}

// Each server shows all servers and all rooms. It knows the exact state of its own rooms.
func TestTheInspectorShowsACluster(t *testing.T) {
	t.Parallel()
	b := newClusterBed(t)
	x := b.server("x", still)
	y := b.server("y", func(r *netloop.Room) {
		if r.Spec().Name == "elm" {
			r.OnJoin(func(t *netloop.Tick, _ *netloop.Client) error { r.Lock(t, true); return nil })
		}
	})
	b.step(2)
	for server, name := range map[*clusterServer]string{x: "oak", y: "elm"} {
		if _, err := server.Server.OpenRoom(t.Context(), table(name)); err != nil {
			t.Fatal(err)
		}
	}
	y.JoinAs(client.Config{Room: "elm"}, netlooptest.Link{})
	b.step(60)
	atX, atY := clusterOf(t, x.Server, ""), clusterOf(t, y.Server, "")
	if atX.Server != "x" || !atX.Connected || atX.Text != "names can be claimed" || len(atX.Moves) != 0 {
		t.Errorf("%+v", atX)
	}
	if got, want := clusterRooms(atX), "x oak table open 0/5, y elm table unlisted 1/5"; got != want || atX.Total != 2 {
		t.Errorf("%s, want %s, total %d", got, want, atX.Total)
	}
	if got, want := clusterRooms(atY), "x oak table open 0/5, y elm table open 1/5 locked"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var servers []string
	for _, s := range atX.Servers {
		servers = append(servers, fmt.Sprint(s.ID, s.Own, s.Suspect, s.Draining, s.Rooms, s.Clients, s.Overload, s.Region))
	}
	if got, want := fmt.Sprint(servers), "[xtruefalsefalse2 0 normal eu yfalsefalsefalse2 1 normal eu]"; strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("%s, want %s", got, want)
	}
	for find, want := range map[string]int{"oak": 1, "y": 1, "table": 2, "none": 0} {
		if c := clusterOf(t, x.Server, find); c.Total != want || len(c.Rooms) != want {
			t.Errorf("%q finds %s", find, clusterRooms(c))
		}
	}
	b.hub.Partition("y", 1)
	b.step(60 * (cluster.SuspectBeats + 1))
	atX, atY = clusterOf(t, x.Server, ""), clusterOf(t, y.Server, "")
	if got, want := clusterRooms(atX), "x oak table open 0/5, y elm table unknown 1/5"; got != want || !atX.Servers[1].Suspect {
		t.Errorf("%s, want %s, of %+v", got, want, atX.Servers)
	}
	if atY.Connected || !strings.HasPrefix(atY.Text, "no name can be claimed: ") {
		t.Errorf("a server without its store: %t, %q", atY.Connected, atY.Text)
	}
}

// Many rooms are counted, and a part is listed. The text selects among all of them.
func TestTheInspectorListsAPartOfManyRooms(t *testing.T) {
	b := newClusterBed(t)
	x := b.server("x", still)
	other := b.hub.Member()
	if err := other.Join(t.Context(), cluster.Member{Server: cluster.Server{ID: "w"}}); err != nil {
		t.Fatal(err)
	}
	const rooms = inspect.MaxClusterRooms + 5
	for n := range rooms {
		if !other.Announce(fmt.Sprintf("room-%04d", n), []byte{}) {
			t.Fatal(n)
		}
	}
	if !other.Announce("malformed", []byte{0xff}) {
		t.Fatal("the hub has refused it")
	}
	b.step(30)
	if c := clusterOf(t, x.Server, ""); len(c.Rooms) != inspect.MaxClusterRooms || c.Total < rooms || c.Total > rooms+1 {
		t.Errorf("%d of %d rooms", len(c.Rooms), c.Total)
	}
	if c := clusterOf(t, x.Server, "room-1004"); len(c.Rooms) != 1 || c.Total != 1 {
		t.Errorf("%s of %d", clusterRooms(c), c.Total)
	}
	if c := clusterOf(t, x.Server, "malformed"); len(c.Rooms) != 0 || c.Total != 0 {
		t.Errorf("%s of %d", clusterRooms(c), c.Total)
	}
}

// A server without a cluster says so.
func TestTheInspectorOfAServerWithoutACluster(t *testing.T) {
	s, _ := serve(t, game{schema, still}, 60)
	if status, body := page(t, s, "/api/cluster"); status != http.StatusOK ||
		strings.TrimSpace(body) != `{"server":"","connected":false,"text":"this server is not part of a cluster","servers":[],"rooms":[],"total":0,"moves":[]}` {
		t.Errorf("%d %s", status, body)
	}
	if _, body := page(t, s, "/api"); !strings.Contains(body, "/api/cluster") {
		t.Error("/api does not list it")
	}
	if _, body := page(t, s, "/api/overview"); !strings.Contains(body, `"cluster":""`) {
		t.Error(body)
	}
}

// Both servers of a move show it, and neither shows its ticket.
func TestTheInspectorShowsAMove(t *testing.T) {
	f := newFleet(t)
	a, _ := f.serve("a", "elm", nil)
	b, _ := f.serve("b", "oak", nil)
	c, err := client.Dial(t.Context(), a.Addr().String(), client.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	f.until(c, "")
	id := uint64(c.ID())
	client.Send(c, echo, text{S: "oak"})
	f.until(c, "oak")
	arrived := func(s *netloop.Server) bool {
		c.Step(5 * time.Millisecond)
		list := clusterOf(t, s, "").Moves
		return len(list) == 1 && list[0].State == inspect.MoveArrived
	}
	waitFor(t, func() bool { return arrived(a) && arrived(b) })
	for s, out := range map[*netloop.Server]bool{a: true, b: false} {
		got := clusterOf(t, s, "").Moves[0]
		want := inspect.Move{Time: got.Time, Out: out, Client: id, FromServer: "a", ToServer: "b", ToRoom: "oak", State: inspect.MoveArrived, Took: got.Took}
		text, _ := json.Marshal(got)
		if wanted, _ := json.Marshal(want); string(text) != string(wanted) || got.Took <= 0 || strings.Contains(string(text), "@") {
			t.Errorf("%s, want %s", text, wanted)
		}
	}
	addresses := clusterOf(t, b, "").Servers[0].Addresses
	if !slices.ContainsFunc(addresses, func(at inspect.ClusterAddress) bool { return at.Carrier == "quic" && at.Addr == a.Addr().String() }) {
		t.Errorf("server a is at %v", addresses)
	}
}
