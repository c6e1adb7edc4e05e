// Command login is a login service in its smallest form: who gives the right password gets a token,
// with which a server that was started with --auth token lets that player in. See docs/AUTH.md.
package main

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func main() { // login KEYFILE AUDIENCE; the key is made by: server token keygen login-1
	pem, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	s := http.Server{Addr: "127.0.0.1:8090", Handler: service(pem, os.Args[2]), ReadTimeout: 5 * time.Second}
	log.Fatal(s.ListenAndServe()) // Players reach it over HTTPS, by the proxy before it.
}

func service(pem []byte, audience string) http.HandlerFunc {
	key, err := jwt.ParseEdPrivateKeyFromPEM(pem)
	if err != nil {
		log.Fatal(err)
	}
	return func(w http.ResponseWriter, r *http.Request) {
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
	}
}
