package starters

import (
	"os"
	"strings"
	"testing"
)

// The guide shows the preset cards, and says how many lines it has.
func TestGuideShowsThePresetCards(t *testing.T) {
	guide, err := os.ReadFile("../../docs/GUIDE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## 6. Around a match\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var game string
	for _, file := range []string{"game.go", "table.go", "rules.go"} {
		text, err := Files.ReadFile("cards/game/" + file)
		if err != nil {
			t.Fatal(err)
		}
		game += string(text)
	}
	listings := strings.Split(section, "```go\n")[1:]
	for _, l := range listings {
		l, _, _ = strings.Cut(l, "```")
		if !strings.Contains(game, l) {
			t.Errorf("docs/GUIDE.md shows other code than examples/starters/cards: copy it there:\n%s", l)
		}
	}
	if lines := strings.Count(game, "\n"); lines != 380 || len(listings) < 5 {
		t.Errorf("the game has %d lines, and the guide says 380; it shows %d parts", lines, len(listings))
	}
}
