package loadtest

import "fmt"

// Verdict is the judgement of a run.
type Verdict struct {
	Pass bool `json:"pass"`
	// Valid reports that the load client kept up: the figures of an invalid run mean nothing.
	Valid      bool        `json:"valid"`
	Exit       int         `json:"exit"` // status of the program
	Thresholds []Judgement `json:"thresholds"`
	// Reasons are the reasons why the run did not pass.
	Reasons []string `json:"reasons"`
}

// judge sets the verdict of a complete report.
func (r *report) judge(bounds []threshold) {
	v := Verdict{Valid: !r.Saturated, Thresholds: []Judgement{}, Reasons: []string{}}
	for i := range bounds {
		j := bounds[i].judge(&r.Result)
		v.Thresholds = append(v.Thresholds, j)
		if !j.Met {
			u := bounds[i].metric.unit
			v.Reasons = append(v.Reasons, fmt.Sprintf("threshold %s: %s is %s", j.Threshold, j.Metric, show(j.Value, u)))
		}
	}
	v.Reasons = append(v.Reasons, r.shortfalls()...)
	v.Pass = len(v.Reasons) == 0
	switch {
	case r.interrupted:
		v.Exit = exitEarly
	case !v.Pass:
		v.Exit = exitShort
	}
	r.Verdict = v
}
