package netloop

import (
	"reflect"
	"strings"
	"testing"
)

// An explanation prints its evidence, and omits events that have not happened.
func TestAnExplanationPrintsItsEvidence(t *testing.T) {
	all := Explanation{
		Reason: ReasonInterval, Client: 7, Object: "3.1", Class: "dial", Field: "Pos.X",
		Tick: 9, Changed: 8, Visible: 1, Baseline: 5, Sent: 6, Version: 4, Copies: 2, Packets: []uint64{11, 12}, Until: 10,
	}
	begins := "client 7, dial 3.1, Pos.X at tick 9: the field's interval is not over (changed at 8"
	visible, sent, held := ", visible since 1, acknowledged version 5", ", sent at 6: version 4, copies 2, packets [11 12]", ", held back until 10"
	for without, want := range map[string]string{
		"Visible": begins + sent + held + ")",
		"Sent":    begins + visible + held + ")",
		"Until":   begins + visible + sent + ")",
		"":        begins + visible + sent + held + ")",
	} {
		x := all
		if without != "" {
			reflect.ValueOf(&x).Elem().FieldByName(without).SetZero()
		}
		if got := x.String(); got != want {
			t.Errorf("without %q it says\n%s, want\n%s", without, got, want)
		}
	}
	for _, unknown := range []Reason{0, numReasons, 255} {
		if got := (Explanation{Reason: unknown}).String(); !strings.Contains(got, "the reason is unknown") || unknown.String() != "unknown" {
			t.Errorf("reason %d: it says %s", uint8(unknown), got)
		}
	}
}
