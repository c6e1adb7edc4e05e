// Sounds are synthesised, so that the page has no files to load. A browser permits sound only after
// a user's action on the page.

const loudness = 0.16;

/**
 * Sound plays the sounds of visible events. far is 0 at the camera and 1 at the edge of hearing.
 */
export class Sound {
  private out: AudioContext | undefined;
  private master: GainNode | undefined;
  private noise: AudioBuffer | undefined;
  private muted = false;

  /** wake starts the audio: it is called on an action of the player. */
  wake(): void {
    if (this.out || typeof AudioContext === "undefined") return;
    this.out = new AudioContext();
    this.master = this.out.createGain();
    this.master.gain.value = this.muted ? 0 : loudness;
    this.master.connect(this.out.destination);
    this.noise = this.out.createBuffer(1, this.out.sampleRate / 2, this.out.sampleRate);
    const samples = this.noise.getChannelData(0);
    for (let i = 0; i < samples.length; i++) samples[i] = Math.random() * 2 - 1;
  }

  /** toggle turns all sound off, or on again, and returns whether it is on. */
  toggle(): boolean {
    this.muted = !this.muted;
    if (this.master) this.master.gain.value = this.muted ? 0 : loudness;
    return !this.muted;
  }

  shot(far: number): void { this.tone(880, 180, 0.11, 0.5, far, "triangle"); }
  struck(): void { this.tone(300, 90, 0.16, 0.9, 0, "square"); }
  hit(): void { this.tone(1200, 1500, 0.07, 0.6, 0, "sine"); }
  pickup(): void {
    this.tone(620, 620, 0.09, 0.6, 0, "sine");
    this.tone(930, 930, 0.14, 0.6, 0, "sine", 0.08);
  }

  burst(far: number): void {
    const { out, master } = this;
    if (!out || !master || !this.noise || far >= 1) return;
    const source = out.createBufferSource();
    source.buffer = this.noise;
    const dull = out.createBiquadFilter();
    dull.type = "lowpass";
    dull.frequency.setValueAtTime(1400, out.currentTime);
    dull.frequency.exponentialRampToValueAtTime(90, out.currentTime + 0.45);
    source.connect(dull).connect(this.fade(0.5, 0.9 * (1 - far), 0)).connect(master);
    source.start();
    source.stop(out.currentTime + 0.5);
  }

  private tone(from: number, to: number, length: number, volume: number, far: number, type: OscillatorType, wait = 0): void {
    const { out, master } = this;
    if (!out || !master || far >= 1) return;
    const at = out.currentTime + wait;
    const tone = out.createOscillator();
    tone.type = type;
    tone.frequency.setValueAtTime(from, at);
    tone.frequency.exponentialRampToValueAtTime(to, at + length);
    tone.connect(this.fade(length, volume * (1 - far), wait)).connect(master);
    tone.start(at);
    tone.stop(at + length);
  }

  private fade(length: number, volume: number, wait: number): GainNode {
    const gain = this.out!.createGain();
    const at = this.out!.currentTime + wait;
    gain.gain.setValueAtTime(volume, at);
    gain.gain.exponentialRampToValueAtTime(0.001, at + length);
    return gain;
  }
}
