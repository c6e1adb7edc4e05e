package main

import (
	"fmt"
	"image/color"
	"math"
	"strings"

	"github.com/hajimehoshi/ebiten/v2"
	"github.com/hajimehoshi/ebiten/v2/text/v2"
	"github.com/hajimehoshi/ebiten/v2/vector"
	"golang.org/x/image/font/basicfont"

	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/examples/arena/desktop/play"
)

// The colours of the arena's page.
var (
	sky       = color.NRGBA{13, 19, 33, 255}
	grid      = color.NRGBA{148, 170, 214, 14}
	rockFill  = color.NRGBA{48, 59, 82, 255}
	rockEdge  = color.NRGBA{90, 105, 133, 255}
	ownFill   = color.NRGBA{255, 196, 107, 255}
	otherFill = color.NRGBA{127, 180, 230, 255}
	nameText  = color.NRGBA{190, 205, 232, 200}
	flame     = color.NRGBA{255, 155, 84, 255}
	shield    = color.NRGBA{126, 212, 255, 190}
	repair    = color.NRGBA{125, 223, 154, 255}
)

const (
	shipRadius = 14
	shotRange  = 800
	gridStep   = 256
)

// face is a bitmap font: it needs no file.
var face = text.NewGoXFace(basicfont.Face7x13)

// Draw implements ebiten.Game.
func (w *window) Draw(screen *ebiten.Image) {
	f := &w.game.Frame
	p := painter{screen: screen, frame: f, width: float32(screen.Bounds().Dx()), height: float32(screen.Bounds().Dy())}
	screen.Fill(sky)
	p.grid()
	for _, r := range f.Rocks {
		x, y := p.place(r.X, r.Y)
		p.disc(x, y, float32(r.Radius), rockFill)
		p.ring(x, y, float32(r.Radius), 1.5, rockEdge)
	}
	for _, k := range f.Pickups {
		p.pickup(k)
	}
	for _, s := range f.Shots {
		p.beam(s)
	}
	for i := range f.Ships {
		p.ship(&f.Ships[i])
	}
	for _, b := range f.Bursts {
		x, y := p.place(b.X, b.Y)
		p.ring(x, y, 12+52*b.Part, 3, faded(flame, 1-b.Part))
	}
	p.scores()
	p.text(w.status(), p.width/2, p.height/3, nameText, true)
	if w.graph {
		p.graph(&w.game.Graph)
	}
	w.picture(screen)
}

// painter draws one frame.
type painter struct {
	screen        *ebiten.Image
	frame         *play.Frame
	width, height float32
}

// place returns the pixel of a position of the arena.
func (p *painter) place(x, y float32) (px, py float32) {
	dx, dy := p.frame.Place(x, y)
	return p.width/2 + dx, p.height/2 + dy
}

// sees reports whether a disc is in the window.
func (p *painter) sees(x, y, radius float32) bool {
	return x > -radius && y > -radius && x < p.width+radius && y < p.height+radius
}

func (p *painter) disc(x, y, radius float32, c color.Color) {
	if p.sees(x, y, radius) {
		vector.DrawFilledCircle(p.screen, x, y, radius, c, true)
	}
}

func (p *painter) ring(x, y, radius, width float32, c color.Color) {
	if p.sees(x, y, radius) {
		vector.StrokeCircle(p.screen, x, y, radius, width, c, true)
	}
}

// text draws a line, from the left or around a centre.
func (p *painter) text(s string, x, y float32, c color.Color, centred bool) {
	o := &text.DrawOptions{}
	if centred {
		o.PrimaryAlign = text.AlignCenter
	}
	o.GeoM.Translate(float64(x), float64(y))
	o.ColorScale.ScaleWithColor(c)
	text.Draw(p.screen, s, face, o)
}

// grid draws the lines of the arena.
func (p *painter) grid() {
	first := func(centre, size float32) float32 { return -float32(math.Mod(float64(centre-size/2), gridStep)) }
	for x := first(p.frame.X, p.width); x < p.width; x += gridStep {
		vector.StrokeLine(p.screen, x, 0, x, p.height, 1, grid, false)
	}
	for y := first(p.frame.Y, p.height); y < p.height; y += gridStep {
		vector.StrokeLine(p.screen, 0, y, p.width, y, 1, grid, false)
	}
}

