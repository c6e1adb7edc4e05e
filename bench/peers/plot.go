package main

import (
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// line is a peer's line in a plot.
type line struct {
	peer   *peer
	points plotter.XYs
}

// plots makes the lines of each plot. One without lines is not drawn.
var plots = map[string]func(*results) []line{"peers-cpu.svg": cpuLines, "peers-age.svg": ageLines}

// plotTitles are the titles: of the plot, and of its axes.
var plotTitles = map[string][3]string{
	"peers-cpu.svg": {"Smooth motion at 60 Hz", "clients", "server, % of a core"},
	"capacity.svg":  {"Clients that a machine holds, with its load clients beside the server", "ticks a second", "clients"},
	"peers-age.svg": {"Smooth motion at 60 Hz, round trip of 150 ms", "lost packets of each direction, %", "age of the state, p99, ms"},
}

func cpuLines(r *results) []line {
	return r.lines(func(p *peer, add func(c cell, x float64, y func(outcome) float64)) {
		for _, n := range fullPlan.clients {
			c := cell{part: loopback, world: usualWorld, rate: usualRate, clients: n, peer: p}
			add(c, float64(n), func(o outcome) float64 { return 100 * o.Server })
		}
	})
}

func ageLines(r *results) []line {
	return r.lines(func(p *peer, add func(c cell, x float64, y func(outcome) float64)) {
		for _, loss := range []float64{0, 1, 3, 5} {
			link := "rtt=150ms"
			if loss > 0 {
				link += fmt.Sprintf(",loss=%g%%", loss)
			}
			c := cell{part: path, world: usualWorld, rate: usualRate, clients: pathClients, link: link, peer: p}
			add(c, loss, func(o outcome) float64 { return o.AgeP99 })
		}
	})
}

// lines collects the valid points of each peer. A single point makes no line.
func (r *results) lines(of func(*peer, func(cell, float64, func(outcome) float64))) (all []line) {
	for _, p := range peers {
		l := line{peer: p}
		of(p, func(c cell, x float64, y func(outcome) float64) {
			if o, ok := r.Cells[c.key()]; ok && o.Note == "" {
				l.points = append(l.points, plotter.XY{X: x, Y: y(o)})
			}
		})
		if len(l.points) > 1 {
			all = append(all, l)
		}
	}
	return all
}

// colors has the color of each line, from the palette of Okabe and Ito, which is made for people
// with color blindness too. The carriers of a peer have one color and different dashes.
var colors = map[string]color.Color{
	"netloop": blue, "netloop-webtransport": blue, "netloop-websocket": blue,
	"nano": orange, "pitaya": green, "pitaya-tls": green,
	"idle": blue, "cards": green, "arena": orange,
	"colyseus": color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}, "enet": color.RGBA{R: 0x60, G: 0x60, B: 0x60, A: 0xff},
}

var (
	blue   = color.RGBA{G: 0x72, B: 0xb2, A: 0xff}
	orange = color.RGBA{R: 0xe6, G: 0x9f, A: 0xff}
	green  = color.RGBA{G: 0x9e, B: 0x73, A: 0xff}
)

var dashes = map[string][]vg.Length{
	"netloop-webtransport": {vg.Points(6), vg.Points(3)}, "netloop-websocket": {vg.Points(1.5), vg.Points(3)},
	"pitaya-tls": {vg.Points(6), vg.Points(3)},
}

// writePlot draws lines into a file, and removes the file of a plot without lines.
func writePlot(file string, lines []line) error {
	if len(lines) == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	titles := plotTitles[filepath.Base(file)]
	p := plot.New()
	p.BackgroundColor = color.White // It is read on dark pages, too.
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = titles[0], titles[1], titles[2]
	p.Title.Padding = vg.Points(8)
	p.Y.Min = 0
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, color.Gray{Y: 0xdd}
	p.Add(grid)
	marks := map[float64]plot.Tick{} // of the measured values
	for _, l := range lines {
		drawn, points, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return err
		}
		drawn.Color, drawn.Width, drawn.Dashes = colors[l.peer.name], vg.Points(1.8), dashes[l.peer.name]
		points.Color, points.Shape, points.Radius = colors[l.peer.name], draw.CircleGlyph{}, vg.Points(2.6)
		p.Add(drawn, points)
		p.Legend.Add(l.peer.title, drawn, points)
		for _, at := range l.points {
			marks[at.X] = plot.Tick{Value: at.X, Label: fmt.Sprint(at.X)}
		}
	}
	p.X.Tick.Marker = plot.ConstantTicks(slices.Collect(maps.Values(marks)))
	p.X.Min, p.X.Max = 0, 1.03*p.X.Max // Room for half of the last label.
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.XOffs = vg.Points(1), vg.Points(6)
	p.Y.Max *= 1.25 // Room for the legend.
	return p.Save(8*vg.Inch, 5*vg.Inch, file)
}
