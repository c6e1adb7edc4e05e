package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/testing/cubes"
)

// write writes a capture of cubes that are all in the origin, a valid position.
func write(t *testing.T, frames int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture")
	if err := os.WriteFile(path, make([]byte, frames*cubes.Count*32), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEachCoderHasOneLine(t *testing.T) {
	var out, about bytes.Buffer
	if err := run(&out, &about, write(t, 10), 0); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if !regexp.MustCompile(`^coder=default kbit/s=\d+\.\d us_per_frame=\d+\.\d$`).MatchString(lines[0]) {
		t.Errorf("the first line is %q", lines[0])
	}
	for i, name := range []string{"raw", "quantised", "absolute", "varint", "fiedler"} {
		if !regexp.MustCompile(`^coder=` + name + ` kbit/s=\d+\.\d$`).MatchString(lines[1+i]) {
			t.Errorf("the line of %s is %q", name, lines[1+i])
		}
	}
	if !strings.Contains(about.String(), "10 frames of 901 cubes, each decoded exactly") {
		t.Errorf("the description of the run is %q", about.String())
	}
}

func TestABadFileIsAnError(t *testing.T) {
	var out, about bytes.Buffer
	if err := run(&out, &about, filepath.Join(t.TempDir(), "nothing"), 0); err == nil || out.Len() > 0 {
		t.Errorf("a missing file: %v, and it prints %q", err, out.String())
	}
	if err := run(&out, &about, write(t, 3), 0); err == nil || out.Len() > 0 {
		t.Errorf("three frames: %v, and it prints %q", err, out.String())
	}
}

func TestWithoutAFileThePackagesCaptureIsRead(t *testing.T) {
	var out, about bytes.Buffer
	if err := run(&out, &about, "", 30); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "coder=default kbit/s=") || !strings.HasPrefix(about.String(), "30 frames of 901 cubes") {
		t.Errorf("it prints %q and describes %q", out.String(), about.String())
	}
}
