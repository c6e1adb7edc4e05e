package browser_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/netloop/netloop/internal/testing/nodetest"
)

// pages are the examples with a built page.
var pages = []string{"arena", "cards"}

// The types of the pages are strict, including those of the schemas.
func TestThePagesMatchTheSchemas(t *testing.T) {
	for _, page := range pages {
		_ = nodetest.RunIn(t, "examples/"+page+"/web", nodetest.Tool(t, "tsc"), "--project", ".", "--noEmit")
	}
}

// The pages in the servers' binaries are built from the current sources.
func TestThePagesAreUpToDate(t *testing.T) {
	nodetest.Tool(t, "esbuild")
	for _, page := range pages {
		web, out := "../../examples/"+page+"/web/", filepath.Join(t.TempDir(), "page.js")
		_ = nodetest.Node(t, "../../examples/page.mjs", page, out)
		want, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(web + page + ".js"); err != nil || string(got) != string(want) {
			t.Errorf("examples/%[1]s/web/%[1]s.js differs from the build of its sources (%[2]v): make web, and commit it", page, err)
		}
	}
}

// A ship moves in the page as on the server: TestThePageHasTheGamesFlights of the arena checks
// the same flights.
func TestThePageSimulatesLikeTheServer(t *testing.T) {
	_ = nodetest.Node(t, "--test", nodetest.Bundle(t, "../../examples/arena/web/src/steer.test.ts"))
}
