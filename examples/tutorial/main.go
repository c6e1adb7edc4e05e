// Command tutorial serves the game of a part of docs/TUTORIAL.md:
//
//	go run ./examples/tutorial 3 --web 127.0.0.1:8000
//
// Part 1 is the starter blank, and part 5 has bots for the game of part 4.
package main

import (
	"fmt"
	"os"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app"
	dots "github.com/netloop/netloop/examples/starters/blank/game"
	prediction "github.com/netloop/netloop/examples/tutorial/2-prediction"
	rounds "github.com/netloop/netloop/examples/tutorial/3-rounds"
	lobby "github.com/netloop/netloop/examples/tutorial/4-lobby"
	records "github.com/netloop/netloop/examples/tutorial/6-records"
)

func main() {
	games := map[string]netloop.Game{
		"1": dots.Game{}, "2": prediction.Game{}, "3": rounds.Game{}, "4": lobby.Game{}, "5": lobby.Game{},
		"6": new(records.Game), "7": new(records.Game),
	}
	if len(os.Args) < 2 || games[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "tutorial: which part, 1 to 7? go run ./examples/tutorial 3 --web 127.0.0.1:8000")
		os.Exit(2)
	}
	part := games[os.Args[1]]
	os.Args = append(os.Args[:1], os.Args[2:]...)
	app.Main(part)
}
