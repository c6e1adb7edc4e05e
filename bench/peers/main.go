// Command peers is the program of `make peers`: it measures one world in netloop and in other game
// servers, on loopback and over bad links.
//
// The flow:
//
//	main      this program: it starts a server and its clients for each cell of a matrix
//	  serve   a server of one peer, on core 0: of this program, of Node, or in C
//	  play    its clients, on core 1, which record the arrival of each update
//	window    processor time, memory and bytes of a few seconds
//	analyse   intervals, ages and gaps from the records, in HdrHistograms
//	page      tables and plots
//
// matrix.go lists the cells, run.go measures one, record.go analyses records, results.go keeps the
// results in a file, page.go and plot.go show them. A peer has a file of its own: netloop.go,
// nano.go, pitaya.go, servers/colyseus and servers/enet. capacity.go draws the results of
// `make capacity`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/netloop/netloop/bench/world"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case len(os.Args) == 6 && os.Args[1] == "serve":
		stop() // A server has its own handling of signals.
		err = serve(os.Args[2:])
	case len(os.Args) == 7 && os.Args[1] == "play":
		stop()
		err = play(os.Args[2:])
	case len(os.Args) == 4 && os.Args[1] == "capacity":
		err = plotCapacity(os.Args[2], os.Args[3])
	default:
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
		stop()
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("it cannot run like that")

// serve runs a server: PEER ADDR RATE WORLD.
func serve(args []string) error {
	p, a, err := parseRole(args)
	if err != nil {
		return err
	}
	a.stall = newStall()
	return p.serve(a)
}

// play runs clients: PEER ADDR RATE WORLD CLIENTS.
func play(args []string) error {
	p, a, err := parseRole(args)
	if err != nil {
		return err
	}
	clients, err := strconv.Atoi(args[4])
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return p.play(clientArgs{a, clients})
}

func parseRole(args []string) (p *peer, a serverArgs, err error) {
	if p = peerNamed(args[0]); p == nil || p.serve == nil {
		return nil, a, fmt.Errorf("%w: no peer %q", errUsage, args[0])
	}
	a.addr, a.world, a.move = args[1], args[3], world.Motions[args[3]]
	if a.rate, err = strconv.Atoi(args[2]); err != nil || a.rate < 1 || a.move == nil {
		return nil, a, fmt.Errorf("%w: rate %q, world %q", errUsage, args[2], args[3])
	}
	return p, a, nil
}
