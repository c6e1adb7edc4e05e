package token

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// MaxToken limits the size of a token. A login service's tokens usually have one kilobyte; the
	// rest is for more claims.
	MaxToken = 8 << 10
	// MaxLifetime limits the remaining lifetime of a token when it is used: during this time the
	// server stores the token's id, and a stolen token remains usable.
	MaxLifetime = time.Hour
	// Leeway is the permitted difference between the clocks of server and login service.
	Leeway = 10 * time.Second
	// maxName limits sub and jti.
	maxName = 256
)

// Want describes the token that a server expects.
type Want struct {
	Keys     *Keys
	Audience string
	Room     string
	AnyRoom  bool // accept a token of any room
	Now      time.Time
}

// Identity is the verified identity of a player.
type Identity struct {
	Subject string
	Claims  map[string]any // all claims of the token, as decoded from JSON: numbers are float64

	id    usedID
	until time.Time // when the token is no longer accepted
}

// Finding is the result of one check of a token.
type Finding struct {
	What   string // "signature", or a claim such as "aud"
	Wrong  Reason
	Text   string // in words, for the owner of the token
	Detail string // for the server's operator only
}

// Explain checks each part of a token, except whether the token was used before: only the server
// knows that.
func Explain(text string, want Want) []Finding {
	e := newVerification(text, want)
	return e.found
}

// verification is the verification of one token.
type verification struct {
	want   Want
	claims jwt.MapClaims
	key    []byte // the key that has signed it
	found  []Finding
	who    Identity
}

var parser = jwt.NewParser(jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())

func newVerification(text string, want Want) *verification {
	e := &verification{want: want}
	t, parts := e.parse(text)
	if t == nil {
		return e
	}
	if e.algorithm(t) {
		e.signature(t, strings.Join(parts[:2], "."))
	}
	e.audience()
	e.times()
	e.names()
	e.room()
	e.role()
	e.who.Claims = e.claims
	return e
}

// wrong returns the first failed check, or nil.
func (e *verification) wrong() *Error {
	for _, f := range e.found {
		if f.Wrong != Fine {
			return &Error{f.Wrong, f.Text}
		}
	}
	return nil
}

func (e *verification) find(what string, wrong Reason, detail, format string, a ...any) {
	e.found = append(e.found, Finding{What: what, Wrong: wrong, Text: fmt.Sprintf(format, a...), Detail: detail})
}

// parse splits and decodes a token. It returns nil for a malformed token.
func (e *verification) parse(text string) (*jwt.Token, []string) {
	switch {
	case text == "":
		e.find("token", Missing, "", "token is missing: get one from the game's login service")
		return nil, nil
	case len(text) > MaxToken:
		e.find("token", Malformed, "", "token is larger than %d bytes: it has %d", MaxToken, len(text))
		return nil, nil
	case strings.ContainsFunc(text, notOfToken): // The decoder would skip line breaks.
		e.find("token", Malformed, "", "token is not a JSON Web Token: it needs three base64url parts with dots between them")
		return nil, nil
	}
	t, parts, err := parser.ParseUnverified(text, jwt.MapClaims{})
	// The method algorithm handles an unknown algorithm.
	if err != nil && !errors.Is(err, jwt.ErrTokenUnverifiable) {
		e.find("token", Malformed, err.Error(), "token is not a JSON Web Token: a part is missing or damaged")
		return nil, nil
	}
	e.claims = t.Claims.(jwt.MapClaims)
	return t, parts
}

// notOfToken reports whether a character cannot occur in a token.
func notOfToken(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}

// algorithm checks the header. It reports whether the signature can be verified.
func (e *verification) algorithm(t *jwt.Token) bool {
	alg, _ := t.Header["alg"].(string)
	if t.Method != jwt.SigningMethodEdDSA {
		e.find("alg", Algorithm, fmt.Sprintf("it is %.40q", alg), "token is not signed with EdDSA")
		return false
	}
	// RFC 7515, 4.1.11: extensions that are not understood must be refused.
	if _, ok := t.Header["crit"]; ok {
		e.find("alg", Algorithm, "", "token has unknown extensions (crit)")
		return false
	}
	e.find("alg", Fine, "", "EdDSA")
	return true
}

