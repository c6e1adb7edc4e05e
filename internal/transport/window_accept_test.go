package transport_test

import (
	"testing"
	"time"

	"github.com/netloop/netloop/internal/net/memnet"
	"github.com/netloop/netloop/internal/testing/seeds"
)

const ms = time.Millisecond

// TestOverloadedLinkStaysCurrent: a link of 100 kbit/s that is fed 160 kbit/s shows the
// client a state that is a quarter of a second old, not the router's whole queue.
func TestOverloadedLinkStaysCurrent(t *testing.T) {
	seeds.OneGoroutine(t)
	for _, buffer := range []time.Duration{200 * ms, 1500 * ms} {
		for _, snapshots := range []struct{ hz, packets int }{{60, 1}, {30, 1}, {30, 2}, {20, 1}, {20, 3}} {
			for seed := range seeds.Long(t, 2, 100) {
				f := feed{
					link: memnet.Link{Delay: 30 * ms, Bandwidth: 100_000, Buffer: buffer}, seed: seed,
					hz: snapshots.hz, packets: snapshots.packets, size: 160_000 / 8 / snapshots.hz / snapshots.packets,
				}
				f.run(t, 60*time.Second)
				p50, p99 := percentile(f.ages, 0.5), percentile(f.ages, 0.99)
				t.Logf("%v: age p50 %v, p99 %v, %d of %d complete", &f, p50, p99, f.complete, f.wanted)
				if p50 > 400*ms || p99 > 850*ms {
					t.Errorf("%v: age p50 %v, p99 %v, want at most 0.4 and 0.85 s", &f, p50, p99)
				}
				if carried := f.taken * f.size * 8 / 60; carried < 60_000 {
					t.Errorf("%v: carried only %d bit/s of 100 000", &f, carried)
				}
			}
		}
	}
}

// TestLongLinkKeepsItsSnapshots: a round trip of 200 ms is no reason to send less.
func TestLongLinkKeepsItsSnapshots(t *testing.T) {
	seeds.OneGoroutine(t)
	for _, hz := range []int{20, 30, 60} {
		for _, packets := range []int{1, 3} {
			for _, loss := range []float64{0, 0.02, 0.05} {
				f := feed{
					link: memnet.Link{Delay: 100 * ms, Bandwidth: 10_000_000, Jitter: 5 * ms, Loss: loss},
					hz:   hz, packets: packets, size: 1000, seed: 1,
				}
				f.run(t, 30*time.Second)
				kept := float64(f.sent) / float64(f.wanted)
				t.Logf("%v: kept %.4f", &f, kept)
				if kept < 0.97 {
					t.Errorf("%v: kept %.4f of its snapshots, want 0.97", &f, kept)
				}
			}
		}
	}
}

// TestBlackHoleEndsAtOnce: 0.3 s after a fault of 5 s, in either direction, a new snapshot is
// applied, and soon all of them are again.
func TestBlackHoleEndsAtOnce(t *testing.T) {
	for name, cut := range map[string]func(*memnet.Conn){
		"both ways":     (*memnet.Conn).Cut,
		"to the client": (*memnet.Conn).CutDown,
		"to the server": (*memnet.Conn).CutUp,
	} {
		t.Run(name, func(t *testing.T) {
			var worst time.Duration
			for seed := range seeds.Long(t, 12, 20) {
				const from = 180 * frame
				heal := from + (300+time.Duration(seed%60))*frame
				f := feed{link: memnet.Link{Delay: 30 * ms, Bandwidth: 10_000_000}, hz: 60, packets: 2, size: 1000, seed: seed}
				var full int
				f.at = func(f *feed, now time.Duration) {
					switch now {
					case from:
						cut(f.conn)
						full = f.sent
					case heal:
						f.conn.Heal()
						full = f.sent - full
					}
				}
				f.run(t, heal+4*time.Second)
				after := f.applied[len(f.applied)-since(f.applied, heal+1):][0] - heal
				worst = max(worst, after)
				if after > 300*ms {
					t.Errorf("%v: a new snapshot only after %v", &f, after)
				}
				if full > 12 {
					t.Errorf("%v: %d full snapshots went into the hole", &f, full)
				}
				if n := since(f.blocked, heal+2500*ms); n > 0 {
					t.Errorf("%v: %d snapshots still blocked 2.5 s after the hole", &f, n)
				}
			}
			t.Log("worst:", worst)
		})
	}
}

// TestLongerRouteGetsItsFullRate: 2.5 s after the round trip grew from 40 to 160 ms no snapshot is
// held back any more.
func TestLongerRouteGetsItsFullRate(t *testing.T) {
	for _, snapshots := range []struct{ hz, packets int }{{60, 1}, {60, 3}, {30, 2}, {20, 1}} {
		for _, loss := range []float64{0, 0.02} {
			var worst time.Duration
			for seed := range seeds.Long(t, 4, 50) {
				change := (180 + 7*time.Duration(seed%60)) * frame
				f := feed{
					link: memnet.Link{Delay: 20 * ms, Bandwidth: 10_000_000, Jitter: 2 * ms, Loss: loss}, seed: seed,
					hz: snapshots.hz, packets: snapshots.packets, size: 1000,
				}
				f.at = func(f *feed, now time.Duration) {
					if now == change {
						f.link.Delay = 80 * ms
						f.conn.SetLink(f.link)
					}
				}
				f.run(t, change+6*time.Second)
				if n := since(f.blocked, change+2500*ms); n > 0 {
					t.Errorf("%v: %d snapshots blocked 2.5 s after the change, the last at %v", &f, n, f.blocked[len(f.blocked)-1]-change)
				}
				if len(f.blocked) > 0 {
					worst = max(worst, f.blocked[len(f.blocked)-1]-change)
				}
			}
			t.Logf("%d Hz of %d packets, loss %g: last blocked after %v at worst", snapshots.hz, snapshots.packets, loss, worst)
		}
	}
}

