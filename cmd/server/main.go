// Command server serves the arena. It is also what the main function of any
// game's dedicated server looks like: copy it, and put your own game in.
package main

import (
	"github.com/netloop/netloop/app"
	"github.com/netloop/netloop/examples/arena"
)

func main() { app.Main(arena.New()) }
