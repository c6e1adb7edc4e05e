// Command desktop plays the arena in a window, with Ebitengine:
//
//	make run                                                # the server, in another terminal
//	go run -C examples/arena/desktop . -addr 127.0.0.1:4433 -name ada
//
// Arrows or WASD fly, Space fires, M turns the sound off and on, F3 shows the figures of the
// connection, F11 the full screen. A gamepad works too. The flow of a frame:
//
//	window.go  keys ──▶ play.Game.Input, and a Step of the client
//	play       its prediction and interpolation ──▶ play.Game.Frame, play.Game.Heard
//	paint.go, graph.go draw the frame, speaker.go plays its sounds
//
// It is a module of its own: Ebitengine needs cgo and the headers of X11 and ALSA on Linux, but
// only Go on Windows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/hajimehoshi/ebiten/v2"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/examples/arena/desktop/play"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:4433", "the server, `host:port`")
	name := flag.String("name", os.Getenv("USER"), "the player's name")
	graph := flag.Bool("graph", false, "show the figures of the connection, as F3 does")
	mute := flag.Bool("mute", false, "begin without sound")
	picture := flag.String("picture", "", "play for three seconds, and write a frame to a PNG `file`")
	flag.Parse()
	if err := run(*addr, *name, &window{graph: *graph, mute: *mute, file: *picture}); err != nil {
		fmt.Fprintln(os.Stderr, "desktop:", err)
		os.Exit(1)
	}
}

// dialTime bounds the first connection. Later ones are the client's own.
const dialTime = 10 * time.Second

// run plays until the player closes the window, or the server ends the client.
func run(addr, name string, w *window) error {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	c, err := client.Dial(ctx, addr, client.Config{Schema: arena.Schema, Join: arena.JoinParams{Name: name}})
	cancel()
	if err != nil {
		return err
	}
	ebiten.SetWindowTitle("arena")
	ebiten.SetWindowSize(1280, 800)
	ebiten.SetWindowResizingMode(ebiten.WindowResizingModeEnabled)
	ebiten.SetRunnableOnUnfocused(true)
	w.game, w.last, w.speaker = play.New(c), time.Now(), newSpeaker()
	err = ebiten.RunGame(w)
	return errors.Join(err, w.err, c.Close())
}
