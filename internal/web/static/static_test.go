package static

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/fstest"
)

// Only regular files are read, without names that begin with a dot. A folder that cannot be read is
// an error.
func TestReadTakesRegularFiles(t *testing.T) {
	files, err := Read(fstest.MapFS{"logo.PNG": {}, ".env": {}, "a/.git/config": {}, "a/index.html": {}, "pipe": {Mode: fs.ModeNamedPipe}, "a/none": {Mode: fs.ModeSymlink}})
	if names := slices.Sorted(maps.Keys(files)); err != nil || !slices.Equal(names, []string{"/a/", "/a/index.html", "/logo.PNG"}) {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := Read(os.DirFS(filepath.Join(t.TempDir(), "none"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	two := fstest.MapFS{"a": {Data: make([]byte, 6)}, "b": {Data: make([]byte, 4)}}
	for _, c := range []struct {
		most, mostBytes int
		fits            bool
	}{{2, 10, true}, {1, 10, false}, {2, 9, false}} {
		if files, err := read(two, c.most, c.mostBytes); (err == nil) != c.fits || len(files) != map[bool]int{true: 2}[c.fits] {
			t.Errorf("%d files of at most %d with %d bytes: %v", len(files), c.most, c.mostBytes, err)
		}
	}
}

// An answer has the file or its compressed form, as the request accepts, each with a tag of its own
// that saves the next answer.
func TestAnswersAreOfTheAcceptedForm(t *testing.T) {
	text, random := New("x.txt", make([]byte, 1000)), New("x.txt", []byte("x"))
	ask := func(f *File, headers ...string) *httptest.ResponseRecorder {
		r, answer := httptest.NewRequest(http.MethodGet, "/x.txt", nil), httptest.NewRecorder()
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		f.ServeHTTP(answer, r)
		return answer
	}
	for accepts, zipped := range map[string]bool{
		"": false, "gzip": true, "br, GZIP": true, "deflate": false, "gzip;q=0": false, "gzip; q=0.5": true, "br;q=1, gzip;q=0.0": false, "gzip;q=x": false, "gzip;level=1": true,
	} {
		a := ask(text, "Accept-Encoding", accepts)
		if got := a.Header().Get("Content-Encoding") == "gzip"; got != zipped || (a.Body.Len() < 1000) != zipped || a.Header().Get("Vary") != "Accept-Encoding" || a.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%q is answered with %d bytes and %v", accepts, a.Body.Len(), a.Header())
		}
		tag := a.Header().Get("ETag")
		if len(tag) != len(`""`)+16+map[bool]int{true: len("-gzip")}[zipped] {
			t.Errorf("the tag is %s", tag)
		}
		if again := ask(text, "Accept-Encoding", accepts, "If-None-Match", tag); again.Code != http.StatusNotModified {
			t.Errorf("%q with its tag is answered with %d", accepts, again.Code)
		}
	}
	if a := ask(text, "Accept-Encoding", "gzip", "Range", "bytes=1-2"); a.Code != http.StatusPartialContent || a.Body.String() != "\x00\x00" || a.Header().Get("Content-Encoding") != "" {
		t.Errorf("a range is answered with %d, %q", a.Code, a.Body)
	}
	if a := ask(random, "Accept-Encoding", "gzip"); a.Body.String() != "x" || a.Header().Get("Vary") != "" || a.Header().Get("Content-Encoding") != "" {
		t.Errorf("a short file is answered with %q and %v", a.Body, a.Header())
	}
}

// A file has the type of its name's extension in any case, not of its content.
func TestTypesAreOfNames(t *testing.T) {
	for name, want := range map[string]string{"logo.PNG": "image/png", "game.mjs": "text/javascript; charset=utf-8", "odd.thing": "application/octet-stream"} {
		answer := httptest.NewRecorder()
		New(name, []byte("<html>")).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
		if got := answer.Header().Get("Content-Type"); got != want {
			t.Errorf("%s is served as %s, want %s", name, got, want)
		}
	}
}

// A file is sent compressed if that saves a tenth, and with its length.
func TestFilesThatHardlyCompress(t *testing.T) {
	random := make([]byte, 1000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	for zeros, zipped := range map[int]bool{150: false, 300: true} { // To 94 and to 83 of 100.
		f := New("x.txt", append(random[:len(random):len(random)], make([]byte, zeros)...))
		if (f.zip != nil) != zipped {
			t.Errorf("a file of %d bytes is compressed to %d", len(f.Body), len(f.zip))
		}
		r, answer := httptest.NewRequest(http.MethodGet, "/x.txt", nil), httptest.NewRecorder()
		r.Header.Set("Accept-Encoding", "gzip")
		f.ServeHTTP(answer, r)
		if n := answer.Header().Get("Content-Length"); n != strconv.Itoa(answer.Body.Len()) {
			t.Errorf("an answer of %d bytes says that it has %s", answer.Body.Len(), n)
		}
	}
}
