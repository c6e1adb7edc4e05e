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

// askEvery is how often the server is asked whether anybody plays still.
const askEvery = 2 * time.Second

// stay lets bots play on after they have been measured, for as long as somebody plays beside them.
// play runs them until its context ends.
func stay(ctx context.Context, admin string, bots int, every time.Duration, play func(context.Context)) {
	if !somebody(ctx, admin, every) {
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
	for wait := 10 * every; ; wait = every { // First until all bots are there.
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

// looks is how often the server is asked whether anybody is left when the bots have gone: it hears
// of the last ones a few ticks later.
const looks = 4

// somebody tells whether there is a client that stays when the bots have gone.
func somebody(ctx context.Context, admin string, every time.Duration) bool {
	for range looks {
		if n, err := players(ctx, admin); err != nil || n == 0 {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(every / looks):
		}
	}
	return true
}

// players is how many clients the server has.
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
	return 0, errors.New("the server does not say how many play")
}
