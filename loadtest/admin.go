package loadtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/metrics/ticks"
	"github.com/netloop/netloop/internal/slowtick"
)

// adminPage reads the server's own figures from its admin listener: the exact counts of its ticks,
// its metrics, and its slowest ticks.
type adminPage struct {
	url   string // without a path
	token string // empty is none
	http  http.Client
}

const (
	// adminTimeout bounds one request: an answer takes milliseconds.
	adminTimeout = 3 * time.Second
	// maxPage bounds /metrics and /ticks/slow, which take less than 1 MB.
	maxPage = 8 << 20
	// worstTicks is the number of slow ticks in a result.
	worstTicks = 10
)

func newAdmin(url, token string) *adminPage {
	return &adminPage{url: url, token: token, http: http.Client{Timeout: adminTimeout}}
}

// get fetches a page. The error suggests a remedy.
func (a *adminPage) get(ctx context.Context, path string, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("--admin: %w", err)
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	res, err := a.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("--admin: no answer: %w: give the address that the server prints as its admin listener, or leave --admin out", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusUnauthorized {
		return nil, errors.New("--admin: the server asks for a token: name a file with one by --admin-token-file")
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("--admin: %s answers %s: give the address that the server prints as its admin listener", a.url+path, res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("--admin: reading %s: %w", a.url+path, err)
	}
	return body, nil
}

// read fetches /ticks.
func (a *adminPage) read(ctx context.Context) (ticks.Snapshot, error) {
	body, err := a.get(ctx, "/ticks", ticks.MaxEncoded+1)
	if err != nil {
		return ticks.Snapshot{}, err
	}
	s, err := ticks.Decode(body)
	if err != nil {
		return ticks.Snapshot{}, fmt.Errorf("--admin: %s/ticks is not a netloop server's account of its ticks: %w", a.url, err)
	}
	return s, nil
}

// slow fetches the slowest ticks of the last hour.
func (a *adminPage) slow(ctx context.Context) ([]slowtick.Record, error) {
	body, err := a.get(ctx, "/ticks/slow", maxPage)
	if err != nil {
		return nil, err
	}
	var page struct {
		Ticks []slowtick.Record `json:"ticks"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("--admin: %s/ticks/slow: %w", a.url, err)
	}
	return page.Ticks, nil
}

// worst returns the slow ticks of the second reading, after, that the first one, before, does not
// have: the ticks between the two readings.
func worst(before, after []slowtick.Record) []WorstTick {
	old := map[uint64]bool{}
	for _, r := range before {
		old[r.Tick] = true
	}
	slices.SortStableFunc(after, func(a, b slowtick.Record) int { return cmp.Compare(b.Duration, a.Duration) })
	var all []WorstTick
	for _, r := range after {
		if !old[r.Tick] && len(all) < worstTicks {
			all = append(all, WorstTick{
				Tick: r.Tick, Duration: *millis(r.Duration), Lateness: *millis(r.Lateness), Cause: string(r.Cause),
				System: r.Blame.Name, Stage: r.Blame.Stage, Cost: *millis(r.Blame.Cost),
			})
		}
	}
	return all
}

// samples are the series of /metrics by their text, labels included. A nil map has no series.
type samples map[string]float64

// metrics fetches /metrics.
func (a *adminPage) metrics(ctx context.Context) (samples, error) {
	body, err := a.get(ctx, "/metrics", maxPage)
	if err != nil {
		return nil, err
	}
	return parseSamples(string(body)), nil
}

// parseSamples reads the text format of Prometheus. Unreadable lines are left out.
func parseSamples(text string) samples {
	all := samples{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		if x, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			all[line[:at]] = x
		}
	}
	return all
}

// get returns the value of a series, or nil.
func (s samples) get(series string) *float64 {
	if x, ok := s[series]; ok {
		return &x
	}
	return nil
}

// grown returns the growth of a counter since before, or nil.
func (s samples) grown(before samples, series string) *float64 {
	return growth(before.get(series), s.get(series))
}

// growth returns the growth between two readings of a counter, or nil.
func growth(was, now *float64) *float64 {
	if now == nil || was == nil || *now < *was {
		return nil
	}
	return new(*now - *was)
}

// flushLag is the family of the time that the transport needs for a tick's datagrams.
const flushLag = "netloop_flush_lag_seconds"

// upperBound returns an upper bound of a quantile of a histogram's records since before, in
// milliseconds: the bound of the first bucket up to which at least share of these records are. It
// returns nil without a record, and for the last bucket, which has no bound.
func (s samples) upperBound(before samples, family string, share float64) *float64 {
	all := s.grown(before, family+`_bucket{le="+Inf"}`)
	if all == nil || *all == 0 {
		return nil
	}
	var best *float64
	for series := range s {
		text, ok := strings.CutPrefix(series, family+`_bucket{le="`)
		bound, err := strconv.ParseFloat(strings.TrimSuffix(text, `"}`), 64)
		if !ok || err != nil || strings.HasPrefix(text, "+Inf") {
			continue
		}
		if n := s.grown(before, series); n != nil && *n >= share**all && (best == nil || bound < *best) {
			best = &bound
		}
	}
	if best == nil {
		return nil
	}
	return millis(time.Duration(*best * float64(time.Second)))
}
