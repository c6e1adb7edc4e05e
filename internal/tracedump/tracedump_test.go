package tracedump

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
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
	if list := d.Files(); len(list) != 1 || list[0].Tick != 7 || list[0].Name != filepath.Base(all[0]) || list[0].Bytes < 100 {
		t.Errorf("files %+v", list)
	}
	if f, err := d.OpenFile(7); err != nil || f.Name() != all[0] || f.Close() != nil {
		t.Errorf("%v", err)
	}
	if _, err := d.OpenFile(8); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of another tick: %v", err)
	}
	if text := log.String(); !strings.Contains(text, all[0]) || !strings.Contains(text, "test.slow") || !strings.Contains(text, "40ms") {
		t.Errorf("log: %s", text)
	}
	for path, others := range map[string]os.FileMode{all[0]: 0o077, dir: 0o007} {
		if info, err := os.Stat(path); err != nil || info.Mode()&others != 0 {
			t.Errorf("%v: others may read %s", err, path)
		}
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

// A file is written at most every half a minute, and none while another one waits.
func TestFilesAreRateLimited(t *testing.T) {
	d, _ := dumper(t, t.TempDir(), "a1")
	d.Close() // Nothing takes ticks from the queue but the test.
	for i, c := range []struct {
		at    time.Duration
		waits bool // the tick before
		want  bool
	}{
		{at: 0, want: true}, {at: 30*time.Second - 1}, {at: 30 * time.Second, want: true}, {at: time.Minute, waits: true}, {at: time.Minute + 1, want: true},
	} {
		if !c.waits && len(d.ticks) > 0 {
			<-d.ticks
		}
		_, before, _ := d.Counts()
		d.Slow(slow(uint64(i), c.at))
		if _, skipped, _ := d.Counts(); skipped-before != map[bool]uint64{false: 1}[c.want] {
			t.Errorf("at %v %d are skipped", c.at, skipped-before)
		}
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
	const mib64 = 64 << 20
	if err := prune(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
	for name, c := range map[string]struct {
		files int
		size  int64
		left  int
	}{
		"count": {files: 60, size: 10, left: 20},
		"bytes": {files: 10, size: mib64 / 4, left: 4},
		"large": {files: 3, size: 2 * mib64, left: 1},
	} {
		dir := t.TempDir()
		put(dir, "netloop-notes.txt", mib64)
		put(dir, "other.trace", mib64)
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
		d, _ := dumper(t, dir, "a1")
		d.Slow(slow(1, 0))
		d.Close()
		if written, _, _ := d.Counts(); written != 1 || len(files(t, dir)) != c.left+2 {
			t.Errorf("%s: after %d more %d files are left", name, written, len(files(t, dir)))
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
	if _, err := Open(Config{Dir: filepath.Join(file, "below")}); err == nil || !strings.Contains(err.Error(), "may be made") {
		t.Errorf("a directory below a file: %v", err)
	}
	deep := t.TempDir()
	for range 17 { // Almost as long as a path may be on Linux.
		deep = filepath.Join(deep, strings.Repeat("x", 230))
	}
	deep = filepath.Join(deep, strings.Repeat("x", max(4090-len(deep)-1, 1)))
	if _, err := Open(Config{Dir: deep}); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a directory without room for a file's name: %v", err)
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
	if written, _, failed := d.Counts(); written != 0 || failed != 1 || !strings.Contains(log.String(), "could not be written") || strings.Contains(log.String(), os.ErrInvalid.Error()) {
		t.Errorf("%d written, %d failed, log %s", written, failed, log)
	}
	dir = t.TempDir()
	d, log = dumper(t, dir, "a1")
	shared.trace.Stop() // Now there is no trace to write.
	d.Slow(slow(1, 0))
	d.Close()
	if d.add(1, filepath.Join(dir, "deleted")); len(d.Files()) != 0 {
		t.Errorf("a deleted file is listed: %v", d.Files())
	}
	if _, _, failed := d.Counts(); failed != 1 || len(files(t, dir)) != 0 {
		t.Errorf("%d failed, files %v, log %s", failed, files(t, dir), log)
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
