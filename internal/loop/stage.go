package loop

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

// String returns the name of the stage, "unset" for zero and "invalid" for
// anything that is no stage.
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

// index is the position of a valid stage in arrays of NumStages.
func (s Stage) index() int { return int(s) - 1 }

// bit is the stage's place in a set of stages.
func (s Stage) bit() stageSet { return 1 << s }

// stageSet is a set of stages, one bit each.
type stageSet uint16

// allStages holds the seven stages.
const allStages stageSet = (1<<(NumStages+1) - 1) &^ 1

// has reports whether s is in the set.
func (x stageSet) has(s Stage) bool { return x&s.bit() != 0 }
