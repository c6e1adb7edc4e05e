//go:build unix

package deploy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/certificate"
	"github.com/netloop/netloop/internal/testing/nodetest"
)

// joining is a page with a script that opens the server's WebSocket.
var joining = fstest.MapFS{
	"index.html": {Data: []byte(`<!doctype html><title>netloop</title><script type="module" src="join.js"></script>`)},
	"join.js": {Data: []byte(`const {webSocket} = await (await fetch("/connect.json")).json();
globalThis.socket = new WebSocket(webSocket, "netloop.1");`)},
}

// behindNginx starts a server and, before it, nginx with the site of this folder, and returns the
// address of nginx and of the admin listener.
func behindNginx(t *testing.T) (at, admin string) {
	t.Helper()
	program := "/usr/sbin/nginx" // It is in no path of ordinary users.
	if _, err := os.Stat(program); err != nil {
		t.Skip("needs nginx: apt-get install nginx")
	}
	at = freePort(t)
	s, err := netloop.New(netloop.Config{
		Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Web: "127.0.0.1:0", WebURL: "https://" + at, WebProxies: []string{"127.0.0.1"},
		WebFiles: joining, Auth: netloop.Auth{Insecure: true},
	}, empty{netloop.NewSchema("empty", 1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	certFile, keyFile := writeCertificate(t, dir)
	site, err := os.ReadFile("nginx/netloop.conf")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(at)
	text := strings.NewReplacer(
		"listen 443 ssl", "listen 127.0.0.1:"+port+" ssl", "127.0.0.1:8000", s.WebAddr().String(), "play.example.org;", "localhost;",
		"/etc/ssl/play.example.org/cert.pem", certFile, "/etc/ssl/play.example.org/key.pem", keyFile,
	).Replace(string(site))
	if strings.Count(text, s.WebAddr().String()) < 2 {
		t.Fatal("the site has no address of the server")
	}
	conf := filepath.Join(dir, "nginx.conf")
	temp := ""
	for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += of + "_temp_path " + dir + "/" + of + ";\n"
	}
	all := "daemon off; master_process off; pid " + dir + "/pid; error_log " + dir + "/error.log;\nevents {}\nhttp {\naccess_log off;\n" + temp + text + "}\n"
	if err := os.WriteFile(conf, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	nginx := exec.Command(program, "-c", conf, "-p", dir, "-e", dir+"/error.log")
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = nginx.Process.Kill()
		_ = nginx.Wait()
		if b, _ := os.ReadFile(dir + "/error.log"); t.Failed() {
			t.Logf("nginx says %s", b)
		}
	})
	for range 1000 {
		if c, err := net.Dial("tcp", at); err == nil {
			_ = c.Close()
			return at, s.AdminAddr().String()
		}
		time.Sleep(10 * time.Millisecond)
	}
	b, _ := os.ReadFile(dir + "/error.log")
	t.Fatalf("nginx does not listen: %s", b)
	return "", ""
}

// writeCertificate writes a certificate and its key.
func writeCertificate(t *testing.T, dir string) (certFile, keyFile string) {
	t.Helper()
	pair, err := certificate.SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = dir+"/cert.pem", dir+"/key.pem"
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// asks sends a request to nginx from an address, and returns the answer.
func asks(t *testing.T, at, from, path string, headers ...string) (status int, body string) {
	t.Helper()
	dialer := &tls.Dialer{
		NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}, Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
	}
	c, err := dialer.DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", path, at, strings.Join(headers, "\r\n"))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		b, _ := io.ReadAll(resp.Body)
		body = string(b)
	}
	return resp.StatusCode, body
}

// Behind nginx with TLS and the site of this folder, pages find the server at the proxy's URL.
// Its own pages may connect and foreign ones may not. Each player has the limits of its own
// address: more clients connect than one address may.
func TestBehindNginx(t *testing.T) {
	at, _ := behindNginx(t)
	if _, body := asks(t, at, "127.0.0.1", "/connect.json", "Connection: close"); !strings.Contains(body, `"webSocket":"wss://`+at+`/netloop"`) {
		t.Errorf("/connect.json says %s", body)
	}
	join := func(from string, headers ...string) int {
		status, _ := asks(t, at, from, "/netloop", append(headers, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: netloop.1")...)
		return status
	}
	const perSite = 8
	for n := range 2 * perSite {
		from := fmt.Sprintf("127.0.1.%d", n+1)
		if status := join(from, "Origin: https://"+at); status != http.StatusSwitchingProtocols {
			t.Errorf("a page gets %d at %s", status, from)
		}
	}
	if status := join("127.0.2.1", "Origin: https://evil.example"); status != http.StatusForbidden {
		t.Errorf("a foreign page gets %d", status)
	}
	refused := 0
	for n := range 2 * perSite { // The server ignores these headers of a client.
		if join("127.0.3.1", fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", n), fmt.Sprintf("Forwarded: for=203.0.113.%d", n)) == http.StatusServiceUnavailable {
			refused++
		}
	}
	if refused != perSite {
		t.Errorf("of %d sockets of one site %d are refused", 2*perSite, refused)
	}
}

// A real browser loads the page through nginx, and its WebSocket connects.
func TestABrowserBehindNginx(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it takes seconds to start a browser")
	}
	at, admin := behindNginx(t)
	nodetest.Browse(t, "https://"+at, "--ignore-certificate-errors")
	for range 300 {
		resp, err := http.Get("http://" + admin + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if strings.Contains(string(b), `netloop_handshakes_total{transport="websocket"} 1`) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the page's WebSocket does not connect")
}
