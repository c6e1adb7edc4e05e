package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"github.com/ebitengine/oto/v3"

	"github.com/netloop/netloop/examples/arena/desktop/play"
)

// speaker plays the sounds of the arena. It uses oto, the library below Ebitengine's audio package:
// that one ends the program on a machine without a sound card.
type speaker struct {
	context *oto.Context
	ready   chan struct{}
	waves   [play.SoundKinds][]byte
	playing []*oto.Player
	failed  bool // there is no sound
}

const (
	maxPlaying = 24
	loudness   = 0.3 // of a sound at volume 1
)

// newSpeaker opens the sound card.
func newSpeaker() *speaker {
	s := &speaker{}
	for k := range play.SoundKinds {
		s.waves[k] = play.Wave(k)
	}
	var err error
	s.context, s.ready, err = oto.NewContext(&oto.NewContextOptions{SampleRate: play.SampleRate, ChannelCount: 1, Format: oto.FormatSignedInt16LE})
	s.fail(err)
	return s
}

// fail reports the error once, and plays nothing from then on.
func (s *speaker) fail(err error) {
	if err != nil && !s.failed {
		s.failed = true
		fmt.Fprintln(os.Stderr, "desktop: there is no sound:", err)
	}
}

// play starts sounds. While 24 are playing, further ones are left out.
func (s *speaker) play(all []play.Sound) {
	if s.failed {
		return
	}
	select {
	case <-s.ready:
		s.fail(s.context.Err())
	default:
		return
	}
	s.playing = slices.DeleteFunc(s.playing, func(p *oto.Player) bool { return !p.IsPlaying() })
	for _, sound := range all {
		if s.failed || len(s.playing) >= maxPlaying {
			return
		}
		p := s.context.NewPlayer(bytes.NewReader(s.waves[sound.Kind]))
		p.SetVolume(loudness * sound.Volume)
		p.Play()
		s.playing = append(s.playing, p)
	}
}
