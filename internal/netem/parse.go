package netem

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The bounds of the values that Parse accepts. They refuse typing mistakes that would look like a
// broken network. The datagrams under way have other bounds, see maxBytes.
const (
	maxDelay  = 10 * time.Second // of one direction; jitter and buffer too
	maxTime   = 24 * time.Hour   // of holes and rebind
	minRebind = 100 * time.Millisecond
)

// Example is a Spec as text, for messages.
const Example = "rtt=150ms,jitter=20ms,loss=5%"

// key is a word of a Spec's text, such as loss: for one direction with the prefix up. or down.,
// else for both.
type key struct {
	name    string
	example string
	set     func(w *Way, text string) error
	text    func(w *Way) string // empty for the zero value
}

// keys are in the order in which String writes them. rate precedes buffer, which needs it.
var keys = []key{
	delayKey("delay", "75ms", func(w *Way) *time.Duration { return &w.Delay }),
	delayKey("jitter", "20ms", func(w *Way) *time.Duration { return &w.Jitter }),
	shareKey("loss", "5%", func(w *Way) *float64 { return &w.Loss }),
	shareKey("dup", "1%", func(w *Way) *float64 { return &w.Duplicate }),
	shareKey("reorder", "2%", func(w *Way) *float64 { return &w.Reorder }),
	shareKey("corrupt", "1%", func(w *Way) *float64 { return &w.Corrupt }),
	{
		"rate", "100kbit/s",
		func(w *Way, text string) (err error) { w.Bandwidth, err = bitRate(text); return err },
		func(w *Way) string { return shortRate(w.Bandwidth) },
	},
	{
		"buffer", "0.2s,rate=100kbit/s",
		func(w *Way, text string) (err error) { w.Buffer, err = queue(text, w.Bandwidth); return err },
		func(w *Way) string { return shortDuration(w.Buffer) },
	},
	{
		"hole", "5s@10s",
		func(w *Way, text string) (err error) { w.Hole, err = hole(text); return err },
		func(w *Way) string {
			if w.Hole == (Hole{}) {
				return ""
			}
			return shortDuration(w.Hole.For) + "@" + w.Hole.At.String()
		},
	},
}

// delayKey returns the key of a delay.
func delayKey(name, example string, of func(*Way) *time.Duration) key {
	return key{
		name, example,
		func(w *Way, text string) (err error) { *of(w), err = duration(text, 0, maxDelay); return err },
		func(w *Way) string { return shortDuration(*of(w)) },
	}
}

// shareKey returns the key of a share of the datagrams.
func shareKey(name, example string, of func(*Way) *float64) key {
	return key{
		name, example,
		func(w *Way, text string) (err error) { *of(w), err = portion(text); return err },
		func(w *Way) string { return percent(*of(w)) },
	}
}

// Parse reads a Spec such as rtt=150ms,jitter=20ms,loss=5%. The empty text is the zero Spec.
// An error names the key and has an example.
func Parse(text string) (s Spec, err error) {
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	given, err := items(text)
	if err != nil {
		return s, err
	}
	if err := s.setRTT(given); err != nil {
		return Spec{}, err
	}
	for i := range keys {
		k := &keys[i]
		for d := range Direction(directions) {
			it, ok := given[way{k.name, d}]
			if !ok {
				continue
			}
			if err := k.set(&s.Ways[d], it.text); err != nil {
				return Spec{}, bad(it, err, k.example)
			}
		}
	}
	if it, ok := given[way{"rebind", Up}]; ok {
		if s.Rebind, err = duration(it.text, minRebind, maxTime); err != nil {
			return Spec{}, bad(it, err, "2s")
		}
	}
	return s, nil
}

// way is a key for one direction. The keys rtt and rebind, which have no direction, are stored
// under Up.
type way struct {
	key string
	d   Direction
}

// item is a key as it was written, and its value.
type item struct{ key, text string }

func bad(it item, err error, example string) error {
	name := it.key
	return fmt.Errorf("%s: %q %w, as in %s=%s", name, it.text, err, name, example)
}

// items splits the text.
func items(text string) (map[way]item, error) {
	given := map[way]item{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return nil, fmt.Errorf("%q has no value: write KEY=VALUE, as in %s", part, Example)
		}
		both, err := waysOf(name)
		if err != nil {
			return nil, err
		}
		for _, w := range both {
			if _, twice := given[w]; twice {
				return nil, fmt.Errorf("%s: %s is given twice: leave one out", name, w.key)
			}
			given[w] = item{name, value}
		}
	}
	return given, nil
}

// waysOf returns the key and directions of a name: up.loss is one direction of loss, loss is both.
func waysOf(name string) ([]way, error) {
	k := name
	both := []Direction{Up, Down}
	for _, d := range both {
		if rest, ok := strings.CutPrefix(name, d.String()+"."); ok {
			k, both = rest, []Direction{d}
			break
		}
	}
	switch {
	case name == "rtt" || name == "rebind":
		return []way{{name, Up}}, nil
	case !slices.ContainsFunc(keys, func(known key) bool { return known.name == k }):
		return nil, fmt.Errorf("%q is not a key: there are rtt, rebind, %s, and all but the first two for one direction as in up.loss or down.loss; write for instance %s",
			name, strings.Join(names(), ", "), Example)
	}
	var all []way
	for _, d := range both {
		all = append(all, way{k, d})
	}
	return all, nil
}

func names() (all []string) {
	for _, k := range keys {
		all = append(all, k.name)
	}
	return all
}

// setRTT sets the delay of both directions to half of the round trip, if one is given.
func (s *Spec) setRTT(given map[way]item) error {
	it, ok := given[way{"rtt", Up}]
	if !ok {
		return nil
	}
	for d := range Direction(directions) {
		if _, twice := given[way{"delay", d}]; twice {
			return fmt.Errorf("rtt: delay is given too, and it is half of the round trip: leave one out")
		}
	}
	rtt, err := duration(it.text, 0, 2*maxDelay)
	if err != nil {
		return bad(it, err, "150ms")
	}
	s.Ways[Up].Delay, s.Ways[Down].Delay = rtt/2, rtt-rtt/2
	return nil
}
