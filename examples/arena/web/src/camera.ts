// The arena is a torus. The camera is centred on a position, and every object is drawn at its copy
// nearest to that position.

/** The length of the arena's sides, in units: Size of schema.go. */
export const size = 4096;

/** way returns the shorter distance from a to b along one side of the arena. */
export function way(a: number, b: number): number {
  const d = b - a;
  if (d > size / 2) return d - size;
  if (d < -size / 2) return d + size;
  return d;
}

/** wrap reduces a coordinate to the arena. */
export function wrap(x: number): number {
  return ((x % size) + size) % size;
}

/** Camera holds the part of the arena that the window shows. */
export class Camera {
  x = size / 2;
  y = size / 2;
  /** Pixels of the page per unit. */
  zoom = 0.5;
  width = 1;
  height = 1;

  /** resize takes the size of the window, in pixels of the page. */
  resize(width: number, height: number): void {
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
  }

  /**
   * lookAcross moves the zoom gradually to the value at which the shorter side of the window shows
   * so many units, or fewer if the window would show more than the whole arena.
   */
  lookAcross(units: number, dt: number): void {
    const wanted = Math.max(Math.min(this.width, this.height) / units, Math.max(this.width, this.height) / size);
    this.zoom += (wanted - this.zoom) * ease(dt, 0.35);
  }

  /**
   * follow moves the camera towards a position: lag is the time, in seconds, of most of the way.
   */
  follow(x: number, y: number, dt: number, lag: number): void {
    const part = ease(dt, lag);
    this.x = wrap(this.x + way(this.x, x) * part);
    this.y = wrap(this.y + way(this.y, y) * part);
  }

  /** left returns the horizontal position of x in the window, in pixels. */
  left(x: number): number {
    return this.width / 2 + way(this.x, x) * this.zoom;
  }

  /** top returns the vertical position of y in the window, in pixels. */
  top(y: number): number {
    return this.height / 2 + way(this.y, y) * this.zoom;
  }

  /** sees reports whether an object of a radius, in units, is visible at a position. */
  sees(x: number, y: number, radius: number): boolean {
    return (
      Math.abs(way(this.x, x)) <= this.width / 2 / this.zoom + radius &&
      Math.abs(way(this.y, y)) <= this.height / 2 / this.zoom + radius
    );
  }
}

/** ease returns the part of the way that is done in dt seconds, if most of it takes lag seconds. */
function ease(dt: number, lag: number): number {
  return lag <= 0 ? 1 : 1 - Math.exp((-3 * dt) / lag);
}
