package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/plotter"
)

// sample has figures for all cells of a plan, but for those that leave returns a note for.
func sample(p *plan, leave func(cell) string) *results {
	r := &results{Machine: "2 cores of a test", Versions: map[string]string{"nano": "0.5.1"}, Skipped: map[string]string{"enet": "no compiler"}, Cells: map[string]outcome{}}
	for i, c := range p.cells() {
		o := outcome{At: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC), Note: leave(c), Window: p.windowOf(c).Seconds(), Server: 0.1 + float64(i%8)/100}
		o.Rate, o.Updates, o.AgeP50, o.AgeP99, o.Packets = 60, 240, 8, 20.4, 1000
		r.Cells[c.key()] = o
	}
	return r
}

func page(t *testing.T, r *results) (text string, files []string) {
	t.Helper()
	dir := t.TempDir()
	if err := writePage(filepath.Join(dir, "PEERS.md"), r, prices{core: 15, gigabyte: 0.02}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "PEERS.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err = filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b), files
}

func TestThePageHasTheFiguresOfEachPart(t *testing.T) {
	text, files := page(t, sample(&fullPlan, func(cell) string { return "" }))
	for _, want := range []string{
		"Measured 2026-11-27 on 2 cores of a test.", "| nano | 0.5.1 | TCP, plain |", "left out: no compiler",
		"### One in ten moves, 20 Hz", "| peer | 60 ms, 0 % | 60 ms, 1 % |", "| netloop | 8.0 / 20 |", "| 200 kbit/s |", "## After a tick of 2 s", "is closed",
		"| netloop | 0.5 | 155520 | 8 | 3110 | 3118 |", "(peers-cpu.svg)", "(peers-age.svg)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, none+" |") || len(files) != 2 {
		t.Errorf("figures are missing, or plots: %v", files)
	}
}

// An invalid figure is not shown, not even in a plot, and its cell is named.
func TestInvalidFiguresAreNotShown(t *testing.T) {
	text, files := page(t, sample(&quickPlan, func(c cell) string { return "other programs took 50 % of a core" }))
	if strings.Contains(text, "8.0 / 20") || strings.Contains(text, "| 8.0 |") || !strings.Contains(text, "| nano | 50 | – |") || len(files) != 0 {
		t.Errorf("%v:\n%s", files, text)
	}
	if !strings.Contains(text, "- loopback, smooth, 60Hz, 50 clients, nano: other programs took 50 % of a core") {
		t.Error("the cell is not named")
	}
}

func TestAPageWithoutResultsSaysSo(t *testing.T) {
	if text, _ := page(t, &results{}); !strings.Contains(text, "There are no figures") || strings.Contains(text, "|") {
		t.Error(text)
	}
}

// Valid cells of a long enough window are not measured again.
func TestARunIsContinued(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results")
	r := sample(&quickPlan, func(c cell) string {
		if c.part == silent {
			return "busy"
		}
		return ""
	})
	if err := r.save(file); err != nil {
		t.Fatal(err)
	}
	r, err := loadResults(file)
	if err != nil {
		t.Fatal(err)
	}
	c := cell{part: loopback, world: "smooth", rate: 60, clients: 50, peer: peers[0]}
	if !r.has(c, quickPlan.window) || r.has(c, fullPlan.window) {
		t.Error("the length of the window does not count")
	}
	c = silentCell
	if c.peer = peers[0]; r.has(c, quickPlan.silence) {
		t.Error("an invalid cell is not measured again")
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadResults(file); err == nil {
		t.Error("a damaged file is read")
	}
}

func TestCellsHaveKeysAndLinksOfTheirOwn(t *testing.T) {
	for _, p := range []*plan{&fullPlan, &quickPlan} {
		seen := map[string]bool{}
		for _, c := range p.cells() {
			if _, err := c.spec(); err != nil || seen[c.key()] {
				t.Errorf("%s: %v", c.key(), err)
			}
			seen[c.key()] = true
		}
	}
}

func TestImpossibleRunsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-only lan": `-only: "lan" cannot be used`, "-peers photon": `-peers: "photon" cannot be used: use netloop`,
		"-core-price -1": "prices of 0 or more", "now": "no word besides", "-nope": "-help lists the flags",
	} {
		if _, err := parse(strings.Fields(args), new(strings.Builder)); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// The plot of capacities has a line for each sort of players, in the order of the rates.
func TestCapacitiesAreDrawn(t *testing.T) {
	const results = `[{"players":"cards","tick_rate_hz":60,"result":{"knee":900}},{"players":"arena","tick_rate_hz":60,"result":{"knee":200}},` +
		`{"players":"arena","tick_rate_hz":20,"result":{"knee":400}}]`
	lines, err := capacityLines([]byte(results))
	if err != nil || len(lines) != 2 || lines[1].peer.name != "arena" || !slices.Equal(lines[1].points, plotter.XYs{{X: 20, Y: 400}, {X: 60, Y: 200}}) {
		t.Errorf("%v, %v", lines, err)
	}
	file := filepath.Join(t.TempDir(), "capacity.svg")
	if err := writePlot(file, lines); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "pilots of the arena") {
		t.Errorf("%s, %v", text, err)
	}
	if err := plotCapacity(filepath.Join(t.TempDir(), "none.json"), file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without results: %v", err)
	}
}
