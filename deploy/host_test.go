package deploy_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// systemd accepts each unit. Programs may be missing on this machine.
func TestSystemdAcceptsTheUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed (Debian package systemd)")
	}
	out, _ := exec.Command(analyze, "verify", "host/mygame.service", "host/mygame-cert.service", "host/mygame-cert.timer", "systemd/netloop.service").CombinedOutput()
	missing := regexp.MustCompile(`^\S+: Command \S+ is not executable: No such file or directory$`)
	for line := range strings.Lines(string(out)) {
		if !missing.MatchString(strings.TrimSpace(line)) {
			t.Errorf("systemd-analyze verify: %s", line)
		}
	}
}

// The container of one machine publishes the ports of its settings, and has their folders.
func TestTheContainerFitsItsSettings(t *testing.T) {
	unit, err := os.ReadFile("host/mygame.service")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, line := range lines(t, "host/mygame.env") {
		name, value, _ := strings.Cut(line, "=")
		var want string
		switch _, port, _ := strings.Cut(value, ":"); name {
		case "NETLOOP_LISTEN": // The page tells clients this port.
			want = "--publish=" + port + ":" + port + "/udp "
		case "NETLOOP_WEB":
			want = "--publish=443:" + port + "/tcp "
		case "NETLOOP_TLS_CERT", "NETLOOP_TLS_KEY":
			want = "/tls:/tls:ro "
		case "NETLOOP_STATE_DIR":
			want = "/state:" + value + " "
		default:
			continue
		}
		if found++; !strings.Contains(string(unit), want) {
			t.Errorf("%s needs %q in host/mygame.service", line, want)
		}
	}
	if found != 5 {
		t.Errorf("%d settings concern the container, want 5", found)
	}
}
