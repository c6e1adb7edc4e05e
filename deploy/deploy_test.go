package deploy_test

import (
	"encoding/json"
	"errors"
	"fmt"
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
	m, err := metrics.New(nil, func() time.Duration { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc, 100)
	m.Describe(descs)
	close(descs)
	var exist []string
	for d := range descs {
		exist = append(exist, regexp.MustCompile(`netloop_\w+`).FindString(d.String()))
	}
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

// A real Prometheus with the shipped configuration scrapes a running server.
func TestPrometheusScrapesARunningServer(t *testing.T) {
	program := debian(t, "prometheus")
	target := serve(t)

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
	defer func() {
		_ = cmd.Process.Kill()
		if err := <-ended; err == nil {
			t.Error("Prometheus ended by itself")
		}
		if t.Failed() {
			t.Log(log.String())
		}
	}()

	// Another process starts in its own time: ask until it is ready, or until the limit.
	limit := time.After(30 * time.Second)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for _, q := range []string{
		"up == 1", "netloop_ticks_total > 0", "netloop_tick_rate_hertz > 50",
		"sum(netloop_stage_duration_seconds_count) > 0", "go_sched_latencies_seconds_count > 0",
	} {
		for {
			v, err := query(web, q)
			if err == nil {
				t.Logf("%s: %v", q, v)
				break
			}
			select {
			case <-again.C:
			case <-limit:
				t.Fatalf("%s: %v", q, err)
			}
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

// query returns one number from Prometheus.
func query(web, expr string) (float64, error) {
	resp, err := http.Get("http://" + web + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if len(answer.Data.Result) == 0 {
		return 0, errors.New("no result")
	}
	return strconv.ParseFloat(fmt.Sprint(answer.Data.Result[0].Value[1]), 64)
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