func (e *verification) signature(t *jwt.Token, signed string) {
	kid, _ := t.Header["kid"].(string)
	key, ok := e.want.Keys.find(kid)
	switch {
	case !ok && kid == "":
		e.find("kid", UnknownKey, "the server's keys: "+strings.Join(e.want.Keys.IDs(), ", "), "token has no key id (kid)")
		return
	case !ok:
		e.find("kid", UnknownKey, fmt.Sprintf("it is %.80q, the server's keys: %s", kid, strings.Join(e.want.Keys.IDs(), ", ")),
			"token is signed with an unknown key")
		return
	}
	e.find("kid", Fine, "", "%.80q", kid)
	if t.Method.Verify(signed, t.Signature, key) != nil {
		e.find("signature", Signature, "", "token's signature is wrong: the token was changed, or another key has this name")
		return
	}
	e.key = key
	e.find("signature", Fine, "", "made with this key")
}

func (e *verification) audience() {
	all, err := e.claims.GetAudience()
	for _, a := range all {
		if a == e.want.Audience && a != "" {
			e.find("aud", Fine, "", "%.80q", a)
			return
		}
	}
	if err != nil || len(all) == 0 {
		e.find("aud", Audience, "", "token has no audience (aud)")
		return
	}
	e.find("aud", Audience, fmt.Sprintf("it is %.200q, this server is %q", []string(all), e.want.Audience), "token is for another server (aud)")
}

// times checks exp and nbf. A claim that is not a time is as wrong as a missing one.
func (e *verification) times() {
	now := e.want.Now
	exp, ok := e.seconds("exp")
	switch left := exp.Sub(now); {
	case !ok:
		e.find("exp", Claims, "", "token has no expiry (exp, in seconds since 1970)")
	case left <= -Leeway:
		e.find("exp", Expired, "at "+utc(exp), "token expired %v ago: get a new one", rounded(-left))
	case left > MaxLifetime+Leeway:
		e.find("exp", TooLong, "at "+utc(exp), "token expires in %v, more than %v", rounded(left), MaxLifetime)
	default:
		e.find("exp", Fine, "at "+utc(exp), "in %v", rounded(left))
	}
	e.who.until = exp.Add(Leeway)
	if _, there := e.claims["nbf"]; !there {
		return
	}
	nbf, ok := e.seconds("nbf")
	switch wait := nbf.Sub(now); {
	case !ok:
		e.find("nbf", Claims, "", "token's nbf is not a time in seconds since 1970")
	case wait > Leeway:
		e.find("nbf", NotYet, "at "+utc(nbf), "token is not valid for another %v", rounded(wait))
	default:
		e.find("nbf", Fine, "at "+utc(nbf), "valid since %v", rounded(-wait))
	}
}

// maxSeconds is the last second of the year 9999, the last year that can be formatted.
const maxSeconds = 253402300799

// seconds reads a claim that is a time in seconds since 1970. It reports false if the claim is
// missing or no such number.
func (e *verification) seconds(claim string) (time.Time, bool) {
	f, ok := e.claims[claim].(float64)
	if !ok || !(f >= 0 && f <= maxSeconds) {
		return time.Time{}, false
	}
	whole, part := math.Modf(f)
	return time.Unix(int64(whole), int64(part*1e9)), true
}

func rounded(d time.Duration) time.Duration { return max(d, 0).Round(time.Second) }

func utc(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

// names checks sub and jti.
func (e *verification) names() {
	sub, _ := e.claims["sub"].(string)
	if sub == "" || len(sub) > maxName {
		e.find("sub", Claims, "", "token has no subject of 1 to %d bytes (sub)", maxName)
	} else {
		e.find("sub", Fine, "", "%q", sub)
	}
	e.who.Subject = sub
	jti, _ := e.claims["jti"].(string)
	if jti == "" || len(jti) > maxName {
		e.find("jti", Claims, "", "token has no id of 1 to %d bytes (jti)", maxName)
	} else {
		e.find("jti", Fine, "", "%q", jti)
	}
	e.who.id = newUsedID(e.key, jti)
}

func (e *verification) room() {
	claim, there := e.claims["room"]
	room, ok := claim.(string)
	switch {
	case !there:
		e.find("room", Fine, "", "every room")
	case !ok:
		e.find("room", Claims, "", "token's room is not a string")
	case room != e.want.Room && !e.want.AnyRoom:
		e.find("room", Room, fmt.Sprintf("it is %.80q, this room is %q", room, e.want.Room), "token is for another room")
	default:
		e.find("room", Fine, "", "%.80q", room)
	}
}

// maxRole limits roles, so that they are integers in all languages.
const maxRole = 1 << 30

func (e *verification) role() {
	claim, there := e.claims["role"]
	role, ok := claim.(float64)
	switch {
	case !there:
		e.find("role", Fine, "", "0, the default")
	case !ok || role != math.Trunc(role) || math.Abs(role) > maxRole:
		e.find("role", Claims, "", "token's role is not a whole number")
	default:
		e.find("role", Fine, "", "%d", int(role))
	}
}
