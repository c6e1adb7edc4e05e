package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An error in a file for another system is found, also in a test.
func TestErrorsOfAnotherSystemAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.com/a\n\ngo 1.24\n",
		"a.go":            "package a\n",
		"a_windows.go":    "package a\n\nvar _ int = \"text\"\n",
		"b_plan9_test.go": "package a\n\nvar _ = missing\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for system, errors := range map[string]string{"linux": "", "windows": "1 errors for windows", "plan9": "1 errors for plan9"} {
		err := run([]string{"-C", dir, system, "./..."})
		if (err == nil) != (errors == "") || err != nil && !strings.Contains(err.Error(), errors) {
			t.Errorf("%s: %v, want %q", system, err, errors)
		}
	}
	if err := run([]string{"windows"}); err == nil {
		t.Error("no package is accepted")
	}
}
