package main

import (
	"slices"
	"time"

	"github.com/hajimehoshi/ebiten/v2"
	"github.com/hajimehoshi/ebiten/v2/inpututil"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena/desktop/play"
)

// window is the game of Ebitengine.
type window struct {
	game  *play.Game
	last  time.Time // of the last Step
	graph bool      // the figures of the connection are shown
	mute  bool
	pads  []ebiten.GamepadID

	speaker *speaker

	file   string    // of -picture, "" for none
	played time.Time // since the own ship is there, for the picture
	done   bool      // the picture is written, or err says why not
	err    error
}

// Layout implements ebiten.Game: a unit is a pixel of the window.
func (w *window) Layout(width, height int) (int, int) { return width, height }

// Update implements ebiten.Game: it reads the player's input, and makes a Step of the client.
func (w *window) Update() error {
	if inpututil.IsKeyJustPressed(ebiten.KeyF3) {
		w.graph = !w.graph
	}
	if inpututil.IsKeyJustPressed(ebiten.KeyM) {
		w.mute = !w.mute
	}
	if inpututil.IsKeyJustPressed(ebiten.KeyF11) {
		ebiten.SetFullscreen(!ebiten.IsFullscreen())
	}
	if w.done || ebiten.IsKeyPressed(ebiten.KeyEscape) {
		return ebiten.Termination
	}
	w.input()
	now := time.Now()
	w.game.Client.Step(now.Sub(w.last))
	w.last = now
	if heard := w.game.Heard(); !w.mute {
		w.speaker.play(heard)
	}
	return nil
}

// deadZone is the share of a stick's range that counts as zero.
const deadZone = 0.3

// input reads the keys and the gamepads.
func (w *window) input() {
	in := &w.game.Input
	left, right, thrust := held(ebiten.KeyLeft, ebiten.KeyA), held(ebiten.KeyRight, ebiten.KeyD), held(ebiten.KeyUp, ebiten.KeyW)
	in.Fire = in.Fire || held(ebiten.KeySpace)
	w.pads = ebiten.AppendGamepadIDs(w.pads[:0])
	for _, pad := range w.pads {
		if !ebiten.IsStandardGamepadLayoutAvailable(pad) {
			continue
		}
		x := ebiten.StandardGamepadAxisValue(pad, ebiten.StandardGamepadAxisLeftStickHorizontal)
		left, right = left || x < -deadZone, right || x > deadZone
		thrust = thrust || ebiten.IsStandardGamepadButtonPressed(pad, ebiten.StandardGamepadButtonFrontBottomRight)
		in.Fire = in.Fire || ebiten.IsStandardGamepadButtonPressed(pad, ebiten.StandardGamepadButtonRightBottom)
	}
	in.Thrust, in.Turn = thrust, 0
	if left != right {
		in.Turn = 1
		if left {
			in.Turn = -1
		}
	}
}

func held(keys ...ebiten.Key) bool { return slices.ContainsFunc(keys, ebiten.IsKeyPressed) }

// status returns the text about a missing connection, or "".
func (w *window) status() string {
	switch s := w.game.Client.State(); s.Phase {
	case client.Playing:
		return ""
	case client.Closed:
		return s.Phase.String() + ": " + s.Text
	default:
		return s.Phase.String() + " …"
	}
}
