package app

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/client"
)

// launch starts a server as a process of its own, and returns when clients can connect.
func launch(t *testing.T, listen string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"run", "--listen", listen, "--admin", ""}, args...)...)
	cmd.Env = []string{asServer + "=1"}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Errorf("the server does not start: %v", err)
	}
	return cmd
}

// kill ends a process as a crash does, without a message.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // It was killed.
}

// A client that plays while a server crashes is told by the next process that it has restarted, and
// plays again without waiting for seconds of silence.
func TestARestartedServerIsKnownAtOnce(t *testing.T) {
	crashes := 20
	if os.Getenv("NETLOOP_VERIFY") != "" {
		crashes = 100
	}
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := free.LocalAddr().String()
	_ = free.Close()
	state := filepath.Join(t.TempDir(), "new", "state")
	server := launch(t, listen, "--state-dir", state)
	defer func() { kill(t, server) }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := client.Dial(ctx, listen, client.Config{Schema: shooter})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	playing := func() bool { return c.State().Phase == client.Playing }
	step(t, c, playing)
	var knew, played []time.Duration
	for range crashes {
		kill(t, server)
		server = launch(t, listen, "--state-dir", state)
		up := time.Now()
		step(t, c, func() bool { return c.State().Phase == client.Reconnecting })
		knew = append(knew, time.Since(up))
		step(t, c, playing)
		played = append(played, time.Since(up))
	}
	if s := c.Stats(); s.Drops != uint64(crashes) || s.Resumes != 0 { // Each was another server.
		t.Errorf("it was lost %d times, and resumed %d times", s.Drops, s.Resumes)
	}
	for what, took := range map[string][]time.Duration{"knew of it": knew, "played again": played} {
		slices.Sort(took)
		t.Logf("%d crashes: the client %s after %v, at worst %v", crashes, what, took[len(took)/2], took[len(took)-1])
		if worst := took[len(took)-1]; worst > 4*time.Second { // Silence alone takes five.
			t.Errorf("a client %s after %v", what, worst)
		}
	}
}

// step lets a client play until a condition is true.
func step(t *testing.T, c *client.Client, done func() bool) {
	t.Helper()
	const frame = 10 * time.Millisecond
	next := time.NewTicker(frame)
	defer next.Stop()
	for limit := time.After(patience); !done(); c.Step(frame) {
		select {
		case <-next.C:
		case <-limit:
			t.Fatal("the client waits in vain")
		}
	}
}

// secretOf returns the secret of a server with these flags and variables.
func secretOf(t *testing.T, environ []string, o options) ([]byte, error) {
	t.Helper()
	c, err := newConfiguration(newGame())
	if err != nil {
		t.Fatal(err)
	}
	*c.options = o
	return c.secret(environ)
}

// The secret of a server is the same from start to start, and differs between servers.
func TestSecretsAreKeptAndOwn(t *testing.T) {
	dir := t.TempDir()
	file := write(t, "secret", strings.Repeat("s", minSecret))
	must := func(environ []string, o options) string {
		t.Helper()
		secret, err := secretOf(t, environ, o)
		if err != nil {
			t.Fatal(err)
		}
		return string(secret)
	}
	kept := must(nil, options{StateDir: filepath.Join(dir, "a", "b"), Listen: ":1"})
	if len(kept) != minSecret || kept != must(nil, options{StateDir: filepath.Join(dir, "a", "b"), Listen: ":1"}) {
		t.Error("a kept secret does not stay")
	}
	if kept != must([]string{"HOME=/", "STATE_DIRECTORY=" + filepath.Join(dir, "a", "b") + ":/other"}, options{Listen: ":1"}) {
		t.Error("the directory of systemd is not used")
	}
	given := must(nil, options{SecretFile: file, StateDir: dir, Listen: ":1"})
	if given != must(nil, options{SecretFile: file, Listen: ":1"}) {
		t.Error("a secret that is given does not count")
	}
	different := []string{
		kept, given,
		must(nil, options{StateDir: filepath.Join(dir, "a", "b"), Listen: ":2"}),
		must(nil, options{StateDir: filepath.Join(dir, "c"), Listen: ":1"}),
		must(nil, options{SecretFile: file, Listen: ":2"}),
		string(ownSecret([]byte("secret"), "one", ":1")), string(ownSecret([]byte("secret"), "two", ":1")),
		must(nil, options{Listen: ":1"}), // none
	}
	if different[len(different)-1] != "" {
		t.Error("a server that keeps nothing has a secret")
	}
	slices.Sort(different)
	if n := len(slices.Compact(slices.Clone(different))); n != len(different) {
		t.Errorf("of %d servers %d have secrets of their own", len(different), n)
	}
	info, err := os.Stat(filepath.Join(dir, "a", "b", "secret"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	if info, err = os.Stat(filepath.Join(dir, "a")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "a", "b")); err != nil || len(left) != 1 {
		t.Errorf("the directory holds %v, %v", left, err)
	}
}

// If a secret cannot be read or made, the error names the operator's setting.
func TestSecretsThatCannotBeUsedAreSaid(t *testing.T) {
	dir := t.TempDir()
	short := write(t, "short", "too short")
	shared := filepath.Join(dir, "shared")
	if _, err := keptSecret(shared); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(shared, "secret"), 0o640); err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(dir, "torn")
	if err := os.MkdirAll(torn, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(torn, "secret"), bytes.Repeat([]byte{1}, minSecret-1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flag, value, want string }{
		{"--secret-file", short, "has 9 bytes, fewer than 32"},
		{"--secret-file", filepath.Join(dir, "none"), "name a readable file"},
		{"--state-dir", short, "use a directory that can be created"},
		{"--state-dir", "/proc/none", "use a directory that can be created"},
		{"--state-dir", shared, "others may read " + filepath.Join(shared, "secret") + ": chmod 600 it"},
		{"--state-dir", torn, "has 31 bytes"},
	} {
		exit, log := start(t, newGame(), nil, c.flag, c.value).wait()
		if exit != 2 {
			t.Errorf("%s: exit %d", c.value, exit)
		}
		oneLineOf(t, log, "server: "+c.flag+": ", " cannot be used: ", c.want)
	}
	if err := makeSecret(dir, filepath.Join(dir, "none", "secret")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a secret that cannot be put in its place: %v", err)
	}
}

// Two servers that start at once keep one secret.
func TestServersThatStartAtOnceAgree(t *testing.T) {
	dir := t.TempDir()
	const servers = 8
	secrets := make(chan []byte, servers)
	for range servers {
		go func() {
			secret, err := keptSecret(dir)
			if err != nil {
				t.Error(err)
			}
			secrets <- secret
		}()
	}
	first := <-secrets
	for range servers - 1 {
		if !bytes.Equal(<-secrets, first) {
			t.Error("they differ")
		}
	}
}
