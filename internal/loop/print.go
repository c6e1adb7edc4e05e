package loop

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Table returns a text with one line for each system, by stage and in the order of running. For a
// running server it includes the cost and the state.
func Table(stages []DumpStage, running bool) string {
	var w strings.Builder
	t := tabwriter.NewWriter(&w, 0, 0, 2, ' ', 0)
	head := "stage and system\tplace\tpriority\tevery\torder"
	if running {
		head += "\tcalls\tmean\tp50\tp99\tstate"
	}
	fmt.Fprintln(t, head)
	for _, stage := range stages {
		name := stage.Stage.String()
		if stage.Stage == 0 {
			name = "not placed yet"
		}
		// The tabs keep the columns aligned: a line without tabs would end them.
		fmt.Fprintln(t, name+strings.Repeat("\t", strings.Count(head, "\t")))
		for i := range stage.Systems {
			s := &stage.Systems[i]
			line := []string{"  " + s.Path(), s.Place.String(), strconv.Itoa(s.Priority), s.Every(), s.order()}
			if running {
				line = append(append(line, s.Cost.columns()...), s.state())
			}
			fmt.Fprintln(t, strings.Join(line, "\t"))
		}
	}
	_ = t.Flush() // A strings.Builder returns no error.
	return trimLines(w.String())
}

// trimLines removes trailing blanks from the lines of a table.
func trimLines(text string) string {
	var w strings.Builder
	for line := range strings.Lines(text) {
		w.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return w.String()
}

// Path returns the name of a system with the groups around it.
func (s *DumpSystem) Path() string {
	return strings.Join(append(s.Groups[:len(s.Groups):len(s.Groups)], s.Name), " / ")
}

// Every returns the period of a system.
func (s *DumpSystem) Every() string {
	switch {
	case s.Once:
		return "once a tick"
	case !s.Periodic:
		return "-"
	}
	said := s.Period.String()
	if s.Gap {
		said = "at least " + said
	}
	if s.Scaled {
		said += " scaled"
	}
	if s.CatchUp > 0 {
		said += fmt.Sprintf(", up to %d times", s.CatchUp)
	}
	return said
}

// order returns the anchors of a system, and whether it has a condition or is disabled, as a text.
func (s *DumpSystem) order() string {
	var said []string
	if len(s.Before) > 0 {
		said = append(said, "before "+strings.Join(s.Before, ", "))
	}
	if len(s.After) > 0 {
		said = append(said, "after "+strings.Join(s.After, ", "))
	}
	if s.Conditional {
		said = append(said, "on a condition")
	}
	if s.Disabled {
		said = append(said, "disabled")
	}
	if len(said) == 0 {
		return "-"
	}
	return strings.Join(said, "; ")
}

// columns returns the count and times of a system's calls, in four columns.
func (c *DumpCost) columns() []string {
	if c == nil {
		return []string{"0", "-", "-", "-"}
	}
	columns := []string{strconv.FormatUint(c.Runs, 10)}
	for _, d := range []time.Duration{c.Mean, c.P50, c.P99} {
		columns = append(columns, fmt.Sprintf("%.1fµs", float64(d)/1e3))
	}
	return columns
}

// state returns the exceptional states of a system of a running server.
func (s *DumpSystem) state() string {
	var said []string
	if s.Pending {
		said = append(said, "pending")
	}
	if s.Quarantine > 0 {
		said = append(said, fmt.Sprintf("quarantined for %d ticks", s.Quarantine))
	}
	if s.Panics > 0 {
		said = append(said, fmt.Sprintf("panicked %d times", s.Panics))
	}
	if len(said) == 0 {
		return "ok"
	}
	return strings.Join(said, ", ")
}
