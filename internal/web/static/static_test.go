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
	files, err := Read(fstest.MapFS{"logo.PNG": {}, ".env": {}, "a/.git/config": {}, "a/index.html": {}, "pipe": {Mode: fs.ModeNamedPipe}})
	if names := slices.Sorted(maps.Keys(files)); err != nil || !slices.Equal(names, []string{"/a/", "/a/index.html", "/logo.PNG"}) {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := Read(os.DirFS(filepath.Join(t.TempDir(), "none"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
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
