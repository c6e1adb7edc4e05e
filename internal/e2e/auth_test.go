package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/token"
	"github.com/netloop/netloop/netlooptest"
)

// login makes the keys of a login service, and returns its signer and the Auth of a server named
// arena-1.
func login(t *testing.T) (*token.Signer, netloop.Auth) {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "login-1")
	if err := token.GenerateKey(name); err != nil {
		t.Fatal(err)
	}
	s, err := token.LoadSigner(name + ".key")
	if err != nil {
		t.Fatal(err)
	}
	return s, netloop.Auth{Keys: dir, Audience: "arena-1"}
}

// signedToken returns a token of that service.
func signedToken(t *testing.T, s *token.Signer, g token.Grant) string {
	t.Helper()
	if g.Audience == "" {
		g.Audience = "arena-1"
	}
	text, err := s.Sign(g)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// now returns the wall clock of a world.
func now(w *netlooptest.World) (at time.Time) {
	w.Tick(func(tick *netloop.Tick) { at = tick.Time() })
	return at
}

// A token makes a client the player that it names before OnAdmit runs, and OnAdmit decides last.
// An invalid token never reaches the game, and the client gets the reason.
func TestATokenNamesThePlayer(t *testing.T) {
	service, auth := login(t)
	otherService, _ := login(t)
	asked := 0
	var joined []string
	w := open(t, func(r *netloop.Room) {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
			asked++
			switch j.Subject {
			case "banned":
				return netloop.Refuse(netloop.CodeRefused, "you are banned")
			case "alias":
				j.Subject = "bob"
			}
			return nil
		})
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			j := c.Join()
			joined = append(joined, j.Subject+" "+[]string{"player", "moderator"}[j.Role()]+" "+j.Claims["clan"].(string))
			return nil
		})
	}, netlooptest.Auth(auth))
	w.Step(1)
	at := now(w)
	grant := func(subject string) token.Grant {
		return token.Grant{Subject: subject, From: at, For: time.Minute, Claims: map[string]any{"clan": "red"}}
	}
	moderator := grant("anna")
	moderator.Role = 1
	anna := signedToken(t, service, moderator)
	other := func(change func(*token.Grant)) string {
		g := grant("eve")
		change(&g)
		return signedToken(t, service, g)
	}
	for i, c := range []struct {
		token string
		code  netloop.Code // 0: admitted
		text  string
	}{
		{anna, 0, ""},
		{anna, netloop.CodeUnauthenticated, "token was already used: get a new one"},
		{signedToken(t, service, grant("alias")), 0, ""},
		{signedToken(t, service, grant("banned")), netloop.CodeRefused, "you are banned"},
		{"", netloop.CodeUnauthenticated, "token is missing: get one from the game's login service"},
		{signedToken(t, otherService, grant("anna")), netloop.CodeUnauthenticated, "token's signature is wrong: the token was changed, or another key has this name"},
		{other(func(g *token.Grant) { g.From = at.Add(-4 * time.Minute) }), netloop.CodeUnauthenticated, "token expired 3m0s ago: get a new one"},
		{other(func(g *token.Grant) { g.From = at.Add(time.Minute) }), netloop.CodeUnauthenticated, "token is not valid for another 1m0s"},
		{other(func(g *token.Grant) { g.Audience = "arena-2" }), netloop.CodeUnauthenticated, "token is for another server (aud)"},
		{other(func(g *token.Grant) { g.Room = "cellar" }), netloop.CodeUnauthenticated, "token is for another room"},
	} {
		before := asked
		cl := w.Join(c.token, nil, perfect)
		w.Until(60, func() bool { return cl.Closed() != nil || cl.State().Phase == client.Playing })
		switch closed := cl.Closed(); {
		case c.code == 0 && closed != nil:
			t.Errorf("%d: refused: %v", i, closed)
		case c.code != 0 && (closed == nil || closed.Code != c.code || closed.Text != c.text):
			t.Errorf("%d: %v, want %v: %s", i, closed, c.code, c.text)
		case c.code == netloop.CodeUnauthenticated && asked != before:
			t.Errorf("%d: the game was asked", i)
		}
	}
	w.Step(5)
	if got := strings.Join(joined, ", "); got != "anna moderator red, bob player red" {
		t.Errorf("joined: %s", got)
	}
}

// A refused token takes no seat: the next valid client gets the only one.
func TestARefusedTokenTakesNoSeat(t *testing.T) {
	service, auth := login(t)
	w := open(t, func(*netloop.Room) {}, netlooptest.Auth(auth), netlooptest.Room(netloop.RoomSpec{MaxClients: 1}))
	w.Step(1)
	for range 3 {
		c := w.Join("nonsense", nil, perfect)
		w.Until(60, func() bool { return c.Closed() != nil })
	}
	c := w.Join(signedToken(t, service, token.Grant{Subject: "anna", From: now(w), For: time.Minute}), nil, perfect)
	w.Until(60, func() bool { return c.State().Phase == client.Playing })
}

