package tracedump

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/trace"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dumper opens a dumper and returns its log.
func dumper(t *testing.T, dir, name string) (*Dumper, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	d, err := Open(Config{Dir: dir, Name: name, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return d, log
}

// slow is the n-th tick, which begins at a time.
func slow(n uint64, at time.Duration) Tick {
	return Tick{Number: n, Start: at, Wall: time.Unix(1_800_000_000, 0).Add(at), Duration: 40 * time.Millisecond, System: "test.slow"}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestGoToolTraceReadsTheFile writes a file, and lets the tool parse it.
func TestGoToolTraceReadsTheFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "it")
	d, log := dumper(t, dir, "a1")
	trace.WithRegion(t.Context(), "test.region", func() {})
	d.Slow(slow(7, time.Second))
	d.Close()
	all := files(t, dir)
	if len(all) != 1 || !strings.HasSuffix(all[0], "-a1-tick7.trace") {
		t.Fatalf("files %v, log %s", all, log)
	}
	if text := log.String(); !strings.Contains(text, all[0]) || !strings.Contains(text, "test.slow") || !strings.Contains(text, "40ms") {
		t.Errorf("log: %s", text)
	}
	if testing.Short() { // The tool has to be compiled first.
		if text, err := os.ReadFile(all[0]); err != nil || !bytes.HasPrefix(text, []byte("go 1.")) || !bytes.Contains(text, []byte("test.region")) {
			t.Errorf("%v, the file begins with %.20q", err, text)
		}
		return
	}
	out, err := exec.Command("go", "tool", "trace", "-d=parsed", all[0]).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("test.region")) {
		t.Errorf("go tool trace: %v, %.300s", err, out)
	}
}

func TestFilesAreRateLimited(t *testing.T) {
	dir := t.TempDir()
	d, _ := dumper(t, dir, "a1")
	at := time.Duration(0) // The first tick of a process counts too.
	for n := range uint64(10) {
		d.Slow(slow(n+1, at))
		at += dumpEvery / 5
	}
	d.Close()
	// Ticks 1 and 6 at most: the second may arrive while the first is written.
	written, skipped, failed := d.Counts()
	if written+skipped != 10 || written < 1 || written > 2 || failed != 0 || uint64(len(files(t, dir))) != written {
		t.Errorf("%d written, %d skipped, %d failed", written, skipped, failed)
	}
}

// The directory remains within its limits, and other files in it are kept.
func TestTheOldestFilesGo(t *testing.T) {
	put := func(dir, name string, size int64) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil { // A hole: it takes no disk space.
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		files int
		size  int64
		left  int
	}{
		"count": {files: 3 * maxFiles, size: 10, left: maxFiles},
		"bytes": {files: 10, size: maxBytes / 4, left: 4},
		"large": {files: 3, size: 2 * maxBytes, left: 1},
	} {
		dir := t.TempDir()
		put(dir, "netloop-notes.txt", maxBytes)
		put(dir, "other.trace", maxBytes)
		for i := range c.files {
			put(dir, fmt.Sprintf("%s2026%04d%s", prefix, i, suffix), c.size)
		}
		if err := prune(dir); err != nil {
			t.Fatal(err)
		}
		all := files(t, dir)
		newest := filepath.Join(dir, fmt.Sprintf("%s2026%04d%s", prefix, c.files-1, suffix))
		if len(all) != c.left+2 || all[len(all)-3] != newest {
			t.Errorf("%s: %d files are left, want %d and two others: %v", name, len(all), c.left, all)
		}
	}
}

// Two servers of a process share its only flight recorder; a recorder started elsewhere is reported
// as an error.
func TestDumpersShareTheRecorder(t *testing.T) {
	dir := t.TempDir()
	a, _ := dumper(t, dir, "a1")
	b, _ := dumper(t, dir, "b2")
	a.Slow(slow(1, 0))
	b.Slow(slow(1, 0))
	a.Close()
	if !trace.IsEnabled() {
		t.Error("the first to close stopped the other's recorder")
	}
	b.Close()
	if trace.IsEnabled() || len(files(t, dir)) != 2 {
		t.Errorf("recording %v, files %v", trace.IsEnabled(), files(t, dir))
	}

	foreign := trace.NewFlightRecorder(trace.FlightRecorderConfig{})
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	defer foreign.Stop()
	if _, err := Open(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "one flight recorder per process") {
		t.Errorf("beside somebody else's: %v", err)
	}
}

func TestABadDirectoryIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: file}); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a file: %v", err)
	}
	if trace.IsEnabled() {
		t.Error("it records all the same")
	}
}

func TestAFileThatCannotBeWrittenIsCounted(t *testing.T) {
	dir := t.TempDir()
	d, log := dumper(t, dir, "a1")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	d.Slow(slow(1, 0))
	d.Close()
	if written, _, failed := d.Counts(); written != 0 || failed != 1 || !strings.Contains(log.String(), "could not be written") {
		t.Errorf("%d written, %d failed, log %s", written, failed, log)
	}
}

// BenchmarkSlowSkipped measures a slow tick that gets no file.
func BenchmarkSlowSkipped(b *testing.B) {
	d, err := Open(Config{Dir: b.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	d.Slow(slow(1, 0))
	b.ReportAllocs()
	for b.Loop() {
		d.Slow(slow(2, time.Second))
	}
}
