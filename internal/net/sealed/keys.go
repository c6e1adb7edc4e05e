package sealed

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"

	"github.com/pion/srtp/v3"
)

// label is the exporter's label. RFC 5705, section 4, reserves names that begin with EXPERIMENTAL
// for private use.
const label = "EXPERIMENTAL netloop datagrams"

const (
	idBytes   = 4
	saltBytes = 12 // in every AEAD profile of RFC 7714
)

// exporter is TLS's exporter (RFC 8446, section 7.5).
type exporter func(label string, context []byte, length int) ([]byte, error)

// keyring derives the keys of one connection from its TLS connection. Both ends derive the same
// keys.
type keyring struct {
	export  exporter
	profile srtp.ProtectionProfile
	key     int    // length of a master key, in bytes
	records uint32 // number of records in a phase
}

// material is the exported material of one phase: the connection's id, and a master key and salt
// for each direction. The order of keys and salts is defined in RFC 5764, section 4.2.
type material struct {
	id          uint32
	keys, salts [2][]byte // by sender
}

// The senders, as indexes of material.
const (
	fromClient = iota
	fromServer
)

// newKeyring returns the keyring of a TLS 1.3 connection with a complete handshake. The SRTP
// profile is as strong as the connection's cipher suite.
func newKeyring(suite uint16, export exporter) *keyring {
	if suite == tls.TLS_AES_128_GCM_SHA256 {
		return &keyring{export, srtp.ProtectionProfileAeadAes128Gcm, 16, phaseRecords}
	}
	return &keyring{export, srtp.ProtectionProfileAeadAes256Gcm, 32, phaseRecords}
}

// phase derives the material of phase n. The number n is the context for the exporter.
func (k *keyring) phase(n uint32) (m material, err error) {
	size := idBytes + 2*k.key + 2*saltBytes
	b, err := k.export(label, binary.BigEndian.AppendUint32(nil, n), size)
	if err != nil {
		return m, fmt.Errorf("export keys: %w", err)
	}
	take := func(n int) (part []byte) {
		part, b = b[:n:n], b[n:]
		return part
	}
	m.id = binary.BigEndian.Uint32(take(idBytes))
	m.keys[fromClient], m.keys[fromServer] = take(k.key), take(k.key)
	m.salts[fromClient], m.salts[fromServer] = take(saltBytes), take(saltBytes)
	return m, nil
}

// context returns the context of one sender's records in a phase, for the sender or the receiver.
func (k *keyring) context(n uint32, sender int) (*srtp.Context, error) {
	m, err := k.phase(n)
	if err != nil {
		return nil, err
	}
	return srtp.CreateContext(m.keys[sender], m.salts[sender], k.profile, srtp.SRTPReplayProtection(replayWindow))
}
