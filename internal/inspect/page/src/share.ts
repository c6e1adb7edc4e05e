import { h, text } from "./dom.js";
import { bytes, count, percent, rate } from "./format.js";
import { Table } from "./table.js";
import { Treemap } from "./treemap.js";
import type { Traffic } from "./types.js";

/** The answers over which rates are taken, one a second. */
const kept = 10;

/** Row is a class or a method in one direction. */
interface Row {
  way: "sent" | "received";
  name: string;
  count: number;
  bytes: number;
  countRate: number;
  rate: number;
}

/** rowsOf lists an answer: classes have no count. */
export function rowsOf(t: Traffic): Omit<Row, "countRate" | "rate">[] {
  return [
    ...t.classes.map((c) => ({ way: "sent" as const, name: c.class || "(ends of objects)", count: 0, bytes: c.bytes })),
    ...t.methods.flatMap((m) => [{ way: "sent" as const, name: `${m.method}()`, ...m.sent }, { way: "received" as const, name: `${m.method}()`, ...m.received }]),
    { way: "received" as const, name: "(inputs)", ...t.inputs },
  ].filter((r) => r.bytes > 0 || r.count > 0);
}

/** Share shows the bytes of one client by class and by method. */
export class Share {
  private answers: Traffic[] = [];
  private readonly note = h("p", { class: "soft" }, "Counting has begun.");
  private readonly map = new Treemap((l) => `${l.group} ${l.name}: ${bytes(l.size)} a second`);
  private readonly table = new Table<Row>(
    [
      { title: "way", left: true, show: (r) => r.way, order: (r) => r.way },
      { title: "class or method()", left: true, show: (r) => r.name, order: (r) => r.name },
      { title: "bytes/s", show: (r) => bytes(r.rate), order: (r) => r.rate },
      { title: "share", hint: "of its way", show: (r) => percent(this.whole(r.way) ? r.rate / this.whole(r.way) : 0), order: (r) => r.rate },
      { title: "messages/s", show: (r) => (r.count ? rate(r.countRate) : "–"), order: (r) => r.countRate },
      { title: "bytes", hint: "since counting began", show: (r) => bytes(r.bytes), order: (r) => r.bytes },
      { title: "messages", hint: "since counting began", show: (r) => (r.count ? count(r.count) : "–"), order: (r) => r.count },
    ],
    { key: (r) => `${r.way} ${r.name}`, sort: 2, up: false, empty: "no record or message since counting began" },
  );
  private rows: Row[] = [];
  readonly element = h("section", { class: "share" }, h("h2", {}, "Bytes by class and RPC"), this.note, this.map.element, this.table.element);

  /** take shows an answer. */
  take(t: Traffic): void {
    const last = this.answers.at(-1);
    if (last && (last.client !== t.client || t.seconds < last.seconds)) this.answers = [];
    this.answers = [...this.answers, t].slice(-kept);
    const from = this.answers[0]!, span = t.seconds - from.seconds;
    const was = new Map(rowsOf(from).map((r) => [`${r.way} ${r.name}`, r]));
    this.rows = rowsOf(t).map((r) => {
      const b = span > 0 ? was.get(`${r.way} ${r.name}`) : undefined, s = span > 0 ? span : t.seconds || 1;
      return { ...r, rate: (r.bytes - (b?.bytes ?? 0)) / s, countRate: (r.count - (b?.count ?? 0)) / s };
    });
    text(this.note, `Sent ${bytes(this.whole("sent"))} and received ${bytes(this.whole("received"))} a second, without headers, acknowledgements and time sync. Counted while the client is followed.`);
    this.map.update(this.rows.map((r) => ({ group: r.way, name: r.name, size: r.rate })));
    this.table.update(this.rows);
  }

  /** trouble shows why there is no answer. */
  trouble(line: string): void {
    text(this.note, line);
  }

  end(): void {
    this.map.end();
  }

  private whole(way: Row["way"]): number {
    return this.rows.reduce((n, r) => n + (r.way === way ? r.rate : 0), 0);
  }
}
