import { act, get, Refused } from "../api.js";
import { h, text } from "../dom.js";
import { age, bytes, count, percent, time } from "../format.js";
import { WorldMap } from "../map.js";
import { show, summary } from "../objects.js";
import { Scrubber } from "../scrubber.js";
import { Table } from "../table.js";
import type { Diff, Found, Messages, Overview, PastList, Recording, Saved, RecordedTicks, State, StateObject } from "../types.js";
import type { Context, Kind } from "../view.js";

/** The most rows of the scrubber. */
const rows = 1200;

/** savedFiles shows the recordings of a running server, which another process opens. draw shows them for the present role. */
function savedFiles(page: Context): { element: HTMLElement; draw(): void } {
  const note = h("p", { class: "soft" }), body = h("section", { class: "saved" }, h("h2", {}, "Recordings in files"), note);
  const table = new Table<Saved["files"][number]>(
    [
      { title: "file", left: true, show: (f) => (page.write ? h("a", { href: `/api/recordings/file?${new URLSearchParams({ folder: String(f.folder), name: f.name })}`, download: f.name }, f.name) : f.name), order: (f) => f.name },
      { title: "room", left: true, show: (f) => f.room || "(default)", order: (f) => f.room },
      { title: "size", show: (f) => bytes(f.bytes), order: (f) => f.bytes },
      { title: "last written", left: true, show: (f) => new Date(f.modified_seconds * 1000).toLocaleString([], { hour12: false }), order: (f) => f.modified_seconds },
      { title: "opens it", left: true, show: (f) => h("code", {}, `server inspect ${/^[\w./-]+$/.test(f.path) ? f.path : `'${f.path.replaceAll("'", `'\\''`)}'`}`) },
    ],
    { key: (f) => f.path, sort: 3, up: false, empty: "no recording of this game is in the folder" },
  );
  let all: Saved | undefined;
  const draw = () => {
    if (!all) return;
    if (all.folders.length === 0) text(note, "The server was started without --record and --record-rooms.");
    else {
      text(note, `Of ${all.folders.join(" and ")}. ${page.write ? "A click downloads a file, also while it grows. It has all data of its clients, also their tokens." : "A download needs a token with the role write."} The command opens it on the machine of the server, or a downloaded file anywhere: a replay takes a core, so the running server makes none.${all.more ? ` ${all.more} older files are not listed.` : ""}`);
      table.update(all.files);
      body.append(table.element);
    }
  };
  get<Saved>("/api/recordings").then((list) => { all = list; draw(); }, (e: unknown) => text(note, (e as Error).message));
  return { element: body, draw };
}

/** takePast copies the past ticks of a room that are in memory, and shows the copy. */
export async function takePast(page: Context, tick?: number, room = page.room): Promise<void> {
  try {
    const { past } = JSON.parse(await act("/api/recording/last", { room: room || undefined })) as { past: number };
    page.open("past", tick ? { past, tick } : { past });
  } catch (e) {
    page.say((e as Error).message, true);
  }
}

const kind = (name: string, heading: string, live: boolean): Kind => ({
  name,
  title: heading,
  make(root, page) {
    let head: Recording | undefined;
    let at = Number(page.parameter("tick") ?? 0);
    let range: [number, number] | undefined; // of the scrubber; the whole recording without
    let around = { tick: 0, previous: 0, next: 0 };
    let objects: StateObject[] = [];
    let playing = 0;
    let copy = live ? page.parameter("past") : undefined; // its number; the newest without
    /** ask reads a page about the recording. */
    const ask = <T>(path: string, query: Record<string, string | number | undefined> = {}) => get<T>(path, { past: copy, ...query });
    const title = h("h2", {}, live ? "No past ticks are shown" : heading);
    const take = h("button", { type: "button", hidden: !live, click: () => void takePast(page) }, "the last ticks");
    const save = h("a", { class: "write", href: "/api/recording/file", download: "ticks.rec", hidden: true }, "save as a file");
    const files = h("select", { "aria-label": live ? "Other past ticks" : "File", change: () => void open(files.value) });
    const upload = h("input", { type: "file", "aria-label": "Open another file", change: () => void send() });
    const facts = h("dl", { class: "facts three" });
    const outcome = h("p", { class: "outcome" });
    const refused = h("p", { class: "refused warn", hidden: true });
    const scrubber = new Scrubber((tick) => void go(tick));
    const number = h("input", { type: "number", min: 1, "aria-label": "Tick", change: () => void go(Number(number.value)) });
    const play = h("button", { type: "button", title: "space", click: () => toggle() }, "play");
    const zoom = h("button", { type: "button", title: "600 ticks around the chosen one (z)", click: () => void zoomed() }, "zoom");
    const query = h("input", { type: "search", class: "query", placeholder: "ship[17.3].Hull == 0, ship.Score changed ( / )", "aria-label": "Find a value", keydown: (e: Event) => { if ((e as KeyboardEvent).key === "Enter") void find(1); } });
    const found = h("div", { class: "found" });
    const map = new WorldMap((id) => choose(id));
    const mapBox = h("section", {}, h("h2", {}, "Map"), map.element);
    const changed = h("h2"), changeList = h("div");
    const messages = h("section", { class: "changes" });
    const base = h("input", { type: "number", min: 1, placeholder: "the tick before", title: "a number is held while the chosen tick changes; empty is the tick before", "aria-label": "Compared with tick", change: () => void go(at) });
    const changes = h("section", { class: "changes" }, changed, h("label", { class: "soft" }, "compared with tick ", base), changeList);
    let chosen = "";
    const search = h("input", { type: "search", placeholder: "id or class", "aria-label": "Find objects", input: () => table.update(objects) });
    const table = new Table<StateObject>(
      [
        { title: "object", left: true, show: (o) => o.id, order: (o) => Number(o.id.split(".")[0]) },
        { title: "class", left: true, show: (o) => o.class, order: (o) => o.class },
        { title: "owner", show: (o) => (o.owner ? String(o.owner) : "–"), order: (o) => o.owner },
        { title: "values", left: true, show: (o) => summary(head?.classes.find((c) => c.name === o.class), o.values) },
      ],
      { key: (o) => o.id, open: (o) => choose(o.id), filter: (o) => `${o.id} ${o.class}`.includes(search.value), empty: "no object exists at this tick" },
    );
    table.element.classList.add("objects");
    const rest = h("div", { class: "rest", hidden: true },
      h("section", {},
        h("div", { class: "bar" }, h("button", { type: "button", title: "the tick before (←)", click: () => void step(-1) }, "◀"), play, h("button", { type: "button", title: "the next tick (→)", click: () => void step(1) }, "▶"), h("label", {}, "tick ", number), zoom, h("span", { class: "grow" }), query),
        found, scrubber.element,
        h("p", { class: "legend" }, ...[["changes", "behind"], ["messages", "accent"], ["packets of inputs", "good"], ["join", "good"], ["resume", "stage"], ["lost connection", "warm"], ["leave", "bad"]].map(([n, c]) => h("span", {}, h("i", { style: `background:var(--${c})` }), n!)))),
      h("div", { class: "columns" }, changes, messages),
      h("div", { class: "columns wide" }, h("section", {}, h("div", { class: "bar" }, h("h2", {}, "Objects at this tick"), search), table.element), mapBox));
    root.append(h("section", {}, h("div", { class: "bar" }, title, files, upload, take, save), facts, outcome, refused), rest);
    const saved = live ? savedFiles(page) : undefined;
    if (saved) root.append(saved.element);
    let write = page.write;
    upload.hidden = live;
    files.hidden = true;

    function trouble(e: unknown): void {
      page.say((e as Error).message, true);
    }

    /** load reads what is known of the recording, and again while its replay runs. */
    async function load(): Promise<void> {
      try {
        const was = head?.ticks ?? 0;
        head = await ask<Recording>("/api/recording");
        rest.hidden = false;
        save.hidden = !live;
        if (copy) save.href = `/api/recording/file?past=${copy}`;
        const rate = head.tick_rate[0] / head.tick_rate[1];
        text(title, head.name);
        document.title = `${head.name} · netloop`;
        const list: [string, string][] = [
          ["game", head.schema], ["room", head.room || "(default)"], ["seed", head.seed], ["rate", `${rate} Hz`],
          ["ticks", `${count(head.ticks)}, ${count(head.first)} to ${count(head.last)}`], ["length", age((head.ticks / rate) * 1e9)], [live ? "records" : "file", bytes(head.bytes)],
          ...Object.entries(head.settings ?? {}).map(([k, v]) => [k, v] as [string, string]),
        ];
        facts.replaceChildren(...list.filter(([, v]) => v).flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)]));
        const done = head.outcome.state !== "replaying";
        text(outcome, done ? head.outcome.text : `replaying: ${percent(head.progress)} of the file`);
        outcome.className = `outcome ${head.outcome.state}`;
        if (head.ticks !== was && head.ticks > 0) {
          await lanes();
          if (was === 0) await go(at || (live ? head.last : head.first));
        }
        if (!done) again = window.setTimeout(() => void load(), 500);
      } catch (e) {
        const none = live && !copy && e instanceof Refused && e.status === 404;
        text(outcome, none ? "The button takes the ticks of the room that are in memory, and holds them still." : (e as Error).message);
        if (!(e instanceof Refused) || e.status >= 500) again = window.setTimeout(() => void load(), 2000);
      }
    }
    let again = 0;

    async function lanes(): Promise<void> {
      const [from, to] = range ?? [head!.first, head!.last];
      scrubber.update(await ask<RecordedTicks>("/api/recording/ticks", { from, to, rows }), at);
    }

    async function list(): Promise<void> {
      try {
        if (live) {
          const all = await get<PastList>("/api/recording/past");
          copy ??= all.copies[0] && String(all.copies[0].past); // It remains when others take copies.
          const others = all.copies.filter((c) => String(c.past) !== copy);
          files.replaceChildren(h("option", { value: "" }, "other past ticks"),
            ...others.map((c) => h("option", { value: `past=${c.past}` }, `${c.name}, up to tick ${count(c.last)}`)),
            ...all.ended.map((r) => h("option", { value: `room=${r.room}` }, `the last ticks of ${r.room || "the default room"}, which has ended`)));
          files.hidden = files.childElementCount < 2;
          return;
        }
        const all = await get<{ files: { name: string; bytes: number }[] }>("/api/recordings");
        files.replaceChildren(h("option", { value: "" }, "other files of the folder"), ...all.files.map((f) => h("option", { value: f.name }, `${f.name}, ${bytes(f.bytes)}`)));
        files.hidden = all.files.length < 2;
      } catch (e) {
        trouble(e);
      }
    }

    async function open(name: string): Promise<void> {
      if (!name) return;
      if (live) {
        const [what, value] = [name.slice(0, 4), name.slice(5)];
        if (what === "past") page.open("past", { past: value });
        else await takePast(page, undefined, value);
        return;
      }
      await post("/api/recordings/open", name);
    }

    async function send(): Promise<void> {
      const file = upload.files?.[0];
      if (file) await post("/api/recordings/upload", file.name, file);
    }

    async function post(path: string, name: string, body?: Blob): Promise<void> {
      try {
        const answer = await fetch(`${path}?${new URLSearchParams({ name })}`, { method: "POST", ...(body ? { body } : {}) });
        if (!answer.ok) throw new Error((await answer.text()).trim());
        refused.hidden = true;
        page.open("recording");
        [head, at, range] = [undefined, 0, undefined];
        await load();
      } catch (e) {
        refused.hidden = false; // Until another file is opened.
        text(refused, `${(e as Error).message}${head ? `: ${head.name} remains open` : ""}`);
      } finally {
        [upload.value, files.value] = ["", ""]; // The same file can be chosen again.
      }
    }

    /** go shows a tick. Only the newest request is shown. */
    let asked = 0;
    async function go(tick: number): Promise<void> {
      if (!head || head.ticks === 0) return;
      const within = (t: number) => Math.min(Math.max(t, head!.first), head!.last);
      at = within(tick);
      number.value = String(at);
      if (base.value) base.value = String(within(Number(base.value)));
      scrubber.move(at);
      const turn = ++asked;
      try {
        const [s, d, m] = await Promise.all([
          ask<State>("/api/recording/state", { tick: at }), ask<Diff>("/api/recording/diff", { tick: at, with: base.value || undefined }), ask<Messages>("/api/recording/messages", { tick: at }),
        ]);
        if (turn !== asked) return;
        objects = s.objects;
        around = d;
        table.chosen = chosen;
        table.update(objects);
        mapBox.hidden = !head.classes.some((c) => c.map.length === 2);
        map.update(head.classes, objects, chosen, false);
        difference(d);
        facts_(m);
        if (live) page.note({ ...(copy ? { past: copy } : {}), tick: at });
      } catch (e) {
        if (live && e instanceof Refused && e.status === 404) { // Too many others were taken.
          text(outcome, `${(e as Error).message}. The figures below are those that were read before.`);
          outcome.className = "outcome warn";
          number.value = String(around.tick);
          void list();
        } else trouble(e);
      }
    }

    function difference(d: Diff): void {
      const rows = [
        ...d.added.map((o) => h("li", { class: "added" }, link(o.id), ` ${o.class} is new`)),
        ...d.removed.map((o) => h("li", { class: "removed" }, `${o.id} ${o.class} has ended`)),
        ...d.changed.map((o) => h("li", {}, link(o.id), ` ${o.class} `, ...o.fields.flatMap((f) => [h("span", { class: "field" }, `${f.field} `, h("s", {}, show(f.was)), " → ", h("b", {}, show(f.now)))]))),
      ];
      text(changed, `Tick ${count(d.tick)}: ${d.with > d.tick ? "what differs from the later tick" : "what has changed since tick"} ${count(d.with)}`);
      changeList.replaceChildren(rows.length ? h("ul", {}, ...rows) : h("p", { class: "soft" }, "nothing"), d.more ? h("p", { class: "soft" }, `and ${d.more} more objects`) : "");
    }

    function facts_(m: Messages): void {
      const rows = m.arrivals.map((a) => h("li", {},
        h("b", {}, a.method ?? a.kind), a.client ? ` of client ${a.client}` : "", a.stage ? ` for ${a.stage}` : "", a.at_ns ? h("small", {}, ` ${time(a.at_ns)} before the tick`) : "",
        a.value !== undefined ? h("code", {}, JSON.stringify(a.value)) : "", a.text ? ` ${a.text}` : "",
        ...(a.inputs ?? []).slice(0, 1).map((i) => h("code", {}, `step ${i.step} ${JSON.stringify(i.value)}`))));
      messages.replaceChildren(h("h2", {}, "What came from outside"), rows.length ? h("ul", {}, ...rows) : h("p", { class: "soft" }, "nothing"), m.more ? h("p", { class: "soft" }, `and ${m.more} more`) : "", live && !page.write ? h("p", { class: "soft" }, "Their content needs a token with the role write.") : "");
    }

    function link(id: string): HTMLElement {
      return h("button", { type: "button", class: "id", click: () => choose(id) }, id);
    }

    function choose(id: string): void {
      chosen = id;
      const o = objects.find((x) => x.id === id);
      if (o && !query.value) query.value = `${o.class}[${o.id}].`;
      table.chosen = id;
      table.update(objects);
      map.update(head!.classes, objects, chosen, false);
    }

    async function step(by: number): Promise<void> {
      const known = around.tick === at ? around : { previous: 0, next: 0 }; // The answer may still be on its way.
      await go(by < 0 ? known.previous || at - 1 : known.next || at + 1);
    }

    function toggle(): void {
      clearInterval(playing);
      playing = playing ? 0 : window.setInterval(() => { if (head && at < head.last) void step(1); else toggle(); }, Math.max(1000 / (head ? head.tick_rate[0] / head.tick_rate[1] : 60), 50));
      text(play, playing ? "stop" : "play");
    }

    async function zoomed(): Promise<void> {
      range = range ? undefined : [Math.max(at - 300, head!.first), Math.min(at + 300, head!.last)];
      zoom.classList.toggle("on", range !== undefined);
      await lanes();
    }

    async function find(from: number): Promise<void> {
      try {
        const f = await ask<Found>("/api/recording/find", { q: query.value, from });
        found.replaceChildren(h("p", { class: "soft" }, f.found.length ? `${f.found.length} ticks:` : "no tick matches"),
          ...f.found.map((x) => h("button", { type: "button", title: `${x.object} ${x.field} = ${show(x.value)}`, click: () => { choose(x.object); void go(x.tick); } }, `${count(x.tick)} · ${x.object} ${show(x.value)}`)),
          f.next ? h("button", { type: "button", click: () => void find(f.next) }, "further …") : "");
        if (f.found[0]) { choose(f.found[0].object); void go(f.found[0].tick); }
      } catch (e) {
        found.replaceChildren(h("p", { class: "warn" }, (e as Error).message));
      }
    }

    void list().then(load);
    return {
      topics: () => [],
      on(topic, data) {
        if (!live || topic !== "overview") return;
        if (write !== page.write) saved!.draw();
        write = page.write;
        const ring = (data as Overview).ring_ns;
        take.hidden = !ring;
        text(take, `the last ${Math.round(ring / 1e9)} s`);
        if (!ring) text(outcome, "No past ticks are kept: start the server with --inspect-ring 60s.");
      },
      end() { clearTimeout(again); clearInterval(playing); scrubber.end(); map.end(); },
      key(key) {
        if (key === "ArrowLeft" || key === "k") void step(-1);
        else if (key === "ArrowRight" || key === "j") void step(1);
        else if (key === " ") toggle();
        else if (key === "z") void zoomed();
        else if (key === "Home") void go(head?.first ?? 1);
        else if (key === "End") void go(head?.last ?? 1);
        else return false;
        return true;
      },
    };
  },
});

/** recording shows a file, and past the last ticks of a running room. */
export const recording = kind("recording", "Recording", false);
export const past = kind("past", "Past", true);
