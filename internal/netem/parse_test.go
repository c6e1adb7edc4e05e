package netem

import (
	"strings"
	"testing"
	"time"
)

// alike is a Spec with equal directions.
func alike(w Way) Spec { return Spec{Ways: [directions]Way{w, w}} }

func TestSpecsAreReadAndWritten(t *testing.T) {
	for _, c := range []struct {
		text string
		want Spec
		back string // the result of String, if it differs
	}{
		{"", Spec{}, ""},
		{"rtt=150ms,jitter=20ms,loss=5%", alike(Way{Link: Link{Delay: 75 * ms, Jitter: 20 * ms, Loss: 0.05}}), ""},
		{"rtt=5ns", Spec{Ways: [directions]Way{{Link: Link{Delay: 2}}, {Link: Link{Delay: 3}}}}, ""},
		{"delay=75ms", alike(Way{Link: Link{Delay: 75 * ms}}), "rtt=150ms"},
		{"up.delay=10ms,down.delay=40ms", Spec{Ways: [directions]Way{{Link: Link{Delay: 10 * ms}}, {Link: Link{Delay: 40 * ms}}}}, ""},
		{"loss=0.07", alike(Way{Link: Link{Loss: 0.07}}), "loss=7%"},
		{"loss=0%, rtt=0s", Spec{}, ""},
		{"dup=1%,reorder=2%,corrupt=0.5%", alike(Way{Link: Link{Duplicate: 0.01, Reorder: 0.02}, Corrupt: 0.005}), ""},
		{"rate=100kbit/s,buffer=200ms", alike(Way{Link: Link{Bandwidth: 100_000, Buffer: 200 * ms}}), ""},
		{"buffer=25kB,rate=0.1Mbit/s", alike(Way{Link: Link{Bandwidth: 100_000, Buffer: 2 * time.Second}}), "rate=100kbit/s,buffer=2s"},
		{"up.rate=1Mbit/s,down.rate=8Mbit/s,down.buffer=64KiB", Spec{Ways: [directions]Way{
			{Link: Link{Bandwidth: 1_000_000}}, {Link: Link{Bandwidth: 8_000_000, Buffer: 65_536 * time.Microsecond}},
		}}, "up.rate=1Mbit/s,down.rate=8Mbit/s,down.buffer=65.536ms"},
		{"rate=8Mbit/s,buffer=1MiB", alike(Way{Link: Link{Bandwidth: 8_000_000, Buffer: 1_048_576 * time.Microsecond}}), "rate=8Mbit/s,buffer=1.048576s"},
		{"rate=8Mbit/s,buffer=2MB", alike(Way{Link: Link{Bandwidth: 8_000_000, Buffer: 2 * time.Second}}), "rate=8Mbit/s,buffer=2s"},
		{"hole=5s@10s,rebind=2s", Spec{Ways: alike(Way{Hole: Hole{10 * time.Second, 5 * time.Second}}).Ways, Rebind: 2 * time.Second}, ""},
		{"up.hole=5s@0s", Spec{Ways: [directions]Way{{Hole: Hole{0, 5 * time.Second}}}}, ""},
	} {
		got, err := Parse(c.text)
		if err != nil || got != c.want {
			t.Errorf("%q is %+v, %v", c.text, got, err)
			continue
		}
		back := c.back
		if back == "" && c.want != (Spec{}) {
			back = c.text
		}
		if got.String() != back {
			t.Errorf("%q is written %q, want %q", c.text, got, back)
		}
	}
}

