// Command cards serves the game: go run . --help lists its settings.
package main

import (
	"github.com/netloop/netloop/app"
	"github.com/netloop/netloop/examples/starters/cards/game"
)

func main() { app.Main(new(game.Game)) }
