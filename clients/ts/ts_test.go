package ts_test

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/testing/nodetest"
)

// The client and its tests compile with strict types.
func TestTypeScriptTypes(t *testing.T) {
	_ = nodetest.Run(t, nodetest.Tool(t, "tsc"), "--project", ".", "--noEmit")
}

// The client's tests in TypeScript pass; each is a file of test/.
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

// The committed client, which games embed so that they run without npm, is built from the sources.
func TestTypeScriptIsBuilt(t *testing.T) {
	dir := t.TempDir()
	nodetest.Tool(t, "terser")
	_ = nodetest.Node(t, "scripts/build.mjs", filepath.Join(dir, "netloop.js"))
	built, err := filepath.Glob("dist/*.js")
	if err != nil || len(built) < 3 {
		t.Fatalf("%d modules: %v", len(built), err)
	}
	for _, file := range built {
		want, err := os.ReadFile(filepath.Join(dir, filepath.Base(file)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
			t.Errorf("%s is not the build of clients/ts/src (%v): make web, and commit it", file, err)
		}
	}
}

// The npm package has the license of the repository, and its README each of its modules.
func TestThePackageIsComplete(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if read("LICENSE") != read("../../LICENSE") {
		t.Error("clients/ts/LICENSE is not that of the repository: copy it")
	}
	var p struct {
		Name    string
		Private bool
		Exports map[string]any
	}
	if err := json.Unmarshal([]byte(read("package.json")), &p); err != nil || p.Private {
		t.Errorf("package.json: private %t: %v", p.Private, err)
	}
	for module, at := range p.Exports {
		files, ok := at.(map[string]any)
		if !ok {
			continue // package.json itself
		}
		for _, file := range files {
			_ = read(file.(string))
		}
		if name := "`" + path.Join(p.Name, module) + "`"; !strings.Contains(read("README.md"), name) {
			t.Errorf("README.md does not name %s", name)
		}
	}
	if len(p.Exports) < 5 {
		t.Errorf("%d modules", len(p.Exports))
	}
}

// Names that the browser or Node reads are not shortened, as internal ones are: an option with
// another name would be ignored without an error.
func TestTheBuiltClientKeepsNamesOfTheBrowser(t *testing.T) {
	file, err := os.ReadFile("dist/netloop.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"abort", "bufferedAmount", "closeCode", "congestionControl", "createWritable", "incomingHighWaterMark", "requireUnreliable",
		"serverCertificateHashes", "unref",
	} {
		if !regexp.MustCompile(`[.{,]` + name + `\b`).Match(file) {
			t.Errorf("dist/netloop.js has no property %s", name)
		}
	}
}

// The rules of the repository that no compiler checks hold for TypeScript as they do for Go.
func TestTypeScriptFilesStayReadable(t *testing.T) {
	later := regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	for _, pattern := range []string{"src/*.ts", "src/*/*.ts", "test/*.ts"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), "\n"); n > 600 {
				t.Errorf("%s has %d lines, at most 600", file, n)
			}
			if m := later.Find(text); m != nil {
				t.Errorf("%s says %s: do it, or write down why not", file, m)
			}
		}
	}
}
