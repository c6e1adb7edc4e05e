package netloop_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// The rules of this repository that a compiler does not check. Each test names one; the tables
// below list the exceptions, so that an exception is a reviewed line.

const module = "github.com/netloop/netloop"

// core packages are the deterministic part: they use no network and no clock, write no log and
// export no metrics, so that a recorded tick replays to the same state.
var core = []string{"internal/codec", "internal/codec/lerp", "internal/codec/quat", "internal/fifo", "internal/grid", "internal/input", "internal/loop", "internal/netvar", "internal/netvar/bitset", "internal/netvar/interest", "internal/netvar/packet", "internal/netvar/replica", "internal/netvar/slots", "internal/netvar/state", "internal/rpcqueue", "internal/wire"}

// notInCore may not even be imported by imports of core. A trailing slash is a subtree.
var notInCore = []string{
	"net", "net/", "github.com/quic-go/", "go.uber.org/zap", "go.uber.org/zap/",
	"github.com/prometheus/", "google.golang.org/", module + "/proto/",
}

// readsClock lists the packages that may call the clock of package time. All others get a clock as
// a parameter.
var readsClock = []string{
	"app", "bench", "bench/", "cluster/nats", "cmd/", "examples/arena/desktop", "examples/login", "internal/admin", "internal/agones", "internal/agones/agonestest", "internal/certificate", "internal/clock", "internal/membership", "internal/testing/cubes/cmd", "internal/netem", "internal/net/driver", "internal/net/admission", "internal/net/udpbatch", "internal/testing/nettest", "internal/net/quicnet", "internal/net/wsnet", "internal/net/wtnet", "internal/watchfile", "internal/web", "loadtest", "loadtest/", "persist/", "scripts/",
}

// onlyIn lists the packages that may import a module. "" is the root package. An import of lipgloss
// examines the terminal, and may run tmux, so that no server imports it.
var onlyIn = map[string][]string{
	"github.com/quic-go/":                 {"internal/net/quicnet", "internal/net/wtnet", "bench"},
	"charm.land/bubbletea/":               {"examples/cards/term", "internal/inspect/term", "loadtest"},
	"charm.land/lipgloss/":                {"examples/cards/term"},
	"github.com/charmbracelet/":           {"internal/inspect/term", "internal/testing/golden", "internal/tui"},
	"github.com/coder/websocket":          {"internal/net/wsnet"},
	"golang.org/x/net/":                   {"internal/net/udpbatch", "internal/net/quicnet"},
	"go.uber.org/zap":                     {"internal/logging", "netlooptest"},
	"github.com/nats-io/nats.go":          {"cluster/nats"},
	"github.com/nats-io/nats-server/":     {"cluster/nats/embed"}, // other programs do not link it
	"github.com/prometheus/":              {"", "internal/metrics"},
	"github.com/HdrHistogram/":            {"internal/metrics/ticks", "loadtest", "loadtest/", "bench/peers"},
	"github.com/aclements/go-moremath/":   {"loadtest"},
	"github.com/spf13/cobra":              {"app", "app/", "cmd/netloop", "loadtest", "loadtest/"},
	"github.com/knadh/koanf/":             {"app", "app/", "loadtest"},
	"github.com/hajimehoshi/ebiten/":      {"examples/arena/desktop"},
	"golang.org/x/image/":                 {"examples/arena/desktop"},
	"github.com/ulikunitz/xz":             {"internal/testing/cubes"},
	"pgregory.net/rapid":                  {},
	"github.com/gofrs/flock":              {"persist/files"},
	"modernc.org/sqlite":                  {"examples/cards", "persist/sqlite"},
	"go.uber.org/goleak":                  {},
	"github.com/golang-jwt/":              {"examples/login", "internal/token"},
	"github.com/google/go-cmp":            {"internal/testing/golden"},
	"github.com/google/jsonschema-go":     {}, // tests compare results with their schema
	"github.com/rogpeppe/go-internal":     {},
	"google.golang.org/protobuf/testing/": {},
}

// source is one Go file of the repository, parsed.
type source struct {
	name, dir string // slash-separated, relative to the root; the root's dir is ""
	test      bool
	generated bool
	lines     int
	fset      *token.FileSet
	file      *ast.File
}

