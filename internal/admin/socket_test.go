package admin

import (
	"net/http"
	"testing"
	"time"
)

// A WebSocket needs a key, once, and no page of another site may open it, even with one.
func TestAWebSocketNeedsAKey(t *testing.T) {
	keys := new(Keys)
	cfg := (&state{}).config()
	cfg.Routes = []Route{{Path: "/socket", Keys: keys, Socket: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "taken over\n") })}}
	base := start(t, cfg)
	key, err := keys.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		query, origin string
		status        int
	}{
		{"", base, http.StatusForbidden},
		{"?key=" + key[1:], base, http.StatusForbidden},
		{"?key=" + key, "https://evil.example", http.StatusForbidden},
		{"?key=" + key, "null", http.StatusForbidden},
		{"?key=" + key, base, http.StatusOK},
		{"?key=" + key, base, http.StatusForbidden},
	} {
		if status, body := asking(t, base+"/socket"+tt.query, "Origin", tt.origin); status != tt.status {
			t.Errorf("%s of %s: %d %q", tt.query, tt.origin, status, body)
		}
	}
	if host, token := cfg.Counts.Host.Load(), cfg.Counts.Token.Load(); host != 2 || token != 3 {
		t.Errorf("refused for the host: %d, for the key: %d", host, token)
	}
}

// Unused keys expire, and their number is bounded.
func TestKeysExpire(t *testing.T) {
	var keys Keys
	now := time.Now()
	for i := range maxKeys {
		if _, err := keys.newAt(now); err != nil {
			t.Fatalf("key %d: %v", i, err)
		}
	}
	if _, err := keys.newAt(now.Add(keyTime)); err == nil {
		t.Error("more keys than the limit")
	}
	key, err := keys.newAt(now.Add(keyTime + 1))
	if err != nil || len(keys.until) != 1 {
		t.Fatalf("%d keys, %v", len(keys.until), err)
	}
	if keys.take(key, now.Add(2*keyTime+2)) {
		t.Error("an expired key can be used")
	}
}
