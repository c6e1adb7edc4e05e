package app

import (
	"bytes"
	"errors"
	stdlog "log" //nolint:depguard // It stands for a library.
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/netloop/netloop/internal/certificate"
)

// The doctor prints a line for each check, ok or with a remedy, and its exit status reports whether
// there is a remedy.
func TestTheDoctorPrintsRemedies(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	state := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		says []string
		mend bool // on any machine
	}{
		"well": {
			[]string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--state-dir", state},
			[]string{"ok    listen      127.0.0.1:0 is free", "ok    admin       127.0.0.1:0 is free", "ok    certificate one for development",
				"ok    keys        made at the first start, in " + filepath.Join(state, "secret"), "ok    players     only from this machine", "UDP buffers ", "processors  GOMAXPROCS ",
				"open files  ", "clock       "}, false},
		"port in use": {
			[]string{"--listen", taken.LocalAddr().String(), "--admin", ""},
			[]string{"FAIL  listen      " + taken.LocalAddr().String() + " is in use\n                  stop the process on that port", "ok    admin       none",
				"FAIL  keys        new ones at each start\n                  set --state-dir"}, true},
		"open to all": {
			[]string{"--listen", "0.0.0.0:0", "--insecure-no-auth", "--admin", "0.0.0.0:0", "--secret-file", write(t, "secret", "short")},
			[]string{"FAIL  admin       0.0.0.0:0 is reached by other machines\n                  set --admin-token-file", "FAIL  keys        ", "has 5 bytes",
				"FAIL  players     all, without tokens", "FAIL  certificate one for development", "set --tls-cert"}, true},
		"files that are none": {
			[]string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--admin-token-file", write(t, "tokens", "nothing"), "--tls-cert", "none", "--tls-key", "none",
				"--auth", "token", "--auth-keys", "none", "--auth-audience", "a"},
			[]string{"FAIL  admin       ", "FAIL  certificate open none", "FAIL  players     "}, true},
	} {
		r := command(t, newGame(), nil, append([]string{"doctor"}, c.args...)...)
		for _, want := range c.says {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, r.stdout)
			}
		}
		wrong := strings.Contains(r.stdout, "FAIL")
		if c.mend && !wrong || wrong != (r.exit == 1) || !wrong && r.exit != 0 || wrong != (r.stderr != "") {
			t.Errorf("%s: exit %d: %s\n%s", name, r.exit, r.stderr, r.stdout)
		}
	}
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("the doctor has made %v, %v", left, err)
	}
	if r := command(t, newGame(), nil, "doctor", "--tick-rate", "0"); r.exit != 2 {
		t.Errorf("settings that cannot be used: exit %d", r.exit)
	}
}

// Figures of a machine that are too low have a remedy, and others none.
func TestTheDoctorKnowsFigures(t *testing.T) {
	few, paged := &configuration{options: &options{}}, &configuration{options: &options{Web: ":1", MaxClients: 100}}
	for _, c := range []struct {
		finding
		is, remedy string
	}{
		{examineProcessors(8, 8, 0), "8 of 8, no limit", ""},
		{examineProcessors(4, 8, 3.5), "the cgroup allows 3.5", ""},
		{examineProcessors(2, 8, 1), "the cgroup allows 1", ""}, // Go takes two at least.
		{examineProcessors(8, 8, 3.5), "the cgroup allows 3.5", "leave GOMAXPROCS out"},
		{examineProcessors(2, 8, 0.5), "the cgroup allows 0.5", "allow 1 or more"},
		{examineProcessors(1, 1, 0), "1 of 1", "give it 2"},
		{few.examineFiles(wantFiles, nil), "at most 256", ""},
		{few.examineFiles(wantFiles-1, nil), "at most 255", "ulimit -n 256"},
		{paged.examineFiles(wantFiles, nil), "at most 256", "ulimit -n 637"},
		{paged.examineFiles(637, nil), "at most 637", ""},
		{few.examineFiles(0, errors.ErrUnsupported), "unknown", ""},
		{examineBuffers(7<<20, 7<<20, nil), "7168 KiB to receive, 7168 KiB to send", ""},
		{examineBuffers(7<<20, 7<<20-1, nil), "7167 KiB to send", "sysctl -w"},
		{examineBuffers(208<<10, 7<<20, nil), "208 KiB to receive", "sysctl -w"},
		{examineBuffers(0, 0, errors.ErrUnsupported), "unknown", ""},
		{examineBuffers(0, 0, errors.New("no socket")), "no socket", "let this user open UDP sockets"},
		{finding{is: "free"}.port("a:1", nil), "free", ""},
		{finding{}.port("a:1", syscall.EADDRINUSE), "a:1 is in use", "stop the process"},
		{finding{}.port("a:1", errors.New("no such address")), "no such address", "use an address of this machine"},
		{examineClock(true, nil), "synchronised", ""},
		{examineClock(false, nil), "not synchronised", "timedatectl"},
		{examineClock(false, errors.ErrUnsupported), "unknown", ""},
	} {
		if !strings.Contains(c.finding.is, c.is) || (c.finding.remedy == "") != (c.remedy == "") || !strings.Contains(c.finding.remedy, c.remedy) {
			t.Errorf("%+v, want %q and %q", c.finding, c.is, c.remedy)
		}
	}
}

