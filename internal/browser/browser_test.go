package browser_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/netloop/netloop/internal/testing/nodetest"
)

// runSeparately skips a test unless make browser runs it separately: it needs both cores for a
// minute, and would make other tests late.
func runSeparately(t *testing.T) {
	t.Helper()
	if os.Getenv("NETLOOP_BROWSER") == "" {
		t.Skip("make browser, and with it make test, runs it by itself")
	}
}

// chromium skips the test if there is no browser. The files of tests find it by CHROMIUM.
func chromium(t *testing.T) {
	t.Helper()
	_ = os.Setenv("CHROMIUM", nodetest.Browser(t)) // The name is valid.
}

// programs builds the programs of netloop into a folder, once for all tests. The files of tests
// find it by NETLOOP_BIN.
var programs = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "netloop-browser-"); err != nil {
		return "", err
	}
	for to, programs := range map[string][]string{dir: {"./cmd/server", "./cmd/loadclient", "./scripts/faults", "./examples/dots", "./examples/arena/tournament"}, filepath.Join(dir, "cards"): {"./examples/cards/server"}} {
		build := exec.Command("go", append([]string{"build", "-o", to}, programs...)...)
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("%w\n%s", err, out)
		}
	}
	return dir, os.Setenv("NETLOOP_BIN", dir)
})

func TestMain(m *testing.M) {
	runs := os.Getenv("NETLOOP_BROWSER") != ""
	code := m.Run()
	if runs {
		dir, _ := programs() // The tests have reported its error.
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// play runs a file of tests in Node, with the programs of netloop.
func play(t *testing.T, file string, args ...string) {
	t.Helper()
	nodetest.Tool(t, "esbuild") // Without npm's modules Node may be missing too.
	if _, err := programs(); err != nil {
		t.Fatal(err)
	}
	runFile(t, file, args...)
}

// runFile runs a file of tests in Node.
func runFile(t *testing.T, file string, args ...string) {
	t.Helper()
	t.Log(nodetest.RunIn(t, "internal/browser", "node", append(args, "--test", "--test-reporter=spec", file)...))
}

// The arena in a real browser, with the real server and bots.
func TestTheArenaInABrowser(t *testing.T) {
	runSeparately(t)
	chromium(t)
	nodetest.Tool(t, "playwright-core")
	play(t, "arena.test.mjs")
}

// The card game in a real browser: lobby, table, spectators, and a restarted server.
func TestTheCardsInABrowser(t *testing.T) {
	runSeparately(t)
	t.Parallel() // It waits for most of its time.
	chromium(t)
	nodetest.Tool(t, "playwright-core")
	play(t, "cards.test.mjs")
}

// The inspector in a real browser: its values, faults found by clicking, access, and cost.
func TestTheInspectorInABrowser(t *testing.T) {
	runSeparately(t)
	t.Parallel() // It waits for most of its time.
	chromium(t)
	nodetest.Tool(t, "playwright-core")
	play(t, "inspect.test.mjs", "--experimental-websocket")
}

// The embedded client in Node with the real server, over WebSocket.
func TestTheClientPlaysInNode(t *testing.T) {
	runSeparately(t)
	play(t, "node.test.mjs", "--experimental-websocket")
}

// The state of a room, and a recording of it, in the inspector's page, and the page of a load test.
func TestARecordingInABrowser(t *testing.T) {
	runSeparately(t)
	chromium(t)
	nodetest.Tool(t, "playwright-core")
	play(t, "recording.test.mjs")
}
