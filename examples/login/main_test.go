package main

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

var schema = netloop.NewSchema("named", 1, 0)

// named is a game that reports the joining clients.
type named struct{ joined chan string }

func (named) Schema() *netloop.Schema { return schema }

func (g named) Open(r *netloop.Room) error {
	r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error { g.joined <- c.Join().Subject; return nil })
	return nil
}

// keys makes the private key of the service, and the file with the public one for a server.
func keys(t *testing.T) (private []byte, file string) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	encoded := func(kind string, der []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	file = filepath.Join(t.TempDir(), "login-1.pub")
	if err := os.WriteFile(file, encoded("PUBLIC KEY", der, err), 0o600); err != nil {
		t.Fatal(err)
	}
	der, err = x509.MarshalPKCS8PrivateKey(key)
	return encoded("PRIVATE KEY", der, err), file
}

// login asks the service for a token.
func login(t *testing.T, url, name, password string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(name, password)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// A player with a login plays under that name, and without a login there is no token.
func TestALoginGivesAToken(t *testing.T) {
	private, file := keys(t)
	handler, err := service(private, "arena-1")
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	defer web.Close()
	g := named{make(chan string, 1)} // One player joins.
	s, err := netloop.New(netloop.Config{Listen: "127.0.0.1:0", Auth: netloop.Auth{Keys: file, Audience: "arena-1"}}, g)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	done := make(chan error, 1) // One sender, one value.
	go func() { done <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	if status, text := login(t, web.URL, "anna", "a guess"); status != http.StatusUnauthorized || strings.Count(text, ".") == 2 {
		t.Errorf("%d %s", status, text)
	}
	status, text := login(t, web.URL, "anna", "secret of anna")
	if status != http.StatusOK {
		t.Fatal(status, text)
	}
	c, err := client.Dial(ctx, s.Addr().String(), client.Config{Schema: schema, Token: text})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	select {
	case name := <-g.joined:
		if name != "anna" {
			t.Errorf("%q joined", name)
		}
	case <-ctx.Done():
		t.Fatal("nobody joined")
	}
}

// docs/SECURITY.md shows this program unchanged.
func TestTheDocsShowThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```go\n"+string(program)+"```\n") {
		t.Error("docs/SECURITY.md shows another program: copy main.go into it")
	}
}
