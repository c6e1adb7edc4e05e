package admin

import (
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/connlimit"
)

const (
	// maxKeys limits the unused keys: each is for a WebSocket that a tab is about to open.
	maxKeys = 64
	// keyTime is the time for which a key may be used.
	keyTime = 10 * time.Second
)

// Keys are the keys of WebSockets. Some browsers do not send the page's password when they open a
// WebSocket. So the page first requests a key by an action, which requires a token of role write,
// and then passes the key in the query of the WebSocket's URL. A key is valid once. The zero value
// has no keys. Any goroutine may use it.
type Keys struct {
	mu    sync.Mutex
	until map[string]time.Time // under mu
}

// New returns a key, or an error if maxKeys are unused.
func (k *Keys) New() (string, error) { return k.newAt(time.Now()) }

func (k *Keys) newAt(now time.Time) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.until, func(_ string, until time.Time) bool { return now.After(until) })
	if len(k.until) >= maxKeys {
		return "", errors.New("too many clients are being opened: try again")
	}
	if k.until == nil {
		k.until = map[string]time.Time{}
	}
	key := rand.Text()
	k.until[key] = now.Add(keyTime)
	return key, nil
}

// take removes a key, and reports whether it could be used.
func (k *Keys) take(key string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	until, ok := k.until[key]
	delete(k.until, key)
	return ok && !now.After(until)
}

// socket returns the handler of a route's WebSocket.
func (a *access) socket(route Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer connlimit.FromContext(r.Context()).Busy()()
		switch {
		case !ofOwnPage(r):
			a.counts.Host.Add(1)
			text(w, http.StatusForbidden, foreignPage)
		case !route.Keys.take(r.URL.Query().Get("key"), time.Now()):
			a.counts.Token.Add(1)
			text(w, http.StatusForbidden, "the key is unknown, too old or was used already\n")
		default:
			route.Socket.ServeHTTP(w, r)
		}
	}
}

// foreignPage is the answer to a request that a page of another site makes.
const foreignPage = "a page of another site asks for this\n"

// ofOwnPage reports whether a page of this listener, or a program, makes a request. Browsers send
// the origin of the page with each WebSocket.
func ofOwnPage(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	u, err := url.Parse(origin)
	return origin == "" || err == nil && strings.EqualFold(u.Host, r.Host)
}
