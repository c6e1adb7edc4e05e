package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/token"
)

// login is a login service: the keys of all stories.
var login = sync.OnceValue(func() (l struct {
	signer, stranger *token.Signer
	dir              string
},
) {
	base, err := os.MkdirTemp("", "simulation")
	if err != nil {
		panic(err)
	}
	signer := func(name string) *token.Signer {
		dir := filepath.Join(base, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			panic(err)
		}
		if err := token.GenerateKey(filepath.Join(dir, "key")); err != nil {
			panic(err)
		}
		s, err := token.LoadSigner(filepath.Join(dir, "key.key"))
		if err != nil {
			panic(err)
		}
		return s
	}
	l.signer, l.stranger, l.dir = signer("login"), signer("stranger"), filepath.Join(base, "login")
	return l
})

const audienceOfTokens = "simulation"

// tokens makes the tokens of bots.
type tokens struct {
	p     *play
	spent string
}

func auth() netloop.Auth { return netloop.Auth{Keys: login().dir, Audience: audienceOfTokens} }

// of returns a token as an event demands it. Without Auth a token is the player's name.
func (x *tokens) of(e *Event) string {
	j := e.Join
	if !x.p.story.Server.Auth {
		return j.Subject
	}
	subject := j.Subject
	if subject == "" {
		subject = fmt.Sprint("bot ", e.Bot)
	}
	now := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(x.p.w.Now())
	if x.p.real {
		now = time.Now()
	}
	g := token.Grant{Subject: subject, Audience: audienceOfTokens, From: now.Add(-time.Minute), For: 10 * time.Minute, Role: e.Bot % 2}
	s := login().signer
	switch j.Token {
	case "spent":
		if x.spent != "" {
			return x.spent
		}
	case "expired":
		g.From, g.For = now.Add(-time.Hour), 30*time.Minute
	case "elsewhere":
		g.Room = elsewhere
	case "own":
		g.Room = e.Room
	case "forged":
		s = login().stranger
	}
	text, err := s.Sign(g)
	if err != nil {
		panic(err)
	}
	if j.Token == "valid" && j.Ticket == 0 {
		x.spent = text
	}
	return text
}

// elsewhere is a room that does not exist, for which some tokens are.
const elsewhere = "elsewhere"
