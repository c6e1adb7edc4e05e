package rpcqueue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/loop"
)

func TestATableFindsItsMethods(t *testing.T) {
	a, b, c := method(7, "a"), method(0, "b"), method(3, "c", loop.FixedUpdate)
	far := method(1<<16-1, "far")
	table, err := NewTable(a, b, c, far)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Method{a, b, c, far} {
		if got, ok := table.ByID(m.ID); !ok || got != m {
			t.Errorf("id %d finds %v", m.ID, got)
		}
		if got, ok := table.ByName(m.Name); !ok || got != m {
			t.Errorf("name %s finds %v", m.Name, got)
		}
	}
	for _, id := range []uint32{1, 8, 1 << 16, 1 << 31, 1<<32 - 1} {
		if m, ok := table.ByID(id); ok {
			t.Errorf("id %d finds %v", id, m)
		}
	}
	if _, ok := table.ByName("d"); ok {
		t.Error("found an unknown method")
	}
	if all := table.Methods(); !slices.Equal(all, []*Method{b, c, a, far}) {
		t.Errorf("methods %v", all)
	}
}

func TestABadMethodIsRefusedByName(t *testing.T) {
	for _, c := range []struct {
		methods []*Method
		says    string
	}{
		{[]*Method{nil}, "nil"},
		{[]*Method{{ID: 4}}, "id 4"},
		{[]*Method{method(1<<16, "far")}, `"far"`},
		{[]*Method{method(1, "a"), method(2, "a")}, `"a"`},
		{[]*Method{method(1, "a"), method(1, "b")}, `"a" and "b"`},
		{[]*Method{method(1, "a", 8)}, "stage 8"},
		{[]*Method{method(1, "a", 0)}, "stage 0"},
		{[]*Method{method(1, "a", loop.Update, loop.PreUpdate, loop.Update)}, "Update is named twice"},
	} {
		if _, err := NewTable(c.methods...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, want one that says %q", err, c.says)
		}
	}
	_, err := NewTable(method(1, "", loop.Update), method(2, "two", 9), method(3, "fine"))
	if err == nil || !strings.Contains(err.Error(), "id 1") || !strings.Contains(err.Error(), `"two"`) {
		t.Errorf("error %v does not name both", err)
	}
}

func TestStagesAreEncodedInSteps(t *testing.T) {
	for i, s := range append([]loop.Stage{0}, slicesOfStages()...) {
		if w := WireStage(s); w != uint32(10*i) {
			t.Errorf("%v is encoded as %d", s, w)
		}
	}
}

func slicesOfStages() []loop.Stage {
	all := loop.Stages()
	return all[:]
}

func TestOutcomesHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for o := range Outcome(NumOutcomes) {
		if name := o.String(); name == "" || seen[name] {
			t.Errorf("outcome %d is named %q", o, name)
		}
		seen[o.String()] = true
		if queued := o == Accepted || o == Late; o.Queued() != queued {
			t.Errorf("%v is queued: %v", o, o.Queued())
		}
		if runs := o.Queued() || o == Ran || o == Failed || o == Panicked; o.Dropped() == runs {
			t.Errorf("%v is dropped: %v", o, o.Dropped())
		}
	}
	if Panicked.String() != "panicked" || ClientGone.String() != "client_gone" || LateDropped.String() != "late_dropped" || Outcome(200).String() != "invalid" {
		t.Error("the names are shifted")
	}
}

// The error of a handler decides the outcome of its message: its reason, if it is one that a
// handler may return, also when wrapped.
func TestARejectionCountsUnderItsReason(t *testing.T) {
	no := errors.New("no")
	for o := range Outcome(NumOutcomes) {
		want := Failed
		if slices.Contains([]Outcome{ClientGone, Forbidden, Invalid, NotOwner}, o) {
			want = o
		}
		rejection := &Rejection{o, no}
		for _, err := range []error{rejection, fmt.Errorf("wrapped: %w", rejection)} {
			if got := Ended(err); got != want || !errors.Is(err, no) || !strings.Contains(err.Error(), o.String()+": no") {
				t.Errorf("%v counts as %v, want %v", err, got, want)
			}
		}
	}
	if got := Ended(no); got != Failed {
		t.Errorf("any other error counts as %v", got)
	}
}
