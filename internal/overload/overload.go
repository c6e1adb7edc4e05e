package overload

import (
	"slices"
	"time"
)

// Level is a level of overload. Each step includes the reductions of the lower steps.
type Level uint8

const (
	// Normal reduces no work.
	Normal Level = iota
	// Halved halves the snapshots of each client.
	Halved
	// Shedding sends changes of low-priority objects at their minimum rate only.
	Shedding
	// Refusing admits no new clients.
	Refusing
)

// Highest is the highest level.
const Highest = Refusing

// String returns the level's name.
func (l Level) String() string {
	switch l {
	case Normal:
		return "normal"
	case Halved:
		return "halved"
	case Shedding:
		return "shedding"
	case Refusing:
		return "refusing"
	}
	return "unknown"
}

// A window is evaluated as a whole. Its length is the larger of the two: players accept half a
// second of overload, and with 16 ticks even a stall of many seconds, which makes the five ticks
// after it late, remains below the thresholds.
const (
	windowTime  = 500 * time.Millisecond
	windowTicks = 16
)

// outlier limits the contribution of one tick to a window, in tick periods: one tick of a second is
// no more overload than one of 67 ms at 60 Hz.
const outlier = 4

// The thresholds, as shares of the tick period. A window is hot if any of its means is at or above
// hot, calm if all of them are below calm, and warm in between.
const (
	// A room that uses nine tenths of its time has no reserve for variation; below seven tenths it
	// has room for the cost of the next step down.
	hotLoad, calmLoad = 0.9, 0.7
	// On average a whole tick late: the machine schedules the room too late, however little time it
	// needs. Timers and collections account for a few hundredths.
	hotLateness, calmLateness = 1.0, 0.5
	// Snapshots of the median client are sent a whole tick after their flush: the network code
	// starves, which the tick itself cannot detect.
	hotLag, calmLag = 1.0, 0.5
)

// A step down takes holdWindows calm windows in a row (5 s at 60 Hz), or calmCredit times as many
// if they are warm: a warm room may need the reduction, so a step down is tried less often, but it
// is tried. If the load returns within as many windows after the step, the step up is taken at once
// and the next step down takes twice as long, so that a load that needs the higher level makes the
// level change ever more rarely. Recovery limits all of this: after that time without a hot window
// a step down is taken in any case.
const (
	holdWindows = 10
	calmCredit  = 4
)

// Recovery is the longest time without a hot window before a step down. So newcomers are admitted
// again within Recovery and one window after the overload, and the level is Normal within three
// times Recovery, for any history.
const Recovery = 5 * time.Minute

// MinClients is the minimum number of clients for a median: with fewer, one client alone could
// change the level.
const MinClients = 3

// Sample is the measurement of one tick.
type Sample struct {
	// Duration is the time of the tick, Lateness how long after its deadline it began.
	Duration, Lateness time.Duration
	// FlushLag is the median flush lag of the clients, see [Median]. It is read only from the
	// sample that ends a window, see WindowEnds; 0 is no lag or unknown.
	FlushLag time.Duration
}

// Monitor tracks the load of one room. One goroutine owns it.
type Monitor struct {
	period time.Duration
	ticks  int // ticks of a window

	seen           int           // ticks of this window so far
	load, lateness time.Duration // their sums
	level          Level
	cool           int // windows in a row that were not hot
	credit         int // of these windows: a calm one adds calmCredit, any other 1
	hold           int // calm windows that the next step down takes
	since          int // windows since the last step down
	longest        int // number of windows in Recovery
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

// WindowEnds reports whether the next sample ends a window, so that its FlushLag counts.
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
	m.seen, m.load, m.lateness = 0, 0, 0
	return m.level
}

// evaluate evaluates a window.
func (m *Monitor) evaluate(lag time.Duration) {
	whole := float64(m.period) * float64(m.ticks)
	load, late, behind := float64(m.load)/whole, float64(m.lateness)/whole, float64(lag)/float64(m.period)
	m.since = min(m.since+1, m.longest)
	switch {
	case load >= hotLoad || late >= hotLateness || behind >= hotLag:
		m.up()
	case load < calmLoad && late < calmLateness && behind < calmLag:
		m.down(calmCredit)
	default:
		m.down(1)
	}
}

// up raises the level by one. If the load returned soon after the level was lowered, that was too
// early: the level is then held for twice as long.
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