var sources = sync.OnceValues(func() ([]source, error) {
	var all []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); p != "." && (strings.HasPrefix(base, ".") || slices.Contains([]string{"bin", "node_modules", "testdata"}, base)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(p)
		dir := path.Dir(name)
		if dir == "." {
			dir = ""
		}
		all = append(all, source{
			name: name, dir: dir, fset: fset, file: file, test: strings.HasSuffix(name, "_test.go"),
			generated: ast.IsGenerated(file), lines: bytes.Count(text, []byte("\n")),
		})
		return nil
	})
	return all, err
})

func parsed(t *testing.T) []source {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (s source) imports() []string {
	var all []string
	for _, spec := range s.file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// matches reports whether p is one of the patterns, or below one that ends in a slash.
func matches(p string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return p == pattern || strings.HasSuffix(pattern, "/") && strings.HasPrefix(p, pattern)
	})
}

func TestEveryPackageHasADocComment(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range parsed(t) {
		if s.test {
			continue
		}
		documented[s.dir] = documented[s.dir] || s.generated || s.file.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %q has no doc comment: say in doc.go what it is for and how data flows", "./"+dir)
		}
	}
}

// inTests lists the packages that no production code may import.
var inTests = []string{"internal/agones/agonestest", "internal/testing/golden", "internal/testing/nodetest", "internal/testing/refdecoder", "internal/testing/proctest", "internal/testing/seeds", "internal/testing/nettest"}

func TestCoreKnowsNoNetwork(t *testing.T) {
	for _, dir := range core {
		if _, err := os.Stat(dir); err != nil {
			t.Fatalf("the core package %s is gone: %v", dir, err)
		}
	}
	args := []string{"list", "-deps", "-f", "{{.ImportPath}}"}
	for _, dir := range core {
		args = append(args, "./"+dir)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, p := range strings.Fields(string(out)) {
		if matches(p, notInCore) {
			t.Errorf("the core depends on %s: go list -deps ./internal/... | grep -B1 tells who imports it", p)
		}
	}
}

func TestOnlyTheEdgesReadTheClock(t *testing.T) {
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
	for _, s := range parsed(t) {
		if s.test || matches(s.dir, readsClock) || !slices.Contains(s.imports(), "time") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, sel.Sel.Name) {
				t.Errorf("%s calls time.%s: take a clock or a time as an argument", s.name, sel.Sel.Name)
			}
			return true
		})
	}
}

func TestFilesStayReadable(t *testing.T) {
	for _, s := range parsed(t) {
		limit := 600
		if !s.test && matches(s.name, []string{"cmd/server/", "cmd/loadclient/"}) {
			limit = 40 // a template for game authors
		}
		if !s.generated && s.lines > limit {
			t.Errorf("%s has %d lines, at most %d", s.name, s.lines, limit)
		}
	}
}

// A user of the API finds each type of the root package in a few files, named after them.
func TestTheRootHasFewFiles(t *testing.T) {
	const most = 36
	n := 0
	for _, s := range parsed(t) {
		if !s.test && !strings.Contains(s.name, "/") {
			n++
		}
	}
	if n > most {
		t.Errorf("the root package has %d files without tests, at most %d", n, most)
	}
}

// A new user reads README.md in minutes: its words, the listing included, and its columns, a tab
// counting as four, are bounded.
func TestReadmeStaysShort(t *testing.T) {
	const maxWords, maxColumns = 700, 120
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(bytes.Fields(text)); n > maxWords {
		t.Errorf("README.md has %d words, at most %d", n, maxWords)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); n > maxColumns {
			t.Errorf("README.md:%d: the line has %d columns, at most %d", i+1, n, maxColumns)
		}
	}
}

// maxColumns is the last column that a comment may reach, a tab counting as four.
const maxColumns = 100

func TestFilesKeepCommentsNarrow(t *testing.T) {
	for _, s := range parsed(t) {
		if s.generated {
			continue
		}
		for _, line := range s.wideComments(t) {
			t.Errorf("%s:%d: the comment reaches beyond column %d", s.name, line, maxColumns)
		}
	}
}

