package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

var (
	inspectedChat = netloop.NewRPC[struct{ Text string }](inspected, "chat")
	_             = netloop.NewRPC[struct{ Password string }](inspected, "login", netloop.Secret())
)

// openTab opens a client as a tab of the inspector does: with a key of an action, and a WebSocket
// of the admin listener.
func openTab(t *testing.T, s *netloop.Server, open string, cfg client.Config) (*client.Client, error) {
	t.Helper()
	var info struct {
		WebSocket string
		Schema    struct{ Name string }
	}
	if err := json.Unmarshal([]byte(open), &info); err != nil || info.Schema.Name != "inspected" {
		t.Fatalf("%s: %v", open, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cfg.Schema, cfg.Transport = inspected, client.WebSocket
	c, err := client.Dial(ctx, "ws://"+s.AdminAddr().String()+info.WebSocket, cfg)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// A tab with the role write joins through the admin listener as any other client: admission and
// tokens of the game apply. Its messages are shown with their outcomes to the role write, except
// those of a secret method.
func TestAClientOfATab(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { // After the end of the server.
		http.DefaultClient.CloseIdleConnections()
		goleak.VerifyNone(t, leaks)
	})
	ask, s := inspectedServerAs(t, netloop.Config{Room: netloop.RoomSpec{MaxClients: 1}})
	if status, _ := ask(http.MethodPost, "/api/client/open", aReader); status != http.StatusForbidden {
		t.Errorf("a reader opens a client: %d", status)
	}
	for host, address := range map[string]string{"localhost:8080": s.Addr().String(), "10.0.0.5:8080": "", "": "", `"`: ""} {
		if _, open := ask(http.MethodPost, "/api/client/open?host="+url.QueryEscape(host), aWriter); !strings.Contains(open, fmt.Sprintf(`"address":%q,"path":"/netloop"`, address)) {
			t.Errorf("a page of %q connects as %s, want %q", host, open, address)
		}
	}
	_, open := ask(http.MethodPost, "/api/client/open?room=", aWriter)
	c, err := openTab(t, s, open, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	start(t, c, func(c *client.Client) {
		c.On(netloop.Update, "test.chat", func(*netloop.Tick) {
			_ = client.Send(c, inspectedChat, struct{ Text string }{"hello"})
		}, netloop.Every(100*time.Millisecond))
	})
	if _, err := openTab(t, s, open, client.Config{}); err == nil {
		t.Error("a key opens two clients")
	}
	waitFor(t, func() bool {
		_, body := ask(http.MethodGet, "/api/clients", aReader)
		return strings.Contains(body, `"transport":"websocket","state":"connected"`)
	})
	_, open = ask(http.MethodPost, "/api/client/open", aWriter)
	if _, err := openTab(t, s, open, client.Config{Room: "nowhere"}); err == nil || !strings.Contains(err.Error(), "room") {
		t.Errorf("an unknown room: %v", err)
	}
	// A browser does not show why a connection is refused.
	if !strings.Contains(open, `"refused":{"code":8,"text":"server is full"}`) {
		t.Errorf("the server is full: %s", open)
	}
	_, log := ask(http.MethodGet, "/api/log", aReader)
	if !strings.Contains(log, `["action","/api/client/open"],["query","room="],["token","anna"]`) || strings.Contains(log, "key=") {
		t.Errorf("the log: %s", log)
	}

	if status, _ := ask(http.MethodGet, "/api/payloads?method=chat", aReader); status != http.StatusForbidden {
		t.Errorf("a reader sees messages: %d", status)
	}
	for query, says := range map[string]string{"method=login": "secret", "method=none": "no method", "room=none&method=chat": "no room"} {
		if status, body := ask(http.MethodGet, "/api/payloads?"+query, aWriter); status < 400 || status >= 500 || !strings.Contains(body, says) {
			t.Errorf("%s: %d %q", query, status, body)
		}
	}
	waitFor(t, func() bool { // The first question begins to watch.
		_, body := ask(http.MethodGet, "/api/payloads?method=chat", aWriter)
		return strings.Contains(body, `"outcome":"ran","value":{"Text":"hello"},"cut":0`)
	})
	_, forms := ask(http.MethodGet, "/api/methods", aReader)
	for _, want := range []string{
		`"name":"chat","call":false,"server_only":false,"handled":true,"secret":false`,
		`"name":"login","call":false,"server_only":false,"handled":false,"secret":true,"stages":[{"name":"Update","number":50}]`,
		`"fields":[{"name":"Password","type":{"kind":"string","text":"string max=`,
	} {
		if !strings.Contains(forms, want) {
			t.Errorf("no %s in %s", want, forms)
		}
	}
}

// An offline server has clients of its own process alone.
func TestAnOfflineServerLetsNoTabPlay(t *testing.T) {
	ask, _ := inspectedServerAs(t, netloop.Config{Offline: true})
	if status, body := ask(http.MethodPost, "/api/client/open", aWriter); status != http.StatusConflict || !strings.Contains(body, "offline") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := ask(http.MethodGet, "/api/client?key=x", aWriter); status != http.StatusNotFound {
		t.Errorf("a WebSocket: %d", status)
	}
}
