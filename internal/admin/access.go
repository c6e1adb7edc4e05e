package admin

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/netloop/netloop/internal/connlimit"
)

// maxPages bounds the pages that are made at the same time, except probes. It is less than
// maxConns, so that there is always a connection without a page in progress, which can be closed to
// accept a probe.
const maxPages = 32

// access decides which requests are answered.
type access struct {
	tokens *Tokens // nil: all clients of this machine may read all pages
	name   string  // host of the configured address, if any
	pages  chan struct{}
	counts *Counts
}

// probe returns the handler of a page for probes: it needs no role, and never waits.
func (a *access) probe(page http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer connlimit.FromContext(r.Context()).Busy()()
		if have, _ := a.roleOf(r); a.allowedHost(w, r, have) {
			page(w, r)
		}
	}
}

// require returns the handler of a page for clients with a role.
func (a *access) require(need role, page http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer connlimit.FromContext(r.Context()).Busy()()
		r, ok := a.admit(w, r, need)
		if !ok {
			return
		}
		select {
		case a.pages <- struct{}{}:
			defer func() { <-a.pages }()
			page(w, r)
		default:
			a.counts.Busy.Add(1)
			busy(w, "too many pages are asked for at once: try again")
		}
	}
}

// roleOf returns the role of a request, and the name of its token. A client sends the token as
// Authorization: Bearer, or as the password of Authorization: Basic, which browsers and go tool
// pprof support.
func (a *access) roleOf(r *http.Request) (have role, name string) {
	if a.tokens == nil {
		return anonymous, ""
	}
	if _, password, ok := r.BasicAuth(); ok {
		return a.tokens.find(password)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return anonymous, ""
	}
	return a.tokens.find(strings.TrimSpace(token))
}

// callerKey is the context key of a request's caller.
type callerKey struct{}

// caller is the role of a request, the name of its token, and its address.
type caller struct {
	role role
	name string
	from string
}

// MayWrite reports whether the request of a context has a token of role write.
func MayWrite(ctx context.Context) bool {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c.role == writer
}

// AsWriter returns the context of a request with a token of role write, for tests without a
// listener.
func AsWriter(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{role: writer})
}

// TokenName returns the name of a request's token; empty without tokens.
func TokenName(ctx context.Context) string {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c.name
}

// From returns the address of the request of a context.
func From(ctx context.Context) string {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c.from
}

// admit refuses a request without the role. Otherwise it returns the request with its caller in the
// context.
func (a *access) admit(w http.ResponseWriter, r *http.Request, need role) (*http.Request, bool) {
	have, name := a.roleOf(r)
	if !a.allowedHost(w, r, have) || !a.authorized(w, have, need) {
		return r, false
	}
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, caller{have, name, r.RemoteAddr})), true
}

// authorized reports whether a role is sufficient. If not, it answers the request with an error.
func (a *access) authorized(w http.ResponseWriter, have, need role) bool {
	switch {
	case have >= need, a.tokens == nil && need == reader:
		return true
	case a.tokens == nil:
		text(w, http.StatusForbidden, "this page needs a token, and the server was started without --admin-token-file\n")
	case have == anonymous:
		w.Header().Set("WWW-Authenticate", `Basic realm="netloop admin", charset="UTF-8"`)
		text(w, http.StatusUnauthorized, "this page needs a token of --admin-token-file, as Authorization: Bearer TOKEN or as a password\n")
	default:
		text(w, http.StatusForbidden, "this page needs a token with the role write\n")
	}
	a.counts.Token.Add(1)
	return false
}

// allowedHost reports whether the host of a request is a name of this machine. If not, it refuses
// the request: a page of another site, in a browser on this machine, may have a host name that now
// resolves to this address (DNS rebinding). IP addresses and requests with a token are accepted.
func (a *access) allowedHost(w http.ResponseWriter, r *http.Request, have role) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	machine, _ := os.Hostname()
	switch {
	case have != anonymous, net.ParseIP(host) != nil, host == "localhost", host != "" && host == strings.ToLower(a.name),
		host != "" && host == strings.ToLower(machine):
		return true
	}
	a.counts.Host.Add(1)
	text(w, http.StatusMisdirectedRequest, "this listener goes by its address, by localhost and by this machine's name: ask for one of them, or show a token\n")
	return false
}
