package app

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/knadh/koanf/parsers/yaml"
)

// print writes the effective configuration as YAML that --config accepts. A value that differs from
// netloop's own default has a comment with its source.
func (c *configuration) print(w io.Writer) error {
	var b strings.Builder
	section := ""
	for _, s := range c.settings {
		if s.key == "config" {
			continue
		}
		indent, name := "", s.key
		if at, field, nested := strings.Cut(s.key, "."); nested {
			if at != section {
				section = at
				fmt.Fprintf(&b, "%s:\n", section)
			}
			indent, name = "  ", field
		}
		text, err := s.yaml()
		if err != nil {
			return fmt.Errorf("print %s: %w", s.key, err)
		}
		fmt.Fprintf(&b, "%s%s: %s", indent, name, text)
		switch {
		case s.from != "":
			b.WriteString(" # " + origin(s.from))
		case s.game:
			b.WriteString(" # the game")
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// origin returns the source of a value. It omits the key, because the key is printed on the same
// line.
func origin(from string) string {
	if at := strings.LastIndex(from, ": "); at >= 0 {
		from = from[:at]
	}
	return printable(from)
}

// yaml returns the value as one line of YAML: a number without quotes, any other value as text.
func (s *setting) yaml() (string, error) {
	text := s.text()
	switch s.kind() {
	case "bool", "int", "uint", "float":
		return text, nil
	}
	if _, number := s.v.Interface().(rate); number {
		return text, nil
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.QuoteToASCII(text), nil // Go's escapes are valid in YAML too.
	}
	line, err := yaml.Parser().Marshal(map[string]any{"k": text})
	return strings.TrimSuffix(strings.TrimPrefix(string(line), "k: "), "\n"), err
}
