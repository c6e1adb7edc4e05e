package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/testing/golden"
)

// adminOf returns the address of the admin listener of a server in this process.
func adminOf(r *running) string {
	_, at, _ := strings.Cut(r.banner(), "http://")
	at, _, _ = strings.Cut(at, " ")
	return at
}

// tables is a game that opens a room of each name.
func tables(names ...string) *game {
	g := newGame()
	g.open = func(r *netloop.Room) error {
		if r.Spec().Kind == "table" {
			return nil
		}
		r.OnStart(func(t *netloop.Tick) {
			for _, name := range names {
				t.OpenRoom(netloop.RoomSpec{Name: name, Kind: "table", Rate: netloop.Hz(20)}, func(*netloop.Tick, netloop.RoomInfo, error) {})
			}
		})
		return nil
	}
	return g
}

// listed asks a server for its rooms until it has the wanted number.
func listed(t *testing.T, g *game, at, tokens string, want int, args ...string) []directory.Row {
	t.Helper()
	for limit := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		got := command(t, g, nil, append([]string{"rooms", "list", "--json", "--admin", at, "--admin-token-file", tokens}, args...)...)
		var page directory.Page
		if got.exit != 0 || json.Unmarshal([]byte(got.stdout), &page) != nil {
			t.Fatalf("exit %d: %s%s", got.exit, got.stdout, got.stderr)
		}
		if len(page.Rooms) == want {
			return page.Rooms
		}
		if time.Now().After(limit) {
			t.Fatalf("there are %+v, want %d rooms", page.Rooms, want)
		}
	}
}

// An operator lists the rooms of a running server, looks into one, drains one and closes one. Each
// is recorded, in files with names that no room can choose.
func TestRoomsAreListedClosedAndRecorded(t *testing.T) {
	g := tables("a", "../../b", "c")
	dir := filepath.Join(t.TempDir(), "made", "here")
	tokens := write(t, "tokens", "read a-token-of-a-reader\nwrite a-token-of-a-writer\n")
	r := start(t, g, nil, "--admin-token-file", tokens, "--record-rooms", dir)
	at := adminOf(r)
	all := listed(t, g, at, tokens, 4)
	if all[0].Name != "" || all[0].Rate != 60 || all[1].Kind != "table" || all[1].State != "open" || all[1].Max != 256 || all[1].Rate != 20 {
		t.Errorf("listed %+v", all)
	}
	if got := listed(t, g, at, tokens, 2, "--kind", "table", "--sort", "name", "--limit", "2"); got[0].Name != "../../b" || got[1].Name != "a" {
		t.Errorf("of the tables by name the first two are %+v", got)
	}
	look := command(t, g, nil, "loop", "print", "--admin", at, "--admin-token-file", tokens, "--room", "c")
	if look.exit != 0 || !strings.Contains(look.stdout, "ticks at 20 Hz") {
		t.Errorf("the loop of a room: exit %d: %s%s", look.exit, look.stdout, look.stderr)
	}
	for _, c := range []struct {
		exit int
		args []string
		want string
	}{
		{0, []string{"close", "a"}, `the room "a" closes in 0s`},
		{0, []string{"drain", "../../b", "--for", "1s"}, `the room "../../b" closes in 1s`},
		{1, []string{"close", ""}, "the default room"},
		{1, []string{"drain", "none"}, "there is no room"},
	} {
		got := command(t, g, nil, append([]string{"rooms", "--admin", at, "--admin-token-file", tokens}, c.args...)...)
		if got.exit != c.exit || !strings.Contains(got.stdout+got.stderr, c.want) {
			t.Errorf("%q: exit %d: %s%s", c.args, got.exit, got.stdout, got.stderr)
		}
	}
	listed(t, g, at, tokens, 2)
	if exit, log := r.stop(); exit != 0 || !strings.Contains(log, `"action": "/rooms/close"`) {
		t.Errorf("exit %d: %s", exit, log)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Fatalf("recorded %v, %v", files, err)
	}
	for _, f := range files {
		got := command(t, newGame(), nil, "replay", filepath.Join(dir, f.Name()))
		if got.exit != 0 || !strings.Contains(got.stdout, "identical") {
			t.Errorf("%s: exit %d: %s%s", f.Name(), got.exit, got.stdout, got.stderr)
		}
	}
}

