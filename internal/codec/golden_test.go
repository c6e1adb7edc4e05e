package codec

import (
	"testing"

	"github.com/netloop/netloop/internal/testing/golden"
)

// The worked differences of docs/WIRE.md, as in the edits of lists.
func TestGoldenDifferences(t *testing.T) {
	type item struct {
		ID    uint16
		Count int8
	}
	type bag struct {
		Items []item `net:"key=ID"`
		Ammo  map[string]uint8
		Seen  map[int16]struct{}
	}
	type pose struct {
		X    float32    `net:"quant=1/8,range=-100:100"`
		Heat float64    `net:"quant=0.1,range=20:90"`
		Q    [4]float32 `net:"quat=10"`
		None [4]float32 `net:"quat=4"`
	}
	lists, poses := mustPlan[bag](t), mustPlan[pose](t)
	for name, got := range map[string][]byte{
		"differences-lists": difference(t, lists, captured(lists, bag{
			Items: []item{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}},
			Ammo:  map[string]uint8{"arrow": 20, "bolt": 5, "stone": 9},
			Seen:  map[int16]struct{}{-4: {}, 3: {}},
		}), captured(lists, bag{
			Items: []item{{2, 2}, {3, 7}, {4, 4}, {5, 5}, {6, 6}, {9, -1}},
			Ammo:  map[string]uint8{"arrow": 19, "stone": 9},
			Seen:  map[int16]struct{}{8: {}},
		})),
		"differences-steps": poses.appendDiffs(nil,
			captured(poses, pose{X: -99, Heat: 36.5, Q: [4]float32{-0.5, 0.5, 0.103, -0.7}}),
			captured(poses, pose{X: -99.5, Heat: 36.6, Q: [4]float32{-0.5, 0.5, 0.1, -0.7}})),
	} {
		if want := golden.Example(t, "../../docs/WIRE.md", name); string(got) != string(want) {
			t.Errorf("%s:\ngot  % x\nwant % x", name, got, want)
		}
	}
}
