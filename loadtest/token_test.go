package loadtest_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/examples/arena/bot"
	"github.com/netloop/netloop/internal/token"
	"github.com/netloop/netloop/loadtest"
)

// named is an arena that records the names of its clients.
type named struct {
	*arena.Game
	mu    sync.Mutex
	names []string
}

func (g *named) Open(r *netloop.Room) error {
	r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.names = append(g.names, c.Join().Subject)
		return nil
	})
	return g.Game.Open(r)
}

// tokenBot is a bot with tokens of its own.
type tokenBot struct {
	loadtest.Bot
	tokens []string
}

func (b tokenBot) Token(n int) string { return b.tokens[n] }

// Bots send tokens to a server that requires them: made with a key, or their own. Without a token
// the load test suggests a remedy.
func TestBotsSendTokens(t *testing.T) {
	name := filepath.Join(t.TempDir(), "login-1")
	if err := token.GenerateKey(name); err != nil {
		t.Fatal(err)
	}
	signer, err := token.LoadSigner(name + ".key")
	if err != nil {
		t.Fatal(err)
	}
	own := tokenBot{Bot: bot.New()}
	for _, subject := range []string{"anna", "bob"} {
		text, err := signer.Sign(token.Grant{Subject: subject, Audience: "arena-1", From: time.Now(), For: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		own.tokens = append(own.tokens, text)
	}
	g := &named{Game: arena.New()}
	s, _ := serve(t, netloop.Config{Auth: netloop.Auth{Keys: name + ".pub", Audience: "arena-1"}}, g)
	for _, c := range []struct {
		bot   loadtest.Bot
		args  string
		code  int
		names []string
		said  string
	}{
		{bot.New(), "--token-key " + name + ".key --token-audience arena-1 --token-subject *-bot", 0, []string{"0-bot", "1-bot"}, ""},
		{own, "", 0, []string{"anna", "bob"}, ""},
		{own, "", 1, nil, "not authenticated: token was already used"},
		{bot.New(), "", 1, nil, "token is missing: get one from the game's login service: pass --token-key and --token-audience"},
		{bot.New(), "--token-key " + name + ".key --token-audience arena-2", 1, nil, "token is for another server (aud)\n"},
	} {
		g.mu.Lock()
		g.names = nil
		g.mu.Unlock()
		args := "loadclient --ui quiet --clients 2 --ramp 0s --warmup 0s --duration 100ms --addr " + s.Addr().String() + " " + c.args
		var stdout, stderr bytes.Buffer
		code := loadtest.Execute(t.Context(), strings.Fields(args), &stdout, &stderr, c.bot)
		if code == 99 { // They played, on a machine that was too busy.
			code = 0
		}
		if code != c.code || !strings.Contains(stderr.String(), c.said) {
			t.Errorf("%s: exit %d: %s%s", c.args, code, &stdout, &stderr)
		}
		g.mu.Lock()
		slices.Sort(g.names)
		if !slices.Equal(g.names, c.names) {
			t.Errorf("%s: joined %q", c.args, g.names)
		}
		g.mu.Unlock()
	}
}
