//go:build unix

package embed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/cluster/nats"
	"github.com/netloop/netloop/cluster/nats/embed"
)

// realMember joins a cluster with the heartbeats of a real server.
func realMember(b *testing.B, url, id string) cluster.Cluster {
	b.Helper()
	c, err := nats.New(nats.Config{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	c.Serve(func(context.Context, cluster.Request) ([]byte, error) { return make([]byte, 200), nil })
	if err := c.Join(b.Context(), cluster.Member{Server: cluster.Server{ID: id}}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// natsProcess starts a NATS server as a process, so that its CPU time is not that of the members.
func natsProcess(b testing.TB) *process {
	b.Helper()
	config, err := json.Marshal(natsConfig{Config: embed.Config{Dir: b.TempDir()}})
	if err != nil {
		b.Fatal(err)
	}
	return startProcess(b, natsVariable, string(config))
}

// report reports percentiles of the times of an operation.
func report(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}

func BenchmarkClaimAndRelease(b *testing.B) {
	p := natsProcess(b)
	c := realMember(b, p.said, "a")
	var times []time.Duration
	i := 0
	for b.Loop() {
		name := fmt.Sprint("room/", i)
		i++
		begin := time.Now()
		e, err := c.Claim(b.Context(), name, 0)
		times = append(times, time.Since(begin))
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Release(b.Context(), name, e); err != nil {
			b.Fatal(err)
		}
	}
	report(b, times)
}

func BenchmarkCall(b *testing.B) {
	p := natsProcess(b)
	a := realMember(b, p.said, "a")
	realMember(b, p.said, "b")
	for len(a.Servers()) < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	body := make([]byte, 200)
	var times []time.Duration
	for b.Loop() {
		begin := time.Now()
		if _, err := a.Call(b.Context(), cluster.Call{To: "b", Method: "reserve", Body: body, Timeout: time.Second}); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(begin))
	}
	report(b, times)
}

// Servers of 100 rooms that all change ten times a second; an iteration is such a tenth. The
// figures are of one server: it sends its own board, receives the others', and reads the list.
func BenchmarkBoards(b *testing.B) {
	for _, servers := range []int{2, 10} {
		b.Run(fmt.Sprint(servers, "-servers"), func(b *testing.B) { benchmarkBoards(b, servers) })
	}
}

func benchmarkBoards(b *testing.B, servers int) {
	const rooms, interval = 100, 100 * time.Millisecond
	p := natsProcess(b)
	pipe := newProxy(b, p.said)
	members := []cluster.Cluster{realMember(b, "nats://"+pipe.addr(), "s0")}
	for i := 1; i < servers; i++ {
		members = append(members, realMember(b, p.said, fmt.Sprint("s", i)))
	}
	begin, cpu, was := time.Now(), cpuTime(b), pipe.bytes.Load()
	n := 0
	for b.Loop() {
		n++
		for _, m := range members {
			for r := range rooms {
				entry := make([]byte, 100)
				m.Announce(fmt.Sprintf("table/%03d", r), fmt.Appendf(entry[:0], "%0100d", n))
			}
			m.Boards()
		}
		time.Sleep(time.Until(begin.Add(time.Duration(n) * interval)))
	}
	seconds := time.Since(begin).Seconds()
	b.ReportMetric(100*(cpuTime(b)-cpu).Seconds()/seconds/float64(servers), "%core/server")
	b.ReportMetric(float64(pipe.bytes.Load()-was)/seconds/1000, "kB/s/server")
	for _, l := range members[0].Boards() {
		if len(l.Rooms) != rooms {
			b.Fatalf("%s has %d rooms", l.Server, len(l.Rooms))
		}
	}
}

// cpuTime returns the CPU time of this process.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
