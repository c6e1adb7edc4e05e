package browser_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/netloop/netloop/clients/ts"
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

// The inspector's types are strict, its page is built from the current sources, and it is small.
func TestTheInspectorsPage(t *testing.T) {
	_ = nodetest.RunIn(t, "internal/inspect/page", nodetest.Tool(t, "tsc"), "--project", ".", "--noEmit")
	nodetest.Tool(t, "esbuild")
	out := filepath.Join(t.TempDir(), "inspect.js")
	_ = nodetest.Node(t, "../../internal/inspect/page/build.mjs", out)
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	total := compressed(ts.Client) // Loaded with the first client of the playground.
	for _, name := range []string{"index.html", "style.css", "icon.svg", "inspect.js"} {
		b, err := os.ReadFile("../inspect/page/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "inspect.js" && string(b) != string(want) {
			t.Error("internal/inspect/page/inspect.js differs from the build of its sources: make web, and commit it")
		}
		total += compressed(b)
	}
	if t.Logf("the page takes %d bytes, compressed", total); total > 200_000 {
		t.Errorf("the page takes %d bytes, compressed", total)
	}
}

// The types of the load test's page are strict, and it is built from the current sources.
func TestTheLoadTestsPage(t *testing.T) {
	_ = nodetest.RunIn(t, "loadtest/page", nodetest.Tool(t, "tsc"), "--project", ".", "--noEmit")
	nodetest.Tool(t, "esbuild")
	out := filepath.Join(t.TempDir(), "report.html")
	_ = nodetest.Node(t, "../../loadtest/page/build.mjs", out)
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("../../loadtest/page/report.html"); err != nil || string(got) != string(want) {
		t.Errorf("loadtest/page/report.html differs from the build of its sources (%v): make web, and commit it", err)
	}
}

func compressed(b []byte) int {
	var zip bytes.Buffer
	w := gzip.NewWriter(&zip)
	_, _ = w.Write(b) // Writing to memory does not fail.
	_ = w.Close()
	return zip.Len()
}

// The playground's messages are the values that the client takes, and a wrong one is named.
func TestThePlaygroundConvertsMessages(t *testing.T) {
	_ = nodetest.Node(t, "--test", nodetest.Bundle(t, "../../internal/inspect/page/src/message.test.ts"))
}

// A ship moves in the page as on the server: TestThePageHasTheGamesFlights of the arena checks
// the same flights.
func TestThePageSimulatesLikeTheServer(t *testing.T) {
	_ = nodetest.Node(t, "--test", nodetest.Bundle(t, "../../examples/arena/web/src/steer.test.ts"))
}
