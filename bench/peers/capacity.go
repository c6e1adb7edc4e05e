package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"gonum.org/v1/plot/plotter"
)

// players are the lines of the plot of `make capacity`, by the names in its results.
var players = []*peer{
	{name: "idle", title: "clients that watch the arena"},
	{name: "cards", title: "card players"},
	{name: "arena", title: "pilots of the arena"},
}

// plotCapacity draws the results of `make capacity`.
func plotCapacity(results, file string) error {
	text, err := os.ReadFile(results)
	if err != nil {
		return err
	}
	lines, err := capacityLines(text)
	if err != nil {
		return fmt.Errorf("%s: %w", results, err)
	}
	return writePlot(file, lines)
}

// capacityLines returns the largest number of clients of each sort at each rate.
func capacityLines(results []byte) (lines []line, err error) {
	var searches []struct {
		Players string `json:"players"`
		Rate    int    `json:"tick_rate_hz"`
		Result  struct {
			Knee int `json:"knee"`
		} `json:"result"`
	}
	if err := json.Unmarshal(results, &searches); err != nil {
		return nil, err
	}
	for _, p := range players {
		l := line{peer: p}
		for _, s := range searches {
			if s.Players == p.name {
				l.points = append(l.points, plotter.XY{X: float64(s.Rate), Y: float64(s.Result.Knee)})
			}
		}
		slices.SortFunc(l.points, func(a, b plotter.XY) int { return int(a.X - b.X) })
		if len(l.points) > 0 {
			lines = append(lines, l)
		}
	}
	return lines, nil
}
