package golden

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestARowNamesTheBoundsOfTheCode(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	text := "| of | at most |\n|---|---|\n| queue | 16 384 of 64 KiB, 50 ms each | dropped |\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for bounds, holds := range map[[3]any]bool{
		{16384, Bytes(64 << 10), 50 * time.Millisecond}:   true,
		{16385, Bytes(64 << 10), 50 * time.Millisecond}:   false,
		{16384, Bytes(64<<10 + 1), 50 * time.Millisecond}: false,
		{16384, Bytes(64 << 20), 50 * time.Millisecond}:   false,
		{16384, Bytes(64 << 10), 50 * time.Second}:        false,
	} {
		f := &fake{TB: t}
		if Row(f, page, "queue", "%v of %v, %v each", bounds[:]...); (f.said == "") != holds {
			t.Errorf("%v: said %q", bounds, f.said)
		}
	}
	f := &fake{TB: t}
	if Row(f, page, "another queue", ""); f.said == "" {
		t.Error("a row that is not there holds")
	}
}
