package main

import (
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

const choices = `package p

func f(a, b int, ok bool) (n int) {
	if a < b && ok {
		n++
		return n + 1
	}
	for i := 0; i < a; i++ {
		switch n = i; {
		case n > b:
			continue
		}
	}
	panic(a + b)
}
`

// TestChangesBecomeChoices writes a source that holds all of its changes, and lists those that have
// to be compiled alone.
func TestChangesBecomeChoices(t *testing.T) {
	found, err := findIn("p/f.go", []byte(choices))
	if err != nil {
		t.Fatal(err)
	}
	changes := map[int]change{}
	for i, c := range found {
		changes[i+1] = c
	}
	all, unplaced, err := forks([]byte(choices), changes)
	if err != nil {
		t.Fatal(err)
	}
	text, owners := render([]byte(choices), all)
	if _, err := parser.ParseFile(token.NewFileSet(), "", text, 0); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	words := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{
		"return false && (a < b && ok) case 2: return true || (a < b && ok) case 3: return a < b || ok } return func() bool {",
		"case 4: return a <= b } return a < b}() && ok}() {",
		"case 5: n-- default: n++ }",
		"case 6: return n - 1 case 7: return n + 2 default: return n + 1 }",
		"default: continue }",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	var alone []string
	for _, n := range unplaced {
		alone = append(alone, changes[n].with)
	}
	if want := []string{"1", "--", "", ""}; !slices.Equal(alone, want) {
		t.Errorf("alone are %q, want %q", alone, want)
	}
	lines := strings.Split(text, "\n")
	for i, n := range owners {
		if n == 5 && lines[i] != "case 5:" && lines[i] != "n--" {
			t.Errorf("line %q belongs to change 5", lines[i])
		}
	}
	if !slices.Contains(owners, 5) || len(owners) != len(lines)-1 {
		t.Errorf("%d lines have %d owners", len(lines), len(owners))
	}
}

// TestEverySourceMayHoldItsChanges parses all sources with all of their changes in them.
func TestEverySourceMayHoldItsChanges(t *testing.T) {
	t.Chdir("../..")
	all, err := find(packages)
	if err != nil {
		t.Fatal(err)
	}
	byFile := map[string]map[int]change{}
	for i, c := range all {
		if byFile[c.file] == nil {
			byFile[c.file] = map[int]change{}
		}
		byFile[c.file][i+1] = c
	}
	placed := 0
	for file, changes := range byFile {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		forks, rest, err := forks(src, changes)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := render(src, forks)
		if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil {
			t.Error(err)
		}
		placed += len(changes) - len(rest)
	}
	if placed < len(all)/2 {
		t.Errorf("%d of %d changes have a place in a source with others", placed, len(all))
	}
}

// TestTheCompilerBlamesAChangeOrAFile finds the change of a line, and all changes of the file for a
// line of the source itself.
func TestTheCompilerBlamesAChangeOrAFile(t *testing.T) {
	changes := map[int]change{
		1: {file: "internal/loop/a.go"}, 2: {file: "internal/loop/a.go"}, 3: {file: "internal/loop/b.go"},
	}
	files := map[string]rendered{"internal/loop/a.go": {owners: []int{0, 2, 0}}, "internal/loop/b.go": {owners: []int{0}}}
	for out, want := range map[string][]int{
		"# loop\ninternal/loop/a.go:2:5: no\n": {2},
		"internal/loop/a.go:1:5: no\n":         {1, 2},
		"./b.go:1:1: no\n./a.go:2:1: no\n":     {2, 3},
		"ok\n":                                 nil,
	} {
		got := blamed(out, "internal/loop", changes, files)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q blames %v, want %v", out, got, want)
		}
	}
}
