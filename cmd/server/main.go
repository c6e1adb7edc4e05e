// Command server serves the arena. It is also a template for any game's dedicated server: copy it,
// and replace the game.
package main

import (
	"github.com/netloop/netloop/app"
	_ "github.com/netloop/netloop/app/embednats" // For --cluster embed: 10 MB of the program.
	"github.com/netloop/netloop/examples/arena"
)

func main() { app.Main(arena.New()) }
