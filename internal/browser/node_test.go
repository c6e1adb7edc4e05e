package browser_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/netloop/netloop/internal/nodetest"
)

// The client that games embed plays in Node on the real server, over WebSocket: node.test.mjs.
func TestTheClientPlaysInNode(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts servers")
	}
	root := nodetest.Root(t)
	nodetest.Tool(t, "esbuild") // Where npm has installed nothing there may be no Node either.
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/server")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	node := exec.CommandContext(t.Context(), "node", "--experimental-websocket", "--test", "node.test.mjs")
	node.Dir = filepath.Join(root, "internal", "browser")
	node.Env = append(os.Environ(), "NETLOOP_BIN="+bin)
	if out, err := node.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
