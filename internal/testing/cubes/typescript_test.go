package cubes

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/netloop/netloop/internal/testing/nodetest"
)

// scriptFigures are the figures printed by clients/ts/test/crowd.ts.
type scriptFigures struct {
	Frames, Packets, Digests                 int
	PacketP50, PacketP99, FrameP50, FrameP99 float64 // milliseconds
	GarbagePerPacket, Growth                 float64 // bytes
}

// record writes the packets of a client with rolling cubes, the most expensive motion, with a
// snapshot in each tick and acknowledgements three ticks later.
func record(tb testing.TB, ticks int) (path string) {
	tb.Helper()
	c := newMovingCubes(tb, 2, true, far)
	var all []byte
	for i := range ticks {
		if i%100 == 0 {
			c.peer.RequestDigest(1)
		}
		c.step(tb)
		for _, p := range c.packets {
			all = append(binary.LittleEndian.AppendUint32(all, uint32(len(p))), p...)
		}
	}
	path = filepath.Join(tb.TempDir(), "crowd")
	if err := os.WriteFile(path, all, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// playScript lets the TypeScript reader play them in Node.
func playScript(tb testing.TB, ticks int) (f scriptFigures) {
	tb.Helper()
	script := nodetest.Bundle(tb, "test/crowd.ts")
	// With one thread, code is compiled when it is hot, and not at a time that depends on another
	// thread.
	out := nodetest.Node(tb, "--expose-gc", "--single-threaded", "--max-semi-space-size=512", script, record(tb, ticks))
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	return f
}

// A page has no garbage collection pauses: packets allocate almost no memory, and none is
// retained. It was nine times as much while each read number could become an object.
func TestTheTypeScriptReaderAllocatesLittle(t *testing.T) {
	f := playScript(t, 300)
	t.Logf("%+v", f)
	if f.Digests < 2 {
		t.Errorf("%d digests agree", f.Digests)
	}
	if f.GarbagePerPacket > 3000 || f.Growth > 512<<10 {
		t.Errorf("a packet allocates %.0f bytes, of which %.0f are retained", f.GarbagePerPacket, f.Growth)
	}
}

// BenchmarkTypeScriptReader prints the cost of 250 rolling cubes for a page at 60 snapshots a
// second, over a minute.
func BenchmarkTypeScriptReader(b *testing.B) {
	f := playScript(b, 3600)
	b.ReportMetric(0, "ns/op") // Node has measured it.
	b.ReportMetric(f.PacketP50, "ms/packet-p50")
	b.ReportMetric(f.PacketP99, "ms/packet-p99")
	b.ReportMetric(f.FrameP50, "ms/frame-p50")
	b.ReportMetric(f.FrameP99, "ms/frame-p99")
	b.ReportMetric(f.GarbagePerPacket, "garbage-B/packet")
	b.ReportMetric(f.Growth/1024, "growth-KiB")
	b.ReportMetric(float64(f.Packets)/float64(f.Frames), "packets/frame")
}

// BenchmarkTypeScriptReaderInChromium prints the cost for a page of a real browser that only
// draws 60 frames a second, over a minute.
func BenchmarkTypeScriptReaderInChromium(b *testing.B) {
	nodetest.Tool(b, "playwright-core")
	out := nodetest.RunIn(b, "internal/browser", "node", "crowd.mjs", nodetest.Bundle(b, "test/crowdpage.ts"), record(b, 3720))
	var f struct {
		Frames, Digests                                   int
		Seconds, FrameP50, FrameP99, Growth, GrowthOfHalf float64
	}
	if err := json.Unmarshal([]byte(out), &f); err != nil || f.Digests == 0 {
		b.Fatalf("%v: %s", err, out)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(f.FrameP50, "ms/frame-p50")
	b.ReportMetric(f.FrameP99, "ms/frame-p99")
	b.ReportMetric(float64(f.Frames)/f.Seconds, "frames/s")
	b.ReportMetric(f.Growth/1024, "growth-KiB")
	b.ReportMetric(f.GrowthOfHalf/1024, "growth-of-last-half-KiB")
}
