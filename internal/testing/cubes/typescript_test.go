package cubes

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/netloop/netloop/internal/testing/nodetest"
)

// scriptFigures are what clients/ts/test/crowd.ts prints.
type scriptFigures struct {
	Frames, Packets, Digests                 int
	PacketP50, PacketP99, FrameP50, FrameP99 float64 // milliseconds
	GarbagePerPacket, Growth                 float64 // bytes
}

// record writes what a client has received of a crowd that rolls, which is the hardest, with a
// snapshot in each tick and acknowledgements that come three ticks later.
func record(tb testing.TB, ticks int) (path string) {
	tb.Helper()
	c := newCrowd(tb, 2, true, far)
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

// playScript lets the reader in TypeScript play a crowd in Node.
func playScript(tb testing.TB, ticks int) (f scriptFigures) {
	tb.Helper()
	script := nodetest.Bundle(tb, "test/crowd.ts")
	// With one thread code is compiled when it is warm, and not when another thread gets to it.
	out := nodetest.Node(tb, "--expose-gc", "--single-threaded", "--max-semi-space-size=512", script, record(tb, ticks))
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	return f
}

// A page that plays has no breaks for its garbage: packets make next to none, and nothing stays. It
// was nine times as much while each number that was read could become an object.
func TestTypeScriptReaderMakesNoGarbage(t *testing.T) {
	f := playScript(t, 300)
	t.Logf("%+v", f)
	if f.Digests < 2 {
		t.Errorf("%d digests agree", f.Digests)
	}
	if f.GarbagePerPacket > 3000 || f.Growth > 512<<10 {
		t.Errorf("a packet makes %.0f bytes of garbage, and %.0f stay", f.GarbagePerPacket, f.Growth)
	}
}

// BenchmarkTypeScriptReader prints what 250 rolling cubes cost a page at 60 snapshots a second, in
// a minute of play.
func BenchmarkTypeScriptReader(b *testing.B) {
	f := playScript(b, 3600)
	b.ReportMetric(0, "ns/op") // Node has measured the rest.
	b.ReportMetric(f.PacketP50, "ms/packet-p50")
	b.ReportMetric(f.PacketP99, "ms/packet-p99")
	b.ReportMetric(f.FrameP50, "ms/frame-p50")
	b.ReportMetric(f.FrameP99, "ms/frame-p99")
	b.ReportMetric(f.GarbagePerPacket, "garbage-B/packet")
	b.ReportMetric(f.Growth/1024, "growth-KiB")
	b.ReportMetric(float64(f.Packets)/float64(f.Frames), "packets/frame")
}

// BenchmarkTypeScriptReaderInChromium prints what they cost a page of a real browser that draws 60
// frames a second, and nothing else: a minute of play.
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
