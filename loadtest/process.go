package loadtest

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// usage is a reading of a process's resources. Unknown values are nil.
type usage struct {
	cpu, gcCPU, gcCycles      *float64 // since its start; CPU in seconds
	cores, memory, goroutines *float64
}

// process returns the resources between two readings.
func process(before, after usage, length time.Duration) Process {
	rate := func(a, b *float64) *float64 {
		n := growth(a, b)
		if n == nil || length <= 0 {
			return nil
		}
		return ratio(*n, length.Seconds())
	}
	return Process{
		CPU: rate(before.cpu, after.cpu), GCCPU: rate(before.gcCPU, after.gcCPU), GCCycles: growth(before.gcCycles, after.gcCycles),
		Cores: after.cores, Memory: after.memory, Goroutines: after.goroutines,
	}
}

// serverUsage reads the server's process from its metrics.
func serverUsage(s samples) usage {
	return usage{
		cpu: s.get("process_cpu_seconds_total"), gcCPU: s.get("go_cpu_classes_gc_total_cpu_seconds_total"), gcCycles: s.get("go_gc_duration_seconds_count"),
		cores: s.get("go_sched_gomaxprocs_threads"), memory: s.get("process_resident_memory_bytes"), goroutines: s.get("go_goroutines"),
	}
}

// ownUsage reads the load client's process.
func ownUsage() usage {
	read := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/cpu/classes/gc/total:cpu-seconds"},
	}
	metrics.Read(read)
	count := func(i int) float64 {
		if read[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return float64(read[i].Value.Uint64())
	}
	u := usage{
		cpu: ownCPU(), cores: whole(runtime.GOMAXPROCS(0)), memory: new(count(0) - count(1)),
		goroutines: whole(runtime.NumGoroutine()), gcCycles: new(count(2)),
	}
	if read[3].Value.Kind() == metrics.KindFloat64 {
		u.gcCPU = new(read[3].Value.Float64())
	}
	return u
}
