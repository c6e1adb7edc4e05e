package main

import (
	"image"
	"image/png"
	"os"
	"time"

	"github.com/hajimehoshi/ebiten/v2"
)

// pictureTime is the time of play before -picture writes its frame: the other ships, and a second
// of the graph, are there.
const pictureTime = 3 * time.Second

// picture writes the frame to the file of -picture, once its time has come, and ends the program.
func (w *window) picture(screen *ebiten.Image) {
	if w.file == "" || w.done || w.game.Frame.Own == nil {
		return
	}
	if w.played.IsZero() {
		w.played = time.Now()
	}
	if time.Since(w.played) < pictureTime {
		return
	}
	w.done = true
	size := screen.Bounds().Size()
	frame := image.NewRGBA(image.Rect(0, 0, size.X, size.Y))
	screen.ReadPixels(frame.Pix)
	file, err := os.Create(w.file)
	if err != nil {
		w.err = err
		return
	}
	if w.err = png.Encode(file, frame); w.err == nil {
		w.err = file.Close()
	}
}
