package quicnet

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A packet counts as refused for ECONNREFUSED alone. Errors such as that of an unreachable network
// may pass.
func TestOnlyRefusalsCountAsRefused(t *testing.T) {
	for _, m := range []struct {
		level, kind int32
		size        int // of the data
		errno       unix.Errno
		refuses     bool
	}{
		{unix.SOL_IP, unix.IP_RECVERR, 16, unix.ECONNREFUSED, true},
		{unix.SOL_IPV6, unix.IPV6_RECVERR, 16, unix.ECONNREFUSED, true},
		{unix.SOL_IP, unix.IP_RECVERR, 16, unix.ENETUNREACH, false},
		{unix.SOL_IPV6, unix.IPV6_RECVERR, 16, unix.EMSGSIZE, false},
		{unix.SOL_IP, unix.IP_RECVERR, 2, unix.ECONNREFUSED, false},
		{unix.SOL_IP, unix.IP_TTL, 4, unix.ECONNREFUSED, false},
		{unix.SOL_IPV6, unix.IPV6_HOPLIMIT, 4, unix.ECONNREFUSED, false},
	} {
		b := make([]byte, unix.CmsgSpace(16))
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		h.Level, h.Type = m.level, m.kind
		h.SetLen(unix.CmsgLen(m.size))
		binary.NativeEndian.PutUint32(b[unix.CmsgLen(0):], uint32(m.errno))
		if refuses(b[:unix.CmsgSpace(m.size)]) != m.refuses {
			t.Errorf("%+v", m)
		}
	}
}
