// Package nodetest runs the TypeScript of clients/ts in Node, for tests of the client and for
// tests that compare the server with the TypeScript reader of state, and pages in a browser.
package nodetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Root returns the folder of the repository.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("no go.mod above this test")
		}
		dir = parent
	}
}

// Tool returns the path of a program installed by npm. Without it, or without Node, the test is
// skipped: Go alone builds netloop, and make installs the modules.
func Tool(tb testing.TB, name string) string {
	tb.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		tb.Skip("needs node")
	}
	path := filepath.Join(Root(tb), "node_modules", ".bin", name)
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("needs %s of node_modules: make node_modules/.stamp", name)
	}
	return path
}

// Browser returns the path of a browser without windows, CHROMIUM or the first that is installed.
// The shell without the parts of a desktop takes half of the processor's time of a whole Chromium.
// Without a browser the test is skipped.
func Browser(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if at, err := exec.LookPath(name); name != "" && err == nil {
			return at
		}
	}
	tb.Skip("needs a browser: apt-get install chromium-headless-shell, or CHROMIUM=/path/to/it")
	return ""
}

// Bundle bundles a TypeScript file of clients/ts with its imports.
func Bundle(tb testing.TB, entry string) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), strings.TrimSuffix(filepath.Base(entry), ".ts")+".mjs")
	Run(tb, Tool(tb, "esbuild"), filepath.Join(Root(tb), "clients", "ts", entry), "--bundle", "--platform=node",
		"--format=esm", "--target=node20", "--log-level=warning", "--outfile="+out)
	return out
}

// Node runs a bundled file, and fails the test if it fails. It returns the output.
func Node(tb testing.TB, args ...string) string {
	tb.Helper()
	return Run(tb, "node", args...)
}

// Run runs a command in the folder of the client.
func Run(tb testing.TB, name string, args ...string) string {
	tb.Helper()
	return RunIn(tb, "clients/ts", name, args...)
}

// RunIn runs a command in a folder of the repository, and fails the test if it fails. It returns
// the output.
func RunIn(tb testing.TB, dir, name string, args ...string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), name, args...) //nolint:gosec // Tests name it.
	cmd.Dir = filepath.Join(Root(tb), filepath.FromSlash(dir))
	cmd.Env = append(os.Environ(), "NETLOOP_ROOT="+Root(tb))
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