// The content of a token is part of a recording, so a game that uses it replays to the same
// state.
func TestTokenContentReplays(t *testing.T) {
	service, auth := login(t)
	g := script(func(r *netloop.Room) {
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
			things.Spawn(tick, thing{N: int32(len(c.Join().Subject)*100 + c.Join().Role())})
			return nil
		})
	})
	var file bytes.Buffer
	w := open(t, g, netlooptest.Auth(auth), netlooptest.Record(&file))
	w.Step(1)
	// The start time of worlds. Reading the world's time would mark the recording.
	from := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	c := w.Join(signedToken(t, service, token.Grant{Subject: "anna", Role: 7, From: from, For: time.Hour, Claims: map[string]any{
		"deep": map[string]any{"list": []any{1, "x", nil, true}},
	}}), nil, perfect)
	w.Until(60, func() bool { return c.State().Phase == client.Playing })
	w.Step(5)
	r, err := netloop.NewReplay(netloop.Config{}, g, bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	ticks := 0
	for {
		_, err := r.Step()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		ticks++
	}
	if ticks < 6 {
		t.Errorf("%d ticks were replayed", ticks)
	}
}

// On a real network a server with keys refuses clients without a valid token. A key is valid while
// its file exists. The admin listener counts the tokens.
func TestANetworkServerRequiresTokens(t *testing.T) {
	t.Parallel()
	service, auth := login(t)
	s, _ := serveAs(t, script(func(*netloop.Room) {}), netloop.Config{Auth: auth})
	dial := func(text string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c, err := client.Dial(ctx, s.Addr().String(), client.Config{Schema: schema, Token: text})
		if err == nil {
			return c.Close()
		}
		return err
	}
	players := 0
	fresh := func(s *token.Signer) string {
		players++ // Another player each time: the same player would replace the earlier client.
		return signedToken(t, s, token.Grant{Subject: "player " + strconv.Itoa(players), From: time.Now(), For: time.Minute})
	}
	wantRefused := func(text, want string) {
		t.Helper()
		if err := dial(text); err == nil || !strings.Contains(err.Error(), "not authenticated: "+want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	text := fresh(service)
	if err := dial(text); err != nil {
		t.Error(err)
	}
	wantRefused(text, "token was already used")
	wantRefused("", "token is missing")

	next := filepath.Join(auth.Keys, "login-2")
	if err := token.GenerateKey(next); err != nil {
		t.Fatal(err)
	}
	newSigner, err := token.LoadSigner(next + ".key")
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return dial(fresh(newSigner)) == nil })
	if err := os.Remove(filepath.Join(auth.Keys, "login-1.pub")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return dial(fresh(service)) != nil })
	wantRefused(fresh(service), "token is signed with an unknown key")
	if _, body := page(t, s, "/readyz"); body != "ready\n" {
		t.Errorf("readyz: %q", body)
	}
	if _, body := page(t, s, "/metrics"); !strings.Contains(body, `netloop_tokens_total{outcome="spent"} 1`) ||
		!strings.Contains(body, `netloop_tokens_total{outcome="missing"} 1`) || !strings.Contains(body, `netloop_auth_key_reloads_total{outcome="loaded"} 2`) {
		t.Errorf("metrics: %s", body)
	}
}

// A public address needs keys or Auth.Insecure, and contradictory settings are refused.
func TestPublicAddressesNeedKeysOrInsecure(t *testing.T) {
	g := script(func(*netloop.Room) {})
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:4433", "example.com:4433", "nonsense"} {
		_, err := netloop.New(netloop.Config{Listen: listen}, g)
		if err == nil || !strings.HasPrefix(err.Error(), "netloop: Listen: "+listen+" cannot be used: every client that reaches this address would be admitted: set Auth.Keys") {
			t.Errorf("%s: %v", listen, err)
		}
	}
	for _, listen := range []string{"", "127.0.0.1:0", "127.9.9.9:1", "[::1]:0", "[::ffff:127.0.0.1]:0", "localhost:0"} {
		if _, err := netloop.New(netloop.Config{Listen: listen}, g); err != nil {
			t.Errorf("%s: %v", listen, err)
		}
	}
	_, auth := login(t)
	for want, a := range map[string]netloop.Auth{
		"netloop: Auth.Audience: \"\" cannot be used: give this server the name": {Keys: auth.Keys},
		"netloop: Auth.Audience: arena-1 cannot be used: set Auth.Keys too":      {Audience: "arena-1"},
		"netloop: Auth.Insecure: true cannot be used: leave it out":              {Keys: auth.Keys, Audience: "arena-1", Insecure: true},
		"netloop: Auth.Keys: /does/not/exist: no such file or directory":         {Keys: "/does/not/exist", Audience: "arena-1"},
	} {
		if _, err := netloop.New(netloop.Config{Auth: a}, g); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := netloop.New(netloop.Config{Listen: "0.0.0.0:0", Auth: auth}, g); err != nil {
		t.Error(err)
	}
}
