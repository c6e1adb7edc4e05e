package loadtest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/token"
)

// Tokens is an optional interface of a [Bot]: Token returns the token of client n for a server that
// requires tokens, unique to the client, for each of its connections. It is called from several
// goroutines. With the flag --token-key the load test makes the tokens itself.
type Tokens interface{ Token(n int) string }

// tokenLifetime is the validity of a token of the load test, which is used at once.
const tokenLifetime = time.Minute

// parseToken reads the key, and checks the other flags of tokens against it.
func (o *options) parseToken() (err error) {
	switch {
	case o.tokenKey == "" && o.tokenAudience != "":
		return badFlag("token-audience", o.tokenAudience, "give --token-key too, the file with the key that signs")
	case o.tokenKey == "":
		return nil
	case o.tokenAudience == "":
		return badFlag("token-key", o.tokenKey, "give --token-audience too, the --auth-audience of the server")
	case !strings.Contains(o.tokenSubject, "*"):
		return badFlag("token-subject", strconv.Quote(o.tokenSubject), "put a * where the bot's number goes, as in bot-*: every player is somebody else")
	}
	if o.signer, err = token.LoadSigner(o.tokenKey); err != nil {
		return badFlag("token-key", o.tokenKey, "name the private key that server token keygen made: "+err.Error())
	}
	return nil
}

// token returns the token of client n; empty is none.
func (r *run) token(n int) (string, error) {
	if r.opts.signer == nil {
		if b, ok := r.bot.(Tokens); ok {
			return b.Token(n), nil
		}
		return "", nil
	}
	text, err := r.opts.signer.Sign(token.Grant{
		Subject:  strings.ReplaceAll(r.opts.tokenSubject, "*", strconv.Itoa(n)),
		Audience: r.opts.tokenAudience, From: time.Now(), For: tokenLifetime,
	})
	if err != nil {
		return "", fmt.Errorf("--token-key: %w", err)
	}
	return text, nil
}

// proves reports whether the clients have tokens.
func (r *run) proves() bool {
	_, ok := r.bot.(Tokens)
	return ok || r.opts.signer != nil
}
