package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/netloop/netloop/internal/metrics/ticks"
)

// adminPage reads the figures of the server's ticks from /ticks of its admin listener.
type adminPage struct {
	url   string
	token string // empty is none
	http  http.Client
}

// adminTimeout bounds one request: an answer takes milliseconds.
const adminTimeout = 3 * time.Second

func newAdmin(url, token string) *adminPage {
	return &adminPage{url: url, token: token, http: http.Client{Timeout: adminTimeout}}
}

// read fetches /ticks. The error suggests a remedy.
func (a *adminPage) read(ctx context.Context) (ticks.Snapshot, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url, nil)
	if err != nil {
		return ticks.Snapshot{}, fmt.Errorf("--admin: %w", err)
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	res, err := a.http.Do(req)
	if err != nil {
		return ticks.Snapshot{}, fmt.Errorf("--admin: no answer: %w: give the address that the server prints as its admin listener, or leave --admin out", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusUnauthorized {
		return ticks.Snapshot{}, errors.New("--admin: the server asks for a token: name a file with one by --admin-token-file")
	}
	if res.StatusCode != http.StatusOK {
		return ticks.Snapshot{}, fmt.Errorf("--admin: %s answers %s: give the address that the server prints as its admin listener", a.url, res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, ticks.MaxEncoded+1))
	if err != nil {
		return ticks.Snapshot{}, fmt.Errorf("--admin: reading %s: %w", a.url, err)
	}
	s, err := ticks.Decode(body)
	if err != nil {
		return ticks.Snapshot{}, fmt.Errorf("--admin: %s is not a netloop server's account of its ticks: %w", a.url, err)
	}
	return s, nil
}
