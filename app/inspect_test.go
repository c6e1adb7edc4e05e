package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/inspect/history"
)

// fetch sends a request to a page of this machine, and returns the status and the body.
func fetch(t *testing.T, method, at, host, origin string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// The command serves each state of a recording to this machine, and its folder, until it is
// stopped.
func TestInspectServesARecording(t *testing.T) {
	path := recordRun(t)
	r := startCommand(t, recorded(), nil, "inspect", "--listen", "127.0.0.1:0", path)
	banner := r.banner()
	_, at, ok := strings.Cut(strings.TrimSpace(banner), " at http://")
	at, shows := strings.CutSuffix(at, "inspect#recording")
	ok = ok && shows
	if !ok || !strings.HasPrefix(banner, "inspecting "+path) {
		t.Fatalf("printed %q", banner)
	}
	at = "http://" + at
	if code, body := fetch(t, "GET", at+"inspect", "", ""); code != http.StatusOK || !strings.Contains(body, "/inspect/inspect.js") {
		t.Errorf("%d %s", code, body)
	}
	var head history.Head
	for limit := time.Now().Add(patience); head.Outcome.State != history.Identical; {
		if _, body := fetch(t, "GET", at+"api/recording", "", ""); json.Unmarshal([]byte(body), &head) != nil || time.Now().After(limit) {
			t.Fatal(body)
		}
	}
	if head.Settings["shooter.bots"] != "9" || head.Ticks < 5 || head.Classes[0].Name != "drone" {
		t.Errorf("%+v", head)
	}
	if code, body := fetch(t, "GET", at+"api/recording/state?tick=5", "", ""); code != http.StatusOK || !strings.Contains(body, `"class":"drone"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body := fetch(t, "GET", at, "", ""); code != http.StatusOK || !strings.Contains(body, "/api/recording/find?q=") {
		t.Errorf("%d %s", code, body)
	}
	if code, body := fetch(t, "GET", at+"api", "", ""); code != http.StatusOK || !strings.Contains(body, `{"name":"outcome.state","type":"string","text":"the kind of the outcome`) || !strings.Contains(body, `"path":"/api/recordings/upload"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body := fetch(t, "POST", at+"api/recordings/open?name="+filepath.Base(path), "", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	// Pages of other sites in a browser of this machine get nothing.
	if code, body := fetch(t, "GET", at+"api/recording", "evil.example", ""); code != http.StatusMisdirectedRequest {
		t.Errorf("%d %s", code, body)
	}
	if code, body := fetch(t, "POST", at+"api/recordings/open?name=x", "", "https://evil.example"); code != http.StatusForbidden {
		t.Errorf("%d %s", code, body)
	}
	r.cancel(errors.New("the test has ended"))
	if exit, log := r.wait(); exit != 0 {
		t.Errorf("exit %d: %s", exit, log)
	}
}

func TestInspectErrors(t *testing.T) {
	there := write(t, "there.rec", "not a recording")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close() }()
	folder := filepath.Dir(there)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"inspect"}, "--admin is missing"},
		{[]string{"inspect", "no.rec"}, "name an existing file"},
		{[]string{"inspect", there}, `cannot open "there.rec": not a recording of this version of netloop`},
		{[]string{"inspect", "--listen", "0.0.0.0:0", folder}, "other machines reach it: use 127.0.0.1"},
		{[]string{"inspect", "--listen", "nonsense", folder}, `--listen: cannot listen on "nonsense"`},
		{[]string{"inspect", "--listen", busy.Addr().String(), folder}, "in use: stop the process on that port"},
		{[]string{"inspct", there}, `"inspct" is not a command: did you mean inspect?`},
	} {
		r := command(t, newGame(), nil, c.args...)
		if r.exit != 2 || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%q: exit %d: %s", c.args, r.exit, fmt.Sprint(r.stderr))
		}
	}
}