// Files with secrets are well if no other user of this machine may read them.
func TestTheDoctorLooksAtSecrets(t *testing.T) {
	secret, tokens := write(t, "secret", strings.Repeat("x", 32)), write(t, "tokens", "read "+strings.Repeat("x", 32))
	_, keys := keygen(t)
	c := &configuration{options: &options{SecretFile: secret, Admin: "127.0.0.1:0", AdminTokens: tokens, Auth: authToken, AuthAudience: "here", AuthKeys: keys + ".pub"}}
	for _, exposed := range []bool{false, true} {
		if exposed {
			for _, path := range []string{secret, tokens} {
				if err := os.Chmod(path, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		for path, f := range map[string]finding{secret: c.examineSecret(nil), tokens: c.examineAdmin(t.Context())} {
			if strings.HasPrefix(f.remedy, "chmod 600 "+path) != exposed || (f.remedy != "") != exposed {
				t.Errorf("exposed %v: %+v", exposed, f)
			}
		}
	}
	if f := c.examinePlayers(); !strings.HasPrefix(f.is, `with tokens for "here", signed with `) || f.remedy != "" {
		t.Errorf("%+v", f)
	}
}

// The least limit of the cgroups around a process counts.
func TestTheLimitOfTheCgroupIsFound(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  float64
	}{
		"no cgroups":     {fstest.MapFS{}, 0},
		"no limit":       {fstest.MapFS{"proc/self/cgroup": file("0::/a\n"), "sys/fs/cgroup/a/cpu.max": file("max 100000\n")}, 0},
		"its own":        {fstest.MapFS{"proc/self/cgroup": file("1:cpu:/x\n0::/a/b\n"), "sys/fs/cgroup/a/b/cpu.max": file("150000 100000\n")}, 1.5},
		"one around it":  {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/cpu.max": file("400000 100000"), "sys/fs/cgroup/a/cpu.max": file("50000 100000")}, 0.5},
		"in a container": {fstest.MapFS{"sys/fs/cgroup/cpu.max": file("200000 100000")}, 2},
		"nonsense":       {fstest.MapFS{"sys/fs/cgroup/cpu.max": file("1 0")}, 0},
	} {
		if got := cpuLimit(c.files); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A certificate is checked as by a client, and its key for access by other users of this machine.
func TestTheDoctorLooksAtTheCertificate(t *testing.T) {
	certFile, keyFile := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	if err := certificate.WriteSelfSigned(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	c, err := newConfiguration(newGame())
	if err != nil {
		t.Fatal(err)
	}
	c.options.TLSCert, c.options.TLSKey = certFile, keyFile
	const day = 24 * time.Hour
	for after, remedy := range map[time.Duration]string{0: "", 5 * day: "", 7 * day: "renew it", 20 * day: "renew it", -day: "clock"} {
		if f := c.examineCertificate(time.Now().Add(after)); !strings.Contains(f.is, "valid") || (f.remedy == "") != (remedy == "") || !strings.Contains(f.remedy, remedy) {
			t.Errorf("after %v: %+v, want %q", after, f, remedy)
		}
	}
	if err := os.Chmod(keyFile, 0o644); err != nil {
		t.Fatal(err)
	}
	if f := c.examineCertificate(time.Now()); !strings.Contains(f.remedy, "chmod 600 "+keyFile) {
		t.Errorf("a key that others may read: %+v", f)
	}
}

// Log output of libraries goes into the server's log while it runs, quic-go's warnings above all.
func TestTheStandardLogGoesIntoOurs(t *testing.T) {
	var ours, theirs bytes.Buffer
	out := stdlog.Writer()
	stdlog.SetOutput(&theirs)
	defer stdlog.SetOutput(out)
	restore := takeStandardLog(slog.New(slog.NewTextHandler(&ours, nil)))
	stdlog.Printf("failed to sufficiently increase receive buffer size")
	restore()
	stdlog.Print("afterwards")
	if text := ours.String(); !strings.Contains(text, `level=WARN msg="failed to sufficiently increase receive buffer size"`) {
		t.Errorf("the log says %s", text)
	}
	if text := theirs.String(); !strings.HasSuffix(text, " afterwards\n") || strings.Contains(text, "failed") {
		t.Errorf("the standard log says %s", text)
	}
}