// The name of a room cannot escape the folder, nor exceed the length of file names.
func TestNamesOfRoomsMakeNamesOfFiles(t *testing.T) {
	for room, want := range map[string]string{
		"table-7_b.2": "table-7_b.2", "": "", "../etc/passwd": ".._etc_passwd", `c:\a b`: "c__a_b", "tänze\x00\n\x7f": "t_nze___",
		strings.Repeat("x", 300): strings.Repeat("x", maxFileName),
	} {
		if got := fileName(room); got != want {
			t.Errorf("%q makes %q, want %q", room, got, want)
		}
	}
}

// A room is played even if its file cannot be made, and the log reports that it is not recorded.
func TestARoomIsPlayedWithoutItsRecording(t *testing.T) {
	var log bytes.Buffer
	f := &roomRecordings{dir: filepath.Join(t.TempDir(), "gone"), log: slog.New(slog.NewTextHandler(&log, nil))}
	w, err := f.open(netloop.RoomInfo{Spec: netloop.RoomSpec{Name: "a"}})
	if w != nil || err != nil || !strings.Contains(log.String(), "not recorded") {
		t.Errorf("it is recorded to %v, %v: %s", w, err, log.String())
	}
	r := command(t, newGame(), nil, "--record-rooms", write(t, "file", ""))
	if r.exit != 2 {
		t.Errorf("exit %d", r.exit)
	}
	oneLineOf(t, r.stderr, "record-rooms")
}

func TestTheListOfRoomsIsForPeople(t *testing.T) {
	page := directory.Page{Total: 1003, Rooms: []directory.Row{
		{State: "open", Clients: 3, Seats: 4, Max: 256, Rate: 60, TickP50: 140 * time.Microsecond, TickP99: 1200 * time.Microsecond, LateP99: 90 * time.Microsecond, Age: 3*time.Hour + 1500*time.Millisecond},
		{Name: "table-7", Kind: "table", State: "closing", Max: 4, Rate: 29.97, Overruns: 12},
		{Name: "\x1b[31m\u202e", Kind: "o'clock\n", State: "hung", Max: 4, Rate: 0.5},
	}}
	golden.Check(t, "testdata/rooms.txt", roomTable(&page))
}

func TestRoomCommandErrors(t *testing.T) {
	tokens := write(t, "tokens", "read a-token-of-a-reader\n")
	for _, c := range []struct {
		exit int
		args []string
		want string
	}{
		{2, []string{"rooms"}, "needs a command (commands: list, close, drain)"},
		{2, []string{"rooms", "lst"}, "did you mean list?"},
		{2, []string{"rooms", "list"}, "--admin is missing"},
		{2, []string{"rooms", "list", "more"}, "unexpected argument"},
		{2, []string{"rooms", "list", "--admin", "127.0.0.1:1", "--limit", "-1"}, "--limit"},
		{2, []string{"rooms", "close"}, "takes the name of one room"},
		{2, []string{"rooms", "close", "a", "b"}, "takes the name of one room"},
		{2, []string{"rooms", "drain", "a"}, "--admin is missing"},
		{2, []string{"rooms", "close", "a", "--admin", "127.0.0.1:1", "--admin-token-file", tokens}, "no token with the role write"},
		{1, []string{"rooms", "list", "--admin", "127.0.0.1:1"}, "no answer"},
	} {
		r := command(t, newGame(), nil, c.args...)
		if r.exit != c.exit {
			t.Errorf("%q: exit %d, want %d: %s", c.args, r.exit, c.exit, r.stderr)
		}
		oneLineOf(t, r.stderr, c.want)
	}
}

// The reason for the clients is a part of the request, if there is one.
func TestTheReasonOfACloseIsSent(t *testing.T) {
	var got url.Values
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.Query() }))
	defer server.Close()
	for _, c := range []struct{ args, want []string }{{nil, nil}, {[]string{"--text", "bye"}, []string{"bye"}}} {
		r := command(t, newGame(), nil, append([]string{"rooms", "close", "a", "--admin", server.URL}, c.args...)...)
		if r.exit != 0 || got.Get("room") != "a" || !slices.Equal(got["text"], c.want) {
			t.Errorf("%q: exit %d, %s; the request has %v", c.args, r.exit, r.stderr, got)
		}
	}
}
