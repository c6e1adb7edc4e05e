package agones

import "time"

// emptyTime is the time without clients and reserved seats after which an allocated server offers
// itself again. It is longer than a matchmaker takes from the allocation to the first reservation.
const emptyTime = time.Minute

// The requests that change the state of a GameServer.
const (
	toReady     = "/ready"
	toAllocated = "/allocate"
	toShutdown  = "/shutdown"
)

// lifecycle decides about the state that the server requests. Times are intervals since any fixed
// moment.
//
//	Scheduled ─ the server is ready ──▶ RequestReady ─▶ Ready
//	Ready, Reserved ─ a client or a reserved seat ────▶ Allocated
//	Allocated ─ neither of them, for emptyTime ───────▶ Ready
//
// A Ready server may be removed by the autoscaler and by an update of the fleet, an Allocated one
// may not: so a server with clients has to be Allocated, also if a login service has found it
// without Agones. Rooms without clients do not keep a server, because they are saved at its end.
type lifecycle struct {
	state state
	asked bool          // /ready has succeeded once
	used  time.Duration // the newest time of use, or of the begin of an allocation
}

// saw takes the present state, by the sidecar, or the requested one after a positive answer.
// It reports whether it is another one.
func (l *lifecycle) saw(s state, now time.Duration) bool {
	if s == l.state {
		return false
	}
	if s == allocated {
		l.used = now
	}
	l.state = s
	return true
}

// next returns the request for the present moment, or "".
func (l *lifecycle) next(now time.Duration, isReady, used bool) (path string) {
	if used {
		l.used = now
	}
	switch l.state {
	case unknown, requestReady, shutdown, unhealthy, failed:
		return ""
	case allocated:
		if !used && isReady && now-l.used >= emptyTime {
			return toReady
		}
		return ""
	case ready, reserved:
		if used {
			return toAllocated
		}
		if l.asked || l.state == reserved {
			return ""
		}
	}
	if isReady {
		return toReady
	}
	return ""
}

// did notes a positive answer.
func (l *lifecycle) did(path string, now time.Duration) bool {
	switch path {
	case toReady:
		l.asked = true
		return l.saw(requestReady, now)
	case toAllocated:
		return l.saw(allocated, now)
	}
	return false
}
