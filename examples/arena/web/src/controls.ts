// The player's input: keys, two thumbs on a touch screen, or a gamepad.

/** Wish is the player's current input. */
export interface Wish {
  thrust: boolean;
  fire: boolean;
  turn: number; // −1 left, 0, 1 right
}

const bound: Record<string, "left" | "right" | "thrust" | "fire"> = {
  ArrowLeft: "left",
  KeyA: "left",
  ArrowRight: "right",
  KeyD: "right",
  ArrowUp: "thrust",
  KeyW: "thrust",
  Space: "fire",
};

/** The share of a stick's range that counts as zero. */
const deadZone = 0.3;

/** Controls combines the player's input from all devices. */
export class Controls {
  private readonly held = { left: false, right: false, thrust: false, fire: false };
  private readonly thumb = { x: 0, y: 0, fire: false };
  /** A key was pressed since the last wish: a tap shorter than a step counts too. */
  private tapped = false;
  private readonly wished: Wish = { thrust: false, fire: false, turn: 0 };

  constructor(private readonly page: Document) {
    const window = page.defaultView!;
    window.addEventListener("keydown", (e) => this.key(e, true));
    window.addEventListener("keyup", (e) => this.key(e, false));
    window.addEventListener("blur", () => this.letGo());
    page.addEventListener("visibilitychange", () => this.letGo());
    this.listenToThumbs();
  }

  /** wish returns the player's input of this step. The same object is returned each time. */
  wish(): Wish {
    const { held, thumb, wished } = this;
    const pad = this.page.defaultView!.navigator.getGamepads?.().find((p) => p?.connected);
    const padX = pad ? (pad.axes[0] ?? 0) : 0;
    const left = held.left || thumb.x < -deadZone || padX < -deadZone || !!pad?.buttons[14]?.pressed;
    const right = held.right || thumb.x > deadZone || padX > deadZone || !!pad?.buttons[15]?.pressed;
    wished.turn = Number(right) - Number(left);
    wished.thrust = held.thrust || thumb.y < -deadZone || !!pad?.buttons[7]?.pressed || !!pad?.buttons[12]?.pressed;
    wished.fire = held.fire || this.tapped || thumb.fire || !!pad?.buttons[0]?.pressed;
    this.tapped = false;
    return wished;
  }

  /**
   * letGo clears the held keys, because the page gets no event of keys that are released outside of
   * it.
   */
  letGo(): void {
    Object.assign(this.held, { left: false, right: false, thrust: false, fire: false });
    Object.assign(this.thumb, { x: 0, y: 0, fire: false });
    this.tapped = false;
  }

  private key(e: KeyboardEvent, down: boolean): void {
    const what = bound[e.code];
    if (!what || e.ctrlKey || e.metaKey || e.altKey || typing(e.target)) return;
    e.preventDefault();
    if (down && what === "fire" && !e.repeat) this.tapped = true;
    this.held[what] = down;
  }

  private listenToThumbs(): void {
    const glass = this.page.getElementById("touch")!;
    const stick = this.page.getElementById("stick")!;
    const knob = this.page.getElementById("knob")!;
    const fire = this.page.getElementById("fire")!;
    this.page.defaultView!.addEventListener("touchstart", () => {
      glass.hidden = false;
      this.page.body.classList.add("touch");
    }, { once: true, passive: true });
    const steer = (e: PointerEvent): void => {
      const at = stick.getBoundingClientRect();
      const reach = at.width / 2;
      this.thumb.x = clamp((e.clientX - at.left - reach) / reach);
      this.thumb.y = clamp((e.clientY - at.top - reach) / reach);
      knob.style.translate = `${this.thumb.x * 38}px ${this.thumb.y * 38}px`;
    };
    const drop = (): void => {
      this.thumb.x = this.thumb.y = 0;
      knob.style.translate = "0 0";
    };
    stick.addEventListener("pointerdown", (e) => { stick.setPointerCapture(e.pointerId); steer(e); });
    stick.addEventListener("pointermove", (e) => { if (stick.hasPointerCapture(e.pointerId)) steer(e); });
    stick.addEventListener("pointerup", drop);
    stick.addEventListener("pointercancel", drop);
    fire.addEventListener("pointerdown", (e) => { fire.setPointerCapture(e.pointerId); this.thumb.fire = true; });
    fire.addEventListener("pointerup", () => { this.thumb.fire = false; });
    fire.addEventListener("pointercancel", () => { this.thumb.fire = false; });
  }
}

/** typing reports whether key presses are entered into a text field. */
export function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement && target.type === "text";
}

function clamp(x: number): number {
  return Math.max(-1, Math.min(1, x));
}
