package token

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Keys are read from one file or from a folder, and an error names the unusable file and the
// remedy.
func TestKeysAreReadFromFiles(t *testing.T) {
	dir := t.TempDir()
	newIssuer(t, dir, "login-1")
	newIssuer(t, dir, "login.2")
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write("README", "not a key")
	for path, want := range map[string][]string{
		dir:                               {"login-1", "login.2"},
		filepath.Join(dir, "login-1.pub"): {"login-1"},
		write("sub/only.pem", read("login-1.pub")): {"only"},
	} {
		keys, err := LoadKeys(path)
		if err != nil || !reflect.DeepEqual(keys.IDs(), want) {
			t.Errorf("%s: %v, %v", path, keys, err)
		}
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaPublic, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	rsaPrivate, err := x509.MarshalPKCS8PrivateKey(rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	empty := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "nothing"): "no such file",
		empty:                         "add the public keys",
		write("a/text.pub", "hello"):  "no PEM key",
		write("b/private.pub", read("login-1.key")):                 "key is private and belongs to the login service",
		write("c/two.pub", read("login-1.pub")+read("login.2.pub")): "one file per key",
		write("d/cert.pem", block("CERTIFICATE", []byte{1})):        `"CERTIFICATE", not a PUBLIC KEY`,
		write("e/broken.pem", block("PUBLIC KEY", []byte{1})):       "key is damaged",
		write("f/rsa.pem", block("PUBLIC KEY", rsaPublic)):          "not Ed25519",
		filepath.Dir(write("g/x.pub", "hello")):                     "x.pub: file has no PEM key",
		filepath.Dir(filepath.Dir(write("j/x.pub/y", "hello"))):     "is a directory",
	} {
		if _, err := LoadKeys(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	write("h/same.pub", read("login-1.pub"))
	if _, err := LoadKeys(filepath.Dir(write("h/same.pem", read("login-1.pub")))); err == nil || !strings.Contains(err.Error(), "rename one") {
		t.Errorf("two of a name: %v", err)
	}
	many, most := filepath.Dir(write("i/1.pub", read("login-1.pub"))), 256
	for n := 2; n <= most; n++ {
		write(fmt.Sprintf("i/%d.pub", n), read("login-1.pub"))
	}
	if keys, err := LoadKeys(many); err != nil || len(keys.IDs()) != most {
		t.Errorf("of %d keys: %v", most, err)
	}
	write("i/more.pub", read("login-1.pub"))
	if _, err := LoadKeys(many); err == nil || !strings.Contains(err.Error(), "folder has 257 keys, more than 256") {
		t.Errorf("of one more: %v", err)
	}
	padded := read("login-1.pub") // A file is read up to 16 KiB.
	for spaces, reads := range map[int]bool{16<<10 - len(padded): true, 16<<10 - len(padded) - 1: false} {
		if _, err := LoadKeys(write("padded.pub", padded+strings.Repeat(" ", spaces)+"x")); (err == nil) != reads {
			t.Errorf("after %d spaces: %v", spaces, err)
		}
	}
	if _, err := NewVerifier(filepath.Join(dir, "nothing"), "arena-1"); err == nil {
		t.Error("a server starts without keys")
	}
	open, _ := os.ReadDir("/proc/self/fd") // Elsewhere there is none.
	for _, fd := range open {
		if file, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(file, dir) {
			t.Errorf("%s is open", file)
		}
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "nothing"):                        "no such file",
		filepath.Join(dir, "login-1.pub"):                    "use the private key to sign",
		write("text.key", "hello"):                           "no PEM key",
		write("cert.key", block("CERTIFICATE", []byte{1})):   "not a PRIVATE KEY",
		write("broken.key", block("PRIVATE KEY", []byte{1})): "key is damaged",
		write("rsa.key", block("PRIVATE KEY", rsaPrivate)):   "not Ed25519",
	} {
		if _, err := LoadSigner(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// Only its owner can read the private key, and no key is overwritten.
func TestKeysAreMadeOnce(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "login-1")
	if err := GenerateKey(name); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name + ".key"); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	was, err := os.ReadFile(name + ".key")
	if err != nil {
		t.Fatal(err)
	}
	if err := GenerateKey(name); err == nil {
		t.Error("made twice")
	}
	if now, err := os.ReadFile(name + ".key"); err != nil || string(now) != string(was) {
		t.Error("the key was overwritten")
	}
	if err := os.Rename(name+".pub", filepath.Join(dir, "login-2.pub")); err != nil {
		t.Fatal(err)
	}
	if err := GenerateKey(filepath.Join(dir, "login-2")); err == nil {
		t.Error("the public key was overwritten")
	}
	if _, err := os.Stat(filepath.Join(dir, "login-2.key")); err == nil {
		t.Error("half a pair was left behind")
	}
}

// A failed reload keeps the current keys. A successful one takes effect at once, and tokens of a
// removed key are rejected.
func TestAReloadThatFailsKeepsTheKeys(t *testing.T) {
	dir := t.TempDir()
	first := newIssuer(t, dir, "login-1")
	v := first.verifier(t)
	if err := os.WriteFile(filepath.Join(dir, "bad.pub"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := v.Reload(); changed || err == nil {
		t.Errorf("with a bad file: %v, %v", changed, err)
	}
	if changed, err := v.Reload(); changed || err != nil {
		t.Errorf("the same bad file is told again: %v, %v", changed, err)
	}
	if _, err := v.Verify(t.Context(), first.token(t, nil), "lobby", noon); err != nil {
		t.Errorf("after a reload that failed: %v", err)
	}
	for _, name := range []string{"bad.pub", "login-1.pub"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	second := newIssuer(t, dir, "login-2")
	for _, want := range []bool{true, false} {
		if changed, err := v.Reload(); changed != want || err != nil {
			t.Fatalf("changed %v, %v, want %v", changed, err, want)
		}
	}
	if _, err := v.Verify(t.Context(), second.token(t, nil), "lobby", noon); err != nil {
		t.Errorf("the new key: %v", err)
	}
	if _, err := v.Verify(t.Context(), first.token(t, nil), "lobby", noon); reasonOf(t, err) != UnknownKey {
		t.Errorf("the old key: %v", err)
	}
	if loaded, failed := v.Reloads(); loaded != 1 || failed != 1 {
		t.Errorf("%d loaded, %d failed", loaded, failed)
	}
	if got := v.Keys().IDs(); !reflect.DeepEqual(got, []string{"login-2"}) {
		t.Errorf("%v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.pub"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Reload(); err == nil {
		t.Error("the bad file was not noticed when it came back")
	}
	for _, name := range []string{"bad.pub", "login-2.pub", "login-2.key"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	third := newIssuer(t, dir, "login-2")
	if changed, err := v.Reload(); !changed || err != nil {
		t.Errorf("another key of the same name: %v, %v", changed, err)
	}
	if _, err := v.Verify(t.Context(), third.token(t, nil), "lobby", noon); err != nil {
		t.Errorf("another key of the same name: %v", err)
	}
}
