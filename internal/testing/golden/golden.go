// Package golden compares results of a test with a committed file. A test that imports it has the
// flag -rewrite, which rewrites the file:
//
//	go test ./internal/metrics -rewrite
//
// It is for tests only.
package golden

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// Check fails the test if the file at path differs from got. With -rewrite it writes the file, so
// git shows the difference.
func Check(tb testing.TB, path, got string) {
	tb.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			tb.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		tb.Fatalf("%v: a new file is made by go test -rewrite", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		tb.Errorf("%s differs (-want +got); if that is intended, run go test -rewrite in this package:\n%s", path, diff)
	}
}

// CheckPart is Check for the part of a file between two marks.
func CheckPart(tb testing.TB, path, begin, end, got string) {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(text), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !begins || !ends {
		tb.Errorf("%s lacks the marks of the generated part: %q and %q", path, begin, end)
		return
	}
	Check(tb, path, head+begin+got+end+tail)
}
