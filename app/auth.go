package app

import (
	"fmt"
	"strings"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/token"
)

// The values of --auth.
const (
	authNone  = "none"
	authToken = "token"
)

// authRules refuse settings that would admit players by mistake, or that contradict each other.
// netloop checks the same again, but the error of a rule names the operator's setting.
func (o *options) authRules() []rule {
	asks := o.Auth == authToken
	exposed, addr := o.exposed()
	return []rule{
		{!asks && o.Auth != authNone, "auth", o.Auth, "use token, or none"},
		{asks && o.AuthKeys == "", "auth", o.Auth, "set auth-keys too, to the file or folder with the public keys of your login service (token keygen makes a pair)"},
		{asks && o.AuthAudience == "", "auth", o.Auth, "set auth-audience too, to the name that tokens give this server, such as arena-eu-1"},
		{asks && o.InsecureAuth, "insecure-no-auth", o.InsecureAuth, "remove it: with --auth token all clients need a token"},
		{!asks && o.AuthKeys != "", "auth-keys", o.AuthKeys, "set auth to token too, or clients need no token"},
		{!asks && o.AuthAudience != "", "auth-audience", o.AuthAudience, "set auth to token too, or clients need no token"},
		{!asks && !o.InsecureAuth && exposed != "", exposed, addr, "every client that reaches this address is admitted: set --auth token (docs/SECURITY.md), or --insecure-no-auth to admit all; only this machine reaches 127.0.0.1"},
	}
}

// exposed returns the first address at which players can connect from other machines, and the key
// of its setting.
func (o *options) exposed() (key, addr string) {
	key, addr = quicnet.Exposed("listen", o.Listen, "web", o.Web)
	if key == "" && o.WebURL != "" { // The URL is for other machines.
		return "web-url", o.WebURL
	}
	return key, addr
}

func (o *options) isExposed() bool {
	key, _ := o.exposed()
	return key != ""
}

// keysError names the operator's setting auth-keys in an error about the keys; other errors are
// handled by gameError.
func (c *configuration) keysError(err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "netloop: Auth.Keys: "); ok {
		return c.bad("auth-keys", c.options.AuthKeys, "name a file with a public key in PEM, or a folder of such files: "+text)
	}
	return c.gameError(err)
}

// authLine returns the banner's line about authentication. It uses the keys that the server has
// just read.
func authLine(c *netloop.Config) string {
	a := c.Auth
	if a.Keys != "" {
		keys, err := token.LoadKeys(a.Keys)
		if err != nil {
			return fmt.Sprintf("tokens for %q", a.Audience)
		}
		return fmt.Sprintf("tokens for %q, signed with %s", a.Audience, strings.Join(keys.IDs(), " or "))
	}
	if a.Insecure && (&options{Listen: c.Listen, Web: c.Web, WebURL: c.WebURL}).isExposed() {
		return "none: INSECURE, all clients are admitted (--insecure-no-auth)"
	}
	return "none: only this machine reaches the server (other addresses need --auth token)"
}
