package loadtest

// Verdict is the judgement of a run.
type Verdict struct {
	Pass bool `json:"pass"`
	// Valid reports that the load client kept up: the figures of an invalid run mean nothing.
	Valid bool `json:"valid"`
	Exit  int  `json:"exit"` // status of the program
	// Reasons are the reasons why the run did not pass.
	Reasons []string `json:"reasons"`
}

// judge sets the verdict of a complete report.
func (r *report) judge() {
	v := Verdict{Valid: !r.Saturated, Reasons: r.shortfalls()}
	v.Pass = len(v.Reasons) == 0
	switch {
	case r.interrupted:
		v.Exit = exitEarly
	case !v.Pass:
		v.Exit = exitShort
	}
	r.Verdict = v
}
