package netloop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/token"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/watchfile"
)

// Auth configures how clients authenticate: by tokens that a login service has signed
// (docs/SECURITY.md), or not at all. The zero Auth requires no tokens; then Listen and Web of the
// [Config] must be loopback addresses, unless Insecure is set.
//
// The server checks a token before OnAdmit runs, and sets Subject, Role and Claims of the [Join]
// from it. OnAdmit may change them, or refuse the client.
type Auth struct {
	// Keys is a file with the public key of the login service (Ed25519, PEM), or a folder with one
	// in each file *.pub and *.pem. The server reads the files again when they change. If that
	// fails, it keeps the former keys, and logs and counts the failure. Empty: no tokens are
	// required.
	Keys string
	// Audience names this server: tokens for another server are refused. Required with Keys.
	Audience string
	// Insecure lets a server without Keys listen on addresses that other machines reach: every
	// client is admitted. The log and /readyz report this.
	Insecure bool
}

// validateAuth returns an error if fields of Auth contradict each other, or if other machines could
// reach a server without tokens and Insecure is not set.
func (c *Config) validateAuth() error {
	a := c.Auth
	key, addr, open := c.open()
	switch {
	case a.Keys != "" && a.Audience == "":
		return ConfigError("Auth.Audience", `""`, "give this server the name that its tokens have as their audience")
	case a.Keys == "" && a.Audience != "":
		return ConfigError("Auth.Audience", a.Audience, "set Auth.Keys too: without keys no token is required")
	case a.Keys != "" && a.Insecure:
		return ConfigError("Auth.Insecure", a.Insecure, "leave it out: with Auth.Keys every client needs a token")
	case open && !a.Insecure:
		return ConfigError(key, addr, "every client that reaches this address would be admitted: set Auth.Keys to require tokens, "+
			"or Auth.Insecure to admit all; without either, listen on 127.0.0.1")
	}
	return nil
}

// open reports whether players on other machines can reach the server without a token. It also
// returns the first address at which they reach it, and the address's key in Config.
func (c *Config) open() (key, addr string, open bool) {
	if c.Auth.Keys != "" {
		return "", "", false
	}
	key, addr = quicnet.Exposed("Listen", c.Listen, "Web", c.Web)
	if key == "" && c.WebURL != "" { // A public URL is for other machines.
		key, addr = "WebURL", c.WebURL
	}
	return key, addr, key != ""
}

// openTokens reads the keys, if players need tokens.
func (s *Server) openTokens() (err error) {
	if s.cfg.Auth.Keys == "" {
		return nil
	}
	if s.tokens, err = token.NewVerifier(s.cfg.Auth.Keys, s.cfg.Auth.Audience); err != nil {
		return fmt.Errorf("netloop: Auth.Keys: %w", err)
	}
	if s.cfg.Cluster.Via != nil {
		s.tokens.Share = s.shareToken
	}
	return nil
}

// shareTime limits the time in which the cluster marks a token as used. A client waits for it.
const shareTime = 3 * time.Second

// shareToken marks a token as used at all servers of the cluster.
func (s *Server) shareToken(ctx context.Context, id string, keep time.Duration) error {
	err := cluster.ErrBusy
	if s.member.Health().OK {
		ctx, cancel := context.WithTimeout(ctx, shareTime)
		defer cancel()
		err = s.member.Use(ctx, id, keep)
	}
	switch {
	case errors.Is(err, cluster.ErrTaken):
		return token.ErrUsed
	case err != nil && !s.cfg.Cluster.LocalTokens:
		return ErrClusterBusy
	}
	return nil
}

// watchKeys reads the keys again when they change, and logs if no tokens are required.
func (s *Server) watchKeys() {
	if s.tokens != nil {
		s.keysWatch = watchfile.Watch(s.reloadKeys, s.cfg.Auth.Keys)
		s.reloadKeys() // The keys may have changed since New.
	}
	if key, addr, open := s.cfg.open(); open {
		s.log.Warn("no tokens are required: every client that reaches this address is admitted (insecure)", strings.ToLower(key), addr)
	}
}

// closeKeys stops watchKeys.
func (s *Server) closeKeys() {
	if s.keysWatch != nil {
		s.keysWatch.Close()
	}
}

func (s *Server) reloadKeys() {
	switch changed, err := s.tokens.Reload(); {
	case err != nil:
		s.log.Error("token keys cannot be reloaded, keeping the previous ones", "error", err)
	case changed:
		s.log.Info("token keys reloaded", "keys", strings.Join(s.tokens.Keys().IDs(), " "))
	}
}

// identityKey is the context key for the identity of a client during its admission. The identity
// is kept there because a token can be verified only once.
type identityKey struct{}

// identify verifies the token of a client that joins a room, if players need tokens.
func (s *Server) identify(ctx context.Context, j *room.Join, name string) error {
	if known, ok := ctx.Value(identityKey{}).(*room.Join); ok {
		j.Subject, j.Claims = known.Subject, known.Claims
		return s.checkTokenRoom(j, name)
	}
	if s.tokens == nil {
		return nil
	}
	identity, err := s.tokens.Verify(ctx, j.Token, name, s.clock.Wall())
	if err != nil {
		return tokenRefusal(err)
	}
	j.Subject, j.Claims = identity.Subject, identity.Claims
	return nil
}

// checkTokenRoom refuses a client with an already verified token that is valid only for another
// room, for example a client that moves to this room by its code. A ticket is valid for its room
// with any token, because the server itself has issued it.
func (s *Server) checkTokenRoom(j *room.Join, name string) error {
	if only, ok := j.Claims["room"]; s.tokens == nil || j.Ticket || !ok || only == name {
		return nil
	}
	return &transport.Refusal{Code: CodeUnauthenticated, Text: "token is for another room"}
}

// tokenRefusal returns the refusal that a client with a rejected token gets.
func tokenRefusal(err error) *transport.Refusal {
	var wrong *token.Error
	if errors.As(err, &wrong) && wrong.Reason == token.Busy { // The same token may succeed later.
		return &transport.Refusal{Code: CodeBusy, Text: wrong.Text}
	}
	return &transport.Refusal{Code: CodeUnauthenticated, Text: err.Error()}
}

// Tokens implements metrics.Server.
func (m serverMetrics) Tokens(f *metrics.Family) {
	if m.s.tokens != nil {
		m.s.tokens.Outcomes(func(outcome string, n uint64) { f.Set(n, outcome) })
	}
}

// TokenIDs implements metrics.Server.
func (m serverMetrics) TokenIDs(f *metrics.Family) {
	if m.s.tokens != nil {
		f.Set(uint64(m.s.tokens.Remembered()))
	}
}

// KeyReloads implements metrics.Server.
func (m serverMetrics) KeyReloads(f *metrics.Family) {
	if m.s.tokens != nil {
		loaded, failed := m.s.tokens.Reloads()
		f.Set(loaded, "loaded")
		f.Set(failed, "failed")
	}
}
