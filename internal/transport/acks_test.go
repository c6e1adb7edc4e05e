package transport

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAckRangesNameExactlyArrivedPackets compares the set with a plain map.
func TestAckRangesNameExactlyArrivedPackets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var set ackSet
		got := map[uint64]bool{}
		newest := rapid.SampledFrom([]uint64{0, 1, 63, 64, 5000, 1<<64 - 3000}).Draw(t, "start")
		id := newest
		for range rapid.IntRange(1, 300).Draw(t, "n") {
			fresh := !got[id] && newest-min(id, newest) < AckWindow
			if set.add(id) != fresh {
				t.Fatalf("add(%d) with newest %d: want %v", id, newest, fresh)
			}
			got[id] = got[id] || fresh
			newest = max(newest, id)
			step := rapid.IntRange(-70, 90).Draw(t, "step")
			if rapid.IntRange(0, 50).Draw(t, "jump") == 0 {
				step *= 20
			}
			if step < 0 && uint64(-step) > newest || step > 0 && newest+uint64(step) < newest {
				step = 0
			}
			id = newest + uint64(step)
		}
		want := []uint64{}
		for id := range got {
			if newest-id < AckWindow {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		ranges := fieldRanges(t, &set)
		if len(ranges) > MaxAckRanges {
			t.Fatalf("%d ranges", len(ranges))
		}
		ids := []uint64{}
		for _, r := range slices.Backward(ranges) {
			for id := r.First; ; id++ {
				ids = append(ids, id)
				if id == r.Last {
					break
				}
			}
		}
		if len(ranges) == MaxAckRanges { // The oldest may be left out.
			want = want[len(want)-len(ids):]
		}
		if !slices.Equal(ids, want) {
			t.Fatalf("newest %d:\ngot  %v\nwant %v", newest, ids, want)
		}
	})
}

type fataler interface{ Fatal(...any) }

// fieldRanges encodes a set and parses it again.
func fieldRanges(t fataler, a *ackSet) []Range {
	b := a.appendField(nil)
	if len(b) > maxAckField {
		t.Fatal("the field has", len(b), "bytes")
	}
	d, err := parseDatagram(append(appendNumber(nil, 1), b...))
	if err != nil {
		t.Fatal(err)
	}
	ranges, err := parseAcks(d.acks, nil)
	if err != nil {
		t.Fatal(err, b)
	}
	return ranges
}

func TestWorstAckFieldFits(t *testing.T) {
	var a ackSet
	for id := uint64(1 << 63); id < 1<<63+AckWindow; id += 2 {
		a.add(id)
	}
	if r := fieldRanges(t, &a); len(r) != MaxAckRanges {
		t.Error(len(r), "ranges")
	}
	a = ackSet{}
	id := uint64(1 << 63)
	for n := range 60 { // Runs of two bytes if they fit the window.
		id += uint64(1 + 130*(n%8/7))
		a.add(id + uint64(n))
	}
	fieldRanges(t, &a)
}

func TestDuplicateWindowAcceptsEachNumberOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w dupWindow
		seen := map[uint64]bool{}
		newest := uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			n := uint64(rapid.IntRange(1, 5000).Draw(t, "number"))
			if rapid.Bool().Draw(t, "near") {
				n = newest + uint64(rapid.IntRange(0, 3).Draw(t, "step")) + 1
			}
			why, fresh := w.check(n)
			want := fmt.Sprint(DropDuplicate)
			switch {
			case n+DuplicateWindow <= newest:
				want = fmt.Sprint(DropStale)
			case !seen[n]:
				want = "fresh"
			}
			got := fmt.Sprint(why)
			if fresh {
				got = "fresh"
			}
			if got != want {
				t.Fatalf("number %d, newest %d: %s, want %s", n, newest, got, want)
			}
			seen[n] = true
			newest = max(newest, n)
		}
	})
}

// TestHighestNumberIsNotAnEndlessLoop: the peer may choose any number.
func TestHighestNumberIsNotAnEndlessLoop(t *testing.T) {
	const top = 1<<64 - 1
	var w dupWindow
	var a ackSet
	for _, n := range []uint64{top - 5, top} {
		if _, fresh := w.check(n); !fresh || !a.add(n) {
			t.Error(n)
		}
	}
	if _, fresh := w.check(top); fresh {
		t.Error("twice")
	}
	if r := fieldRanges(t, &a); fmt.Sprint(r) != fmt.Sprint([]Range{{top, top}, {top - 5, top - 5}}) {
		t.Error(r)
	}
}
