// Package static serves files from memory, with their type, a version tag and a compressed form.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxFiles and MaxFileBytes bound the files of a game, which are kept in memory.
	MaxFiles     = 4096
	MaxFileBytes = 256 << 20
	// tagBytes is the number of bytes of a file's hash in its version tag.
	tagBytes = 12
)

// File is a served file.
type File struct {
	kind string // its media type
	Body []byte
	tag  string // of this version
	zip  []byte // compressed body; nil if that saves little
}

// Kinds are the media types by file extension. The system's own table differs between machines, and
// browsers do not run a script with another type.
var Kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".mjs": "text/javascript; charset=utf-8", ".json": "application/json", ".map": "application/json",
	".webmanifest": "application/manifest+json", ".txt": "text/plain; charset=utf-8", ".wasm": "application/wasm",
	".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
	".webp": "image/webp", ".avif": "image/avif", ".ico": "image/x-icon",
	".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".wav": "audio/wav", ".m4a": "audio/mp4", ".mp4": "video/mp4", ".webm": "video/webm",
	".woff": "font/woff", ".woff2": "font/woff2", ".ttf": "font/ttf", ".glb": "model/gltf-binary", ".gltf": "model/gltf+json",
}

// Read reads all files of a folder, keyed by URL path. Names that begin with a dot are left out.
func Read(from fs.FS) (map[string]*File, error) { return read(from, MaxFiles, MaxFileBytes) }

func read(from fs.FS, most, mostBytes int) (map[string]*File, error) {
	files, total := make(map[string]*File), 0
	zip, _ := gzip.NewWriterLevel(io.Discard, gzip.BestCompression) // The level is valid.
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		b, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		if total += len(b); len(files) >= most || total > mostBytes {
			return fmt.Errorf("the pages have more than %d files or %d MiB", MaxFiles, MaxFileBytes>>20)
		}
		files["/"+name] = newFile(name, b, zip)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name, f := range files {
		if path.Base(name) == "index.html" {
			files[strings.TrimSuffix(name, "index.html")] = f
		}
	}
	return files, nil
}

// New returns a file that is served as the type of its name.
func New(name string, b []byte) *File {
	zip, _ := gzip.NewWriterLevel(io.Discard, gzip.BestCompression) // The level is valid.
	return newFile(name, b, zip)
}

// newFile computes a file's tag, type and compressed form.
func newFile(name string, b []byte, w *gzip.Writer) *File {
	kind, known := Kinds[strings.ToLower(path.Ext(name))]
	if !known {
		kind = "application/octet-stream"
	}
	hash := sha256.Sum256(b)
	f := &File{kind: kind, Body: b, tag: base64.RawURLEncoding.EncodeToString(hash[:tagBytes])}
	var zip bytes.Buffer
	w.Reset(&zip)
	_, _ = w.Write(b) // Writing to memory does not fail.
	_ = w.Close()
	if zip.Len() < len(b)*9/10 {
		f.zip = zip.Bytes()
	}
	return f
}

// ServeHTTP answers with the file, or 304 if the browser has this version.
func (f *File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache") // A cached copy is revalidated by its tag.
	body, tag := f.Body, f.tag
	if f.zip != nil {
		h.Set("Vary", "Accept-Encoding")
		if r.Header.Get("Range") == "" && acceptsGzip(r.Header.Get("Accept-Encoding")) {
			body, tag = f.zip, f.tag+"-gzip"
			h.Set("Content-Encoding", "gzip")
			h.Set("Content-Length", strconv.Itoa(len(body)))
		}
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reports whether an Accept-Encoding header accepts gzip.
func acceptsGzip(accepts string) bool {
	for part := range strings.SplitSeq(accepts, ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, said := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
			value, err := strconv.ParseFloat(q, 64)
			return !said || err == nil && value > 0
		}
	}
	return false
}