// pickup draws a cross or a dot in a ring.
func (p *painter) pickup(k arena.Pickup) {
	x, y := p.place(k.X, k.Y)
	if k.Kind == arena.Shield {
		p.ring(x, y, 12, 2, shield)
		p.disc(x, y, 5, shield)
		return
	}
	p.ring(x, y, 12, 2, repair)
	vector.DrawFilledRect(p.screen, x-6, y-1.5, 12, 3, repair, false)
	vector.DrawFilledRect(p.screen, x-1.5, y-6, 3, 12, repair, false)
}

// beam draws a shot.
func (p *painter) beam(s play.Shot) {
	c := otherFill
	if s.Own {
		c = ownFill
	}
	x, y := p.place(s.X, s.Y)
	sin, cos := math.Sincos(float64(s.Heading))
	line := func(width, light float32) {
		vector.StrokeLine(p.screen, x+shipRadius*float32(cos), y+shipRadius*float32(sin), x+shotRange*float32(cos), y+shotRange*float32(sin), width, faded(c, light*s.Left), true)
	}
	line(7, 0.2)
	line(1.6, 0.9)
}

// The outlines of a ship and of its flame, around its position, with the heading to the right.
var (
	hullShape  = [][2]float32{{16, 0}, {-11, 10}, {-6, 0}, {-11, -10}}
	flameShape = [][2]float32{{-7, 4}, {-20, 0}, {-7, -4}}
)

// ship draws a ship with its name and its remaining hits.
func (p *painter) ship(s *play.Ship) {
	x, y := p.place(s.X, s.Y)
	if !p.sees(x, y, 60) {
		return
	}
	c := otherFill
	if s.Own {
		c = ownFill
	}
	if s.Hull == 0 {
		c = faded(c, 0.35)
	} else if s.Thrust {
		p.shape(flameShape, x, y, s.Heading, flame)
	}
	p.shape(hullShape, x, y, s.Heading, c)
	if s.Shielded {
		p.ring(x, y, shipRadius+9, 2, shield)
	}
	for i := range s.Hull {
		vector.DrawFilledRect(p.screen, x-float32(s.Hull-1)*3.5+7*float32(i)-2.5, y-25, 5, 2.5, c, false)
	}
	if !s.Own {
		p.text(s.Name, x, y+20, nameText, true)
	}
}

// white is the source of a filled shape.
var white = func() *ebiten.Image { i := ebiten.NewImage(3, 3); i.Fill(color.White); return i }()

// shape fills an outline.
func (p *painter) shape(outline [][2]float32, x, y, heading float32, c color.NRGBA) {
	var path vector.Path
	sin, cos := math.Sincos(float64(heading))
	for _, at := range outline { // The first line begins where the path is empty.
		path.LineTo(x+at[0]*float32(cos)-at[1]*float32(sin), y+at[0]*float32(sin)+at[1]*float32(cos))
	}
	path.Close()
	vertices, indices := path.AppendVerticesAndIndicesForFilling(nil, nil)
	r, g, b, a := c.RGBA()
	for i := range vertices {
		v := &vertices[i]
		v.SrcX, v.SrcY = 1, 1
		v.ColorR, v.ColorG, v.ColorB, v.ColorA = float32(r)/0xffff, float32(g)/0xffff, float32(b)/0xffff, float32(a)/0xffff
	}
	p.screen.DrawTriangles(vertices, indices, white, &ebiten.DrawTrianglesOptions{AntiAlias: true, FillRule: ebiten.FillRuleNonZero})
}

// maxScores is the number of players in the list.
const maxScores = 8

// scores lists the best players, and the own hull.
func (p *painter) scores() {
	for i, s := range p.frame.Ships[:min(len(p.frame.Ships), maxScores)] {
		c := nameText
		if s.Own {
			c = ownFill
		}
		p.text(fmt.Sprintf("%4d  %s", s.Score, s.Name), p.width-180, 16+16*float32(i), c, false)
	}
	if own := p.frame.Own; own != nil {
		p.text(fmt.Sprintf("%s  %d points  %s", own.Name, own.Score, strings.Repeat("|", int(own.Hull))), 16, 16, ownFill, false)
	}
}

// faded returns a colour with a part of its opacity.
func faded(c color.NRGBA, part float32) color.NRGBA {
	c.A = uint8(float32(c.A) * max(part, 0))
	return c
}
