package room_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/netloop/netloop"
)

// Every counter of the world reaches its series, under its own reason. What has none is named here.
func TestEveryCounterOfStateIsAMetric(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	b.step()
	stats := b.room.World().Stats()
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
	inside := []string{ // of netvar's own tests and of the game's log, or known from others
		"Objects", "Captured", "Versions", "Encoded", "Snapshots", "Packets", "Deltas", "InRuns", "Despawns", "Large", "Waited", "Ranked",
		"Judged", "Masked", "Acked", "Lost", "Overrun", "AckUnknown", "AckStale", "AckOverlapped",
		"FullRequests", "DigestRequests", "Digests", "DigestSlots", "Hashed", "Resumes",
	}
	known := map[string]bool{}
	for _, name := range inside {
		known[name] = true
	}
	v := reflect.ValueOf(stats).Elem()
	for i := range v.NumField() {
		if v.Field(i).CanUint() {
			v.Field(i).SetUint(uint64(1000 + i))
		}
	}
	stats.Waited = stats.OverBudget + stats.WaitedLarge + 7
	b.room.Report()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch line, ok := series[name]; {
		case ok && known[name], !ok && !known[name]:
			t.Errorf("%s: is it a metric or not?", name)
		case ok && !b.scraped(fmt.Sprintf("%s %d", line, v.Field(i).Uint())):
			t.Errorf("%s is not in %s", name, line)
		}
	}
	if !b.scraped(`netloop_snapshot_records_waited_total{reason="packets"} 7`) {
		t.Error("what waited for its packets is no metric")
	}
}

// A snapshot that is due and cannot leave is counted under what keeps it.
func TestSnapshotsThatCannotLeaveAreCounted(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	s := b.join()
	b.step()
	b.step() // the snapshot before still waits for the writer
	if line := `netloop_snapshots_deferred_total{reason="slot_busy"} 1`; !b.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
	for range 5 { // the window takes four that nobody acknowledges
		for _, more := s.AppendDatagram(nil, 0); more; _, more = s.AppendDatagram(nil, 0) {
			s.DatagramSent(0, 0, true)
		}
		b.step()
	}
	if line := `netloop_snapshots_deferred_total{reason="window_closed"} 2`; !b.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
}
