package recording

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/synctest"
)

// ticksFile is a recording of n ticks.
func ticksFile(t *testing.T, n uint64) []byte {
	t.Helper()
	var records []string
	for tick := range n {
		all := fullTick()
		all.Input.Tick = tick + 1
		b, err := AppendTick(nil, &all)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, string(b))
	}
	return sample(t, records...)
}

func reader(t *testing.T, file []byte) *Reader {
	t.Helper()
	r, _, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Ahead has the ticks, offsets and error of Next and ReadTick: of a whole file, at each side of a
// batch, of a cut and of a damaged one, and of one with a record that is no tick.
func TestAheadHasTheTicksOfNext(t *testing.T) {
	whole := ticksFile(t, 2*maxAhead)
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 1
	for name, file := range map[string][]byte{
		"none": ticksFile(t, 0), "one": ticksFile(t, 1), "whole": whole, "a batch": ticksFile(t, perBatch), "one more": ticksFile(t, perBatch+1),
		"cut": whole[:len(whole)-1], "damaged": damaged, "no tick": sample(t, "no tick"),
	} {
		var want []Decoded
		var ended error
		for r := reader(t, file); ended == nil; {
			var d Decoded
			if d, ended = r.decode(); ended == nil {
				want = append(want, d)
			}
		}
		var got []Decoded
		var err error
		for d, failed := range Ahead(reader(t, file)) {
			if err != nil {
				t.Errorf("%s: a pair after the error %v", name, err)
			}
			if err = failed; err == nil {
				got = append(got, d)
			}
		}
		if !reflect.DeepEqual(got, want) || err == nil || err.Error() != ended.Error() || errors.Is(err, io.EOF) != errors.Is(ended, io.EOF) {
			t.Errorf("%s: %d ticks, %v; want %d, %v", name, len(got), err, len(want), ended)
		}
	}
}

// The decoding goroutine ends with the loop, wherever that ends: else the bubble has a deadlock.
func TestAheadEndsWithItsLoop(t *testing.T) {
	file := ticksFile(t, 2*maxAhead)
	for _, last := range []uint64{1, perBatch, perBatch + 1, 2 * maxAhead} {
		synctest.Test(t, func(t *testing.T) {
			defer func() { _ = recover() }()
			for d, err := range Ahead(reader(t, file)) {
				if err != nil || d.Tick.Input.Tick == last {
					panic("the game has panicked")
				}
			}
			t.Error("the loop ends before its tick")
		})
		synctest.Test(t, func(t *testing.T) {
			for d, err := range Ahead(reader(t, file)) {
				if err != nil || d.Tick.Input.Tick == last {
					break
				}
			}
		})
	}
}
