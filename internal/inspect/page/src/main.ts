// The inspector: the bar, the views, and the live data of the one that is shown.
import { act, Stream } from "./api.js";
import { byId, h, text } from "./dom.js";
import { ms, rate } from "./format.js";
import type { Overview, Rooms } from "./types.js";
import type { Context, Kind, View } from "./view.js";
import { clients } from "./views/clients.js";
import { cluster } from "./views/cluster.js";
import { log } from "./views/log.js";
import { loop } from "./views/loop.js";
import { overview } from "./views/overview.js";
import { playground } from "./views/playground.js";
import { past, recording } from "./views/recording.js";
import { rpcs } from "./views/rpcs.js";
import { state } from "./views/state.js";
import { ticks } from "./views/ticks.js";
import { traffic } from "./views/traffic.js";

/** A file is inspected without a server: then the address begins with the view of the recording. */
const offline = location.hash.startsWith("#recording");

const kinds: Kind[] = offline ? [recording] : [overview, ticks, loop, clients, state, traffic, rpcs, log, playground, past, cluster];

/** Inspector is the page. */
class Inspector implements Context {
  room = "";
  write = false;
  private defaultRoom = "";
  private instance = "";
  private kind: Kind = kinds[0]!;
  private parameters = new URLSearchParams();
  private view: View | undefined;
  private readonly stream = new Stream((topic, data) => this.take(topic, data), (line, up) => this.link(line, up));
  private readonly rooms = byId<HTMLSelectElement>("room");

