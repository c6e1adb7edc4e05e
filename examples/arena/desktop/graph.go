package main

import (
	"fmt"
	"image/color"
	"time"

	"github.com/hajimehoshi/ebiten/v2/vector"

	"github.com/netloop/netloop/examples/arena/desktop/play"
)

// The colours of the graph.
var (
	panel  = color.NRGBA{6, 10, 20, 220}
	bar    = color.NRGBA{190, 205, 232, 60}
	rtt    = color.NRGBA{127, 180, 230, 255}
	delay  = color.NRGBA{139, 226, 139, 255}
	age    = color.NRGBA{255, 196, 107, 255}
	lost   = color.NRGBA{255, 125, 144, 255}
	missed = color.NRGBA{207, 155, 255, 255}
	wrong  = color.NRGBA{255, 155, 84, 255}
)

const (
	graphWidth, graphHeight = 344, 148
	graphLines              = 60 // the height of lines and bars
)

// graph draws the figures of the connection in the lower left corner.
func (p *painter) graph(g *play.Graph) {
	left, top := float32(8), p.height-graphHeight-8
	vector.DrawFilledRect(p.screen, left, top, graphWidth, graphHeight, panel, false)
	base := top + 24 + graphLines
	highest, most := 50*time.Millisecond, uint64(1)
	for _, c := range g.Columns {
		highest, most = max(highest, c.RTT, c.Delay, c.Age), max(most, c.In)
	}
	highest = min(highest, 2*time.Second) // A sleeping room sends no state.
	height := func(d time.Duration) float32 { return graphLines * float32(min(max(d, 0), highest)) / float32(highest) }
	for i, c := range g.Columns {
		x := left + 8 + 2*float32(i)
		vector.DrawFilledRect(p.screen, x, base, 1.5, -graphLines*0.6*float32(c.In)/float32(most), bar, false)
		was := g.Columns[max(i-1, 0)]
		vector.StrokeLine(p.screen, x-2, base-height(was.RTT), x, base-height(c.RTT), 1, rtt, true)
		vector.StrokeLine(p.screen, x-2, base-height(was.Delay), x, base-height(c.Delay), 1, delay, true)
		vector.StrokeLine(p.screen, x-2, base-height(was.Age), x, base-height(c.Age), 1, age, true)
		for lane, mark := range []struct {
			is bool
			c  color.NRGBA
		}{{c.Lost, lost}, {c.Missed, missed}, {c.Wrong, wrong}} {
			if mark.is {
				vector.DrawFilledRect(p.screen, x, base+2+6*float32(lane), 2, 5, mark.c, false)
			}
		}
	}
	s := &g.Now
	in, out := g.Second()
	for i, line := range []struct {
		s string
		c color.NRGBA
	}{
		{fmt.Sprintf("round trip %v ms", s.RTT.Milliseconds()), rtt}, {fmt.Sprintf("delay %v ms", s.ViewDelay.Milliseconds()), delay},
		{fmt.Sprintf("age %v ms", s.Age.Milliseconds()), age}, {fmt.Sprintf("lost %d", s.Lost), lost}, {fmt.Sprintf("missed %d", s.InputsMissed), missed},
		{fmt.Sprintf("wrong %d", s.Prediction.Mispredicted), wrong}, {fmt.Sprintf("in %d kbit/s", in*8/1000), nameText}, {fmt.Sprintf("out %d kbit/s", out*8/1000), nameText},
	} {
		y := top + 6
		if i >= 3 {
			y = base + 22 + 16*float32((i-3)/3)
		}
		p.text(line.s, left+8+114*float32(i%3), y, line.c, false)
	}
}
