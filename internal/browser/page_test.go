package browser_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/netloop/netloop/internal/testing/nodetest"
)

// pages are the examples' that are built.
var pages = []string{"arena", "cards"}

// The pages' types are strict, those of the schemas among them.
func TestThePagesFitTheSchemas(t *testing.T) {
	for _, page := range pages {
		_ = nodetest.RunIn(t, "examples/"+page+"/web", nodetest.Tool(t, "tsc"), "--project", ".", "--noEmit")
	}
}

// What the servers' binaries have of the pages is what their sources make.
func TestThePagesAreBuilt(t *testing.T) {
	nodetest.Tool(t, "esbuild")
	for _, page := range pages {
		web, out := "../../examples/"+page+"/web/", filepath.Join(t.TempDir(), "page.js")
		_ = nodetest.Node(t, "../../examples/page.mjs", page, out)
		want, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(web + page + ".js"); err != nil || string(got) != string(want) {
			t.Errorf("examples/%[1]s/web/%[1]s.js is not what its sources make (%[2]v): make web, and commit it", page, err)
		}
	}
}

// A ship flies in the page as it does on the server: TestThePageFliesAlike of the arena has the
// flights.
func TestThePageSteersAlike(t *testing.T) {
	_ = nodetest.Node(t, "--test", nodetest.Bundle(t, "../../examples/arena/web/src/steer.test.ts"))
}
