package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake records the failures of Check.
type fake struct {
	testing.TB
	said string
}

func (f *fake) Helper() {}

func (f *fake) Errorf(format string, a ...any) { f.said += format }

func (f *fake) Fatalf(format string, a ...any) { f.said += format }

func TestCheckReportsADifferenceAndRewriteStoresIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.txt")
	defer func(was bool) { *rewrite = was }(*rewrite)
	for _, step := range []struct {
		rewrite bool
		got     string
		says    string
	}{
		{false, "one\n", "a new file"},
		{true, "one\n", ""},
		{false, "one\n", ""},
		{false, "two\n", "differs"},
		{true, "two\n", ""},
		{false, "two\n", ""},
	} {
		f := &fake{TB: t}
		*rewrite = step.rewrite
		Check(f, path, step.got)
		if step.says == "" && f.said != "" || !strings.Contains(f.said, step.says) {
			t.Errorf("%+v: said %q", step, f.said)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "two\n" {
		t.Errorf("the file has %q: %v", b, err)
	}
}

func TestCheckPartRewritesOnlyItsPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("before[old]after"), 0o600); err != nil {
		t.Fatal(err)
	}
	defer func(was bool) { *rewrite = was }(*rewrite)
	for _, step := range []struct {
		rewrite    bool
		begin, got string
		says, left string
	}{
		{false, "[", "old", "", "before[old]after"},
		{false, "[", "new", "differs", "before[old]after"},
		{true, "{", "new", "lacks the marks", "before[old]after"},
		{true, "[", "new", "", "before[new]after"},
	} {
		f := &fake{TB: t}
		*rewrite = step.rewrite
		CheckPart(f, path, step.begin, "]", step.got)
		if step.says == "" && f.said != "" || !strings.Contains(f.said, step.says) {
			t.Errorf("%+v: said %q", step, f.said)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != step.left {
			t.Errorf("%+v: the file has %q: %v", step, b, err)
		}
	}
}
