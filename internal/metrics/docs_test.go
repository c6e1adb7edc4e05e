package metrics

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/golden"
)

const (
	docs  = "../../docs/METRICS.md"
	begin = "<!-- What follows is made of internal/metrics/table.go: make metrics -->\n"
	end   = "<!-- End of what is made. -->\n"
)

// What docs/METRICS.md says of the series is what the table says, and "make metrics" writes it.
func TestEverySeriesIsDocumented(t *testing.T) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(text), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table: it stands between %q and %q", docs, begin, end)
	}
	golden.Check(t, docs, head+begin+markdown(table)+end+tail)
}

// markdown is the table as the page shows it, by name.
func markdown(rows []row) string {
	var lines []string
	for _, r := range rows {
		labels := ""
		if names := strings.Fields(r.labels); len(names) > 0 {
			labels = "`" + strings.Join(names, "`, `") + "`"
		}
		lines = append(lines, fmt.Sprintf("| `netloop_%s` | %s | %s | %s |\n", r.name, r.kind, labels, r.help))
	}
	slices.Sort(lines)
	return "| series | type | labels | what it says |\n|---|---|---|---|\n" + strings.Join(lines, "")
}
