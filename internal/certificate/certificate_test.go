package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const day = 24 * time.Hour

// written makes a certificate that is valid between two times from now, and writes it.
func written(t *testing.T, certFile, keyFile string, from, until time.Duration) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	replace(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der8}))
}

func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Browsers accept by hash only a certificate with an elliptic curve key and a short validity.
func TestPinnableCertificates(t *testing.T) {
	cert, key := filepath.Join(t.TempDir(), "c"), filepath.Join(t.TempDir(), "k")
	loaded := func() tls.Certificate {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	development, err := SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(development.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		if err := leaf.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	written(t, cert, key, 0, 14*day)
	short := loaded()
	written(t, cert, key, 0, 14*day+time.Second)
	long := loaded()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(public any, by any) tls.Certificate {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(day)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, public, by)
		if err != nil {
			t.Fatal(err)
		}
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: by}
	}
	for name, c := range map[string]struct {
		pair tls.Certificate
		want bool
	}{
		"development": {development, true}, "14 days": {short, true}, "more": {long, false}, "none": {tls.Certificate{}, false},
		"nonsense": {tls.Certificate{Certificate: [][]byte{{1}}}, false},
		"RSA":      {signed(&rsaKey.PublicKey, rsaKey), false}, "another curve": {signed(&p384.PublicKey, p384), false},
	} {
		if got := Given(c.pair, nil).Pinnable(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// files is a Keeper of two files, with its log.
type files struct {
	*Keeper
	cert, key string
	log       bytes.Buffer
}

func (f *files) load() (tls.Certificate, error) { return tls.LoadX509KeyPair(f.cert, f.key) }

func keep(t *testing.T, from, until time.Duration) *files {
	t.Helper()
	dir := t.TempDir()
	f := &files{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	written(t, f.cert, f.key, from, until)
	k, err := Files(f.cert, f.key, slog.New(slog.NewTextHandler(&f.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	f.Keeper = k
	t.Cleanup(k.Close)
	return f
}

// The next client gets a certificate that was renewed on disk.
func TestTheCertificateFollowsItsFiles(t *testing.T) {
	f := keep(t, -day, day)
	before := f.Hash()
	written(t, f.cert, f.key, -day, 90*day)
	limit := time.After(20 * time.Second)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for f.Hash() == before {
		select {
		case <-again.C:
		case <-limit:
			t.Fatal("the old certificate is still used")
		}
	}
	f.Close()
	pair, err := f.Get(nil)
	if err != nil || !time.Now().Add(89*day).Before(pair.Leaf.NotAfter) {
		t.Errorf("clients see %+v, %v", pair.Leaf, err)
	}
	if left, known := f.Left(); !known || left < 89*day || left > 90*day {
		t.Errorf("%v left, %v", left, known)
	}
	if loaded, _ := f.Counts(); loaded == 0 || !strings.Contains(f.log.String(), "the certificate was replaced") {
		t.Errorf("replaced %d times: %s", loaded, &f.log)
	}
}

// If new files are invalid, clients get the old certificate; it is logged and counted.
func TestInvalidFilesDoNotReplaceACertificate(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, f *files)
		says   string
	}{
		"half written": {func(t *testing.T, f *files) {
			text, err := os.ReadFile(f.cert)
			if err != nil {
				t.Fatal(err)
			}
			replace(t, f.cert, text[:len(text)/2])
		}, "find any PEM data"},
		"gone": {func(t *testing.T, f *files) {
			if err := os.Remove(f.key); err != nil {
				t.Fatal(err)
			}
		}, "no such file"},
		"the key is of another": {func(t *testing.T, f *files) {
			written(t, filepath.Join(filepath.Dir(f.cert), "other"), f.key, -day, day)
		}, "does not match"},
		"expired": {func(t *testing.T, f *files) { written(t, f.cert, f.key, -9*day, -8*day) },
			"has expired on " + time.Now().Add(-8*day).UTC().Format(time.DateOnly)},
		"not valid yet": {func(t *testing.T, f *files) { written(t, f.cert, f.key, 8*day, 9*day) },
			"not valid before " + time.Now().Add(8*day).UTC().Format(time.DateOnly)},
	} {
		t.Run(name, func(t *testing.T) {
			f := keep(t, -day, day)
			f.watch.Close() // The test triggers the reload.
			before := f.Hash()
			c.damage(t, f)
			f.reload(f.load)
			if loaded, failed := f.Counts(); loaded != 0 || failed != 1 || f.Hash() != before {
				t.Errorf("loaded %d, failed %d", loaded, failed)
			}
			if f.retry != nil != (name == "not valid yet") {
				t.Errorf("it is tried again: %v", f.retry != nil)
			}
			if text := f.log.String(); !strings.Contains(text, "keeping the previous one") || !strings.Contains(text, c.says) {
				t.Errorf("%q is not in the log: %s", c.says, text)
			}
		})
	}
}

// A server with an expired certificate accepts another one, even an expired one.
func TestAnExpiredCertificateIsReplacedByAny(t *testing.T) {
	f := keep(t, -9*day, -8*day)
	if text := f.log.String(); !strings.Contains(text, "clients refuse the certificate") || !strings.Contains(text, "has expired on") {
		t.Errorf("the log at the start has %q", text)
	}
	f.watch.Close()
	before := f.Hash()
	written(t, f.cert, f.key, -9*day, -7*day)
	f.reload(f.load)
	if f.Hash() == before {
		t.Error("the old certificate is still used")
	}
}

func TestInvalidFilesAreAnErrorAtTheStart(t *testing.T) {
	dir := t.TempDir()
	if _, err := Files(dir+"/none", dir+"/none", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("missing files give a certificate")
	}
	newKeeper("files", nil).reload(func() (pair tls.Certificate, err error) {
		t.Error("without a first certificate there is a second one")
		return pair, err
	})
}

// A server that runs for a year always has a valid development certificate, each with a validity
// short enough for browsers.
func TestTheDevelopmentCertificateRenewsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		k, err := Development(slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		hashes := map[[32]byte]bool{}
		var last *x509.Certificate
		for range 60 * 24 {
			time.Sleep(time.Hour)
			synctest.Wait()
			pair, err := k.Get(nil)
			if err != nil {
				t.Fatal(err)
			}
			leaf, err := x509.ParseCertificate(pair.Certificate[0])
			if err != nil || time.Until(leaf.NotAfter) <= 2*day || leaf.NotAfter.Sub(leaf.NotBefore) >= 14*day {
				t.Fatalf("on %v the certificate is valid until %v: %v", time.Now(), leaf.NotAfter, err)
			}
			if last != nil && !leaf.Equal(last) && time.Until(last.NotAfter) > 2*day {
				t.Errorf("on %v a certificate is replaced that is valid until %v", time.Now(), last.NotAfter)
			}
			last = leaf
			hashes[k.Hash()] = true
		}
		k.Close()
		loaded, failed := k.Counts()
		if n := len(hashes); n != 6 || int(loaded) != n-1 || failed != 0 { // One in 11 days.
			t.Errorf("%d certificates in 60 days, %d renewals, %d failures", n, loaded, failed)
		}
		if h := k.Hash(); !strings.Contains(log.String(), k.hexHash()) {
			t.Errorf("the log does not name %x: %s", h, &log)
		}
	})
}

// A certificate that is written can be read, by its owner alone.
func TestACertificateIsWritten(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := WriteSelfSigned(cert, key); err != nil {
		t.Fatal(err)
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		t.Error(err)
	}
	for _, file := range []string{cert, key} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others, %v", file, err)
		}
	}
}

func TestACertificateOfTheCallerIsNotReplaced(t *testing.T) {
	pair, err := SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	k := Given(pair, slog.New(slog.DiscardHandler))
	defer k.Close()
	if left, known := k.Left(); !known || left < 12*day || left > 13*day || k.Kind() != "config" {
		t.Errorf("%v left, %v, of %s", left, known, k.Kind())
	}
	if _, known := Given(tls.Certificate{}, nil).Left(); known {
		t.Error("a missing certificate has an expiry")
	}
}

// A certificate that is not valid yet replaces the old one when it is, without another change of
// its files; meanwhile it is logged once.
func TestANotYetValidCertificateIsUsedOnceValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &files{cert: filepath.Join(t.TempDir(), "cert.pem"), key: filepath.Join(t.TempDir(), "key.pem")}
		written(t, f.cert, f.key, -day, 60*day)
		old, err := f.load()
		if err != nil {
			t.Fatal(err)
		}
		f.Keeper = newKeeper("files", slog.New(slog.NewTextHandler(&f.log, nil)))
		f.keep(old)
		before := f.Hash()
		written(t, f.cert, f.key, 2*day, 90*day)
		for range 2 { // A second change replaces the first wait.
			f.reload(f.load)
		}
		time.Sleep(2*day - time.Minute)
		if _, failed := f.Counts(); f.Hash() != before || failed != 2 {
			t.Errorf("before its time: replaced %v, %d failures", f.Hash() != before, failed)
		}
		time.Sleep(2 * time.Minute)
		if loaded, failed := f.Counts(); f.Hash() == before || loaded != 1 || failed != 2 {
			t.Errorf("after it: replaced %v, loaded %d, failed %d", f.Hash() != before, loaded, failed)
		}
		written(t, f.cert, f.key, 10*time.Minute, 90*day)
		f.reload(f.load)
		time.Sleep(11 * time.Minute)
		if loaded, _ := f.Counts(); loaded != 2 {
			t.Errorf("after ten minutes: loaded %d", loaded)
		}
		written(t, f.cert, f.key, 99*day, 100*day)
		may, closed := make(chan struct{}, 1), false
		may <- struct{}{} // For the first load.
		f.reload(func() (tls.Certificate, error) { <-may; return f.load() })
		time.Sleep(2 * time.Hour)
		go func() { f.Close(); closed = true }()
		synctest.Wait()
		if closed {
			t.Error("Close does not wait for a load")
		}
		close(may)
		synctest.Wait()
		if f.reload(f.load); f.retry != nil {
			t.Error("a closed Keeper tries again")
		}
	})
}
