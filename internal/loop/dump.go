package loop

// DumpStage is one stage of the loop for printing.
type DumpStage struct {
	// Stage is 0 for the last group: systems that have not taken effect yet.
	Stage   Stage
	Systems []DumpSystem
}

// DumpSystem is one system of a stage for printing.
type DumpSystem struct {
	Name          string
	Place         Place
	Priority      int
	Before, After []string
	Once          bool
	Critical      bool
	Pending       bool
}

// Dump returns the stages with their systems in order.
func (l *Loop[C]) Dump() []DumpStage { panic("loop: not yet") }
