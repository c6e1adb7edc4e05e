// Command server serves the arena. It is also a template for any game's dedicated server: copy it,
// and replace the game.
package main

import (
	"github.com/netloop/netloop/app"
	"github.com/netloop/netloop/examples/arena"
)

func main() { app.Main(arena.New()) }
