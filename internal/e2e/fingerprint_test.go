package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/internal/golden"
	"github.com/netloop/netloop/internal/inside"
)

// TestGoldenFingerprint holds the schema of docs/WIRE.md to its text and fingerprint: a
// client in another language has nothing else to go by.
func TestGoldenFingerprint(t *testing.T) {
	type tag struct {
		ID   uint16
		Name string `net:"max=8"`
	}
	type pos struct {
		X    float32 `net:"quant=1/256"`
		Tags [2]tag
	}
	type move struct{ DX, DY int8 }
	type who struct{ ID netloop.Ref[pos] }
	type called struct {
		Name string `net:"max=8"`
	}
	s := netloop.NewSchema("wire", 3, 7)
	netloop.NewClass[pos](s, "pos")
	netloop.NewRPC[move](s, "move", netloop.Unreliable(), netloop.AtStage(netloop.FixedUpdate, netloop.Update))
	netloop.NewCall[who, called](s, "name")
	netloop.NewRPC[*arenav1.Say](s, "say")
	got := hex.EncodeToString(inside.Netloop.Schema(s).Hello().GetFingerprint())

	block := func(name string) string { return golden.Text(t, "../../docs/WIRE.md", name) }
	if want := strings.Join(strings.Fields(block("schema-fingerprint")), ""); got != want {
		t.Errorf("the fingerprint is %s, and docs/WIRE.md says %s", got, want)
	}
	if sum := sha256.Sum256([]byte(block("schema-text"))); hex.EncodeToString(sum[:]) != got {
		t.Errorf("the text of docs/WIRE.md has the fingerprint %x, not %s", sum, got)
	}
}