// TestEveryRateAndLoss is the wide table: on a fast enough link no snapshot is held back and the
// age is that of the link; on a slower link the age is bounded, whatever the demand.
func TestEveryRateAndLoss(t *testing.T) {
	seeds.OneGoroutine(t)
	ages := map[string][]time.Duration{}
	rates := []int{60, 30, 20}
	if testing.Short() {
		rates = rates[:1]
	}
	for _, hz := range rates {
		for packets := 1; packets <= 3; packets++ {
			for _, loss := range []float64{0, 0.01, 0.02, 0.05} {
				for _, bandwidth := range []int{128_000, 512_000, 10_000_000} {
					for _, rtt := range []time.Duration{20 * ms, 60 * ms, 200 * ms} {
						f := feed{
							link: memnet.Link{Delay: rtt / 2, Jitter: 3 * ms, Loss: loss, Bandwidth: bandwidth}, seed: 1,
							hz: hz, packets: packets, size: 1000,
						}
						f.run(t, 20*time.Second)
						f.judge(t, rtt, ages)
					}
				}
			}
		}
	}
	for _, class := range []string{"carried", "asked up to 3 times", "asked up to 8 times", "asked more"} {
		a := ages[class]
		t.Logf("%s: %d cases, p99 of the age above the least: median %v, worst %v", class, len(a), percentile(a, 0.5), percentile(a, 1))
	}
}

// judge compares the measurements with the bounds of the link.
func (f *feed) judge(t *testing.T, rtt time.Duration, ages map[string][]time.Duration) {
	t.Helper()
	bits := int64(f.packets*(f.size+70)) * 8
	carry := time.Duration(bits * int64(time.Second) / int64(f.link.Bandwidth)) // one snapshot
	asked := float64(carry) * float64(f.hz) / float64(time.Second)
	// Flushed, transferred, applied at the next frame, and shown until the one after it.
	least := rtt/2 + carry + frame + time.Second/time.Duration(f.hz)
	p50, p99 := percentile(f.ages, 0.5)-least, percentile(f.ages, 0.99)-least
	class := "asked more"
	switch {
	case asked < 0.75:
		class = "carried"
		if kept := float64(f.sent) / float64(f.wanted); kept < 0.97 {
			t.Errorf("%v: kept %.3f of its snapshots", f, kept)
		}
		// Consecutive losses take a period each.
		if most := 20*ms + time.Duration(f.link.Loss*60)*time.Second/time.Duration(f.hz); p99 > most {
			t.Errorf("%v: age p99 is %v above the least, want %v", f, p99, most)
		}
	case asked < 1:
		return // Neither the one nor the other.
	case asked <= 3:
		class = "asked up to 3 times"
	case asked <= 8:
		class = "asked up to 8 times"
	}
	ages[class] = append(ages[class], p99)
	if p50 > 400*ms || p99 > 1200*ms {
		t.Errorf("%v: asked %.1f times what it carries: age p50 %v, p99 %v above the least", f, asked, p50, p99)
	}
}

// TestHealthyLinkIsNeverBlocked: the window has no effect on a fast enough link. The first second
// does not count: W starts at 4, so a round trip beyond three periods holds back a few snapshots
// until the first acknowledgement.
//
// Loss can exhaust any window. W leaves room for two or three periods without news, and at 2 % each
// way three in a row without any happen once or twice in 10 minutes. So snapshots may be blocked
// under loss only for that reason, and only that rarely.
func TestHealthyLinkIsNeverBlocked(t *testing.T) {
	seeds.OneGoroutine(t)
	long := 10 * time.Minute
	if testing.Short() {
		long = time.Minute
	}
	roundTrips := []time.Duration{200 * time.Microsecond, 10 * ms, 30 * ms, 60 * ms, 100 * ms}
	for i, rtt := range roundTrips {
		for _, loss := range []float64{0, 0.005, 0.02} {
			blocked, wanted := 0, 0
			for seed := range seeds.Long(t, 1, 1000) {
				f := feed{link: memnet.Link{Delay: rtt / 2, Jitter: 5 * ms, Loss: loss}, hz: 60, packets: 1 + i%3, size: 1000, seed: seed}
				f.run(t, long)
				n := since(f.blocked, time.Second)
				start := len(f.blocked) - n
				t.Logf("%v: %d blocked, %d in the first second, at most %d in flight", &f, n, start, f.most)
				if start > int(rtt/frame)+1 {
					t.Errorf("%v: %d were blocked in the first second", &f, start)
				}
				if f.unexplained > start {
					t.Errorf("%v: %d were blocked although acknowledgements came", &f, f.unexplained)
				}
				blocked, wanted = blocked+n, wanted+f.wanted
			}
			if loss == 0 && blocked > 0 || blocked > wanted/5000 {
				t.Errorf("round trip %v, loss %g: %d of %d snapshots were blocked", rtt, loss, blocked, wanted)
			}
		}
	}
}
