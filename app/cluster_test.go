package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/netloop/netloop/app/embednats"
	"github.com/netloop/netloop/app/internal/embedded"
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
// and the second finds it by the address file.
func TestServersJoinByAnEmbeddedNATS(t *testing.T) {
	dir := t.TempDir()
	join := func(name, cluster string, more ...string) (*running, addresses) {
		t.Helper()
		file := filepath.Join(dir, name+".json")
		args := append([]string{"--admin=", "--listen", "127.0.0.1:0", "--addr-file", file, "--cluster", cluster, "--region", "eu"}, more...)
		r := start(t, newGame(), nil, args...)
		banner := r.banner()
		var at addresses
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &at)
		}
		if err != nil || !strings.Contains(banner, "cluster  "+at.Cluster+", as server "+at.Server) {
			t.Fatalf("%v: %+v in\n%s", err, at, banner)
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
	for _, r := range []*running{y, x} {
		if exit, log := r.stop(); exit != exitOK || strings.Contains(log, "WARN") {
			t.Errorf("exit %d\n%s", exit, log)
		}
	}
}