// wideComments returns the lines with a comment beyond maxColumns.
func (s source) wideComments(t *testing.T) (lines []int) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(s.name))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(string(text), "\n")
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			for i := range strings.Split(c.Text, "\n") {
				line := s.fset.Position(c.Pos()).Line + i
				if n := utf8.RuneCountInString(strings.ReplaceAll(all[line-1], "\t", "    ")); n > maxColumns {
					lines = append(lines, line)
				}
			}
		}
	}
	return lines
}

// maxFileSize is the largest size of a file of the repository, in bytes: that of a picture of the
// documents. A program that a build has left in a folder is far larger.
const maxFileSize = 1 << 20

func TestNoBuiltProgramIsInTheRepository(t *testing.T) {
	files, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("git does not list the files: ", err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(files), "\x00"), "\x00") {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() > maxFileSize {
			t.Errorf("%s has %d bytes, at most %d: remove it, and ignore it in .gitignore", name, info.Size(), maxFileSize)
		}
	}
}

func TestNothingIsLeftForLater(t *testing.T) {
	later := regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	for _, s := range parsed(t) {
		if s.generated {
			continue
		}
		for _, group := range s.file.Comments {
			if m := later.FindString(group.Text()); m != "" {
				t.Errorf("%s: a comment says %s: do it, or write down why not", s.name, m)
			}
		}
	}
}

// functions returns the test functions by name, with the folders that have them.
func functions(t *testing.T) map[string][]string {
	found := map[string][]string{}
	for _, s := range parsed(t) {
		if !s.test {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				found[f.Name.Name] = append(found[f.Name.Name], s.dir)
			}
		}
	}
	return found
}

func TestEveryFuzzTargetHasACorpus(t *testing.T) {
	for name, dirs := range functions(t) {
		if !strings.HasPrefix(name, "Fuzz") {
			continue
		}
		for _, dir := range dirs {
			if entries, err := os.ReadDir(filepath.Join(dir, "testdata", "fuzz", name)); err != nil || len(entries) == 0 {
				t.Errorf("%s in %s has no committed corpus in testdata/fuzz/%s", name, dir, name)
			}
		}
	}
}

// docs/FEATURES.md names the test that proves each feature, and docs/SECURITY.md that of each
// defence; a name without a test is a claim without proof. The last section of the former describes
// the abilities of designs before netloop.
func TestFeaturesNameTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("docs/FEATURES.md")
	if err != nil {
		t.Fatal(err)
	}
	defences, err := os.ReadFile("docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	test := regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)[A-Z_]\w*`)
	found := functions(t)
	for _, name := range test.FindAllString(string(text)+string(defences), -1) {
		if found[name] == nil {
			t.Errorf("docs/FEATURES.md or docs/SECURITY.md names %s, which no test file has", name)
		}
	}
	_, lineage, _ := strings.Cut(string(text), "\n## Lineage\n")
	proofs := test.FindAllString(lineage, -1)
	slices.Sort(proofs)
	if n := len(slices.Compact(proofs)); n < 40 {
		t.Errorf("the section Lineage of docs/FEATURES.md names %d tests, want at least 40", n)
	}
	for _, row := range strings.Split(lineage, "\n") {
		if strings.HasPrefix(row, "| ") && !strings.HasPrefix(row, "| feature") && !test.MatchString(row) {
			t.Errorf("docs/FEATURES.md has a row without a test: %s", row)
		}
	}
}

// docs/FEATURES.md is for users: at most 120 rows, each with one to three proofs.
func TestFeaturesStayFew(t *testing.T) {
	text, err := os.ReadFile("docs/FEATURES.md")
	if err != nil {
		t.Fatal(err)
	}
	proof := regexp.MustCompile("`(?:Test|Fuzz|Benchmark|Example)[A-Z_]\\w*`")
	rows := 0
	for _, row := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| feature") {
			continue
		}
		rows++
		if n := len(proof.FindAllString(row, -1)); n < 1 || n > 3 {
			t.Errorf("docs/FEATURES.md has a row with %d proofs, want 1 to 3: %s", n, row)
		}
	}
	if rows > 120 {
		t.Errorf("docs/FEATURES.md has %d rows, at most 120", rows)
	}
}

