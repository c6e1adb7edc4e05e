package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/token"
)

// keygen makes a pair of keys with the command, and returns the folder and the name of both.
func keygen(t *testing.T) (dir, name string) {
	t.Helper()
	dir = t.TempDir()
	name = filepath.Join(dir, "login-1")
	if r := command(t, newGame(), nil, "token", "keygen", name); r.exit != 0 || !strings.Contains(r.stdout, name+".pub  public") {
		t.Fatalf("keygen: %+v", r)
	}
	return dir, name
}

// gen makes a token with the command.
func gen(t *testing.T, name string, args ...string) string {
	t.Helper()
	args = append([]string{"token", "gen", "--key", name + ".key", "--audience", "arena-1", "--subject", "anna"}, args...)
	r := command(t, newGame(), nil, args...)
	if r.exit != 0 || r.stderr != "" {
		t.Fatalf("gen: %+v", r)
	}
	return strings.TrimSpace(r.stdout)
}

// Settings that would admit players by mistake are refused before the start, in one line that names
// the flag and the remedy.
func TestUnsafeAdmissionIsRefusedBeforeTheStart(t *testing.T) {
	dir, name := keygen(t)
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, []string{`server: --listen: "0.0.0.0:0" cannot be used: every client that reaches this address is admitted: set --auth token`, "--insecure-no-auth"}},
		{[]string{"--listen", ":0"}, []string{"every client that reaches this address is admitted"}},
		{[]string{"--web", "0.0.0.0:0"}, []string{`server: --web: "0.0.0.0:0" cannot be used: every client that reaches this address is admitted: set --auth token`, "--insecure-no-auth"}},
		{[]string{"--web", "127.0.0.1:0", "--web-url", "https://play.example.org"}, []string{`server: --web-url: "https://play.example.org" cannot be used: every client that reaches this address is admitted`}},
		{[]string{"--insecure-no-auth", "--web-url", "https://play.example.org"}, []string{"server: --web-url: ", "set web too"}},
		{[]string{"--insecure-no-auth", "--web", "127.0.0.1:0", "--web-url", "https://play.example.org/game"}, []string{"server: --web-url: ", "without a path"}},
		{[]string{"--web", "127.0.0.1:0", "--web-proxies", "127.0.0.1"}, []string{"server: --web-proxies: ", "set web-url too"}},
		{[]string{"--web", "127.0.0.1:0", "--web-proxies", "nginx"}, []string{"server: --web-proxies", "use addresses or prefixes"}},
		{[]string{"--auth", "basic"}, []string{`--auth: "basic" cannot be used: use token, or none`}},
		{[]string{"--auth", "token"}, []string{"--auth:", "set auth-keys too"}},
		{[]string{"--auth", "token", "--auth-keys", dir}, []string{"--auth:", "set auth-audience too"}},
		{[]string{"--auth-keys", dir}, []string{"--auth-keys:", "set auth to token too"}},
		{[]string{"--auth-audience", "arena-1"}, []string{"--auth-audience:", "set auth to token too"}},
		{[]string{"--auth", "token", "--auth-keys", dir, "--auth-audience", "arena-1", "--insecure-no-auth"}, []string{"--insecure-no-auth: true cannot be used: remove it"}},
		{[]string{"--auth", "token", "--auth-keys", "nope", "--auth-audience", "arena-1"}, []string{`--auth-keys: "nope" cannot be used: name a file with a public key`, "no such file"}},
		{[]string{"--auth", "token", "--auth-keys", name + ".key", "--auth-audience", "arena-1"}, []string{"--auth-keys:", "key is private"}},
	} {
		exit, log := start(t, newGame(), nil, tt.args...).wait()
		if exit != 2 {
			t.Errorf("%q: exit %d", tt.args, exit)
		}
		oneLineOf(t, log, append(tt.want, "server: ")...)
	}
}

