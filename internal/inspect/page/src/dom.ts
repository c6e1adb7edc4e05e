// A few functions over the DOM.

export type Child = Node | string | number | undefined | null | false;

/** h makes an element. Attributes with a function as value are listeners. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attrs: Record<string, string | number | boolean | undefined | ((e: Event) => void)> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (typeof value === "function") e.addEventListener(name, value);
    else if (value === true) e.setAttribute(name, "");
    else if (value !== false && value !== undefined) e.setAttribute(name, String(value));
  }
  e.append(...children.filter((c): c is Node | string | number => c !== undefined && c !== null && c !== false).map((c) => (typeof c === "number" ? String(c) : c)));
  return e;
}

/** text sets the text of an element, if it differs. */
export function text(e: Element, value: string): void {
  if (e.textContent !== value) e.textContent = value;
}

/** walk moves the focus by a number of rows of a list, and reports whether a key does that: j or k. */
export function walk(key: string, list: ParentNode, selector: string): boolean {
  if (key !== "j" && key !== "k") return false;
  const all = [...list.querySelectorAll<HTMLElement>(selector)];
  const at = all.indexOf(document.activeElement as HTMLElement) + (key === "j" ? 1 : -1);
  all[Math.min(Math.max(at, 0), all.length - 1)]?.focus();
  return true;
}

/** refill replaces the rows of a list. The focus remains on the row with the same data-at. */
export function refill(list: Element, ...rows: Element[]): void {
  const at = list.contains(document.activeElement) ? document.activeElement!.getAttribute("data-at") : null;
  list.replaceChildren(...rows);
  if (at !== null) list.querySelector<HTMLElement>(`[data-at="${CSS.escape(at)}"]`)?.focus({ preventScroll: true });
}

/** byId returns an element of index.html. */
export function byId<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** color returns a color of the style sheet. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Canvas is a canvas that follows the size of its element, in pixels of the screen. */
export class Canvas {
  readonly element = h("canvas");
  readonly draw: CanvasRenderingContext2D;
  width = 0;
  height = 0;
  private readonly observer: ResizeObserver;

  constructor(redraw: () => void) {
    this.draw = this.element.getContext("2d")!;
    this.observer = new ResizeObserver(() => {
      this.width = this.element.clientWidth;
      this.height = this.element.clientHeight;
      this.element.width = Math.round(this.width * devicePixelRatio);
      this.element.height = Math.round(this.height * devicePixelRatio);
      redraw();
    });
    this.observer.observe(this.element);
  }

  /** clear empties the canvas, and sets one unit to one pixel of CSS. */
  clear(): CanvasRenderingContext2D {
    this.draw.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    this.draw.clearRect(0, 0, this.width, this.height);
    return this.draw;
  }

  end(): void {
    this.observer.disconnect();
  }
}
