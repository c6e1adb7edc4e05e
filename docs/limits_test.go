// Package docs has the tests of LIMITS.md: its numbers are those of the code, and its names exist.
package docs

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/testing/golden"
	"github.com/netloop/netloop/internal/transport"
)

const (
	page   = "LIMITS.md"
	module = "github.com/netloop/netloop"
)

// computed are the numbers of limitRows that are no constants.
var computed = map[string]int{
	"Window":                            input.Window(time.Second / 60),
	"DefaultLimits.Datagrams.PerSecond": transport.DefaultLimits.Datagrams.PerSecond,
	"DefaultLimits.Datagrams.Burst":     transport.DefaultLimits.Datagrams.Burst,
	"DefaultLimits.Frames.PerSecond":    transport.DefaultLimits.Frames.PerSecond,
	"DefaultLimits.Frames.Burst":        transport.DefaultLimits.Frames.Burst,
	"DefaultLimits.Bytes.PerSecond":     transport.DefaultLimits.Bytes.PerSecond,
	"DefaultLimits.Bytes.Burst":         transport.DefaultLimits.Bytes.Burst,
}

// LIMITS.md has the values of the constants; make limits writes them. Each row of the page is one
// of limitRows.
func TestEveryLimitIsDocumented(t *testing.T) {
	src := loadSources(t)
	number := regexp.MustCompile(`\{(bytes )?([^{}]+(?:\{\})?[^{}]*)\}`)
	var begins []string
	for dir, rows := range limitRows {
		for _, row := range rows {
			var bounds []any
			format := number.ReplaceAllStringFunc(row, func(found string) string {
				m := number.FindStringSubmatch(found)
				bounds = append(bounds, src.bound(t, dir, m[2], m[1] != ""))
				return "%v"
			})
			if strings.HasSuffix(row, "}") {
				format += " |"
			}
			begins = append(begins, golden.Row(t, page, format, bounds...))
		}
	}
	rows := limits(t)
	for _, l := range rows {
		n := 0
		for _, begin := range begins {
			if strings.HasPrefix(l.line, begin) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("limitRows has %d beginnings of this row, not one: %s", n, l.line)
		}
	}
	if len(rows) != len(begins) || len(rows) < 90 {
		t.Errorf("the page has %d rows, and limitRows %d", len(rows), len(begins))
	}
}

// limit is a row of the page.
type limit struct {
	line, section                              string
	name, bound, unit, config, counter, effect string
}

// limits reads the rows of the page.
func limits(t *testing.T) (rows []limit) {
	t.Helper()
	section := ""
	for line := range strings.Lines(read(t, page)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "## ") {
			section = line
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| limit |") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 6 {
			t.Errorf("a row has %d cells, not 6: %s", len(cells), line)
			continue
		}
		for i, c := range cells {
			cells[i] = strings.TrimSpace(c)
			if i == 3 || i == 4 {
				cells[i] = strings.ReplaceAll(cells[i], "`", "")
			}
		}
		rows = append(rows, limit{line, section, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]})
	}
	return rows
}

// A row names its quantity, its bound and the behaviour at the bound, and no row is repeated.
func TestLimitsAreWhole(t *testing.T) {
	seen := map[[2]string]bool{}
	for _, l := range limits(t) {
		if key := [2]string{l.section, l.name}; l.name == "" || l.bound == "" || l.config == "" || l.effect == "" || seen[key] {
			t.Errorf("a limit has a name of its own, a bound, its configuration or \"fixed\", and an effect: %s", l.line)
		} else {
			seen[key] = true
		}
	}
}

// source type-checks the packages of the module for their constants. Function bodies are skipped,
// and packages of other modules and most of the standard library are unknown: no constant needs
// them.
type source struct {
	files    *token.FileSet
	standard types.Importer
	overlay  map[string]string // replacements of files, by path
	checked  map[string]*types.Package
}

// loadSources checks the packages of limitRows. MUTATE_OVERLAY, from scripts/mutate, names a file
// like that of go build -overlay.
func loadSources(t *testing.T) *source {
	t.Helper()
	s := &source{files: token.NewFileSet(), checked: map[string]*types.Package{"unsafe": types.Unsafe}}
	if build.Default.GOROOT == "" { // The test was compiled with -trimpath.
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatal(err)
		}
		build.Default.GOROOT = strings.TrimSpace(string(root))
	}
	s.standard = importer.ForCompiler(s.files, "source", nil)
	if list := os.Getenv("MUTATE_OVERLAY"); list != "" {
		var o struct{ Replace map[string]string }
		if err := json.Unmarshal([]byte(read(t, list)), &o); err != nil {
			t.Fatal(err)
		}
		s.overlay = o.Replace
	}
	for dir := range limitRows {
		if _, err := s.Import(strings.TrimSuffix(module+"/"+dir, "/")); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range s.checked { // An expression may name the other packages.
		for _, other := range s.checked {
			p.Scope().Insert(types.NewPkgName(token.NoPos, p, other.Name(), other))
		}
	}
	return s
}

// Import implements types.Importer.
func (s *source) Import(name string) (*types.Package, error) {
	dir, ours := strings.CutPrefix(name, module)
	switch p := s.checked[name]; {
	case p != nil:
		return p, nil
	case name == "time" || name == "math":
		p, err := s.standard.Import(name)
		if err == nil {
			s.checked[name] = p
		}
		return p, err
	case !ours:
		return nil, fmt.Errorf("%s is unknown", name)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		return nil, err
	}
	linux := build.Default
	linux.GOOS = "linux"
	b, err := linux.ImportDir(filepath.Join(root, dir), 0)
	if err != nil {
		return nil, err
	}
	var parsed []*ast.File
	for _, file := range b.GoFiles {
		file = filepath.Join(b.Dir, file)
		if laid := s.overlay[file]; laid != "" {
			file = laid
		}
		f, err := parser.ParseFile(s.files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	cfg := types.Config{Importer: s, IgnoreFuncBodies: true, Sizes: types.SizesFor("gc", build.Default.GOARCH)}
	cfg.Error = func(error) {} // Unknown packages cause errors.
	p, _ := cfg.Check(name, s.files, parsed, nil)
	s.checked[name] = p
	return p, nil
}

// bound returns the value of a constant expression in a package.
func (s *source) bound(t *testing.T, dir, expr string, memory bool) any {
	t.Helper()
	n, ok := computed[expr]
	if !ok {
		v, err := types.Eval(s.files, s.checked[strings.TrimSuffix(module+"/"+dir, "/")], token.NoPos, expr)
		if err != nil || v.Value == nil {
			t.Fatalf("%s has no constant %s: %v", dir, expr, err)
		}
		if named, ok := v.Type.(*types.Named); ok && named.Obj().Name() == "Duration" {
			d, _ := constant.Int64Val(constant.ToInt(v.Value))
			return time.Duration(d)
		}
		exact, isInt := constant.Int64Val(constant.ToInt(v.Value))
		if !isInt {
			f, _ := constant.Float64Val(v.Value)
			return f
		}
		n = int(exact)
	}
	if memory {
		return golden.Bytes(n)
	}
	return n
}
