package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// askEvery is the interval of requests for the number of players.
const askEvery = 2 * time.Second

// stay continues the bots after the measurement, while another player is connected. play runs them
// until its context ends.
func stay(ctx context.Context, admin string, bots int, every time.Duration, play func(context.Context)) {
	if !otherPlayer(ctx, admin, every) {
		return
	}
	fmt.Println("\nsomebody plays, so the bots go on until the page is closed; Ctrl-C ends it now")
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		play(ctx)
	}()
	defer func() {
		stop()
		<-ended
	}()
	for wait := 10 * every; ; wait = every { // The first wait lasts until all bots are connected.
		select {
		case <-ended:
			return
		case <-time.After(wait):
		}
		if n, err := players(ctx, admin); err != nil || n <= bots {
			return
		}
	}
}

// requestsAfter is the number of requests after the bots have left: the server notices the last
// disconnections a few ticks later.
const requestsAfter = 4

// otherPlayer reports whether a client remains after the bots have left.
func otherPlayer(ctx context.Context, admin string, every time.Duration) bool {
	for range requestsAfter {
		if n, err := players(ctx, admin); err != nil || n == 0 {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(every / requestsAfter):
		}
	}
	return true
}

// players returns the server's number of clients.
func players(ctx context.Context, admin string) (n int, err error) {
	const name = "netloop_clients "
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	for lines := bufio.NewScanner(io.LimitReader(resp.Body, 4<<20)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name); ok {
			return strconv.Atoi(value)
		}
	}
	return 0, errors.New("the server does not report its number of players")
}
