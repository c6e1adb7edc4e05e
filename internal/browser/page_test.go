package browser_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/netloop/netloop/internal/nodetest"
)

// The page's types are strict, those of the schema among them.
func TestThePageFitsTheSchema(t *testing.T) {
	_ = nodetest.RunIn(t, "examples/arena/web", nodetest.Tool(t, "tsc"), "--project", ".", "--noEmit")
}

// What the server's binary has of the page is what its sources make.
func TestThePageIsBuilt(t *testing.T) {
	nodetest.Tool(t, "esbuild")
	out := filepath.Join(t.TempDir(), "arena.js")
	_ = nodetest.Node(t, "../../examples/arena/web/scripts/build.mjs", out)
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("../../examples/arena/web/arena.js"); err != nil || string(got) != string(want) {
		t.Errorf("examples/arena/web/arena.js is not what its sources make (%v): make web, and commit it", err)
	}
}

// A ship flies in the page as it does on the server: TestThePageFliesAlike of the arena has the
// flights.
func TestThePageSteersAlike(t *testing.T) {
	_ = nodetest.Node(t, "--test", nodetest.Bundle(t, "../../examples/arena/web/src/steer.test.ts"))
}