// docs/FEATURES.md says which command runs a proof: without a mark it is make test. A name
// that nobody runs there is a claim without proof, however good the test is.
func TestFeaturesNameTheCommandOfAProof(t *testing.T) {
	text, err := os.ReadFile("docs/FEATURES.md")
	if err != nil {
		t.Fatal(err)
	}
	proof := regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)[A-Z_]\\w*)`(?: \\((\\w+)\\))?")
	long, marked := verified(t), 0
	for _, m := range proof.FindAllStringSubmatch(string(text), -1) {
		want := ""
		switch {
		case strings.HasPrefix(m[1], "Benchmark"):
			want = "bench"
		case long[m[1]]:
			want = "verify"
		}
		if m[2] != want {
			t.Errorf("docs/FEATURES.md marks %s with %q, want %q", m[1], m[2], want)
		}
		if want == "verify" {
			marked++
		}
	}
	if marked == 0 {
		t.Error("docs/FEATURES.md names no test that make verify runs alone")
	}
}

// verified returns the tests that only make verify runs.
func verified(t *testing.T) map[string]bool {
	found := map[string]bool{}
	for _, s := range parsed(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "verifyOnly" {
						found[f.Name.Name] = true
					}
				case *ast.BinaryExpr: // os.Getenv("NETLOOP_VERIFY") == "", and then it skips
					call, ok := n.X.(*ast.CallExpr)
					if ok && n.Op == token.EQL && len(call.Args) == 1 {
						lit, ok := call.Args[0].(*ast.BasicLit)
						found[f.Name.Name] = found[f.Name.Name] || ok && lit.Value == `"NETLOOP_VERIFY"`
					}
				}
				return true
			})
		}
	}
	return found
}

// make test is short, and docs/FEATURES.md claims that it runs each proof: a short run may make a
// test cheaper, but not skip it.
func TestAShortRunLeavesNoTestOut(t *testing.T) {
	calls := func(n ast.Node, on string, names ...string) (found bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			found = found || ok && (on == "" || x.Name == on) && slices.Contains(names, sel.Sel.Name)
			return true
		})
		return found
	}
	asked := 0
	for _, s := range parsed(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if n, ok := n.(*ast.IfStmt); ok && calls(n.Cond, "testing", "Short") {
				asked++
				if calls(n.Body, "", "Skip", "Skipf", "SkipNow") {
					t.Errorf("%s: a test is left out of a short run", s.fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
	if asked < 5 {
		t.Errorf("%d tests ask whether the run is short", asked)
	}
}

// New direct dependencies are a decision: add them here with their reason in the commit.
func TestDependenciesAreChosen(t *testing.T) {
	chosen := []string{
		"charm.land/bubbletea/v2", "charm.land/lipgloss/v2",
		"github.com/HdrHistogram/hdrhistogram-go", "github.com/aclements/go-moremath", "github.com/charmbracelet/x/ansi", "github.com/coder/websocket", "github.com/go-viper/mapstructure/v2",
		"github.com/gofrs/flock",
		"github.com/golang-jwt/jwt/v5", "github.com/google/go-cmp", "github.com/google/jsonschema-go",
		"github.com/knadh/koanf/", "github.com/nats-io/jwt/v2", "github.com/nats-io/nats.go", "github.com/nats-io/nats-server/v2", "github.com/nats-io/nkeys", "github.com/pion/rtp", "github.com/pion/srtp/", "github.com/prometheus/client_golang", "github.com/prometheus/client_model",
		"github.com/quic-go/quic-go", "github.com/rogpeppe/go-internal", "github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/ulikunitz/xz",
		"go.uber.org/goleak", "go.uber.org/zap", "go.uber.org/zap/exp", "golang.org/x/net", "golang.org/x/sync", "golang.org/x/sys", "golang.org/x/time",
		"google.golang.org/protobuf", "modernc.org/sqlite", "pgregory.net/rapid",
	}
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+(.*)$`).FindAllStringSubmatch(string(text), -1) {
		if p, indirect := m[1], strings.Contains(m[2], "indirect"); !indirect && !matches(p, chosen) {
			t.Errorf("go.mod requires %s, which is not among the chosen dependencies", p)
		}
	}
}
