// Command login is the smallest login service: it exchanges a right password for a token. A server
// that was started with --auth token admits the player with that token. See docs/SECURITY.md.
package main

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func main() { // login KEYFILE AUDIENCE; the key is made by: server token keygen login-1
	fmt.Fprintln(os.Stderr, "login:", serve(os.Args[1], os.Args[2]))
	os.Exit(1)
}

func serve(keyFile, audience string) error {
	pem, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	h, err := service(pem, audience)
	if err != nil {
		return err
	}
	s := http.Server{Addr: "127.0.0.1:8090", Handler: h, ReadTimeout: 5 * time.Second}
	return s.ListenAndServe() // The proxy before it does the TLS.
}

func service(pem []byte, audience string) (http.Handler, error) {
	key, err := jwt.ParseEdPrivateKeyFromPEM(pem)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		if name == "" || password != "secret of "+name { // Ask your accounts here.
			http.Error(w, "wrong name or password", http.StatusUnauthorized)
			return
		}
		t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
			"sub": name, "aud": audience, "jti": rand.Text(), "exp": time.Now().Add(time.Minute).Unix(),
		})
		t.Header["kid"] = "login-1" // By this name the game server finds the public key.
		text, err := t.SignedString(key)
		if err != nil {
			http.Error(w, "no token", http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, text)
	}), err
}
