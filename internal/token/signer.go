package token

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"os"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Signer signs tokens, as a login service does.
type Signer struct {
	id  string
	key ed25519.PrivateKey
}

// LoadSigner reads a file with a private key in PEM. The name of the key is the file's name without
// the extension, as for the public key.
func LoadSigner(file string) (*Signer, error) {
	key, err := readKey[ed25519.PrivateKey](file, "PRIVATE KEY", x509.ParsePKCS8PrivateKey, "key is public: use the private key to sign")
	if err != nil {
		return nil, err
	}
	return &Signer{id: keyID(file), key: key}, nil
}

// ID returns the name of the key.
func (s *Signer) ID() string { return s.id }

// Grant describes the claims of a token.
type Grant struct {
	Subject  string
	Audience string
	Room     string // empty is each room
	Role     int
	From     time.Time // not before
	For      time.Duration
	Claims   map[string]any // other claims; the fields above take precedence
}

// Sign returns a token with a unique id.
func (s *Signer) Sign(g Grant) (string, error) {
	claims := jwt.MapClaims{}
	maps.Copy(claims, g.Claims)
	claims["sub"], claims["aud"], claims["jti"] = g.Subject, g.Audience, rand.Text()
	claims["nbf"], claims["exp"] = g.From.Unix(), g.From.Add(g.For).Unix()
	if g.Room != "" {
		claims["room"] = g.Room
	}
	if g.Role != 0 {
		claims["role"] = g.Role
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	t.Header["kid"] = s.id
	return t.SignedString(s.key)
}

// GenerateKey generates a key pair and writes it to name.key, which only its owner may read, and
// name.pub. It overwrites neither.
func GenerateKey(name string) error {
	public, private, _ := ed25519.GenerateKey(nil) // None of these three ever fails.
	privateDER, _ := x509.MarshalPKCS8PrivateKey(private)
	publicDER, _ := x509.MarshalPKIXPublicKey(public)
	if err := writeKey(name+".key", 0o600, "PRIVATE KEY", privateDER); err != nil {
		return err
	}
	if err := writeKey(name+".pub", 0o644, "PUBLIC KEY", publicDER); err != nil {
		return errors.Join(err, os.Remove(name+".key"))
	}
	return nil
}

func writeKey(file string, mode os.FileMode, kind string, der []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Close())
}
