package ts_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"testing"
)

// A player may open the graph of the connection on any link.
func TestTheBuiltNetGraphIsSmall(t *testing.T) {
	file, err := os.ReadFile("dist/netgraph.js")
	if err != nil || len(file) > 3000 {
		t.Errorf("dist/netgraph.js takes %d bytes, and 3000 are the most: %v", len(file), err)
	}
}

// The file that a page loads before it can connect is small.
func TestTheBuiltClientIsSmall(t *testing.T) {
	const most = 43_000 // bytes, gzipped
	file, err := os.ReadFile("dist/netloop.js")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // The level is one.
	if _, err := w.Write(file); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if b.Len() > most {
		t.Errorf("dist/netloop.js takes %d bytes gzipped, and %d are the most", b.Len(), most)
	}
}
