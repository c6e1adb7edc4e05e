package static

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

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
