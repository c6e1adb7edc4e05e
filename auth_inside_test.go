package netloop

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/token"
)

// The keys of tokens are read again: new ones are logged and counted, and files that cannot be read
// leave the former keys in force.
func TestKeysAreReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.pub")
	write := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key := func() []byte {
		t.Helper()
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	}
	write(key())
	var log bytes.Buffer
	s := newStill(t, Config{Auth: Auth{Keys: file, Audience: "arena"}, Log: slog.New(slog.NewTextHandler(&log, nil))}, closedGame{new(opening)})
	reload := func(want string) {
		t.Helper()
		log.Reset()
		if s.reloadKeys(); (want == "") != (log.Len() == 0) || !strings.Contains(log.String(), want) {
			t.Errorf("the log says %q, want %q", log.String(), want)
		}
	}
	reload("")
	before := s.tokens.Keys().IDs()
	write([]byte("nothing"))
	reload("cannot be reloaded, keeping the previous ones")
	if got := s.tokens.Keys().IDs(); got[0] != before[0] {
		t.Errorf("the keys are %v, and were %v", got, before)
	}
	write(key())
	reload("token keys reloaded")
	if !strings.Contains(log.String(), s.tokens.Keys().IDs()[0]) {
		t.Errorf("the log names no key: %s", &log)
	}
	counted(t, s, `netloop_auth_key_reloads_total{outcome="failed"} 1`, `netloop_auth_key_reloads_total{outcome="loaded"} 1`, "netloop_token_ids 0")
	write(key())
	log.Reset()
	if s.watchKeys(); !strings.Contains(log.String(), "token keys reloaded") {
		t.Errorf("of keys that changed before the server began to look the log says %q", &log)
	}
	s.closeKeys()

	// A client with a known identity is not verified again.
	j := new(room.Join)
	refusedWith(t, "somebody without a token", s.identify(t.Context(), j, ""), CodeUnauthenticated)
	full := &token.Error{Reason: token.Busy, Text: "try again later"}
	refusedWith(t, "somebody for whose token there is no memory", tokenRefusal(full), CodeBusy)
	refusedWith(t, "somebody with a used token", tokenRefusal(&token.Error{Reason: token.Spent}), CodeUnauthenticated)
	known := context.WithValue(t.Context(), identityKey{}, &room.Join{Subject: "ann", Claims: map[string]any{"role": 2}})
	if err := s.identify(known, j, ""); err != nil || j.Subject != "ann" || j.Claims["role"] != 2 {
		t.Errorf("somebody who is known is %q: %v", j.Subject, err)
	}
}

// A server that every client can reach warns when it listens, and a server that demands tokens does
// not.
func TestAnOpenServerWarns(t *testing.T) {
	var log bytes.Buffer
	s := newStill(t, Config{Listen: "0.0.0.0:0", Auth: Auth{Insecure: true}, Log: slog.New(slog.NewTextHandler(&log, nil))}, closedGame{new(opening)})
	s.watchKeys()
	if !strings.Contains(log.String(), "no tokens are required") {
		t.Errorf("the log says %s", &log)
	}
	log.Reset()
	s.cfg.Listen, s.cfg.Web = "127.0.0.1:0", ":7"
	if s.watchKeys(); !strings.Contains(log.String(), "web=:7") {
		t.Errorf("the log says %s", &log)
	}
	log.Reset()
	s.cfg.Web = "127.0.0.1:0"
	if s.watchKeys(); log.Len() > 0 {
		t.Errorf("a server of this machine alone says %s", &log)
	}
}
