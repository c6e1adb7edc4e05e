package watchdog

import "time"

// Pauses finds the checks to leave out after a pause of the whole process, such as SIGSTOP or a
// suspended machine: a tick that was running then seems to hang, until its goroutine continues. It
// belongs to the watching goroutine.
type Pauses struct {
	last    time.Duration // of the newest call
	skipped bool          // that check was left out
}

// lateChecks is the lateness of a check, in intervals, that tells of a pause.
const lateChecks = 3

// Skip reports whether to leave out the check at the time now, an interval after the one before. It
// leaves out at most every second check, so that a hang is also found on a machine that is always
// late.
func (p *Pauses) Skip(now, interval time.Duration) bool {
	p.skipped = !p.skipped && now-p.last > (1+lateChecks)*interval
	p.last = now
	return p.skipped
}
