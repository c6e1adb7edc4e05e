package cubes

import (
	"sync"
	"testing"
	"time"
)

// lossy is the report of the package's capture with 5 % packet loss, and acknowledged frames of
// 100 ms or older.
var lossy = sync.OnceValues(func() (*Report, error) {
	file, err := Open("")
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	return Run(file, Options{Loss: 0.05, Seed: 1, Clock: func() time.Duration { return time.Since(begin) }})
})

// BenchmarkCubes prints the size of the field for each coder: kbit/s, and bits per cube and
// update, whether the cube has changed or not. Published is the final figure of Glenn Fiedler's
// "Snapshot Compression" (2015) for 901 cubes at 60 Hz, with another motion. The time per
// operation is meaningless.
func BenchmarkCubes(b *testing.B) {
	r, err := lossy()
	if err != nil {
		b.Fatal(err)
	}
	for i := range r.Sizes {
		s := &r.Sizes[i]
		b.Run("coder="+s.Coder, func(b *testing.B) {
			for b.Loop() { // The report has the result already.
			}
			b.ReportMetric(r.Kbits(s), "kbit/s")
			b.ReportMetric(r.BitsPerCube(s), "bits/cube")
			if i == 0 {
				b.ReportMetric(r.Micros(), "us/frame")
			}
		})
	}
	b.Run("published=SnapshotCompression", func(b *testing.B) {
		for b.Loop() { // The result is known already.
		}
		b.ReportMetric(256, "kbit/s")
		b.ReportMetric(256_000.0/Rate/Count, "bits/cube")
	})
}