  start(): void {
    byId("nav").append(...kinds.map((k, i) => h("a", { href: `#${k.name}`, title: i < 9 ? `${k.title} (${i + 1})` : k.title }, k.title)));
    this.rooms.addEventListener("change", () => this.enter(this.rooms.value));
    byId("theme").addEventListener("click", () => this.swap());
    const theme = localStorage.getItem("netloop-theme");
    if (theme) document.documentElement.dataset["theme"] = theme;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show());
    addEventListener("hashchange", () => this.show());
    addEventListener("keydown", (e) => this.key(e));
    this.show();
  }

  parameter(name: string): string | undefined {
    return this.parameters.get(name) ?? undefined;
  }

  open(view: string, parameters: Record<string, string | number> = {}): void {
    location.hash = address(view, new URLSearchParams(Object.entries(parameters).map(([k, v]) => [k, String(v)])));
  }

  note(parameters: Record<string, string | number>): void {
    if (location.hash.slice(1) !== address(this.kind.name, this.parameters)) return; // The address names another view, which is not shown yet.
    for (const [k, v] of Object.entries(parameters)) this.parameters.set(k, String(v));
    history.replaceState(null, "", `#${address(this.kind.name, this.parameters)}`);
  }

  subscribe(again = false): void {
    if (offline) {
      for (const id of ["link", "pulse", "nav"]) byId(id).hidden = true;
      byId("room").parentElement!.hidden = true;
      document.body.classList.add("offline");
      return;
    }
    const room: [string, string][] = this.room && this.room !== this.defaultRoom ? [["room", this.room]] : [];
    this.stream.open([["topic", "overview"], ["topic", "rooms"], ...(this.view?.topics() ?? []), ...room], again);
  }

  say(line: string, wrong = false): void {
    const toast = byId("toast");
    toast.hidden = false;
    toast.className = wrong ? "wrong" : "";
    text(toast, line);
    clearTimeout(this.toast);
    this.toast = window.setTimeout(() => { toast.hidden = true; }, wrong ? 8000 : 4000);
  }
  private toast = 0;

  async act(path: string, query: Record<string, string | number | undefined>): Promise<void> {
    try {
      this.say(await act(path, { room: this.room === this.defaultRoom ? undefined : this.room, ...query }));
    } catch (e) {
      this.say((e as Error).message, true);
    }
  }

  /** show shows the view that the address names. */
  private show(): void {
    const [name = "", ...rest] = location.hash.slice(1).split("/"), parameters = rest.join("/");
    this.kind = kinds.find((k) => k.name === name) ?? kinds[0]!;
    this.parameters = new URLSearchParams(parameters);
    this.room = this.parameters.get("room") ?? this.room;
    if (this.room && this.room !== this.defaultRoom) this.parameters.set("room", this.room);
    else this.parameters.delete("room");
    history.replaceState(null, "", `#${address(this.kind.name, this.parameters)}`);
    this.view?.end?.();
    const root = byId("view");
    root.replaceChildren();
    root.className = this.kind.name;
    document.title = `${this.kind.title} · netloop`;
    for (const a of byId("nav").children) {
      if (a.getAttribute("href") === `#${this.kind.name}`) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    }
    this.rooms.value = this.room;
    this.view = this.kind.make(root, this);
    this.subscribe(true); // The new view has no ticks and no lines.
  }

  private enter(room: string): void {
    if (room === this.room) return;
    this.open(this.kind.name, { room });
  }

  private take(topic: string, data: unknown): void {
    if (topic === "overview") this.pulse(data as Overview);
    if (topic === "rooms") this.list(data as Rooms);
    if (topic === "trouble") {
      const t = data as { topic: string; text: string };
      if (this.view?.trouble) this.view.trouble(t.topic, t.text);
      else this.say(t.text, true);
      return;
    }
    this.view?.on(topic, data);
  }

  private pulse(o: Overview): void {
    text(byId("game"), o.game);
    this.write = o.write;
    document.documentElement.classList.toggle("reader", !o.write);
    this.offer("past", o.ring_ns > 0);
    this.offer("cluster", o.cluster !== "");
    this.defaultRoom = o.room;
    if (this.room === "") this.room = o.room;
    if (this.instance !== "" && this.instance !== o.instance) {
      this.say("the server has restarted: these are figures of the new one");
      this.show();
    }
    this.instance = o.instance;
    const w = o.windows[0]!;
    const slow = w.tick.p99_ns > o.budget_ns;
    byId("pulse").className = slow ? "bad" : w.tick.p99_ns > o.budget_ns / 2 ? "warm" : "good";
    text(byId("pulse"), `${rate(o.rate_hz)} Hz · p99 ${ms(w.tick.p99_ns)} of ${ms(o.budget_ns)} ms`);
    byId("pulse").title = "Ticks per second of all rooms together, and the time within which 99 of 100 ticks of the last ten seconds ran.";
  }

  /** offer shows a view in the navigation, or hides it. */
  private offer(view: string, has: boolean): void {
    for (const a of document.querySelectorAll<HTMLElement>(`nav a[href="#${view}"]`)) a.hidden = !has;
  }

  private list(r: Rooms): void {
    const names = r.rooms.map((x) => x.name);
    const ended = this.room !== "" && r.total === r.rooms.length && !names.includes(this.room);
    if (ended) names.push(this.room);
    this.banner(ended ? `The room ${this.room} has ended: these are its last figures.` : "", "show the default room", () => this.enter(this.defaultRoom));
    const shown = [...this.rooms.options].map((x) => x.value);
    if (names.join("\n") !== shown.join("\n")) {
      this.rooms.replaceChildren(...names.map((n) => h("option", { value: n, title: n }, n === "" ? "(default)" : n)));
    }
    this.rooms.value = this.room;
    byId("room").parentElement!.hidden = names.length < 2;
  }

  /** banner shows a line above the view as long as it is true; an empty one is hidden. */
  private banner(line: string, action: string, click: () => void): void {
    const e = byId("banner");
    if (e.dataset["line"] === line) return;
    e.dataset["line"] = line;
    e.hidden = line === "";
    e.replaceChildren(line, " ", h("button", { type: "button", click }, action));
  }

  private link(line: string, up: boolean): void {
    const e = byId("link");
    text(e, line);
    e.className = up ? "up" : "down";
  }

  /** swap changes from dark to light, or back. */
  private swap(): void {
    const now = document.documentElement.dataset["theme"] ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    localStorage.setItem("netloop-theme", next);
    document.documentElement.dataset["theme"] = next;
    this.show();
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = (e.target as Element).closest("input, select, textarea");
    if (e.key === "Escape") {
      if (typing) (e.target as HTMLElement).blur();
      else this.open(this.kind.name);
      return;
    }
    if (typing) return;
    const search = document.querySelector<HTMLInputElement>("main input[type=search]");
    const n = Number(e.key);
    if (e.key === "/" && search) search.focus();
    else if (e.key === "t") this.swap();
    else if (n >= 1 && n <= Math.min(kinds.length, 9)) this.open(kinds[n - 1]!.name);
    else if (!this.view?.key?.(e.key)) return;
    e.preventDefault();
  }
}

/** address returns the part of the page's address behind its hash. */
function address(view: string, parameters: URLSearchParams): string {
  return parameters.size > 0 ? `${view}/${parameters}` : view;
}

new Inspector().start();
