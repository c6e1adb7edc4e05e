package history_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/netloop/netloop/internal/inspect/history"
)

// served serves the recordings of a folder with the files of a test.
func served(t *testing.T) (s *history.Recordings, pages http.Handler, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, b := range map[string][]byte{"run.rec": arenaFile(t), "text.rec": []byte("no recording"), ".hidden": arenaFile(t)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	s = history.NewRecordings(history.RecordingsConfig{Dir: dir, Temp: t.TempDir(), Replay: replayOf(newArena)})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, s.Handler(), dir
}

// ask returns the status and the body of an answer.
func ask(pages http.Handler, method, target string, body io.Reader) (int, string) {
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest(method, target, body))
	return w.Code, w.Body.String()
}

// openRun opens run.rec, and waits for the end of its replay.
func openRun(t *testing.T, pages http.Handler) (head history.Head) {
	t.Helper()
	if code, body := ask(pages, "POST", "/api/recordings/open?name=run.rec", nil); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	for head.Outcome.State != history.Identical {
		if _, body := ask(pages, "GET", "/api/recording", nil); json.Unmarshal([]byte(body), &head) != nil {
			t.Fatal(body)
		}
	}
	return head
}

func TestPagesAnswerWithJSON(t *testing.T) {
	_, pages, _ := served(t)
	if code, body := ask(pages, "GET", "/api/recording", nil); code != http.StatusNotFound || !strings.Contains(body, "no recording is open") {
		t.Errorf("without a recording: %d %s", code, body)
	}
	code, body := ask(pages, "GET", "/api/recordings", nil)
	var files history.FilesAnswer
	if err := json.Unmarshal([]byte(body), &files); err != nil || code != http.StatusOK || len(files.Files) != 2 {
		t.Fatalf("%d %s: %v", code, body, err)
	}
	head := openRun(t, pages)
	if head.Name != "run.rec" || head.Schema != "arena" || head.Ticks != 400 || head.Progress != 1 || head.TickRate != [2]uint64{60, 1} || len(head.Classes) != 4 {
		t.Errorf("%+v", head)
	}
	ship := head.Classes[0]
	if ship.Name != "ship" || len(ship.Fields) != len(ship.Types) || len(ship.Fields) != len(ship.Read) || ship.Fields[0] != "X" || ship.Types[0] != "float32" || ship.Read[2] != "owner" {
		t.Errorf("%+v", ship)
	}
	for target, part := range map[string]string{
		"/api/recording/ticks":                                     `"every":1,"ticks":[1,2,`,
		"/api/recording/ticks?from=10&to=20&rows=2":                `"every":6,"ticks":[10,16],`,
		"/api/recording/state?tick=300":                            `{"tick":300,"previous":299,"next":301,"objects":[{"id":"`,
		"/api/recording/state?tick=300&class=rock":                 `"class":"rock","owner":0,"values":[`,
		"/api/recording/state?tick=1":                              `{"tick":1,"previous":0,"next":2,`,
		"/api/recording/diff?tick=300":                             `"with":299,"added":[`,
		"/api/recording/diff?tick=300&with=100":                    `"with":100,"added":[`,
		"/api/recording/diff?tick=1":                               `"with":0,"added":[{"id":`,
		"/api/recording/messages?tick=300":                         `"kind":"inputs","client":`,
		"/api/recording/find?q=ship.Turn+%3D%3D+1&from=100&to=300": `"next":0}`,
		"/api/recording/find?q=rock.X+changed":                     `"more":`,
	} {
		code, body := ask(pages, "GET", target, nil)
		if code != http.StatusOK || !strings.Contains(body, part) || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %.300s, want %s", target, code, body, part)
		}
	}
}

