package slowtick

import (
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// maxSystems is the largest number of systems that a record names. A record adds up the cost of
// each system with less than 1/maxSystems of the tick's duration, because such a system did not
// make the tick slow. At most maxSystems systems can cost more.
const maxSystems = 64

// Record is one tick. Times are in nanoseconds of the server's monotonic clock.
type Record struct {
	Tick     uint64        `json:"tick"`        // number
	Start    time.Duration `json:"start_ns"`    // by the clock of the server
	Lateness time.Duration `json:"lateness_ns"` // from its deadline to its start
	Duration time.Duration `json:"duration_ns"` // from its start to its end
	// Cause is the reason why the tick was late or too long; it is empty for all other ticks.
	Cause Cause `json:"cause"`
	// Blame is the slowest system.
	Blame System `json:"blame"`
	// Stages are the durations of the seven stages.
	Stages [loop.NumStages]time.Duration `json:"stages_ns"`
	// Systems are the systems with at least a sixty-fourth of the tick's duration, in the order in
	// which they ran, stage by stage. Others is the sum of all other systems.
	Systems []System `json:"systems"`
	Others  Others   `json:"others"`
	// Dropped is the number of ticks dropped just before this one.
	Dropped    uint64 `json:"dropped"`
	FixedSteps int    `json:"fixed_steps"` // that it ran
	Facts
	GC GC `json:"gc"` // work of the garbage collector since the last tick
}

// System is the cost of one system at one stage.
type System struct {
	Name  string        `json:"name"`    // of the system
	Stage string        `json:"stage"`   // of the calls
	Cost  time.Duration `json:"cost_ns"` // its time
	Runs  int           `json:"runs"`    // calls
}

// Others is the cost of the systems that a record does not name.
type Others struct {
	Systems int           `json:"systems"` // number
	Cost    time.Duration `json:"cost_ns"` // of them together
}

// Facts holds the room's data of a tick, in addition to the loop's record.
type Facts struct {
	Overload uint8 `json:"overload"` // level
	Clients  int   `json:"clients"`  // of the room
	Arrivals int   `json:"arrivals"` // arrivals that the tick's poll took
	// Queues is the number of messages that wait for each stage after the tick. Work is the number
	// of running pieces of work that were given to Go.
	Queues [loop.NumStages]int `json:"queues"`
	Work   int                 `json:"work"`
	// Sender is the client with the most time of its messages; it is zero without messages.
	Sender Sender `json:"sender"`
}

// Sender is the cost of a client's messages. Client 0 is the server itself.
type Sender struct {
	Client uint64        `json:"client"`  // id; 0: the server itself
	Method string        `json:"method"`  // method of the client's slowest message
	Cost   time.Duration `json:"cost_ns"` // time of its messages
}

// GC is the work of the garbage collector from the end of the previous tick to the end of this
// tick, in the whole process.
type GC struct {
	Cycles uint64 `json:"cycles"` // ended cycles
	// CPU is the time of all threads of the collector, including assists, so that a busy unfinished
	// cycle is visible.
	CPU time.Duration `json:"cpu_ns"`
	// Pauses is the time for which the collector paused the process, times the number of paused
	// threads.
	Pauses time.Duration `json:"pause_ns"`
}

// fill writes a tick into a record. The capacity of its Systems is maxSystems.
func (r *Record) fill(rec *loop.Record, f *Facts, gc GC) {
	systems := r.Systems[:0]
	*r = Record{
		Tick: rec.Tick, Start: rec.Start, Lateness: max(rec.Start-rec.Deadline, 0), Duration: rec.Duration,
		Stages: rec.Stages, Dropped: rec.Dropped, FixedSteps: rec.FixedSteps, Facts: *f, GC: gc,
	}
	worst := -1
	for i := range rec.Systems {
		s := &rec.Systems[i]
		switch {
		case s.Runs == 0:
			continue
		case s.Cost >= rec.Duration/maxSystems && s.Cost > 0 && len(systems) < maxSystems:
			systems = append(systems, system(s))
		default:
			r.Others.Systems++
			r.Others.Cost += s.Cost
		}
		if worst < 0 || s.Cost > rec.Systems[worst].Cost {
			worst = i
		}
	}
	if worst >= 0 {
		r.Blame = system(&rec.Systems[worst])
	}
	r.Systems = systems
}

func system(s *loop.SystemCost) System {
	return System{Name: s.Name, Stage: s.Stage.String(), Cost: s.Cost, Runs: s.Runs}
}

// copyFrom makes r a copy that shares no memory with from.
func (r *Record) copyFrom(from *Record) {
	systems := append(r.Systems[:0], from.Systems...)
	*r = *from
	r.Systems = systems
}
