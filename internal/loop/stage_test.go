package loop

import "testing"

func TestStagesAndPlacesHaveNames(t *testing.T) {
	for i, want := range []string{
		"unset", "Initialization", "EarlyUpdate", "FixedUpdate", "PreUpdate", "Update", "PreLateUpdate", "PostLateUpdate", "invalid",
	} {
		s, back := Stage(i), Stage(99)
		text, _ := s.MarshalText() // It never fails.
		if err := back.UnmarshalText(text); string(text) != want || (err == nil && back == s) != (i <= NumStages) {
			t.Errorf("stage %d is %q and then %d, %v", i, text, back, err)
		}
		if got := s.Valid(); got != (i >= 1 && i <= NumStages) {
			t.Errorf("%v is valid: %v", s, got)
		}
	}
	for i, want := range []string{"body", "head", "tail", "invalid"} {
		p, back := Place(i), Place(99)
		text, _ := p.MarshalText() // It never fails.
		if err := back.UnmarshalText(text); string(text) != want || (err == nil && back == p) != (i < 3) {
			t.Errorf("place %d is %q and then %d, %v", i, text, back, err)
		}
	}
}

// FixedUpdate has the list of Once systems before its own.
func TestListsAreInTheOrderOfTheirStages(t *testing.T) {
	for k, want := range []Stage{Initialization, EarlyUpdate, FixedUpdate, FixedUpdate, PreUpdate, Update, PreLateUpdate, PostLateUpdate} {
		if got := stageOf(k); got != want || k != onceList && want.list() != k {
			t.Errorf("list %d is of %v, whose list is %d; want %v", k, got, got.list(), want)
		}
	}
	if all := setOf(nil); all != allStages || all.list() != nil || all.has(0) || all.has(PostLateUpdate+1) {
		t.Errorf("all stages are %b", all)
	}
	if some := setOf([]Stage{Update, EarlyUpdate}); len(some.list()) != 2 || some.list()[0] != EarlyUpdate || some.list()[1] != Update {
		t.Errorf("two stages are %v", some.list())
	}
}
