package metrics

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// An invalid row would panic at a scrape, or never have a value.
func TestRowsAreComplete(t *testing.T) {
	for _, r := range table {
		if n := len(strings.Fields(r.labels)); n > maxLabels {
			t.Errorf("%s has %d labels, at most %d", r.name, n, maxLabels)
		}
		if total := strings.HasSuffix(r.name, "_total"); total != (r.kind == counter) {
			t.Errorf("%s is a %s: only counters end in _total, and all of them", r.name, r.kind)
		}
		if strings.HasPrefix(r.name, gamePrefix) {
			t.Errorf("%s has the prefix of a game's metrics", r.name)
		}
		if s := r.source; s.into == nil && s.room == nil && s.scrape == nil {
			t.Errorf("%s has no source", r.name)
		}
	}
}

// A family has as many label sets as its most numerous label can have values.
func TestLabelsWithNamesOfTheGameHaveMoreSets(t *testing.T) {
	for labels, want := range map[string]int{
		"": 1, "queue reason": maxOthers, "system stage": maxSystems, "class": maxClasses, "class field": maxFields,
		"method stage outcome": maxRPCs,
	} {
		if n := labelSets(strings.Fields(labels)); n != want {
			t.Errorf("%q has %d label sets at most, want %d", labels, n, want)
		}
	}
}

// Every counter of the world has a series, with its own reason, except for those listed here.
func TestEveryCounterOfStateIsAMetric(t *testing.T) {
	m, _ := newMetrics(t)
	room := new(fakeRoom)
	stats := &room.state
	series := map[string]string{
		"Clamped":        `netloop_clamped_values_total`,
		"BelowThreshold": `netloop_held_values_total{reason="threshold"}`,
		"WithinInterval": `netloop_held_values_total{reason="interval"}`,
		"Bytes":          `netloop_snapshot_bytes_total`,
		"Records":        `netloop_snapshot_records_total`,
		"OverBudget":     `netloop_snapshot_records_waited_total{reason="budget"}`,
		"WaitedLarge":    `netloop_snapshot_records_waited_total{reason="stream"}`,
		"Shed":           `netloop_snapshot_records_waited_total{reason="shed"}`,
		"FullFirst":      `netloop_full_states_total{reason="first"}`,
		"FullVisible":    `netloop_full_states_total{reason="became_visible"}`,
		"FullRequested":  `netloop_full_states_total{reason="requested"}`,
		"FullEvicted":    `netloop_full_states_total{reason="evicted"}`,
		"FullLarge":      `netloop_full_states_total{reason="large"}`,
		"FullMasked":     `netloop_full_states_total{reason="mask_changed"}`,
		"FullResumed":    `netloop_full_states_total{reason="resumed"}`,
		"BadPositions":   `netloop_grid_bad_positions_total`,
		"Shown":          `netloop_visibility_changes_total{change="shown"}`,
		"Hidden":         `netloop_visibility_changes_total{change="hidden"}`,
	}
	inside := []string{ // for netvar's own tests and the game's log, or derived from others
		"Objects", "Captured", "Versions", "Encoded", "Snapshots", "Packets", "Deltas", "InRuns", "Despawns", "Large", "Waited", "Ranked", "Planned",
		"Judged", "Masked", "Acked", "Lost", "Overrun", "AckUnknown", "AckStale", "AckOverlapped",
		"FullRequests", "DigestRequests", "Digests", "DigestSlots", "Hashed", "Resumes",
	}
	known := map[string]bool{}
	for _, name := range inside {
		known[name] = true
	}
	v := reflect.ValueOf(stats).Elem()
	fields := reflect.VisibleFields(v.Type())
	for i, field := range fields {
		if f := v.FieldByIndex(field.Index); f.CanUint() {
			f.SetUint(uint64(1000 + i))
		}
	}
	stats.Waited = stats.OverBudget + stats.WaitedLarge + 7
	m.Report(room)
	text := scrape(t, m)
	for _, field := range fields {
		name := field.Name
		if field.Anonymous {
			continue
		}
		switch line, ok := series[name]; {
		case ok && known[name], !ok && !known[name]:
			t.Errorf("%s: it is neither a metric nor listed as an exception", name)
		case ok:
			expect(t, text, fmt.Sprintf("%s %d", line, v.FieldByIndex(field.Index).Uint()))
		}
	}
	expect(t, text, `netloop_snapshot_records_waited_total{reason="packets"} 7`)
}
