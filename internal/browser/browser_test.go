package browser_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/netloop/netloop/internal/testing/nodetest"
)

// alone leaves a test to make browser, which runs it by itself: it takes both cores for a minute,
// and tests beside it would be late.
func alone(t *testing.T) {
	t.Helper()
	if os.Getenv("NETLOOP_BROWSER") == "" {
		t.Skip("make browser, and with it make test, runs it by itself")
	}
}

// chromium is the program of the browser. The test is skipped where there is none.
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

// play runs a file of tests in Node, with the programs of netloop that it asks for.
func play(t *testing.T, file string, args ...string) {
	t.Helper()
	nodetest.Tool(t, "esbuild") // Where npm has installed nothing there may be no Node either.
	bin := t.TempDir()
	for to, programs := range map[string][]string{bin: {"./cmd/server", "./cmd/loadclient"}, filepath.Join(bin, "cards"): {"./examples/cards/server"}} {
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

// The arena is played in a real browser, on the real server and beside its bots.
func TestTheArenaInABrowser(t *testing.T) {
	alone(t)
	t.Setenv("CHROMIUM", chromium(t))
	nodetest.Tool(t, "playwright-core")
	play(t, "arena.test.mjs")
}

// The card game is played in a real browser: lobby, table, watchers, and a server that comes back.
func TestTheCardsInABrowser(t *testing.T) {
	alone(t)
	t.Setenv("CHROMIUM", chromium(t))
	nodetest.Tool(t, "playwright-core")
	play(t, "cards.test.mjs")
}

// The client that games embed plays in Node on the real server, over WebSocket.
func TestTheClientPlaysInNode(t *testing.T) {
	alone(t)
	play(t, "node.test.mjs", "--experimental-websocket")
}
