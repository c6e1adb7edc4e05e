package browser_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
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

// The README shows the hook of react/useNetloop.ts, whose types are checked without React.
func TestTheReactHookIsTyped(t *testing.T) {
	const dir = "../../examples/phaser/"
	hook, err := os.ReadFile(dir + "react/useNetloop.ts")
	readme, err2 := os.ReadFile(dir + "README.md")
	if err != nil || err2 != nil || !bytes.Contains(readme, slices.Concat([]byte("\n```ts\n"), hook, []byte("```\n"))) {
		t.Errorf("README.md has another hook than react/useNetloop.ts: %v, %v", err, err2)
	}
	_ = nodetest.RunIn(t, "examples/phaser/react", nodetest.Tool(t, "tsc"), "--project", ".", "--noEmit")
}

// upToDate tests that a file of the repository is the output of a script of Node, which gets the
// arguments and then the name of a file for its output.
func upToDate(t *testing.T, file, script string, args ...string) {
	t.Helper()
	nodetest.Tool(t, "esbuild")
	out := filepath.Join(t.TempDir(), filepath.Base(file))
	_ = nodetest.Node(t, slices.Concat([]string{"../../" + script}, args, []string{out})...)
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("../../" + file); err != nil || string(got) != string(want) {
		t.Errorf("%s differs from the build of its sources (%v): make web, and commit it", file, err)
	}
}

// The pages in the servers' binaries are built from the current sources.
func TestThePagesAreUpToDate(t *testing.T) {
	for _, page := range pages {
		upToDate(t, "examples/"+page+"/web/"+page+".js", "examples/page.mjs", page)
	}
}

// The inspector's types are strict, its page is built from the current sources, and it is small.
func TestTheInspectorsPage(t *testing.T) {
	_ = nodetest.RunIn(t, "internal/inspect/page", nodetest.Tool(t, "tsc"), "--project", ".", "--noEmit")
	upToDate(t, "internal/inspect/page/inspect.js", "internal/inspect/page/build.mjs")
	total := compressed(ts.Client) // Loaded with the first client of the playground.
	for _, name := range []string{"index.html", "style.css", "icon.svg", "inspect.js"} {
		b, err := os.ReadFile("../inspect/page/" + name)
		if err != nil {
			t.Fatal(err)
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
	upToDate(t, "loadtest/page/report.html", "loadtest/page/build.mjs")
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

// The saved ticks are a trace that Perfetto opens.
func TestThePageSavesTraces(t *testing.T) {
	_ = nodetest.Node(t, "--test", nodetest.Bundle(t, "../../internal/inspect/page/src/trace.test.ts"))
}

// A ship moves in the page as on the server: TestThePageHasTheGamesFlights of the arena checks
// the cases.
func TestThePageSimulatesLikeTheServer(t *testing.T) {
	_ = nodetest.Node(t, "--test", nodetest.Bundle(t, "../../examples/arena/web/src/steer.test.ts"))
}
