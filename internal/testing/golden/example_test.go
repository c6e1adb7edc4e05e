package golden

import (
	"os"
	"path/filepath"
	"testing"
)

func TestExampleReadsBytesAndBits(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	text := "text\n<!-- golden: one -->\n```\n01 02  # two bytes\nbits 1 01  # three\nbits 00000 1\nff\nbits 1\n```\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := string(Example(t, page, "one")); got != "\x01\x02\x05\x01\xff\x01" {
		t.Errorf("% x", got)
	}
}
