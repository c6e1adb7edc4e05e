package cubes

import (
	"bytes"
	"io"
	"testing"
)

// Arbitrary bytes give an error, or frames that encode to the same bytes; there is no panic, and
// every value is in its range.
func FuzzCapture(f *testing.F) {
	f.Add(make([]byte, frameBytes+1))
	f.Add(pack(&newWander(1).frame))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := unpacked(bytes.NewReader(b))
		if err != nil {
			return
		}
		const most = 4
		file := &File{in: in, most: most}
		var whole []byte
		for {
			var frame Frame
			if err := file.Next(&frame); err != nil {
				if file.read > most {
					t.Fatalf("%d frames were read", file.read)
				}
				break
			}
			whole = append(whole, pack(&frame)...)
		}
		if again, err := unpacked(bytes.NewReader(b)); err == nil {
			plain, _ := io.ReadAll(io.LimitReader(again, int64(len(whole))))
			if !bytes.Equal(plain, whole) {
				t.Error("a frame encodes to other bytes")
			}
		}
	})
}
