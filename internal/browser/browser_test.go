package browser_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/netloop/netloop/internal/nodetest"
)

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

// The arena is played in a real browser, on the real server and beside its bots: see arena.test.mjs.
func TestTheArenaInABrowser(t *testing.T) {
	if os.Getenv("NETLOOP_BROWSER") == "" {
		t.Skip("takes both cores for a minute: make browser, and with it make test, runs it by itself")
	}
	t.Setenv("CHROMIUM", chromium(t))
	nodetest.Tool(t, "playwright-core")
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/server", "./cmd/loadclient")
	build.Dir = nodetest.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("NETLOOP_BIN", bin)
	tests, err := filepath.Glob("*.test.mjs")
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	t.Log(nodetest.RunIn(t, "internal/browser", "node", append([]string{"--test"}, tests...)...))
}
