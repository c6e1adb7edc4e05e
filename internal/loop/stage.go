package loop

import "fmt"

// Stage is one of the seven stages of a tick. The zero value is unset.
type Stage uint8

// The stages, in the order in which a tick runs them.
const (
	Initialization Stage = 1 + iota
	EarlyUpdate
	FixedUpdate
	PreUpdate
	Update
	PreLateUpdate
	PostLateUpdate
)

// NumStages is the number of stages of a tick.
const NumStages = 7

var stageNames = [NumStages + 1]string{
	"unset", "Initialization", "EarlyUpdate", "FixedUpdate", "PreUpdate",
	"Update", "PreLateUpdate", "PostLateUpdate",
}

// String returns the name of the stage, "unset" for zero and "invalid" for any other value.
func (s Stage) String() string {
	if int(s) >= len(stageNames) {
		return "invalid"
	}
	return stageNames[s]
}

// Valid reports whether s is one of the seven stages.
func (s Stage) Valid() bool { return s >= Initialization && s <= PostLateUpdate }

// Stages returns the seven stages in order.
func Stages() [NumStages]Stage {
	return [NumStages]Stage{
		Initialization, EarlyUpdate, FixedUpdate, PreUpdate,
		Update, PreLateUpdate, PostLateUpdate,
	}
}

// MarshalText writes the name of the stage.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the output of MarshalText, including that of an unset stage.
func (s *Stage) UnmarshalText(text []byte) error {
	for i, name := range stageNames {
		if name == string(text) {
			*s = Stage(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no stage", text)
}

// index returns the index of a valid stage in arrays of NumStages.
func (s Stage) index() int { return int(s) - 1 }

// bit returns the stage's bit in a set of stages.
func (s Stage) bit() stageSet { return 1 << s }

// stageSet is a set of stages, one bit each.
type stageSet uint16

// allStages holds the seven stages.
const allStages stageSet = (1<<(NumStages+1) - 1) &^ 1

// has reports whether s is in the set.
func (x stageSet) has(s Stage) bool { return x&s.bit() != 0 }

// setOf returns the set of some stages; or of all stages if none is given.
func setOf(stages []Stage) stageSet {
	if len(stages) == 0 {
		return allStages
	}
	var x stageSet
	for _, s := range stages {
		x |= s.bit()
	}
	return x
}

// list returns the stages of the set in order. For all stages it returns nil: see setOf.
func (x stageSet) list() []Stage {
	if x == allStages {
		return nil
	}
	var list []Stage
	for _, s := range Stages() {
		if x.has(s) {
			list = append(list, s)
		}
	}
	return list
}
