package sealed

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/netloop/netloop/internal/testing/golden"
)

const page = "../../../docs/WIRE.md"

// counting is the exporter of the examples of docs/WIRE.md: bytes that count up from 0, or from 128
// in phase 1. Their number is part of the derivation of TLS.
func counting(name string, context []byte, length int) ([]byte, error) {
	if name != "EXPERIMENTAL netloop datagrams" || len(context) != 4 || length != 4+2*16+2*12 && length != 4+2*32+2*12 {
		return nil, fmt.Errorf("an export of %d bytes with the label %q and the context % x", length, name, context)
	}
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(binary.BigEndian.Uint32(context)<<7) + byte(i)
	}
	return b, nil
}

// vector is an example of docs/WIRE.md.
type vector struct {
	name          string
	record        []byte
	key, salt     []byte
	header, clear []byte // parts of the opened record
}

// vectors seals the examples.
func vectors(t *testing.T) (all []vector) {
	t.Helper()
	short, long := newKeyring(tls.TLS_AES_128_GCM_SHA256, counting), newKeyring(tls.TLS_AES_256_GCM_SHA384, counting)
	short.records = 2
	token := []byte{0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7}
	datagram := golden.Example(t, page, "datagram-client")[2:] // Without number.
	seal := func(name string, s *sealer, kind byte, number uint32, data []byte) {
		b, err := s.seal(kind, number, data)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.keys.phase(s.phase)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.Clone(b)
		all = append(all, vector{name, b, m.keys[s.sender], m.salts[s.sender], b[:headerSize], data})
	}
	client, server := new(sealer), new(sealer)
	if client.open(short, fromClient, 0x00010203) != nil || server.open(long, fromServer, 0x00010203) != nil {
		t.Fatal("no keys")
	}
	seal("record-challenge", client, kindChallenge, 0, token)
	seal("record-datagram", client, kindDatagram, 1, datagram)
	seal("record-phase", client, kindDatagram, 2, datagram)
	seal("record-256", server, kindResponse, 0, token)
	return all
}

// The examples of docs/WIRE.md are records as they are sealed.
func TestGoldenRecords(t *testing.T) {
	for _, v := range vectors(t) {
		if got := golden.Example(t, page, v.name); !bytes.Equal(got, v.record) {
			t.Errorf("docs/WIRE.md: %s\nthere % x\nhere  % x", v.name, got, v.record)
		}
	}
}

// The tables of docs/WIRE.md have the kinds and the bounds of records.
func TestRecordsAreThoseOfTheWire(t *testing.T) {
	golden.Row(t, page, "%v | datagram |", kindDatagram)
	golden.Row(t, page, "%v | challenge | %v random bytes,", kindChallenge, tokenSize)
	golden.Row(t, page, "%v | response | the %v bytes", kindResponse, tokenSize)
	golden.Row(t, page, "%v | moved |", kindMoved)
	golden.Row(t, page, "records sealed with one key | %v (writer) |", phaseRecords)
	golden.Row(t, page, "how far back sequence numbers of records reach | %v |", replayWindow)
}

// derive is the key derivation of RFC 3711, section 4.3, without a key derivation rate: AES in
// counter mode. RFC 7714, section 11, pads its salt of 96 bits to 112 with zeros.
func derive(key, salt []byte, label byte, size int) []byte {
	x := make([]byte, aes.BlockSize)
	copy(x, salt)
	x[7] ^= label
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	b := make([]byte, size)
	cipher.NewCTR(block, x).XORKeyStream(b, b)
	return b
}

// open opens a record with a rollover counter of 0, by the text of RFC 7714, section 8.
func (v *vector) open() ([]byte, error) {
	block, err := aes.NewCipher(derive(v.key, v.salt, 0, len(v.key)))
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	iv := make([]byte, 12) // 00 00, SSRC, rollover counter, sequence number
	copy(iv[2:6], v.record[8:12])
	copy(iv[10:12], v.record[2:4])
	for i, b := range derive(v.key, v.salt, 2, len(v.salt)) {
		iv[i] ^= b
	}
	return aead.Open(nil, iv, v.record[12:], v.record[:12])
}

// An implementation of its own, with AES alone, opens the records.
func TestRecordsAreThoseOfTheRFCs(t *testing.T) {
	for _, v := range vectors(t) {
		if got, err := v.open(); err != nil || !bytes.Equal(got, v.clear) {
			t.Errorf("%s: opened % x, want % x: %v", v.name, got, v.clear, err)
		}
	}
}

// libsrtp2, which is written in C, opens the records. Debian's package is libsrtp2-dev.
func TestAnotherImplementationOpensRecords(t *testing.T) {
	program := filepath.Join(t.TempDir(), "open")
	if out, err := exec.Command("cc", "-o", program, "testdata/open.c", "-lsrtp2").CombinedOutput(); err != nil {
		t.Skipf("libsrtp2 is not there: %v\n%s", err, out)
	}
	for _, v := range vectors(t) {
		got, err := exec.Command(program, hex.EncodeToString(append(v.key, v.salt...)), hex.EncodeToString(v.record)).Output()
		if want := hex.EncodeToString(append(bytes.Clone(v.header), v.clear...)); err != nil || string(got) != want {
			t.Errorf("%s: opened %s, want %s: %v", v.name, got, want, err)
		}
	}
}
