package browser_test

import (
	"os"
	"os/exec"
	"path/filepath"
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

// chromium returns the path of the browser, or skips the test.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if at, err := exec.LookPath(name); name != "" && err == nil {
			return at
		}
	}
	t.Skip("needs chromium: apt-get install chromium, or CHROMIUM=/path/to/it")
	return ""
}

// play builds the programs of netloop and runs a file of tests in Node.
func play(t *testing.T, file string, args ...string) {
	t.Helper()
	nodetest.Tool(t, "esbuild") // Without npm's modules Node may be missing too.
	bin := t.TempDir()
	for to, programs := range map[string][]string{bin: {"./cmd/server", "./cmd/loadclient", "./scripts/faults"}, filepath.Join(bin, "cards"): {"./examples/cards/server"}} {
		args := append([]string{"build", "-o", to}, programs...)
		build := exec.CommandContext(t.Context(), "go", args...)
		build.Dir = nodetest.Root(t)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Setenv("NETLOOP_BIN", bin)
	t.Log(nodetest.RunIn(t, "internal/browser", "node", append(args, "--test", "--test-reporter=spec", file)...))
}

// The arena in a real browser, with the real server and bots.
func TestTheArenaInABrowser(t *testing.T) {
	runSeparately(t)
	t.Setenv("CHROMIUM", chromium(t))
	nodetest.Tool(t, "playwright-core")
	play(t, "arena.test.mjs")
}

// The card game in a real browser: lobby, table, spectators, and a restarted server.
func TestTheCardsInABrowser(t *testing.T) {
	runSeparately(t)
	t.Setenv("CHROMIUM", chromium(t))
	nodetest.Tool(t, "playwright-core")
	play(t, "cards.test.mjs")
}

// The inspector in a real browser: its values, faults found by clicking, access, and cost.
func TestTheInspectorInABrowser(t *testing.T) {
	runSeparately(t)
	t.Setenv("CHROMIUM", chromium(t))
	nodetest.Tool(t, "playwright-core")
	play(t, "inspect.test.mjs", "--experimental-websocket")
}

// The embedded client in Node with the real server, over WebSocket.
func TestTheClientPlaysInNode(t *testing.T) {
	runSeparately(t)
	play(t, "node.test.mjs", "--experimental-websocket")
}

// The state of a room, and a recording of it, in the inspector's page.
func TestARecordingInABrowser(t *testing.T) {
	runSeparately(t)
	t.Setenv("CHROMIUM", chromium(t))
	nodetest.Tool(t, "playwright-core")
	play(t, "recording.test.mjs")
}
