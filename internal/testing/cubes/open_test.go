package cubes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
)

// pack is the inverse of unpack.
func pack(f *Frame) []byte {
	var b []byte
	for _, c := range f {
		touched := int32(0)
		if c.Touched {
			touched = 1
		}
		for _, v := range [8]int32{c.Largest, c.Smallest[0], c.Smallest[1], c.Smallest[2], c.Position[0], c.Position[1], c.Position[2], touched} {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	}
	return b
}

func compressed(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := xz.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func openBytes(t *testing.T, b []byte) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err == nil {
		t.Cleanup(func() { f.Close() })
	}
	return f, err
}

func TestACaptureIsReadPlainAndCompressed(t *testing.T) {
	var want []Frame
	var plain []byte
	for src := newWander(10); ; {
		var f Frame
		if errors.Is(src.Next(&f), io.EOF) {
			break
		}
		want, plain = append(want, f), append(plain, pack(&f)...)
	}
	for name, b := range map[string][]byte{"plain": plain, "xz": compressed(t, plain)} {
		f, err := openBytes(t, b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			var got Frame
			if err := f.Next(&got); err != nil || got != want[i] {
				t.Fatalf("%s: frame %d is another one: %v", name, i, err)
			}
		}
		if err := f.Next(new(Frame)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v after the last frame, want EOF", name, err)
		}
	}
}

func TestAnInvalidCaptureIsRefusedWithItsFault(t *testing.T) {
	good := pack(new(Frame))
	with := func(cube, field int, v int32) []byte {
		b := append(bytes.Clone(good), good...)
		binary.LittleEndian.PutUint32(b[frameBytes+cube*cubeBytes+4*field:], uint32(v))
		return b
	}
	packed := compressed(t, append(bytes.Clone(good), good...))
	damaged := bytes.Clone(packed)
	damaged[len(damaged)/2] ^= 1
	for _, c := range []struct {
		name, want string
		bytes      []byte
	}{
		{"empty", "empty", nil},
		{"less than a frame", "breaks off: of frame 0 there are 100 of 28832", good[:100]},
		{"truncated", "breaks off: of frame 1 there are 28831 of 28832", append(bytes.Clone(good), good[1:]...)},
		{"another file", "orientation_largest", bytes.Repeat([]byte("hello"), 10_000)},
		{"largest", "frame 1: cube 3: orientation_largest is 4, not within 0..3", with(3, 0, 4)},
		{"smallest three", "cube 900: orientation_c is 512, not within 0..511", with(900, 3, 512)},
		{"negative", "orientation_a is -1", with(0, 1, -1)},
		{"x", "position_x is -16384", with(0, 4, -16384)},
		{"y", "position_y is 16384", with(0, 5, 16384)},
		{"z", "position_z is -1, not within 0..8191", with(0, 6, -1)},
		{"flag", "interacting is 2", with(0, 7, 2)},
		{"xz: no stream", "xz", append(bytes.Clone(xzMagic), 1, 2, 3, 4, 5, 6, 7, 8)},
		{"xz: truncated", "breaks off", packed[:len(packed)-40]},
		{"xz: damaged", "frame", damaged},
		{"xz: something behind", "frame 2", append(bytes.Clone(packed), "more of it"...)},
	} {
		f, err := openBytes(t, c.bytes)
		for err == nil {
			err = f.Next(new(Frame))
		}
		if errors.Is(err, io.EOF) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// A few kilobytes of xz can contain any number of frames.
func TestACaptureIsBounded(t *testing.T) {
	f, err := openBytes(t, compressed(t, make([]byte, 12*frameBytes)))
	if err != nil {
		t.Fatal(err)
	}
	f.most = 10
	for range 10 {
		if err := f.Next(new(Frame)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Next(new(Frame)); err == nil || !strings.Contains(err.Error(), "more than 10 frames") {
		t.Errorf("%v, want an error that says how many frames may be", err)
	}
}
