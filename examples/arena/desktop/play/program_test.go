//go:build linux

package play

import (
	"bufio"
	"context"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/arena"
)

// build builds the program. It needs cgo, and the headers of X11, OpenGL and ALSA.
func build(t *testing.T) string {
	t.Helper()
	if exec.Command("pkg-config", "--exists", "x11", "xrandr", "xcursor", "xinerama", "xi", "xxf86vm", "gl", "alsa").Run() != nil {
		t.Skip("needs the headers of X11, OpenGL and ALSA: apt-get install libasound2-dev libx11-dev libxrandr-dev libxcursor-dev libxinerama-dev libxi-dev libxxf86vm-dev libgl1-mesa-dev")
	}
	file := filepath.Join(t.TempDir(), "desktop")
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", file, "..").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return file
}

// display starts a screen without a monitor, and returns its name.
func display(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("Xvfb"); err != nil {
		t.Skip("needs Xvfb: apt-get install xvfb libgl1-mesa-dri")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	x := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp")
	x.ExtraFiles = []*os.File{w}
	if err := x.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = x.Process.Kill()
		_ = x.Wait() // It was killed.
		_ = r.Close()
	})
	_ = w.Close()
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal("Xvfb has no display: ", err)
	}
	return ":" + strings.TrimSpace(number)
}

// The program connects, plays and draws the own ship in the middle of its window. It plays sounds
// on a card that discards them, and continues without a card.
func TestTheProgramDrawsTheArena(t *testing.T) {
	screen, file := display(t), build(t)
	s, err := netloop.New(netloop.Config{Listen: "127.0.0.1:0"}, arena.New())
	if err == nil {
		err = s.Listen()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for card, text := range map[string]string{"null": "", "absent": "desktop: there is no sound: "} {
		t.Run(card, func(t *testing.T) { draws(t, screen, file, s.Addr().String(), card, text) })
	}
}

// draws runs the program with a type of sound card, and looks at its picture. It prints text.
func draws(t *testing.T, screen, file, addr, card, text string) {
	t.Helper()
	frame, cards := filepath.Join(t.TempDir(), "arena.png"), filepath.Join(t.TempDir(), "asound.conf")
	if err := os.WriteFile(cards, []byte("pcm.default { type "+card+" }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	limit, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	program := exec.CommandContext(limit, file, "-addr", addr, "-name", "ada", "-graph", "-picture", frame)
	program.Env = append(os.Environ(), "DISPLAY="+screen, "LIBGL_ALWAYS_SOFTWARE=1", "ALSA_CONFIG_PATH="+cards)
	out, err := program.CombinedOutput()
	if err != nil || strings.Contains(string(out), "desktop: ") != (text != "") || !strings.Contains(string(out), text) {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(frame)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	size, own := picture.Bounds().Size(), color.NRGBA{255, 196, 107, 255} // ownFill of paint.go.
	if at := color.NRGBAModel.Convert(picture.At(size.X/2, size.Y/2)); at != own {
		t.Errorf("the middle of %v has the colour %v, want that of the own ship, %v", size, at, own)
	}
	if at := color.NRGBAModel.Convert(picture.At(0, size.Y/2)); at == own {
		t.Errorf("the edge has the colour %v", at)
	}
}
