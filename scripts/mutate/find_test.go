package main

import (
	"cmp"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const sample = `package p

import "fmt"

const bound = 7

func f(a, b int) (n int, err error) {
	if a < b && b != 3 {
		n++
		return n, fmt.Errorf("a%d", a+b)
	}
	g()
	g()
	n = max(a, b) + 1
	return
}
`

// TestTheChangesOfASource lists every change of a small source.
func TestTheChangesOfASource(t *testing.T) {
	found, err := findIn("p/f.go", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range found {
		got = append(got, strings.TrimPrefix(c.String(), "p/f.go | "))
	}
	want := []string{
		"const bound = 7 | const bound = 8",
		"if a < b && b != 3 { | if false && (a < b && b != 3) {",
		"if a < b && b != 3 { | if true || (a < b && b != 3) {",
		"if a < b && b != 3 { | if a < b || b != 3 {",
		"if a < b && b != 3 { | if a <= b && b != 3 {",
		"if a < b && b != 3 { | if a < b && b == 3 {",
		"if a < b && b != 3 { | if a < b && b != 4 {",
		"n++ | n--",
		"g() | ",
		"g() |  | 2",
		"n = max(a, b) + 1 | ",
		"n = max(a, b) + 1 | n = max(a, b) - 1",
		"n = max(a, b) + 1 | n = min(a, b) + 1",
		"n = max(a, b) + 1 | n = max(a, b) + 2",
		"return | ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, c := range found {
		if _, err := parser.ParseFile(token.NewFileSet(), "", c.apply([]byte(sample)), 0); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// TestTheChoiceDoesNotDependOnOtherChanges removes some changes and gets the rest in the same
// order.
func TestTheChoiceDoesNotDependOnOtherChanges(t *testing.T) {
	all, err := findIn("p/f.go", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	some := slices.Clone(all[3:])
	order(all, 1)
	order(some, 1)
	all = slices.DeleteFunc(all, func(c change) bool { return !slices.Contains(some, c) })
	if !slices.Equal(all, some) {
		t.Errorf("the order of %v is %v without the others", all, some)
	}
	before := slices.Clone(all)
	if order(all, 2); slices.Equal(all, before) {
		t.Error("another seed gives the same order")
	}
}

// TestThePackagesAreDrawnEvenly draws from packages of different sizes: as many changes from each,
// and more from the large one only when the small one has no more.
func TestThePackagesAreDrawnEvenly(t *testing.T) {
	all := make([]change, 0, 12)
	for i := range 10 {
		all = append(all, change{dir: "large", line: i})
	}
	all = append(all, change{dir: "small", line: 0}, change{dir: "small", line: 1})
	for _, c := range []struct{ n, small int }{{1, 0}, {2, 1}, {4, 2}, {9, 2}, {12, 2}} {
		got := evenly(all, c.n)
		small := len(slices.DeleteFunc(slices.Clone(got), func(c change) bool { return c.dir == "large" }))
		if len(got) != c.n || small != c.small {
			t.Errorf("of %d changes %d are of the small package, want %d: %v", len(got), small, c.small, got)
		}
	}
	if got := evenly(all, 3); got[2].line != 1 {
		t.Errorf("the third change is %v, want the second one of the large package", got[2])
	}
}

// TestConstantsBesideAnErrorAreNotChanged changes only the constants that a caller may read.
func TestConstantsBesideAnErrorAreNotChanged(t *testing.T) {
	found, err := findIn("p/f.go", []byte(`package p

func f() (int, bool, error) {
	if err := g(); err != nil {
		return -1, true, err
	}
	if bad() {
		return 2, false, errors.New("bad")
	}
	if err == nil {
		return 3, true, err
	}
	return 4, false, nil
}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range found {
		if strings.HasPrefix(c.was, "return") {
			got = append(got, c.is)
		}
	}
	if want := []string{"return 4, true, err", "return 3, false, err", "return 5, false, nil", "return 4, true, nil"}; !slices.Equal(got, want) {
		t.Errorf("changes: %q, want %q", got, want)
	}
}

// TestKnownChangesHaveAReasonAndALine refuses an entry without a reason, and an entry of a deleted
// line; entries of other folders are kept.
func TestKnownChangesHaveAReasonAndALine(t *testing.T) {
	all, err := findIn("p/f.go", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, wrong string }{
		{"# said above\n\np/f.go | n++ | n-- # nobody sees it\nother/f.go | x | y # not looked at\n", ""},
		{"p/f.go | g() |  # it says nothing\np/f.go | n++ | n-- # nobody sees it\n", ""},
		{"p/f.go | n++ | n--\n", "no reason"},
		{"p/f.go | m++ | m-- # gone\n", "fit no line"},
	} {
		file := filepath.Join(t.TempDir(), "known.txt")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		reasons, err := readKnown(file, all)
		switch {
		case c.wrong == "" && (err != nil || len(reasons) == 0 || reasons["p/f.go | n++ | n--"] != "nobody sees it"):
			t.Errorf("%q: %v, %v", c.text, reasons, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%q: the error is %v, want one with %q", c.text, err, c.wrong)
		}
	}
}

// TestTheChangesOfTheRepositoryAreFound finds changes in every tried folder, no entry of known.txt
// for a deleted line, and the test of docs for every package with a limit.
func TestTheChangesOfTheRepositoryAreFound(t *testing.T) {
	t.Chdir("../..")
	dirs, err := folders(packages)
	if err != nil {
		t.Fatal(err)
	}
	all, err := find(dirs)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(dirs, "internal/transport") || !slices.Contains(dirs, "internal/net/quicnet") || slices.Contains(dirs, "internal/testing/nettest") || slices.Contains(dirs, "persist/storetest") {
		t.Error("the folders are", dirs)
	}
	if slices.ContainsFunc(all, func(c change) bool {
		return strings.HasSuffix(c.file, "_windows.go") || runtime.GOOS == "linux" && strings.HasSuffix(c.file, "_other.go")
	}) {
		t.Error("there are changes of sources for other systems")
	}
	for _, dir := range dirs {
		if !slices.ContainsFunc(all, func(c change) bool { return c.dir == dir }) {
			t.Errorf("no change in %s", dir)
		}
	}
	if _, err := readKnown("scripts/mutate/known.txt", all); err != nil {
		t.Error(err)
	}
	rows, err := os.ReadFile("docs/limits_rows_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t"(.*)": {`).FindAllSubmatch(rows, -1) {
		if dir := cmp.Or(string(m[1]), "."); !slices.Contains(users[dir], "docs") {
			t.Errorf("the test of docs reads the limits of %s, which bundle.go does not say", dir)
		}
	}
}
