package deploy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/netloop/netloop/internal/metrics"
)

// debian returns the path of a program of Debian's prometheus package, or skips the test.
func debian(t *testing.T, program string) string {
	t.Helper()
	p, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed (Debian package prometheus)", program)
	}
	return p
}

func TestPromtoolAcceptsTheConfiguration(t *testing.T) {
	promtool := debian(t, "promtool")
	for _, args := range [][]string{
		{"check", "config", "--lint-fatal", "prometheus.yml"},
		{"check", "rules", "--lint-fatal", "alerts.yml"},
		{"test", "rules", "alerts_test.yml"},
	} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = "prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// An alert on a missing series would never fire. An alert on the buckets of a histogram would not
// fire where native histograms replace them.
func TestAlertsUseExistingSeries(t *testing.T) {
	text, err := os.ReadFile("prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	exist := families(t)
	gauges := []string{"netloop_certificate_left_seconds"}
	names := regexp.MustCompile(`netloop_\w+`).FindAllString(string(text), -1)
	if len(names) == 0 {
		t.Fatal("no series named")
	}
	for _, name := range names {
		histogram := strings.HasSuffix(name, "_seconds") && !slices.Contains(gauges, name)
		if !slices.Contains(exist, name) || histogram {
			t.Errorf("alerts.yml uses %s, which is no counter or gauge of the server", name)
		}
	}
}

// families returns the names of the server's families of series.
func families(t *testing.T) (names []string) {
	t.Helper()
	m, err := metrics.New(nil, func() time.Duration { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc, 100)
	m.Describe(descs)
	close(descs)
	for d := range descs {
		names = append(names, regexp.MustCompile(`netloop_\w+`).FindString(d.String()))
	}
	return names
}

// A real Prometheus with the shipped configuration scrapes a running server.
func TestPrometheusScrapesARunningServer(t *testing.T) {
	web := runPrometheus(t, serve(t))
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	for _, q := range []string{
		"up == 1", "netloop_ticks_total > 0", "netloop_tick_rate_hertz > 50",
		"sum(netloop_stage_duration_seconds_count) > 0", "go_sched_latencies_seconds_count > 0",
	} {
		v, err := await(ctx, web, q)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %v", q, v)
	}
}

// runPrometheus runs Prometheus with the shipped configuration, but a scrape each 200 ms, until the
// test ends, and returns its address. It skips the test where Prometheus is missing.
func runPrometheus(t *testing.T, target string) string {
	t.Helper()
	program := debian(t, "prometheus")
	dir := t.TempDir()
	text, err := os.ReadFile("prometheus/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer("127.0.0.1:8080", target, "scrape_interval: 5s", "scrape_interval: 200ms").Replace(string(text))
	alerts, err := os.ReadFile("prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"prometheus.yml": config, "alerts.yml": string(alerts)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	web := freePort(t)
	var log strings.Builder
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+web)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if err := <-ended; err == nil {
			t.Error("Prometheus ended by itself")
		}
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return web
}

// await asks Prometheus until an expression has a value, or the context ends: another process
// starts in its own time.
func await(ctx context.Context, web, expr string) (float64, error) {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		v, err := query(web, expr)
		if err == nil {
			return v, nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return 0, fmt.Errorf("%s: %w", expr, err)
		}
	}
}

func TestPromtoolAcceptsARunningServersMetrics(t *testing.T) {
	promtool := debian(t, "promtool")
	resp, err := http.Get("http://" + serve(t) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = resp.Body
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// query returns the first number of an answer of Prometheus.
func query(web, expr string) (float64, error) {
	resp, err := http.Get("http://" + web + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Error string
		Data  struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if answer.Error != "" {
		return 0, errors.New(answer.Error)
	}
	for _, r := range answer.Data.Result {
		if v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64); err != nil || !math.IsNaN(v) {
			return v, err
		}
	}
	return 0, errors.New("no data")
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}
