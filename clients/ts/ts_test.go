package ts_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/netloop/netloop/internal/nodetest"
)

// What TypeScript says of the client and of its tests: types are strict.
func TestTypeScriptTypes(t *testing.T) {
	_ = nodetest.Run(t, nodetest.Tool(t, "tsc"), "--project", ".", "--noEmit")
}

// The tests of the client that are written in TypeScript, each of which is a file of test/.
func TestTypeScript(t *testing.T) {
	files, err := filepath.Glob("test/*.test.ts")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_ = nodetest.Node(t, "--test", nodetest.Bundle(t, file))
		})
	}
}

// What games embed is committed, so that nobody needs npm to run one: it is what the sources make.
func TestTypeScriptIsBuilt(t *testing.T) {
	out := filepath.Join(t.TempDir(), "netloop.js")
	_ = nodetest.Node(t, "scripts/build.mjs", nodetest.Tool(t, "esbuild"), out)
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("dist/netloop.js"); err != nil || string(got) != string(want) {
		t.Errorf("clients/ts/dist is not what clients/ts/src makes (%v): make web, and commit it", err)
	}
}
