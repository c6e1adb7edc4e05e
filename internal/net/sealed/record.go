package sealed

import (
	"encoding/binary"
	"errors"

	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
)

// A record is an SRTP packet (RFC 3711, RFC 7714):
//
//	byte 0      version 2 of RTP: 128, without padding, extension and contributing sources
//	byte 1      the low bit of the phase (RTP's marker), and the kind (RTP's payload type)
//	byte 2–3    the sequence number
//	byte 4–7    the low 32 bits of the datagram's number (RTP's timestamp); 0 for other kinds
//	byte 8–11   the connection's id (RTP's SSRC)
//	            the sealed data
//	            the tag
const (
	version    = 2 << 6
	headerSize = 12
	tagSize    = 16
	// Overhead is the number of bytes that a record adds to its data.
	Overhead = headerSize + tagSize

	phaseBit = 0x80
)

// The kinds of records, from the dynamic range of RTP's payload types.
const (
	kindDatagram  = 96 + iota // a datagram without its number
	kindChallenge             // tokenSize random bytes, which the peer returns
	kindResponse              // the bytes of a challenge
	// kindMoved is a challenge to a client's new address. The client also sends a packet of QUIC,
	// so that QUIC learns the address too.
	kindMoved
)

const (
	// replayWindow is the number of sequence numbers below the newest for which a record is
	// accepted, once each.
	replayWindow = 1024
	// phaseRecords is the number of records that one key seals: half of 2²⁶, far below the bounds
	// of AES-GCM for records of this size (RFC 9001, appendix B.1).
	phaseRecords = 1 << 25
)

// Is reports whether a packet of a UDP socket is a record and not a packet of QUIC. They differ in
// the first byte, which RFC 9443 assigns.
func Is(b []byte) bool { return len(b) > 0 && b[0]>>6 == version>>6 }

var errRecord = errors.New("sealed: malformed record")

// sealer seals the records of one direction. One goroutine at a time uses it.
type sealer struct {
	keys    *keyring
	sender  int
	id      uint32
	phase   uint32
	sealed  uint32 // number of sealed records of the phase
	context *srtp.Context
	header  rtp.Header // scratch
	buf     []byte     // the last record
}

// open prepares the first phase.
func (s *sealer) open(keys *keyring, sender int, id uint32) (err error) {
	s.keys, s.sender, s.id = keys, sender, id
	s.context, err = keys.context(0, sender)
	return err
}

// seal returns a record with data. The record is valid until the next call.
func (s *sealer) seal(kind byte, number uint32, data []byte) ([]byte, error) {
	if s.sealed == s.keys.records {
		next, err := s.keys.context(s.phase+1, s.sender)
		if err != nil {
			return nil, err
		}
		s.context, s.phase, s.sealed = next, s.phase+1, 0
	}
	b := append(s.buf[:0], version, byte(s.phase&1)<<7|kind)
	b = binary.BigEndian.AppendUint16(b, uint16(s.sealed))
	b = binary.BigEndian.AppendUint32(b, number)
	b = binary.BigEndian.AppendUint32(b, s.id)
	b = append(b, data...)
	b = append(b, make([]byte, tagSize)...) // Room for the tag.
	s.buf = b
	s.sealed++
	return s.context.EncryptRTP(b[:0], b[:len(b)-tagSize], &s.header)
}

// opener opens the records of one direction. One goroutine at a time uses it.
type opener struct {
	keys    *keyring
	sender  int
	phase   uint32
	context *srtp.Context
	next    *srtp.Context // of the next phase; nil until a record claims to be in it
	header  rtp.Header    // scratch
	newest  uint16        // sequence number of the newest record of the phase
	any     bool          // a record of the phase was opened
}

// open prepares the first phase.
func (o *opener) open(keys *keyring, sender int) (err error) {
	o.keys, o.sender = keys, sender
	o.context, err = keys.context(0, sender)
	return err
}

// record is a record after its decryption.
type record struct {
	kind   byte
	number uint32
	packet []byte // the packet without its tag, opened; the data begins at headerSize
	newest bool   // no record with a higher number was opened before
}

// unseal opens a record in place. An authentic record with the other phase bit begins the next
// phase; later records of the former phase are lost.
func (o *opener) unseal(b []byte) (r record, err error) {
	if len(b) < Overhead || b[0] != version {
		return r, errRecord
	}
	context, turns := o.context, b[1]&phaseBit>>7 != byte(o.phase&1)
	if turns {
		if o.next == nil {
			if o.next, err = o.keys.context(o.phase+1, o.sender); err != nil {
				return r, err
			}
		}
		context = o.next
	}
	opened, err := context.DecryptRTP(b[:0], b, &o.header)
	if err != nil {
		return r, err
	}
	if turns {
		o.context, o.next, o.phase, o.any = o.next, nil, o.phase+1, false
	}
	r = record{kind: b[1] &^ phaseBit, number: binary.BigEndian.Uint32(b[4:]), packet: opened}
	if seq := binary.BigEndian.Uint16(b[2:]); !o.any || int16(seq-o.newest) > 0 {
		o.newest, o.any, r.newest = seq, true, true
	}
	return r, nil
}

// forged reports whether unseal returned err because the record has a wrong tag.
func forged(err error) bool { return errors.Is(err, srtp.ErrFailedToVerifyAuthTag) }
