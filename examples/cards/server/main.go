// Command server serves Crazy Eights: a lobby, and tables that are stored in a database.
package main

import (
	"github.com/netloop/netloop/app"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/bot"
)

func main() { app.Main(cards.New(bot.Host)) }
