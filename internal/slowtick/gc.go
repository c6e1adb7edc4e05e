package slowtick

import (
	"runtime/metrics"
	"time"
)

// collector reads the work counters of the garbage collector. A read takes 0.1 µs and allocates no
// memory.
type collector struct {
	samples [3]metrics.Sample
	last    GC
}

// read returns the garbage collector's work since the last call of read. The runtime corrects its
// estimates of CPU time, so a total may decrease; read returns 0 for its difference then.
func (c *collector) read() GC {
	if c.samples[0].Name == "" {
		c.samples = [...]metrics.Sample{
			{Name: "/gc/cycles/total:gc-cycles"},
			{Name: "/cpu/classes/gc/total:cpu-seconds"},
			{Name: "/cpu/classes/gc/pause:cpu-seconds"},
		}
	}
	metrics.Read(c.samples[:])
	now := GC{Cycles: count(c.samples[0].Value), CPU: seconds(c.samples[1].Value), Pauses: seconds(c.samples[2].Value)}
	was := c.last
	c.last = now
	return now.since(was)
}

// since returns the work between the earlier reading was and g. A figure that decreased counts as
// 0.
func (g GC) since(was GC) GC {
	return GC{Cycles: g.Cycles - was.Cycles, CPU: max(g.CPU-was.CPU, 0), Pauses: max(g.Pauses-was.Pauses, 0)}
}

// count and seconds return 0 for values that a future runtime no longer has.
func count(v metrics.Value) uint64 {
	if v.Kind() != metrics.KindUint64 {
		return 0
	}
	return v.Uint64()
}

func seconds(v metrics.Value) time.Duration {
	if v.Kind() != metrics.KindFloat64 {
		return 0
	}
	return time.Duration(v.Float64() * float64(time.Second))
}
