package netloop_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noSlug  = regexp.MustCompile(`[^\w\- ]`)
)

// anchors returns the link targets of a page's headings.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		found[strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return found
}

// Links of the documentation refer to existing files and sections.
func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || path != "." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, l := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.HasPrefix(l[1], "https://") {
				continue
			}
			links++
			file, section, _ := strings.Cut(l[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s refers to %s: %v", path, l[1], err)
				continue
			}
			if section == "" {
				continue
			}
			page, err := os.ReadFile(target)
			if err != nil {
				return err
			}
			if !anchors(string(page))[section] {
				t.Errorf("%s refers to %s, and there is no such section", path, l[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links < 50 {
		t.Errorf("%d links were found", links)
	}
}

// TestFeelShowsTheExample keeps the listing of docs/NETCODE.md equal to the example that compiles.
func TestFeelShowsTheExample(t *testing.T) {
	example, err := os.ReadFile("client/feel_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/NETCODE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, listing, _ := strings.Cut(string(example), "\nvar (\n")
	listing, _, found := strings.Cut(listing, "\n// All that a game needs")
	if !found || !strings.Contains(string(page), "```go\nvar (\n"+listing+"```") {
		t.Error("docs/NETCODE.md does not show what client/feel_example_test.go has: copy it there")
	}
}
