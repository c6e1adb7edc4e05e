package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// meanings are the meanings of the families of series, by name.
type meanings map[string]string

var row = regexp.MustCompile("(?m)^\\| `(netloop_\\w+)` \\|[^|]*\\|[^|]*\\| (.*) \\|$")

// readMeanings reads the table of docs/METRICS.md.
func readMeanings(file string) (meanings, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all := meanings{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		all[m[1]] = m[2]
	}
	return all, nil
}

var (
	series = regexp.MustCompile(`netloop_\w+`)
	suffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// describe returns the text of a panel: its own sentences, and then the meanings of its series.
func (m meanings) describe(p *panel) (string, error) {
	var lines []string
	if p.text != "" {
		lines = append(lines, p.text)
	}
	for _, l := range p.lines {
		for _, name := range series.FindAllString(l.expr, -1) {
			name = suffix.ReplaceAllString(name, "")
			meaning, ok := m[name]
			if !ok {
				return "", fmt.Errorf("panel %q: docs/METRICS.md has no %s", p.title, name)
			}
			if line := "`" + name + "`: " + meaning; !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines, "\n\n"), nil
}
