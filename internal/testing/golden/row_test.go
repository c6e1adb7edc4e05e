package golden

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRowComparesTheBoundsOfTheCode(t *testing.T) {
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
		if Row(f, page, "queue | %v of %v, %v each", bounds[:]...); (f.said == "") != holds {
			t.Errorf("%v: said %q", bounds, f.said)
		}
	}
	f := &fake{TB: t}
	if Row(f, page, "another queue | "); f.said == "" {
		t.Error("a missing row matches")
	}
}

func TestRewriteSetsTheBoundsOfARow(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	const before = "| of | at most |\n|---|---|\n| queue | 16 384 of 64 KiB, 5 each | dropped |\n| other | 16 384 of 64 KiB |\n"
	if err := os.WriteFile(page, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fake{TB: t}
	Row(f, page, "queue | %v of %v, %v each", 7, Bytes(3<<20), 50*time.Millisecond)
	if b, err := os.ReadFile(page); err != nil || string(b) != before || f.said == "" {
		t.Errorf("without -rewrite it reports %q and the page is %q: %v", f.said, b, err)
	}
	defer func(was bool) { *rewrite = was }(*rewrite)
	*rewrite = true
	Row(t, page, "queue | %v of %v, %v each", 7, Bytes(3<<20), 50*time.Millisecond)
	Row(t, page, "queue | %v", 1234567)
	const after = "| of | at most |\n|---|---|\n| queue | 1 234 567 of 3 MiB, 50 ms each | dropped |\n| other | 16 384 of 64 KiB |\n"
	if b, err := os.ReadFile(page); err != nil || string(b) != after {
		t.Errorf("the page is %q: %v", b, err)
	}
	f = &fake{TB: t}
	if Row(f, page, "queue | of %v", 1); f.said == "" {
		t.Error("a row with another text matches")
	}
}
