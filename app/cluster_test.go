package app

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	_ "github.com/netloop/netloop/app/embednats"
	"github.com/netloop/netloop/app/internal/director"
	"github.com/netloop/netloop/app/internal/embedded"
	"github.com/netloop/netloop/cluster/nats"
)

func TestOptionsOfAClusterFitTogether(t *testing.T) {
	empty := write(t, "empty.pem", "")
	for _, c := range []struct {
		args string
		want []string
	}{
		{"--region eu", []string{"region", "set cluster too"}},
		{"--cluster 10.0.0.5:4222", []string{"cluster", "use embed, or the URL"}},
		{"--cluster nats://127.0.0.1:1 --cluster-listen 127.0.0.1:0", []string{"cluster-listen", "for --cluster embed"}},
		{"--cluster embed --cluster-creds x", []string{"cluster-creds", "for the URL of NATS"}},
		{"--cluster embed --cluster-listen here", []string{"cluster-listen", "use host:port"}},
		{"--cluster embed --cluster-routes here", []string{"cluster-routes", "use host:port,host:port"}},
		{"--cluster embed --cluster-listen 0.0.0.0:0", []string{"cluster-listen", "NETLOOP_CLUSTER_PASSWORD"}},
		{"--hand-over", []string{"hand-over", "set cluster too"}},
		{"--cluster-local-tokens", []string{"cluster-local-tokens", "set cluster too"}},
		{"--cluster embed --public-addr here", []string{"public-addr", "use host:port"}},
		{"--cluster nats://127.0.0.1:1 --cluster-name a.b", []string{"cluster", "letters, digits"}},
		{"--cluster nats://127.0.0.1:1 --cluster-ca " + empty, []string{"cluster-ca", "PEM"}},
		{"--cluster nats://127.0.0.1:1 --cluster-creds /none", []string{"cluster-creds", "readable file"}},
		{"--cluster embed --listen 0.0.0.0:0 --insecure-no-auth", []string{"public-addr", "name the address at which players reach"}},
	} {
		r := command(t, newGame(), nil, strings.Fields("run --admin= --listen 127.0.0.1:0 "+c.args)...)
		if r.exit != exitUsage {
			t.Errorf("%s: exit %d", c.args, r.exit)
		}
		oneLineOf(t, r.stderr, c.want...)
	}
	start := embedded.Start
	defer func() { embedded.Start = start }()
	embedded.Start = nil
	oneLineOf(t, command(t, newGame(), nil, "run", "--cluster", "embed").stderr, "cluster", "contains no NATS server")
}

// Two servers of one cluster: the first has the NATS server, whose data is in the state directory,
// and the second finds it by the address file. A director opens a room at each, and ends as usual
// after NATS.
func TestServersJoinByAnEmbeddedNATS(t *testing.T) {
	dir := t.TempDir()
	join := func(name, cluster string, more ...string) (*running, addresses) {
		t.Helper()
		file := filepath.Join(dir, name+".json")
		args := append([]string{"--admin=", "--listen", "127.0.0.1:0", "--addr-file", file, "--cluster", cluster, "--region", "eu"}, more...)
		r := start(t, newGame(), nil, args...)
		banner := r.banner()
		at := published(t, file)
		if !strings.Contains(banner, "cluster  "+at.Cluster+", as server "+at.Server) {
			t.Fatalf("%+v in\n%s", at, banner)
		}
		return r, at
	}
	x, at := join("x", "embed", "--state-dir", dir)
	y, other := join("y", at.Cluster)
	if other.Cluster != at.Cluster || other.Server == at.Server || at.Server == "" {
		t.Errorf("%+v joins %+v", other, at)
	}
	if _, err := os.Stat(filepath.Join(dir, "nats", "jetstream")); err != nil {
		t.Error(err)
	}
	file, tokens := filepath.Join(dir, "director.json"), write(t, "tokens", "write 0123456789abcdef\n")
	d := startCommand(t, newGame(), nil, "director", "--admin", "127.0.0.1:0", "--admin-token-file", tokens, "--cluster", at.Cluster, "--region", "eu", "--addr-file", file)
	banner := d.banner()
	if !strings.Contains(banner, "POST /match") {
		t.Error(banner)
	}
	door := published(t, file)
	places := map[string]bool{}
	// It may hear of one server first.
	for late := time.Now().Add(patience); len(places) < 2 && time.Now().Before(late); {
		m := matched(t, door.Admin)
		if len(m.Tickets) != 200 || len(m.Addresses) != 2 {
			t.Errorf("%+v", m)
		}
		places[m.Server] = true
	}
	if !places[at.Server] || !places[other.Server] {
		t.Errorf("two rooms are at %v, want one at each server", places)
	}
	for _, r := range []*running{y, x} {
		if exit, log := r.stop(); exit != exitOK || strings.Contains(log, "WARN") {
			t.Errorf("exit %d\n%s", exit, log)
		}
	}
	if exit, log := d.stop(); exit != exitOK {
		t.Errorf("a director without NATS: exit %d\n%s", exit, log)
	}
}

// published returns the content of an address file, which appears soon after the banner.
func published(t *testing.T, file string) (at addresses) {
	t.Helper()
	for late := time.After(patience); ; {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &at)
		}
		if err == nil {
			return at
		}
		select {
		case <-late:
			t.Fatal(err)
		default:
			runtime.Gosched()
		}
	}
}

// matched asks a director for 200 seats, until it has heard of servers.
func matched(t *testing.T, at string) (m director.Match) {
	t.Helper()
	for late := time.After(patience); ; {
		ask, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/match?kind=table&seats=200", nil)
		if err != nil {
			t.Fatal(err)
		}
		ask.Header.Set("Authorization", "Bearer 0123456789abcdef")
		answer, err := http.DefaultClient.Do(ask)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		err = errors.Join(err, answer.Body.Close())
		if answer.StatusCode == http.StatusOK && err == nil {
			if err := json.Unmarshal(body, &m); err != nil {
				t.Fatal(err)
			}
			return m
		}
		select {
		case <-late:
			t.Fatalf("%d %s %v", answer.StatusCode, body, err)
		default:
		}
	}
}

// The file of --cluster-creds is one of credentials or of a key.
func TestCredentialsOfTwoKinds(t *testing.T) {
	creds := write(t, "creds", "-----BEGIN NATS USER JWT-----\neyJ\n------END NATS USER JWT------\n")
	key := write(t, "key", "\nSUAM\n")
	for file, want := range map[string]nats.Config{creds: {Credentials: creds}, key: {NKey: key}} {
		var cfg nats.Config
		if err := authenticate(&cfg, file); err != nil || cfg != want {
			t.Errorf("%s: %+v, %v", file, cfg, err)
		}
	}
	if err := authenticate(new(nats.Config), t.TempDir()); err == nil || !strings.Contains(err.Error(), "readable file") {
		t.Errorf("a folder: %v", err)
	}
}
