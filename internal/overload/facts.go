package overload

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Means are the means of a window, as shares of the tick period.
type Means struct{ Load, Lateness, Lag float64 }

var (
	hotMeans  = Means{hotLoad, hotLateness, hotLag}
	calmMeans = Means{calmLoad, calmLateness, calmLag}
)

// reach reports whether any mean is at or above its limit.
func (m Means) reach(limits Means) bool {
	return m.Load >= limits.Load || m.Lateness >= limits.Lateness || m.Lag >= limits.Lag
}

// credit returns the credit of a window that is not hot.
func (m Means) credit() int {
	if m.reach(calmMeans) {
		return 1
	}
	return calmCredit
}

// Facts tell why a Monitor is at its level. All times are of running ticks.
type Facts struct {
	Level Level
	For   time.Duration // since the last change of the level
	Last  Means         // of the last window; 0 before the first
	Hot   Means         // of the last hot window; 0 if there was none
	Ago   time.Duration // since that window
	// Next is the time until the level is lowered, if all further windows are like the last one; 0
	// if that one is hot, or if the level is Normal.
	Next time.Duration
}

// Facts returns the facts as of the last window.
func (m *Monitor) Facts() Facts {
	window := time.Duration(m.ticks) * m.period
	f := Facts{Level: m.level, Last: m.last, Hot: m.hot, For: time.Duration(m.steady) * window}
	if m.hot == (Means{}) {
		return f
	}
	if f.Ago = time.Duration(m.unheated) * window; m.level > Normal && m.unheated > 0 {
		credit := m.last.credit()
		f.Next = window * time.Duration(max(1, min((calmCredit*m.hold-m.credit+credit-1)/credit, m.longest-m.cool)))
	}
	return f
}

// Measure is one of the measures of a window. Its values are shares of the tick period.
type Measure struct {
	Name  string  `json:"name"`  // of the measure
	Now   float64 `json:"now"`   // in the last window
	Hot   float64 `json:"hot"`   // in the last hot window
	Calm  float64 `json:"calm"`  // a window below it counts towards a step down
	Raise float64 `json:"raise"` // a window from here on raises the level
}

// Measures returns the measures with their limits.
func (f Facts) Measures() []Measure {
	return []Measure{
		{"tick time", f.Last.Load, f.Hot.Load, calmLoad, hotLoad},
		{"lateness", f.Last.Lateness, f.Hot.Lateness, calmLateness, hotLateness},
		{"flush lag", f.Last.Lag, f.Hot.Lag, calmLag, hotLag},
	}
}

// effects are the reductions of each level, in addition to those of the levels below.
var effects = [...]string{
	Halved: "clients get half of the snapshots", Shedding: "changes of objects of low priority wait", Refusing: "new clients are refused",
}

// String explains the level: the time since its last change, its effects, the measures that raised
// it, and the next step down.
func (f Facts) String() string {
	if f.Level == Normal {
		return "Normal: no work is reduced."
	}
	var b strings.Builder
	name := f.Level.String()
	fmt.Fprintf(&b, "%s for %v: %s. ", strings.ToUpper(name[:1])+name[1:], f.For.Round(time.Second), strings.Join(effects[Halved:f.Level+1], ", "))
	if f.Ago > 0 {
		fmt.Fprintf(&b, "Cause, %v ago: %s. ", f.Ago.Round(time.Second/2), f.Hot.over(hotMeans))
	} else {
		fmt.Fprintf(&b, "Cause: %s.", f.Hot.over(hotMeans))
	}
	if f.Next > 0 {
		now := cmp.Or(f.Last.over(calmMeans), fmt.Sprintf("tick time %.0f %%", 100*f.Last.Load))
		fmt.Fprintf(&b, "Now %s: %v in %v if it remains so.", now, f.Level-1, f.Next.Round(time.Second/2))
	}
	return b.String()
}

// over names the means that are at or above their limits.
func (m Means) over(limits Means) string {
	var over []string
	if m.Load >= limits.Load {
		over = append(over, fmt.Sprintf("tick time %.0f %% of the period (limit %.0f %%)", 100*m.Load, 100*limits.Load))
	}
	if m.Lateness >= limits.Lateness {
		over = append(over, fmt.Sprintf("lateness %.1f periods (limit %.1f)", m.Lateness, limits.Lateness))
	}
	if m.Lag >= limits.Lag {
		over = append(over, fmt.Sprintf("flush lag %.1f periods (limit %.1f)", m.Lag, limits.Lag))
	}
	return strings.Join(over, ", ")
}
