import { h, text } from "./dom.js";

/** Column is one column of a table. */
export interface Column<T> {
  title: string;
  /** hint explains the column. */
  hint?: string;
  /** show returns the text or the content of a cell. */
  show(row: T): string | Node;
  /** order returns the key of sorting; without it the column does not sort. */
  order?(row: T): number | string;
  /** left aligns to the left, for words. */
  left?: boolean;
  /** warn marks a cell. */
  warn?(row: T): boolean;
}

/** Table is a table that is sorted by a click and keeps its rows' elements between updates. */
export class Table<T> {
  readonly element: HTMLElement;
  /** chosen is the key of the marked row. */
  chosen: string | undefined;
  private readonly body = h("tbody");
  private readonly rows = new Map<string, HTMLTableRowElement>();
  private readonly heads: HTMLElement[];
  private sort: number;
  private up: boolean;
  private last: T[] = [];

  constructor(
    private readonly columns: Column<T>[],
    private readonly options: { key(row: T): string; sort?: number; up?: boolean; open?(row: T): void; empty?: string; filter?(row: T): boolean },
  ) {
    this.sort = options.sort ?? -1;
    this.up = options.up ?? true;
    this.heads = columns.map((c, i) =>
      h("th", { class: c.left ? "left" : "", title: c.hint, scope: "col" },
        c.order ? h("button", { type: "button", click: () => this.sortBy(i) }, c.title) : c.title));
    this.element = h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...this.heads)), this.body));
  }

  private sortBy(i: number): void {
    this.up = this.sort === i ? !this.up : typeof this.columns[i]!.order!(this.last[0] ?? ({} as T)) === "string";
    this.sort = i;
    this.update(this.last);
  }

  /** update shows other rows. */
  update(rows: T[]): void {
    this.last = rows;
    let shown = this.options.filter ? rows.filter(this.options.filter) : rows.slice();
    const order = this.columns[this.sort]?.order;
    if (order) {
      const sign = this.up ? 1 : -1;
      shown = shown.map((row) => ({ row, key: order(row) })).sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : 0)).map((x) => x.row);
    }
    this.heads.forEach((e, i) => e.setAttribute("aria-sort", i !== this.sort ? "none" : this.up ? "ascending" : "descending"));
    const keep = new Set<string>();
    const list = shown.map((row) => {
      const key = this.options.key(row);
      keep.add(key);
      return this.row(key, row);
    });
    for (const key of this.rows.keys()) if (!keep.has(key)) this.rows.delete(key);
    if (list.length === 0) {
      this.body.replaceChildren(h("tr", { class: "empty" }, h("td", { colspan: this.columns.length }, this.options.empty ?? "nothing yet")));
      return;
    }
    if (list.length === this.body.childElementCount && list.every((e, i) => this.body.children[i] === e)) return;
    const focused = document.activeElement;
    this.body.replaceChildren(...list);
    if (focused instanceof HTMLElement && this.body.contains(focused)) focused.focus({ preventScroll: true });
  }

  private row(key: string, row: T): HTMLTableRowElement {
    let e = this.rows.get(key);
    if (!e) {
      e = h("tr", {}, ...this.columns.map((c) => h("td", { class: c.left ? "left" : "" })));
      if (this.options.open) {
        e.tabIndex = 0;
        const open = () => this.options.open!((e as HTMLTableRowElement & { row: T }).row);
        e.addEventListener("click", (event) => { if (!(event.target as Element).closest("button, a, input")) open(); });
        e.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
      }
      this.rows.set(key, e);
    }
    (e as HTMLTableRowElement & { row: T }).row = row;
    e.classList.toggle("chosen", key === this.chosen);
    this.columns.forEach((c, i) => {
      const cell = e.children[i] as HTMLElement;
      const value = c.show(row);
      if (typeof value === "string") text(cell, value);
      else if (!(cell.firstChild && value.isEqualNode(cell.firstChild))) cell.replaceChildren(value);
      cell.classList.toggle("warn", c.warn?.(row) ?? false);
    });
    return e;
  }

  /** move moves the focus between rows. */
  move(by: number): void {
    const all = [...this.body.children] as HTMLElement[];
    const at = all.indexOf(document.activeElement as HTMLElement);
    all[Math.min(Math.max(at + by, 0), all.length - 1)]?.focus();
  }
}
