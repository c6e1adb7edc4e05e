package netloop

import "github.com/netloop/netloop/internal/loop"

// Stage is one of the seven stages of a tick, in the order in which they run.
// The zero Stage means that none was named.
type Stage = loop.Stage

// The stages of a tick. What belongs in each is said in the package's doc.
const (
	Initialization = loop.Initialization
	EarlyUpdate    = loop.EarlyUpdate
	FixedUpdate    = loop.FixedUpdate
	PreUpdate      = loop.PreUpdate
	Update         = loop.Update
	PreLateUpdate  = loop.PreLateUpdate
	PostLateUpdate = loop.PostLateUpdate
)

// AllStages returns the seven stages in the order in which a tick runs them. The
// option of a system is [Stages].
func AllStages() []Stage {
	all := loop.Stages()
	return all[:]
}
