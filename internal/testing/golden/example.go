package golden

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// Example returns the bytes of the block after the line "<!-- golden: name -->" of a page. The
// block is hexadecimal, with comments after #. Lines that begin with "bits" contain bits in the
// order of the stream; together they form bytes, lowest bit first, and zeros fill the last one.
func Example(tb testing.TB, page, name string) []byte {
	tb.Helper()
	var out []byte
	var bits string
	flush := func() {
		for ; bits != ""; bits = bits[min(8, len(bits)):] {
			var b byte
			for i, c := range bits[:min(8, len(bits))] {
				b |= byte(c-'0') << i
			}
			out = append(out, b)
		}
	}
	for line := range strings.Lines(Text(tb, page, name)) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.Join(strings.Fields(line), "")
		if more, ok := strings.CutPrefix(line, "bits"); ok {
			if strings.Trim(more, "01") != "" {
				tb.Fatalf("%s: example %s: %q are no bits", page, name, more)
			}
			bits += more
			continue
		}
		flush()
		b, err := hex.DecodeString(line)
		if err != nil {
			tb.Fatalf("%s: example %s: %v", page, name, err)
		}
		out = append(out, b...)
	}
	flush()
	return out
}

// Text returns the block after the line "<!-- golden: name -->" of a page unchanged.
func Text(tb testing.TB, page, name string) string {
	tb.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "<!-- golden: "+name+" -->\n```\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		tb.Fatalf("%s has no example %s", page, name)
	}
	return text
}