// A server with tokens admits clients with a token, and an open server reports that in its banner,
// its log and at /readyz.
func TestTheServerReportsItsAuthentication(t *testing.T) {
	dir, name := keygen(t)
	for banner, tt := range map[string]struct {
		args  []string
		ready string
		log   string
		open  bool
	}{
		`auth     tokens for "arena-1", signed with login-1`: {
			[]string{"--listen", "127.0.0.1:0", "--auth", "token", "--auth-keys", dir, "--auth-audience", "arena-1"}, "ready\n", "serving", false,
		},
		"auth     none: only this machine": {nil, "ready\n", "", true},
		"auth     none: INSECURE, all clients": {
			[]string{"--listen", "127.0.0.1:0", "--web", "0.0.0.0:0", "--insecure-no-auth"}, "ready, but every client is admitted: no tokens are required (insecure)\n", "WARN no tokens are required", true,
		},
		"auth     none: INSECURE, all": {
			[]string{"--listen", "0.0.0.0:0", "--insecure-no-auth"}, "ready, but every client is admitted: no tokens are required (insecure)\n", "WARN no tokens are required", true,
		},
	} {
		file := filepath.Join(t.TempDir(), "addr.json")
		ticked := make(chan struct{})
		g := newGame()
		g.open = func(r *netloop.Room) error {
			r.OnStart(func(*netloop.Tick) { close(ticked) })
			return nil
		}
		r := start(t, g, nil, append(tt.args, "--addr-file", file)...)
		if text := r.banner(); !strings.Contains(text, banner) {
			t.Errorf("%q is not in\n%s", banner, text)
		}
		<-ticked // The address file exists before the first tick.
		var at addresses
		if b, err := os.ReadFile(file); err != nil || json.Unmarshal(b, &at) != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if said := readyz(t, at.Admin); said != tt.ready {
			t.Errorf("%s: /readyz says %q, want %q", banner, said, tt.ready)
		}
		_, port, _ := strings.Cut(strings.Replace(at.Listen, "0.0.0.0", "127.0.0.1", 1), ":")
		for text, in := range map[string]bool{"": tt.open, gen(t, name): true} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			c, err := client.Dial(ctx, "127.0.0.1:"+port, client.Config{Schema: shooter, Token: text})
			cancel()
			if (err == nil) != in {
				t.Errorf("%s: with %q: %v", banner, text, err)
			}
			if c != nil {
				c.Close()
			}
		}
		if exit, log := r.stop(); exit != 0 || !strings.Contains(log, tt.log) {
			t.Errorf("%s: exit %d, %q is not in %s", banner, exit, tt.log, log)
		}
	}
}

