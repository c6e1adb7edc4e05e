// Command loadclient plays the arena with many bots at once and measures the bots' view of the
// server: loadclient run --help.
package main

import (
	"github.com/netloop/netloop/examples/arena/bot"
	"github.com/netloop/netloop/loadtest"
)

func main() { loadtest.Main(bot.New()) }
