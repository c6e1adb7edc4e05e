package token

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// noon is the time of these tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// issuer is a login service with its key, and the server's copy of the key.
type issuer struct {
	dir     string
	id      string
	private ed25519.PrivateKey
}

func newIssuer(t testing.TB, dir, id string) *issuer {
	t.Helper()
	name := filepath.Join(dir, id)
	if err := GenerateKey(name); err != nil {
		t.Fatal(err)
	}
	s, err := LoadSigner(name + ".key")
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{dir, id, s.key}
}

// verifier returns the verifier of a server for that issuer.
func (i *issuer) verifier(t testing.TB) *Verifier {
	t.Helper()
	v, err := NewVerifier(i.dir, "arena-1")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// claims returns the claims of a valid token with changes; nil removes one.
func claims(change map[string]any) map[string]any {
	c := map[string]any{
		"sub": "anna", "aud": "arena-1", "jti": rand.Text(), "room": "lobby", "role": 2, "clan": "red",
		"nbf": noon.Unix(), "exp": noon.Add(time.Minute).Unix(),
	}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// jwtOf encodes a token without a library.
func jwtOf(t testing.TB, header, claims map[string]any, sign func(text string) []byte) string {
	t.Helper()
	part := func(v map[string]any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := part(header) + "." + part(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(sign(text))
}

func (i *issuer) header() map[string]any { return map[string]any{"alg": "EdDSA", "kid": i.id} }
func (i *issuer) sign(text string) []byte {
	return ed25519.Sign(i.private, []byte(text))
}

func (i *issuer) token(t testing.TB, change map[string]any) string {
	return jwtOf(t, i.header(), claims(change), i.sign)
}

// reasonOf returns why a token is rejected.
func reasonOf(t testing.TB, err error) Reason {
	t.Helper()
	if err == nil {
		return Fine
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if e.Text == "" || strings.Contains(e.Text, "arena-1") || strings.Contains(e.Text, "login") && e.Reason != Missing {
		t.Errorf("%v is said as %q", e.Reason, e.Text)
	}
	return e.Reason
}

// A token is used once at all servers that share the ids of used tokens. While these are not known,
// the token is not used up.
func TestATokenIsUsedAtOneServer(t *testing.T) {
	login := newIssuer(t, t.TempDir(), "login-1")
	a, b := login.verifier(t), login.verifier(t)
	var gone error
	calls, known := 0, map[string]time.Duration{}
	share := func(_ context.Context, id string, keep time.Duration) error {
		calls++
		switch _, used := known[id]; {
		case gone != nil:
			return gone
		case used:
			return ErrUsed
		}
		known[id] = keep
		return nil
	}
	a.Share, b.Share = share, share
	text := login.token(t, nil)
	gone = errors.New("not now")
	if _, err := a.Verify(t.Context(), text, "lobby", noon); reasonOf(t, err) != Busy || a.Remembered() != 0 {
		t.Errorf("without the others: %v", err)
	}
	gone = nil
	if _, err := a.Verify(t.Context(), text, "lobby", noon); err != nil {
		t.Errorf("later: %v", err)
	}
	for id, keep := range known {
		if len(id) > 40 || keep <= 0 || keep > 10*time.Minute {
			t.Errorf("id %q is kept for %v", id, keep)
		}
	}
	if _, err := b.Verify(t.Context(), text, "lobby", noon); reasonOf(t, err) != Spent || calls != 3 {
		t.Errorf("at another server: %v, %d calls", err, calls)
	}
	if _, err := a.Verify(t.Context(), text, "lobby", noon); reasonOf(t, err) != Spent || calls != 3 {
		t.Errorf("again at the first one: %v, %d calls", err, calls)
	}
	if _, err := a.Verify(t.Context(), text+"x", "lobby", noon); err == nil || calls != 3 {
		t.Errorf("a forged token: %v, %d calls", err, calls)
	}
}

// A valid token identifies its player, once.
func TestATokenIdentifiesItsPlayerOnce(t *testing.T) {
	login := newIssuer(t, t.TempDir(), "login-1")
	v := login.verifier(t)
	text := login.token(t, nil)
	who, err := v.Verify(t.Context(), text, "lobby", noon)
	if err != nil {
		t.Fatal(err)
	}
	if who.Subject != "anna" || who.Claims["role"] != 2.0 || who.Claims["clan"] != "red" {
		t.Errorf("%+v", who)
	}
	if _, err := v.Verify(t.Context(), text, "lobby", noon); reasonOf(t, err) != Spent {
		t.Errorf("the second time: %v", err)
	}
	outcomes := map[string]uint64{}
	v.Outcomes(func(name string, n uint64) { outcomes[name] = n })
	if outcomes["accepted"] != 1 || outcomes["spent"] != 1 || len(outcomes) != int(numReasons) || outcomes[""] != 0 {
		t.Errorf("%v", outcomes)
	}
}

// Each invalid claim of a correctly signed token is the reason of its rejection.
func TestClaimsAreLookedAtOneByOne(t *testing.T) {
	at := func(d time.Duration) int64 { return noon.Add(d).Unix() }
	login := newIssuer(t, t.TempDir(), "login-1")
	v := login.verifier(t)
	for name, c := range map[string]struct {
		change map[string]any
		want   Reason
	}{
		"nothing more than needed":     {map[string]any{"room": nil, "role": nil, "nbf": nil, "clan": nil}, Fine},
		"one of several audiences":     {map[string]any{"aud": []string{"shop", "arena-1"}}, Fine},
		"fractions of a second":        {map[string]any{"exp": float64(at(time.Minute)) + 0.5}, Fine},
		"a negative role":              {map[string]any{"role": -1}, Fine},
		"an id of 256 bytes":           {map[string]any{"jti": strings.Repeat("b", 256)}, Fine},
		"a name of 256 bytes":          {map[string]any{"sub": strings.Repeat("a", 256)}, Fine},
		"expired within the leeway":    {map[string]any{"exp": at(-9 * time.Second)}, Fine},
		"valid soon within the leeway": {map[string]any{"nbf": at(10 * time.Second)}, Fine},
		"the longest lifetime":         {map[string]any{"exp": at(time.Hour + 10*time.Second)}, Fine},

		"another server":                {map[string]any{"aud": "arena-2"}, Audience},
		"other servers":                 {map[string]any{"aud": []string{"shop", "arena-2"}}, Audience},
		"a longer name of the server":   {map[string]any{"aud": "arena-10"}, Audience},
		"no audience":                   {map[string]any{"aud": nil}, Audience},
		"an audience that is no text":   {map[string]any{"aud": []any{"arena-2", 1}}, Audience},
		"expired":                       {map[string]any{"exp": at(-10 * time.Second)}, Expired},
		"expired long ago":              {map[string]any{"exp": 0}, Expired},
		"no expiry":                     {map[string]any{"exp": nil}, Claims},
		"an expiry that is no number":   {map[string]any{"exp": "soon"}, Claims},
		"an expiry before time":         {map[string]any{"exp": -1}, Claims},
		"an expiry at the end of time":  {map[string]any{"exp": 1e300}, Claims},
		"too long a lifetime":           {map[string]any{"exp": at(time.Hour + 11*time.Second)}, TooLong},
		"not valid yet":                 {map[string]any{"nbf": at(11 * time.Second)}, NotYet},
		"a begin that is no number":     {map[string]any{"nbf": true}, Claims},
		"nobody":                        {map[string]any{"sub": nil}, Claims},
		"an empty name":                 {map[string]any{"sub": ""}, Claims},
		"a name that is a number":       {map[string]any{"sub": 7}, Claims},
		"a name of 257 bytes":           {map[string]any{"sub": strings.Repeat("a", 257)}, Claims},
		"no id":                         {map[string]any{"jti": nil}, Claims},
		"an empty id":                   {map[string]any{"jti": ""}, Claims},
		"an id of 257 bytes":            {map[string]any{"jti": strings.Repeat("a", 257)}, Claims},
		"another room":                  {map[string]any{"room": "cellar"}, Room},
		"the default room":              {map[string]any{"room": ""}, Room},
		"a room that is a number":       {map[string]any{"room": 1}, Claims},
		"a role in words":               {map[string]any{"role": "admin"}, Claims},
		"half a role":                   {map[string]any{"role": 0.5}, Claims},
		"the end of the year 9999":      {map[string]any{"exp": int64(253402300799)}, TooLong},
		"the year 10000":                {map[string]any{"exp": int64(253402300800)}, Claims},
		"the largest role":              {map[string]any{"role": 1 << 30}, Fine},
		"a role beyond it":              {map[string]any{"role": 1<<30 + 1}, Claims},
		"a role beyond all whole roles": {map[string]any{"role": int64(1) << 31}, Claims},
	} {
		who, err := v.Verify(t.Context(), login.token(t, c.change), "lobby", noon)
		if got := reasonOf(t, err); got != c.want || (who == nil) != (err != nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A token without the signature of a known key is rejected, for any header.
func TestOnlyTheLoginServiceSigns(t *testing.T) {
	login := newIssuer(t, t.TempDir(), "login-1")
	stranger := newIssuer(t, t.TempDir(), "login-1")
	v := login.verifier(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	publicFile, err := os.ReadFile(filepath.Join(login.dir, "login-1.pub"))
	if err != nil {
		t.Fatal(err)
	}
	mac := func(secret []byte) func(string) []byte {
		return func(text string) []byte {
			h := hmac.New(sha256.New, secret)
			h.Write([]byte(text))
			return h.Sum(nil)
		}
	}
	header := func(change map[string]any) map[string]any {
		h := login.header()
		maps.Copy(h, change)
		maps.DeleteFunc(h, func(_ string, v any) bool { return v == nil })
		return h
	}
	nobody := func(string) []byte { return nil }
	for name, c := range map[string]struct {
		header map[string]any
		sign   func(string) []byte
		want   Reason
	}{
		"the service":                           {login.header(), login.sign, Fine},
		"without a name, where one key is":      {header(map[string]any{"kid": nil}), login.sign, Fine},
		"a stranger":                            {login.header(), stranger.sign, Signature},
		"no signature":                          {login.header(), nobody, Signature},
		"a short signature":                     {login.header(), func(text string) []byte { return login.sign(text)[:63] }, Signature},
		"a key that is not known":               {header(map[string]any{"kid": "login-2"}), login.sign, UnknownKey},
		"a path for a key":                      {header(map[string]any{"kid": "../login-1"}), login.sign, UnknownKey},
		"a number for a key, which is none":     {header(map[string]any{"kid": 1}), login.sign, Fine},
		"alg none":                              {header(map[string]any{"alg": "none"}), nobody, Algorithm},
		"alg None":                              {header(map[string]any{"alg": "None"}), nobody, Algorithm},
		"alg none, signed":                      {header(map[string]any{"alg": "none"}), login.sign, Algorithm},
		"no alg":                                {header(map[string]any{"alg": nil}), login.sign, Algorithm},
		"alg eddsa":                             {header(map[string]any{"alg": "eddsa"}), login.sign, Algorithm},
		"alg Ed25519":                           {header(map[string]any{"alg": "Ed25519"}), login.sign, Algorithm},
		"HS256 with the public key":             {header(map[string]any{"alg": "HS256"}), mac(login.private.Public().(ed25519.PublicKey)), Algorithm},
		"HS256 with the file of the public key": {header(map[string]any{"alg": "HS256"}), mac(publicFile), Algorithm},
		"RS256": {header(map[string]any{"alg": "RS256"}), func(text string) []byte {
			sum := sha256.Sum256([]byte(text))
			sig, err := rsa.SignPKCS1v15(rand.Reader, rsaKey, crypto.SHA256, sum[:])
			if err != nil {
				t.Fatal(err)
			}
			return sig
		}, Algorithm},
		"extensions that are not understood": {header(map[string]any{"crit": []string{"b64"}, "b64": false}), login.sign, Algorithm},
		"a key that it brings along":         {header(map[string]any{"kid": "x", "jwk": map[string]any{"kty": "OKP"}, "jku": "https://example.com"}), stranger.sign, UnknownKey},
	} {
		_, err := v.Verify(t.Context(), jwtOf(t, c.header, claims(nil), c.sign), "lobby", noon)
		if got := reasonOf(t, err); got != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	newIssuer(t, login.dir, "login-2")
	if _, err := v.Reload(); err != nil {
		t.Fatal(err)
	}
	_, err = v.Verify(t.Context(), jwtOf(t, header(map[string]any{"kid": nil}), claims(nil), login.sign), "lobby", noon)
	if reasonOf(t, err) != UnknownKey || !strings.Contains(err.Error(), "has no key id") {
		t.Errorf("without a name, where two keys are: %v", err)
	}
}

// No byte of a token can be changed, added or removed.
func TestEveryChangedByteIsRefused(t *testing.T) {
	login := newIssuer(t, t.TempDir(), "login-1")
	v := login.verifier(t)
	text := login.token(t, nil)
	tried := 0
	refuse := func(what string, i int, changed string) {
		tried++
		if _, err := v.Verify(t.Context(), changed, "lobby", noon); reasonOf(t, err) == Fine {
			t.Errorf("%s at %d: accepted: %q", what, i, changed)
		}
	}
	for i := range len(text) {
		for bit := range 8 {
			b := []byte(text)
			b[i] ^= 1 << bit
			refuse("flipped", i, string(b))
		}
		refuse("left out", i, text[:i]+text[i+1:])
		refuse("cut", i, text[:i])
		for _, more := range []string{"A", ".", "=", "\n", " ", "\x00"} {
			refuse("added", i, text[:i]+more+text[i:])
		}
	}
	for _, more := range []string{"A", ".", "=", "\n", ".x", "." + text} {
		refuse("at the end", len(text), text+more)
	}
	exact := false
	for pad := range 4 { // Not each length is one of base64, so the header varies too.
		header := login.header()
		header["x"] = strings.Repeat("x", pad)
		for n, size := 5750, 0; size <= MaxToken; n++ {
			long := jwtOf(t, header, claims(map[string]any{"x": strings.Repeat("x", n)}), login.sign)
			size = len(long)
			exact = exact || size == MaxToken
			_, err := v.Verify(t.Context(), long, "lobby", noon)
			if fits := size <= MaxToken; (err == nil) != fits || !fits && !strings.Contains(err.Error(), "larger than 8192 bytes") {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	}
	if !exact {
		t.Error("no token was as long as it may be")
	}
	if _, err := v.Verify(t.Context(), text, "lobby", noon); err != nil || tried < 16*len(text) {
		t.Errorf("unchanged, after %d: %v", tried, err)
	}
}

// A malformed token is rejected with a text.
func TestMalformedTokensAreRefused(t *testing.T) {
	login := newIssuer(t, t.TempDir(), "login-1")
	v := login.verifier(t)
	part := base64.RawURLEncoding.EncodeToString
	for text, want := range map[string]Reason{
		"":                                    Missing,
		"x":                                   Malformed,
		"..":                                  Malformed,
		"a.b.c":                               Malformed,
		"a.b.c.d":                             Malformed,
		part([]byte(`{"alg":"EdDSA"}`)) + ".": Malformed,
		part([]byte(`{"alg":"EdDSA"}`)) + "." + part([]byte(`[]`)) + ".":                    Malformed,
		part([]byte(`null`)) + "." + part([]byte(`null`)) + ".":                             Algorithm,
		part([]byte(`{"alg":["EdDSA"]}`)) + "." + part([]byte(`{}`)) + ".":                  Algorithm,
		part([]byte(`{"alg":"EdDSA"}`)) + "." + part([]byte(`null`)) + ".":                  Signature,
		part([]byte(`{"alg":"EdDSA"}`)) + "." + part([]byte(strings.Repeat("[", 1000))):     Malformed,
		part([]byte(`{"a":`+strings.Repeat("[", 4000)+strings.Repeat("]", 4000)+`}`)) + ".": Malformed,
	} {
		if _, err := v.Verify(t.Context(), text, "", noon); reasonOf(t, err) != want {
			t.Errorf("%.60q: %v, want %v", text, err, want)
		}
	}
}

// A server accepts a tool's tokens, and reads their claims.
func TestSignedTokensAreAccepted(t *testing.T) {
	dir := t.TempDir()
	login := newIssuer(t, dir, "login-1")
	newIssuer(t, dir, "login-2")
	s, err := LoadSigner(filepath.Join(dir, "login-1.key"))
	if err != nil || s.ID() != "login-1" {
		t.Fatal(s, err)
	}
	text, err := s.Sign(Grant{
		Subject: "bot-7", Audience: "arena-1", Room: "lobby", Role: 3, From: noon, For: time.Minute,
		Claims: map[string]any{"clan": "red", "sub": "somebody else"},
	})
	if err != nil {
		t.Fatal(err)
	}
	who, err := login.verifier(t).Verify(t.Context(), text, "lobby", noon.Add(69*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	delete(who.Claims, "jti")
	want := map[string]any{
		"sub": "bot-7", "aud": "arena-1", "room": "lobby", "role": 3.0, "clan": "red",
		"nbf": float64(noon.Unix()), "exp": float64(noon.Unix() + 60),
	}
	if !reflect.DeepEqual(who.Claims, want) || who.Subject != "bot-7" {
		t.Errorf("%+v", who)
	}
	if _, err := login.verifier(t).Verify(t.Context(), text, "lobby", noon.Add(70*time.Second)); reasonOf(t, err) != Expired {
		t.Errorf("later: %v", err)
	}
	bare, err := s.Sign(Grant{Subject: "bot-8", Audience: "arena-1", From: noon, For: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if who, err = login.verifier(t).Verify(t.Context(), bare, "any", noon); err != nil || who.Claims["role"] != nil || who.Claims["room"] != nil {
		t.Errorf("%+v, %v", who, err)
	}
}

// An explanation continues after an error, and tells an operator more than a client.
func TestExplainContinuesAfterAnError(t *testing.T) {
	login := newIssuer(t, t.TempDir(), "login-1")
	for name, c := range map[string]struct {
		header map[string]any
		sign   func(string) []byte
		want   []Finding // without their texts
	}{
		"extensions":      {map[string]any{"alg": "EdDSA", "kid": login.id, "crit": []string{"b64"}}, login.sign, []Finding{{What: "alg", Wrong: Algorithm}}},
		"another key":     {map[string]any{"alg": "EdDSA", "kid": "x"}, login.sign, []Finding{{What: "alg"}, {What: "kid", Wrong: UnknownKey}}},
		"a bad signature": {login.header(), func(string) []byte { return make([]byte, 64) }, []Finding{{What: "alg"}, {What: "kid"}, {What: "signature", Wrong: Signature}}},
	} {
		var got []Finding
		for _, f := range Explain(jwtOf(t, c.header, claims(nil), c.sign), Want{Keys: login.verifier(t).Keys()}) {
			if f.What == "aud" {
				break
			}
			got = append(got, Finding{What: f.What, Wrong: f.Wrong})
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	text := login.token(t, map[string]any{"aud": "arena-2", "exp": noon.Add(-3 * time.Minute).Unix()})
	var wrong, fine []string
	for _, f := range Explain(text, Want{Keys: login.verifier(t).Keys(), Audience: "arena-1", AnyRoom: true, Now: noon}) {
		if f.Wrong == Fine {
			fine = append(fine, f.What)
			continue
		}
		wrong = append(wrong, f.What+": "+f.Text+" ("+f.Detail+")")
	}
	if want := []string{
		`aud: token is for another server (aud) (it is ["arena-2"], this server is "arena-1")`,
		"exp: token expired 3m0s ago: get a new one (at 2026-03-01 11:57:00 UTC)",
	}; !reflect.DeepEqual(wrong, want) {
		t.Errorf("%q", wrong)
	}
	if want := []string{"alg", "kid", "signature", "nbf", "sub", "jti", "room", "role"}; !reflect.DeepEqual(fine, want) {
		t.Errorf("%q", fine)
	}
	for _, c := range []struct {
		change map[string]any
		want   string
	}{
		{map[string]any{"aud": nil}, "aud: token has no audience (aud)"},
		{map[string]any{"jti": nil}, "jti: token has no id of 1 to 256 bytes (jti)"},
		{map[string]any{"role": nil}, ""},
		{map[string]any{"room": nil}, ""},
	} {
		wrong, fine = nil, nil
		for _, f := range Explain(login.token(t, c.change), Want{Keys: login.verifier(t).Keys(), Audience: "arena-1", Room: "lobby", Now: noon}) {
			if f.Wrong == Fine {
				fine = append(fine, f.What)
				continue
			}
			wrong = append(wrong, f.What+": "+f.Text)
		}
		if got := strings.Join(wrong, "\n"); got != c.want || len(fine)+len(wrong) != 10 {
			t.Errorf("%v: wrong %q, fine %q", c.change, got, fine)
		}
	}
}