// Each wrong request gets a status and one plain line.
func TestPagesRefuseInAPlainLine(t *testing.T) {
	_, pages, dir := served(t)
	openRun(t, pages)
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "link")); err != nil {
		t.Log("without symbolic links:", err)
	}
	for _, c := range []struct {
		method, target string
		code           int
		text           string
	}{
		{"GET", "/api/recording/state", 400, "tick: give the number of a tick"},
		{"GET", "/api/recording/state?tick=x", 400, `tick: "x" is no number`},
		{"GET", "/api/recording/state?tick=-1", 400, `tick: "-1" is no number`},
		{"GET", "/api/recording/state?tick=0", 404, "tick 0 is before the recording, whose first tick is 1"},
		{"GET", "/api/recording/state?tick=999999", 404, "tick 999999 is not known: the last one is "},
		{"GET", "/api/recording/state?tick=1&class=shp", 404, `there is no class "shp": did you mean ship?`},
		{"GET", "/api/recording/state?tick=1&after=x", 400, `after: "x" is no object`},
		{"GET", "/api/recording/diff?tick=1&with=x", 400, "with: "},
		{"GET", "/api/recording/diff?tick=1&with=999999", 404, "tick 999999 is not known"},
		{"GET", "/api/recording/messages", 400, "tick: give"},
		{"GET", "/api/recording/ticks?rows=0", 400, "rows: 0 cannot be used: give 1 to 4096"},
		{"GET", "/api/recording/ticks?from=9999&to=99999", 404, "there are no ticks from 9999 to 99999"},
		{"GET", "/api/recording/ticks?from=2&to=1", 404, "there are no ticks"},
		{"GET", "/api/recording/ticks?from=18446744073709551615&to=18446744073709551615", 404, "there are no ticks"},
		{"GET", "/api/recording/find?q=", 400, "the query has no operator"},
		{"GET", "/api/recording/find", 400, "the query has no operator"},
		{"GET", "/api/recording/find?q=ship.Shiedl+changed", 400, "did you mean Shield?"},
		{"POST", "/api/recordings/open", 400, `name: "" is no name of a file`},
		{"POST", "/api/recordings/open?name=../x", 400, "is no name of a file"},
		{"POST", "/api/recordings/open?name=..", 400, "is no name of a file"},
		{"POST", "/api/recordings/open?name=%2Fetc%2Fpasswd", 400, "is no name of a file"},
		{"POST", "/api/recordings/open?name=folder%2Fx", 400, "is no name of a file"},
		{"POST", "/api/recordings/open?name=none.rec", 404, `there is no file "none.rec"`},
		{"GET", "/api/recordings/open?name=run.rec", 405, "Method Not Allowed"},
		{"POST", "/api/recordings/open?name=folder", 400, "it is no file"},
		{"POST", "/api/recordings/open?name=text.rec", 400, `cannot open "text.rec": not a recording of this version of netloop`},
	} {
		code, body := ask(pages, c.method, c.target, nil)
		if code != c.code || !strings.Contains(body, c.text) || strings.Count(body, "\n") != 1 {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.target, code, body, c.code, c.text)
		}
	}
	if code, body := ask(pages, "GET", "/api/recording", nil); code != http.StatusOK || !strings.Contains(body, `"name":"run.rec"`) {
		t.Errorf("after the refusals: %d %s", code, body)
	}
	if code, body := ask(pages, "POST", "/api/recordings/open?name=link", nil); code == http.StatusOK {
		t.Errorf("a link out of the folder: %d %s", code, body)
	}
}

// An upload replaces the open recording. A damaged one is refused, and the open one remains, also
// if its replay was under way.
func TestAnUploadIsOpened(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, pages, _ := served(t)
	code, body := ask(pages, "POST", "/api/recordings/upload?name=mine.rec", bytes.NewReader(arenaFile(t)))
	if code != http.StatusOK || !strings.Contains(body, `"name":"mine.rec"`) {
		t.Fatalf("%d %s", code, body)
	}
	if code, body = ask(pages, "POST", "/api/recordings/upload", strings.NewReader("nothing")); code != http.StatusBadRequest || !strings.Contains(body, `cannot open "upload": not a recording`) {
		t.Errorf("%d %s", code, body)
	}
	for progress := 0.0; progress < 1; {
		var head history.Head
		if code, body = ask(pages, "GET", "/api/recording", nil); code != http.StatusOK || json.Unmarshal([]byte(body), &head) != nil || head.Name != "mine.rec" {
			t.Fatalf("%d %s", code, body)
		}
		progress = head.Progress
	}
	if code, body = ask(pages, "GET", "/api/recording/state?tick=1", nil); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
