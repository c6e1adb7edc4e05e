// Command loadclient plays Crazy Eights with many bots at once and measures the delays that they
// notice: loadclient run --help.
package main

import (
	"github.com/netloop/netloop/examples/cards/bot"
	"github.com/netloop/netloop/loadtest"
)

func main() { loadtest.Main(bot.Load{}) }
