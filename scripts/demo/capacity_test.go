package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// A row has the figures of the largest number that met the thresholds. It is a lower bound if the
// search, the load client or an interrupt was the limit.
func TestRowsOfCapacities(t *testing.T) {
	const steps = `"steps":[{"clients":50,"met":true,"snapshot_age_p99_ms":1},{"clients":100,"met":false,"snapshot_age_p99_ms":9},{"clients":100,"met":true,"snapshot_age_p99_ms":40.123,"server_tick_p99_ms":3,"server_cpu_cores":0.5},{"clients":200,"met":false}]}`
	for result, want := range map[string]string{
		`{"knee":100,"broken":105,"saturated":"server",` + steps:                         "| arena | 60 | 100 | 40.12 | 3.00 | 0.50 | – | at 105: server |",
		`{"knee":100,"broken":105,"saturated":"generator",` + steps:                      "| arena | 60 | ≥ 100 | 40.12 | 3.00 | 0.50 | – | at 105: generator |",
		`{"knee":100,"saturated":"neither",` + steps:                                     "| arena | 60 | ≥ 100 | 40.12 | 3.00 | 0.50 | – | limit of the search |",
		`{"knee":100,"broken":105,"saturated":"server","interrupted":true,` + steps:      "| arena | 60 | ≥ 100 | 40.12 | 3.00 | 0.50 | – | interrupted |",
		`{"knee":0,"broken":25,"saturated":"both","steps":[{"clients":25,"met":false}]}`: "| arena | 60 | 0 | – | – | – | – | at 25: both |",
	} {
		s := search{Players: "arena", Rate: 60}
		if err := json.Unmarshal([]byte(result), &s.Result); err != nil {
			t.Fatal(err)
		}
		if got := s.row(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The file of the results keeps all searches until then.
func TestCapacitiesAreSaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "capacity.json")
	for n := range 2 {
		if err := save(file, make([]search, n+1)); err != nil {
			t.Fatal(err)
		}
	}
	var all []search
	if text, err := os.ReadFile(file); err != nil || json.Unmarshal(text, &all) != nil || len(all) != 2 {
		t.Errorf("%d searches: %v", len(all), err)
	}
}
