package udpbatch

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"
)

// Writers that wait for room end when the socket closes, and their packets are not sent; those of
// the writes that succeeded are.
func TestCloseEndsWaitingWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, k := newWriter(t, Config{})
		open := make(chan struct{})
		k.fail = func(m [][][]byte) (int, error) { <-open; return len(m), nil }
		const writers = 3
		ended := make(chan error, writers)
		var written atomic.Uint64
		for range writers {
			go func() {
				for {
					if _, _, err := w.WriteMsgUDP([]byte("x"), nil, peerAddr(1)); err != nil {
						ended <- err
						return
					}
					written.Add(1)
				}
			}()
		}
		synctest.Wait()
		go w.close()
		synctest.Wait()
		close(open)
		for range writers {
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
		w.close()
		if sent := w.cfg.Stats.Sent.Load(); sent != written.Load() || sent <= batchPackets {
			t.Errorf("%d packets were sent of %d that were written, want all of two batches", sent, written.Load())
		}
	})
}

// An error of a single packet does not end the merging of packets: no interface had to split it.
func TestASinglePacketDoesNotEndMerging(t *testing.T) {
	for _, err := range []error{unix.EIO, unix.EINVAL} {
		w, k := newWriter(t, Config{})
		k.fail = func([][][]byte) (int, error) { return 0, err }
		mustWrite(t, w, []byte("x"), nil, peerAddr(1))
		if w.close(); !w.merge.Load() || w.cfg.Stats.Unsent.Load() != 1 {
			t.Errorf("%v: packets are merged: %v, unsent %d", err, w.merge.Load(), w.cfg.Stats.Unsent.Load())
		}
	}
}

// Descriptor 0, which a process without a standard input may get, is closed like any other one.
func TestDescriptorZeroIsClosed(t *testing.T) {
	stdin, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(stdin)
	defer func() {
		if err := unix.Dup3(stdin, 0, 0); err != nil {
			t.Error(err)
		}
	}()
	if err := (&Socket{fd: 0}).closeDescriptor(); err != nil {
		t.Error(err)
	}
	if _, err := unix.FcntlInt(0, unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
		t.Errorf("descriptor 0 is open: %v", err)
	}
}
