package token

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzVerify checks against an independent reader that only tokens with a valid signature and valid
// claims are accepted. Signed input simulates a faulty login service, unsigned input a stranger.
func FuzzVerify(f *testing.F) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	public := private.Public().(ed25519.PublicKey)
	keys := &Keys{byID: map[string]ed25519.PublicKey{"login-1": public}}
	encode := base64.RawURLEncoding.EncodeToString
	f.Fuzz(func(t *testing.T, text string, signed bool) {
		if signed { // The text is header and claims, with a line break between them.
			header, claims, _ := strings.Cut(text, "\n")
			text = encode([]byte(header)) + "." + encode([]byte(claims))
			text += "." + encode(ed25519.Sign(private, []byte(text)))
		}
		v := &Verifier{audience: "arena-1"}
		v.keys.Store(keys)
		who, err := v.Verify(t.Context(), text, "lobby", noon)
		if err != nil {
			if reasonOf(t, err) == Fine || len(err.Error()) > 512 || who != nil {
				t.Fatalf("%q", err)
			}
			return
		}
		end := strings.LastIndexByte(text, '.')
		signature, err := base64.RawURLEncoding.DecodeString(text[end+1:])
		if err != nil || !ed25519.Verify(public, []byte(text[:end]), signature) {
			t.Fatalf("accepted without a signature: %q", text)
		}
		_, body, _ := strings.Cut(text[:end], ".")
		raw, err := base64.RawURLEncoding.DecodeString(body)
		if err != nil {
			t.Fatal(err)
		}
		var c map[string]any
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		exp, _ := c["exp"].(float64)
		nbf, _ := c["nbf"].(float64)
		audiences, _ := c["aud"].([]any)
		if room, ok := c["room"]; ok && room != "lobby" {
			t.Fatalf("accepted for another room: %s", raw)
		}
		if at := float64(noon.Unix()); !(exp > at-10 && exp <= at+3610) || nbf > at+10 {
			t.Fatalf("accepted at another time: %s", raw)
		}
		if c["sub"] != who.Subject || who.Subject == "" || c["jti"] == nil || c["jti"] == "" {
			t.Fatalf("accepted for nobody, or without an id: %s", raw)
		}
		if c["aud"] != "arena-1" && !slices.Contains(audiences, any("arena-1")) {
			t.Fatalf("accepted for another server: %s", raw)
		}
		if _, err := v.Verify(t.Context(), text, "lobby", noon); reasonOf(t, err) != Spent {
			t.Fatalf("accepted twice: %v", err)
		}
	})
}

// FuzzLoadKeys checks that a file of any contents yields a key or an error.
func FuzzLoadKeys(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "key.pub")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := LoadKeys(path)
		if (keys == nil) == (err == nil) {
			t.Fatalf("%v, %v", keys, err)
		}
		if s, err := LoadSigner(path); err == nil {
			if _, err := s.Sign(Grant{Subject: "anna", From: noon, For: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