// TestBadSpecsNameTheKey checks that an error names the mistyped part, and a valid form.
func TestBadSpecsNameTheKey(t *testing.T) {
	for text, says := range map[string]string{
		"loss":                      `"loss" has no value: write KEY=VALUE, as in rtt=150ms`,
		"rtt=150ms,":                `"" has no value`,
		"los=5%":                    `"los" is not a key: there are rtt, rebind, delay, jitter, loss, dup, reorder, corrupt, rate, buffer, hole,`,
		"up.rtt=5ms":                `"up.rtt" is not a key`,
		"up.rebind=5s":              `"up.rebind" is not a key`,
		"side.loss=5%":              `"side.loss" is not a key`,
		"loss=5":                    `loss: "5" is not a share from 0% to 100%, as in loss=5%`,
		"loss=101%":                 `loss: "101%" is not a share`,
		"loss=-1%":                  `is not a share`,
		"loss=NaN":                  `is not a share`,
		"up.loss=much":              `up.loss: "much" is not a share from 0% to 100%, as in up.loss=5%`,
		"loss=5%,loss=5%":           `loss: loss is given twice`,
		"loss=5%,down.loss=1%":      `down.loss: loss is given twice`,
		"rtt=150":                   `rtt: "150" is not a time from 0s to 20s, as in rtt=150ms`,
		"rtt=21s":                   `rtt: "21s" is not a time`,
		"jitter=-1ms":               `jitter: "-1ms" is not a time from 0s to 10s, as in jitter=20ms`,
		"rtt=100ms,delay=5ms":       `rtt: delay is given too`,
		"rtt=100ms,down.delay=5ms":  `rtt: delay is given too`,
		"rate=100":                  `rate: "100" is not a rate from 1kbit/s to 1Gbit/s, as in rate=100kbit/s`,
		"rate=NaNkbit/s":            `is not a rate`,
		"rate=999bit/s":             `is not a rate`,
		"rate=1.1Gbit/s":            `is not a rate`,
		"buffer=0.2s":               `buffer: "0.2s" is a buffer without a rate: give a rate too, as in buffer=0.2s,rate=100kbit/s`,
		"up.rate=1Mbit/s,buffer=1s": `a buffer without a rate`,
		"rate=1Mbit/s,buffer=0s":    `buffer: "0s" is not a time from 1ms to 10s, or as many bytes as pass in it, such as 25kB`,
		"rate=1Mbit/s,buffer=9GB":   `is not a time`,
		"rate=1Mbit/s,buffer=9MB":   `is not a time`, // 72 s
		"rate=1Mbit/s,buffer=NaNB":  `is not a time`,
		"hole=5s":                   `hole: "5s" is not a length, an @ and a start, counted from a client's first datagram, as in hole=5s@10s`,
		"hole=0s@1s":                `is not a length`,
		"hole=5s@-1s":               `is not a length`,
		"rebind=1ms":                `rebind: "1ms" is not a time from 100ms to 24h0m0s, as in rebind=2s`,
	} {
		s, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), says) || s != (Spec{}) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// FuzzParse checks that an accepted text is within its bounds and is read back as the same; a
// refused text returns the zero Spec.
func FuzzParse(f *testing.F) {
	f.Add("rtt=150ms,jitter=20ms,loss=5%,dup=1%,reorder=2%,corrupt=1%,rate=100kbit/s,buffer=0.2s,hole=5s@10s,rebind=2s")
	f.Add("up.delay=1ns,down.rate=1.0005kbit/s,down.buffer=1KiB,up.loss=0.123456789")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if s != (Spec{}) {
				t.Errorf("%q: %v, and %+v", text, err, s)
			}
			return
		}
		if back, err := Parse(s.String()); err != nil || back != s {
			t.Errorf("%q is %+v, written %q, which is %+v, %v", text, s, s, back, err)
		}
		for d, w := range s.Ways {
			for _, share := range []float64{w.Loss, w.Duplicate, w.Reorder, w.Corrupt} {
				if !(share >= 0 && share <= 1) {
					t.Errorf("%q: a share of %v", text, share)
				}
			}
			if most := 2 * maxDelay; w.Delay < 0 || w.Delay > most || w.Jitter < 0 || w.Jitter > most || w.Buffer < 0 || w.Buffer > most || w.Bandwidth < 0 {
				t.Errorf("%q: %v is %+v", text, Direction(d), w)
			}
		}
	})
}
