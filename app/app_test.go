package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/netloop/netloop"
)

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		Main(newGame()) // This process is the server of a test that kills it.
	}
	goleak.VerifyTestMain(m)
}

// asServer is a variable that makes this program a server instead of its tests.
const asServer = "APP_TEST_SERVER"

var (
	shooter = netloop.NewSchema("shooter", 2, 1)
	untidy  = netloop.NewSchema("two words", 1, 0)
	taken   = netloop.NewSchema("listen", 1, 0)
)

// game is a game with all parts set by a test.
type game struct {
	schema *netloop.Schema
	config any
	open   func(*netloop.Room) error
}

func (g *game) Schema() *netloop.Schema { return g.schema }
func (g *game) Config() any             { return g.config }

func (g *game) Open(r *netloop.Room) error {
	if g.open == nil {
		return nil
	}
	return g.open(r)
}

// level is a setting that parses its own text.
type level int

func (l *level) UnmarshalText(text []byte) error {
	for i, name := range []string{"easy", "hard"} {
		if string(text) == name {
			*l = level(i)
			return nil
		}
	}
	return errors.New("use easy or hard")
}

func (l level) MarshalText() ([]byte, error) { return []byte([]string{"easy", "hard"}[l]), nil }

// settingsStruct has one field of every kind.
type settingsStruct struct {
	Bots     int           `help:"bots, 0 to 64"`
	MaxSpeed float64       `help:"units per second"`
	Friendly bool          `help:"whether friends can be hit"`
	Round    time.Duration `name:"round-time" help:"length of a round"`
	Title    string        `default:"A game"`
	Lives    uint8         `default:"3"`
	Level    level
	Hidden   chan int `name:"-"`
	private  int
}

func newGame() *game {
	return &game{schema: shooter, config: &settingsStruct{Bots: 4, MaxSpeed: 2.5, Round: 90 * time.Second, private: 1}}
}

// result is the result of one run of the command line.
type result struct {
	exit           int
	stdout, stderr string
}

// command runs a command line to its end.
func command(t *testing.T, g netloop.Game, env []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	exit := run(t.Context(), append([]string{"/opt/bin/server"}, args...), env, &stdout, &stderr, g)
	return result{exit, stdout.String(), stderr.String()}
}

// write makes a file of this test.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lines reports a difference between two texts by lines.
func lines(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// running is a server that serves in this process.
type running struct {
	t      *testing.T
	stdout *ready
	stderr bytes.Buffer // the test's after wait
	cancel context.CancelCauseFunc
	exit   chan int
}

// ready is a standard output that signals the end of the banner.
type ready struct {
	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
	come chan struct{}
}

func (r *ready) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.once.Do(func() { close(r.come) })
	return r.text.Write(b)
}

func (r *ready) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// patience bounds every wait of these tests: far above the needs of a busy machine.
const patience = 20 * time.Second

// start runs a server on free ports.
func start(t *testing.T, g netloop.Game, env []string, args ...string) *running {
	t.Helper()
	return startCommand(t, g, env, append([]string{"run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)...)
}

// startCommand runs a command that ends with its context.
func startCommand(t *testing.T, g netloop.Game, env []string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &running{t: t, stdout: &ready{come: make(chan struct{})}, cancel: cancel, exit: make(chan int, 1)}
	args = append([]string{"server"}, args...)
	go func() { r.exit <- run(ctx, args, env, r.stdout, &r.stderr, g) }()
	return r
}

// banner waits for the start.
func (r *running) banner() string {
	r.t.Helper()
	select {
	case <-r.stdout.come:
		return r.stdout.String()
	case exit := <-r.exit:
		r.t.Fatalf("the server ended with %d before it was ready: %s", exit, r.stderr.String())
	case <-time.After(patience):
		r.t.Fatal("the server does not start")
	}
	return ""
}

// wait waits for the end.
func (r *running) wait() (exit int, log string) {
	r.t.Helper()
	select {
	case exit = <-r.exit:
		return exit, r.stderr.String()
	case <-time.After(patience):
		r.t.Fatal("the server does not end")
		return 0, ""
	}
}

// stop ends the server as a signal does.
func (r *running) stop() (exit int, log string) {
	r.t.Helper()
	r.cancel(errors.New("signal interrupt"))
	return r.wait()
}

// oneLineOf demands exactly one line that contains every part.
func oneLineOf(t *testing.T, text string, parts ...string) {
	t.Helper()
	if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		t.Errorf("want exactly one line, got %q", text)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q misses %q", text, part)
		}
	}
}
