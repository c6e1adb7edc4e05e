package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// scraped is the target in deploy/prometheus/prometheus.yml.
const scraped = "127.0.0.1:8080"

// watch runs Prometheus if it is installed, until stop is called, and prints the pages of it and of
// the server.
func watch(ctx context.Context, o options, at addresses, dir string, out io.Writer) (stop func(), err error) {
	stop = func() {}
	program, missing := exec.LookPath("prometheus")
	if missing == nil {
		if stop, err = runPrometheus(ctx, program, o, at.Admin, dir); err != nil {
			return stop, err
		}
	}
	line := func(name, format string, a ...any) { fmt.Fprintf(out, "  %-11s %s\n", name, fmt.Sprintf(format, a...)) }
	fmt.Fprintln(out)
	line("arena", "http://%s/", at.Web)
	line("inspector", "http://%s/inspect", at.Admin)
	line("metrics", "http://%s/metrics", at.Admin)
	if missing != nil {
		line("Prometheus", "not installed (Debian package prometheus)")
	} else {
		line("Prometheus", "http://%s/", o.prometheus)
		line("Grafana", "add the data source http://%s (Prometheus), then Dashboards, New, Import: deploy/grafana/netloop.json", o.prometheus)
	}
	fmt.Fprint(out, "\nCtrl-C ends all of them\n\n")
	return stop, nil
}

// runPrometheus starts Prometheus with the shipped configuration and the server as target, and
// waits until it answers. Its data and log are in dir.
func runPrometheus(ctx context.Context, program string, o options, admin, dir string) (stop func(), err error) {
	stop = func() {}
	for _, name := range []string{"prometheus.yml", "alerts.yml"} {
		text, err := os.ReadFile(filepath.Join(o.deploy, name))
		if err != nil {
			return stop, fmt.Errorf("-deploy: %w", err)
		}
		config := strings.ReplaceAll(string(text), scraped, admin)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(config), 0o600); err != nil {
			return stop, err
		}
	}
	log, err := os.Create(filepath.Join(dir, "prometheus.log"))
	if err != nil {
		return stop, err
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(running, program, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+o.prometheus)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopLimit
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		end()
		return stop, fmt.Errorf("start Prometheus: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // An interrupt is its normal end.
	}()
	stop = func() {
		end()
		<-ended
		_ = log.Close()
	}
	if err := waitPrometheus(ctx, "http://"+o.prometheus+"/-/ready", ended); err != nil {
		text, _ := os.ReadFile(log.Name())
		return stop, fmt.Errorf("prometheus: %w: %s", err, text)
	}
	return stop, nil
}

func waitPrometheus(ctx context.Context, url string, ended <-chan struct{}) error {
	ctx, stop := context.WithTimeout(ctx, startLimit)
	defer stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(pollEvery):
		case <-ended:
			return errors.New("it ended before it was ready")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