func readyz(t *testing.T, admin string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A server accepts the tokens of the command, and the command explains a token claim by claim; for
// an invalid one it names the fault, and ends with 1.
func TestTokensAreExplained(t *testing.T) {
	dir, name := keygen(t)
	good := gen(t, name, "--role", "2", "--room", "lobby", "--claim", "clan=red=blue")
	keys, err := token.LoadKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys.IDs()) != 1 {
		t.Errorf("%v", keys.IDs())
	}
	signer, err := token.LoadSigner(name + ".key")
	if err != nil {
		t.Fatal(err)
	}
	old, err := signer.Sign(token.Grant{Subject: "anna", Audience: "arena-1", From: time.Now().Add(-time.Hour), For: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	check := []string{"token", "check", "--keys", dir, "--audience"}
	for what, tt := range map[string]struct {
		args []string
		exit int
		want []string
	}{
		"in order":        {append(check, "arena-1", good), 0, []string{"alg       ok     EdDSA\n", "sub       ok     \"anna\"\n", "room      ok     \"lobby\"\n", "role      ok     2\n", "\ntoken is accepted, once\n"}},
		"for that room":   {append(check, "arena-1", "--room", "lobby", good), 0, []string{"accepted"}},
		"for another":     {append(check, "arena-1", "--room", "", good), 1, []string{`room      WRONG  token is for another room: it is "lobby", this room is ""`}},
		"another server":  {append(check, "arena-2", good), 1, []string{`aud       WRONG  token is for another server (aud): it is ["arena-1"], this server is "arena-2"`, "exp       ok     in "}},
		"expired":         {append(check, "arena-1", old), 1, []string{"exp       WRONG  token expired 59m"}},
		"changed":         {append(check, "arena-1", good[:len(good)-4]+"AAAA"), 1, []string{"signature WRONG  token's signature is wrong"}},
		"no token at all": {append(check, "arena-1", "hello"), 1, []string{"token     WRONG  token is not a JSON Web Token"}},
	} {
		r := command(t, newGame(), nil, tt.args...)
		if r.exit != tt.exit || (r.stderr == "") != (tt.exit == 0) {
			t.Errorf("%s: exit %d: %s", what, r.exit, r.stderr)
		}
		if tt.exit != 0 {
			oneLineOf(t, r.stderr, "server: token is refused: ")
		}
		for _, want := range tt.want {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("%s: %q is not in\n%s", what, want, r.stdout)
			}
		}
	}
	v, err := token.NewVerifier(dir, "arena-1")
	if err != nil {
		t.Fatal(err)
	}
	if who, err := v.Verify(t.Context(), good, "lobby", time.Now()); err != nil || who.Claims["clan"] != "red=blue" {
		t.Errorf("%+v, %v", who, err)
	}
}

// A missing or invalid argument is one line and exit 2.
func TestTokenCommandErrors(t *testing.T) {
	dir, name := keygen(t)
	key := name + ".key"
	for args, want := range map[string]string{
		"token":                                    "server token needs a command (commands: keygen, gen, check)",
		"token kegen":                              `"kegen" is not a command: did you mean keygen?`,
		"token keygen":                             "takes one argument, the name of the key",
		"token keygen " + name:                     "choose another name",
		"token keygen " + dir + "/no/such/x":       "in a writable folder",
		"token gen":                                "--key is missing",
		"token gen --key " + key:                   "--audience is missing",
		"token gen --key " + key + " --audience":   "--audience has no value",
		"token gen --key " + key + " --audience a": "--subject is missing",
		"token gen --audience a --subject b --for 2h --key " + key:   "--for: 2h0m0s cannot be used: use 1s to 1h0m0s",
		"token gen --audience a --subject b --for 1ms --key " + key:  "use 1s to 1h0m0s",
		"token gen --audience a --subject b --claim x --key " + key:  `--claim: "x" cannot be used: use NAME=TEXT`,
		"token gen --audience a --subject b --claim =x --key " + key: `--claim: "=x" cannot be used: use NAME=TEXT`,
		"token gen --audience a --subject b --key " + name + ".pub":  "use the private key to sign",
		"token gen anna":                   `unexpected argument "anna"`,
		"token check":                      "takes one argument, the token",
		"token check x":                    "--keys is missing",
		"token check --keys " + dir + " x": "--audience is missing",
		"token check --audience a --keys " + key + " x": "key is private",
		"tocken": "did you mean token?",
	} {
		r := command(t, newGame(), nil, strings.Fields(args)...)
		if r.exit != 2 || r.stdout != "" {
			t.Errorf("%s: exit %d, %q", args, r.exit, r.stdout)
		}
		oneLineOf(t, r.stderr, "server: ", want)
	}
}

// A loop is printed without keys and ports: it does not depend on the server's address.
func TestTheLoopNeedsNoKeys(t *testing.T) {
	r := command(t, newGame(), nil, "loop", "print", "--listen", "0.0.0.0:1", "--auth", "token", "--auth-keys", "nope", "--auth-audience", "a")
	if r.exit != 0 {
		t.Errorf("exit %d: %s", r.exit, r.stderr)
	}
}
