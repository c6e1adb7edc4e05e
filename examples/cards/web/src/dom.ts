// Helpers for the page. Texts of players and servers are set as text, never as HTML.

/** find returns an element of the page. */
export function find<E extends HTMLElement = HTMLElement>(id: string): E {
  return document.getElementById(id) as E;
}

/** make makes an element with a class, a text or children. */
export function make<K extends keyof HTMLElementTagNameMap>(tag: K, className: string, ...inside: (Node | string)[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  e.className = className;
  e.append(...inside);
  return e;
}

const keys = new WeakMap<Element, string>();

/**
 * fill replaces the content of an element if key has changed, so that unchanged elements keep their
 * focus.
 */
export function fill(e: Element, key: unknown, inside: () => (Node | string)[]): void {
  const text = JSON.stringify(key, (_, v) => (typeof v === "bigint" ? `${v}` : v)); // a Deadline is a bigint
  if (keys.get(e) === text) return;
  keys.set(e, text);
  e.replaceChildren(...inside());
}

/** say sets a text, if it differs. */
export function say(e: Element, text: string): void {
  if (e.textContent !== text) e.textContent = text;
}
