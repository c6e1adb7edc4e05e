package inspect

import (
	"embed"
	"io/fs"
	"net/http"
	"sync"

	"github.com/netloop/netloop/clients/ts"
	"github.com/netloop/netloop/internal/web/static"
)

// The page is built from page/src by "make web".
//
//go:embed page/index.html page/style.css page/icon.svg page/inspect.js
var page embed.FS

// clientFile is the client of the playground, which the page loads when it opens one.
const clientFile = "/netloop.js"

// policy is the page's Content-Security-Policy: the page loads files of this server only. A client
// of the playground connects to the game's own port over WebTransport, if both are on this machine.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self' https://127.0.0.1:*; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Page returns the handler of the inspector's page and its files, which are compressed once.
var Page = sync.OnceValue(func() http.Handler {
	from, _ := fs.Sub(page, "page") // It exists, and embedded files can be read.
	files, _ := static.Read(from)
	files[clientFile] = static.New(clientFile, ts.Client)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "/" + r.PathValue("file")
		f := files[name]
		if f == nil {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		f.ServeHTTP(w, r)
	})
})
