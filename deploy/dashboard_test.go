package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// dashboard is the part of the Grafana dashboard that queries Prometheus. The test of the module
// deploy/grafana reads the whole file strictly.
type dashboard struct {
	Panels []struct {
		Type, Title, Description string
		FieldConfig              struct{ Defaults struct{ Unit string } }
		Targets                  []struct{ Expr, LegendFormat string }
	}
}

// target is an expression of a panel, with the variables replaced.
type target struct{ panel, expr string }

// targets returns the expressions of the dashboard. Each panel has a unit, a description and
// legends.
func targets(t *testing.T) (all []target) {
	t.Helper()
	text, err := os.ReadFile("grafana/netloop.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	// Rates of 30 s: the scrapes of the test are 200 ms apart.
	variables := strings.NewReplacer("$job", "netloop", "$instance", ".+", "$__rate_interval", "30s")
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		if p.FieldConfig.Defaults.Unit == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q has no unit, no description or no expression", p.Title)
		}
		for _, x := range p.Targets {
			if x.LegendFormat == "" {
				t.Errorf("panel %q has a line without legend: %s", p.Title, x.Expr)
			}
			all = append(all, target{p.Title, variables.Replace(x.Expr)})
		}
	}
	if len(all) < 50 {
		t.Fatalf("the dashboard has %d expressions", len(all))
	}
	return all
}

// A panel of a missing series would be empty for ever.
func TestDashboardUsesExistingSeries(t *testing.T) {
	exist := families(t)
	histogram := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, x := range targets(t) {
		for _, name := range regexp.MustCompile(`netloop_\w+`).FindAllString(x.expr, -1) {
			if !slices.Contains(exist, histogram.ReplaceAllString(name, "")) {
				t.Errorf("panel %q uses %s, which no server has", x.panel, name)
			}
		}
	}
}

// promtool reads each expression as the rule of a record.
func TestPromtoolAcceptsTheDashboard(t *testing.T) {
	promtool := debian(t, "promtool")
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for i, x := range targets(t) {
		rules = append(rules, rule{fmt.Sprint("panel:", i), x.expr})
	}
	group := map[string]any{"name": "dashboard", "rules": rules}
	text, err := json.Marshal(map[string]any{"groups": []any{group}}) // JSON is YAML too.
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}

// Each expression has data from a real Prometheus that scrapes a server with bots.
func TestEveryPanelHasData(t *testing.T) {
	debian(t, "prometheus")
	dir := programs(t)
	file := filepath.Join(dir, "addr.json")
	start(t, filepath.Join(dir, "server"), "run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--addr-file", file)
	var at struct{ Listen, Admin string }
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for at.Listen == "" {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatal("the server was not ready")
		}
		if text, err := os.ReadFile(file); err == nil {
			_ = json.Unmarshal(text, &at) // It may be half written.
		}
	}
	web := runPrometheus(t, at.Admin)
	bots := []string{"run", "--addr", at.Listen, "--admin", "http://" + at.Admin, "--clients", "5", "--verify", "1"}
	start(t, filepath.Join(dir, "loadclient"), append(bots, "--duration", "2m")...)
	if _, err := await(ctx, web, "netloop_clients == 5"); err != nil {
		t.Fatal(err)
	}
	// These bots join and leave within the rates.
	short := exec.CommandContext(ctx, filepath.Join(dir, "loadclient"), append(bots, "--duration", "1s")...)
	if out, err := short.CombinedOutput(); err != nil && short.ProcessState == nil {
		t.Fatalf("%v\n%s", err, out) // A shortfall of a busy machine is no failure.
	}
	soon, stop := context.WithTimeout(ctx, 10*time.Second) // for all of them: their series exist
	defer stop()
	for _, x := range targets(t) {
		if _, err := await(soon, web, x.expr); err != nil {
			t.Errorf("panel %q: %v", x.panel, err)
		}
	}
}

// programs builds the server and the load client into a folder.
func programs(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("programs cannot be interrupted there")
	}
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../cmd/server", "../cmd/loadclient")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}

// start runs a program until the test ends, and then interrupts it.
func start(t *testing.T, program string, args ...string) {
	t.Helper()
	var out strings.Builder
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(filepath.Base(program), out.String())
		}
	})
}
