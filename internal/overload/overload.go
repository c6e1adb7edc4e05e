package overload

import (
	"slices"
	"time"
)

// Level is a level of overload. Each level includes the reductions of the lower levels.
type Level uint8

const (
	// Normal reduces no work.
	Normal Level = iota
	// Halved halves the snapshots of each client.
	Halved
	// Shedding sends changes of low-priority objects only at their minimum rate.
	Shedding
	// Refusing admits no new clients.
	Refusing
)

// Highest is the highest level.
const Highest = Refusing

// String returns the level's name.
func (l Level) String() string {
	if l > Highest {
		return "unknown"
	}
	return [...]string{Normal: "normal", Halved: "halved", Shedding: "shedding", Refusing: "refusing"}[l]
}

// A window is evaluated as a whole. Its length is the larger of these two: half a second of
// overload, which players accept, and 16 ticks, so that even a stall of many seconds, which makes
// the next five ticks late, remains below the thresholds.
const (
	windowTime  = 500 * time.Millisecond
	windowTicks = 16
)

// outlier limits the contribution of one tick to a window, in tick periods: at 60 Hz a single tick
// of a second counts like a tick of 67 ms.
const outlier = 4

// The thresholds, as shares of the tick period. A window is hot if any of its means is at or above
// hot, calm if all of them are below calm, and warm in between.
const (
	// A room that uses nine tenths of its time has no reserve for variation; below seven tenths it
	// has a reserve for the cost of the next lower level.
	hotLoad, calmLoad = 0.9, 0.7
	// If ticks are on average a whole period late, the machine schedules the room too late, even if
	// its ticks are short. Timers and garbage collections cause a few hundredths.
	hotLateness, calmLateness = 1.0, 0.5
	// If the snapshots of the median client are sent a whole period after their flush, the network
	// code gets too little CPU time, which the tick itself cannot detect.
	hotLag, calmLag = 1.0, 0.5
)

// The level is lowered by one after holdWindows calm windows in a row (5 s at 60 Hz). Warm windows
// count less: calmCredit times as many are needed, because a warm room may still need the
// reduction. If the load returns within as many windows after that, the level is raised at once,
// and the next step down takes twice as long, so that the level changes less and less often under a
// load that needs the higher level. After the time Recovery without a hot window, the level is
// lowered in any case.
const (
	holdWindows = 10
	calmCredit  = 4
)

// Recovery is the longest time without a hot window before a step down. So new clients are admitted
// again within Recovery and one window after the overload, and the level is Normal within three
// times Recovery, after any history.
const Recovery = 5 * time.Minute

// MinClients is the minimum number of clients for a median: with fewer clients, a single client
// could change the level.
const MinClients = 3

// Sample is the measurement of one tick.
type Sample struct {
	// Duration is the time of the tick, and Lateness the time from its deadline to its start.
	Duration, Lateness time.Duration
	// FlushLag is the median flush lag of the clients, see [Median]. Only the FlushLag of the
	// sample that ends a window is used, see WindowEnds; 0: no lag or unknown.
	FlushLag time.Duration
}

// Monitor tracks the load of one room. One goroutine owns it.
type Monitor struct {
	period time.Duration
	ticks  int // number of ticks in a window

	seen           int           // ticks of the current window so far
	load, lateness time.Duration // their sums
	level          Level
	cool           int // windows in a row that were not hot
	credit         int // of these windows: a calm window adds calmCredit, any other window 1
	hold           int // calm windows before the next step down
	since          int // windows since the last step down
	longest        int // number of windows in Recovery

	last, hot Means // of the last window and of the last hot one
	steady    int   // windows since the last change of the level
	unheated  int   // windows since the last hot one
}

// New returns a monitor at Normal for a room with the tick period, which is positive.
func New(period time.Duration) *Monitor {
	ticks := max(int((windowTime+period-1)/period), windowTicks)
	longest := max(int(Recovery/(time.Duration(ticks)*period)), holdWindows)
	return &Monitor{period: period, ticks: ticks, longest: longest, hold: holdWindows, since: longest}
}

// Level returns the current level.
func (m *Monitor) Level() Level { return m.level }

// Window returns the number of ticks in a window.
func (m *Monitor) Window() int { return m.ticks }

// WindowEnds reports whether the next sample ends a window. Only such a sample needs a FlushLag.
func (m *Monitor) WindowEnds() bool { return m.seen+1 >= m.ticks }

// Observe adds a tick and returns the resulting level.
func (m *Monitor) Observe(s Sample) Level {
	most := outlier * m.period
	m.load += min(max(s.Duration, 0), most)
	m.lateness += min(max(s.Lateness, 0), most)
	m.seen++
	if m.seen < m.ticks {
		return m.level
	}
	m.evaluate(s.FlushLag)
	m.Restart()
	return m.level
}

// Restart begins a new window. After a sleep the ticks of the current one are too old: one late
// tick of a minute ago is not the load of now.
func (m *Monitor) Restart() { m.seen, m.load, m.lateness = 0, 0, 0 }

// evaluate evaluates a window.
func (m *Monitor) evaluate(lag time.Duration) {
	whole := float64(m.period) * float64(m.ticks)
	m.last = Means{float64(m.load) / whole, float64(m.lateness) / whole, float64(lag) / float64(m.period)}
	m.since = min(m.since+1, m.longest)
	was := m.level
	m.steady++
	m.unheated++
	if m.last.reach(hotMeans) {
		m.hot, m.unheated = m.last, 0
		m.up()
	} else {
		m.down(m.last.credit())
	}
	if m.level != was {
		m.steady = 0
	}
}

// up raises the level by one. If the load has returned soon after the level was lowered, the level
// was lowered too early: it is then held for twice as long.
func (m *Monitor) up() {
	m.cool, m.credit = 0, 0
	if m.level == Highest {
		return
	}
	m.level++
	if m.since <= m.hold {
		m.hold = min(2*m.hold, m.longest)
		m.since = m.longest // Further raises belong to the same return of the load.
	}
}

// down counts a window that was not hot, and lowers the level after enough of them. At Normal the
// same number of windows resets the hold.
func (m *Monitor) down(credit int) {
	m.cool++
	m.credit += credit
	if m.credit < calmCredit*m.hold && m.cool < m.longest {
		return
	}
	m.cool, m.credit = 0, 0
	if m.level == Normal {
		m.hold = holdWindows
		return
	}
	m.level--
	m.since = 0
}

// Median returns the median of the lags, the lower of the two in the middle, and 0 for fewer than
// MinClients. It sorts lags in place.
func Median(lags []time.Duration) time.Duration {
	if len(lags) < MinClients {
		return 0
	}
	slices.Sort(lags)
	return lags[(len(lags)-1)/2]
}
