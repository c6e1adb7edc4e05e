//go:build unix

package embed_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/cluster/nats"
	"github.com/netloop/netloop/cluster/nats/embed"
)

// The test binary is also the processes of the tests: a NATS server, or a member of a cluster.
const (
	natsVariable   = "NETLOOP_TEST_NATS"
	memberVariable = "NETLOOP_TEST_MEMBER"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(natsVariable) != "":
		exit(runNATS(os.Getenv(natsVariable)))
	case os.Getenv(memberVariable) != "":
		exit(runMember(os.Getenv(memberVariable)))
	case os.Getenv(crowdVariable) != "":
		exit(runCrowd(os.Getenv(crowdVariable)))
	}
	_ = flag.Set("test.parallel", "5") // The tests wait nearly all of their time.
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runNATS is a NATS server until the end of its input.
func runNATS(config string) error {
	var cfg natsConfig
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		return err
	}
	s, err := embed.Start(cfg.Config.Advertise(cfg.Advertise))
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "ready", s.URL())
	_, err = io.Copy(io.Discard, os.Stdin)
	s.Close()
	return err
}

type natsConfig struct {
	embed.Config
	Advertise string
}

// runMember is a member that holds the names held and kept, has the room oak, and counts calls of
// create. Calls of hold tell whether it holds a name.
func runMember(url string) error {
	c, err := nats.New(nats.Config{URL: url, Beat: beat})
	if err != nil {
		return err
	}
	var created atomic.Int64
	epochs := map[string]cluster.Epoch{}
	c.Serve(func(_ context.Context, r cluster.Request) ([]byte, error) {
		switch r.Method {
		case "create":
			return strconv.AppendInt(nil, created.Add(1), 10), nil
		case "hold":
			return nil, c.Hold(string(r.Body), epochs[string(r.Body)])
		}
		return strconv.AppendInt(nil, created.Load(), 10), nil
	})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.Join(ctx, cluster.Member{Server: cluster.Server{ID: "process"}}); err != nil {
		return err
	}
	for _, name := range []string{"held", "kept"} {
		if epochs[name], err = c.Claim(ctx, name, 0); err != nil {
			return err
		}
	}
	c.Announce("oak", []byte("1"))
	fmt.Fprintln(os.Stdout, "ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, c.Close(ctx))
}

// process is a running process of a test.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  string // the rest of the line that begins with ready
}

// startProcess starts a process of this test binary, and waits until it is ready.
func startProcess(t testing.TB, variable, value string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+value)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, stdin: stdin}
	t.Cleanup(p.end)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	said, ready := strings.CutPrefix(strings.TrimSpace(line), "ready")
	if !ready {
		t.Fatalf("the process said %q: %v", line, err)
	}
	p.said = strings.TrimSpace(said)
	return p
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the process at once.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}

// end lets the process end itself, if it runs.
func (p *process) end() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the process: %v", err)
	}
}
