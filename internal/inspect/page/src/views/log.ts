import { h, refill, text, walk } from "../dom.js";
import type { LogLine } from "../types.js";
import type { Kind } from "../view.js";

/** The number of lines that are shown. */
const shown = 1000;
const levels = ["DEBUG", "INFO", "WARN", "ERROR"];

export const log: Kind = {
  name: "log",
  title: "Log",
  make(root, page) {
    let lines: LogLine[] = [];
    let paused = false;
    const level = h("select", { "aria-label": "Least level", change: () => show() }, ...levels.map((l) => h("option", { value: l }, l === "DEBUG" ? "all levels" : `${l} and above`)));
    const rooms = h("select", { "aria-label": "Room", change: () => show() });
    const clients = h("select", { "aria-label": "Client", change: () => show() });
    const search = h("input", { type: "search", placeholder: "text, room=…, client=… ( / )", "aria-label": "Find in the log", value: page.parameter("find") ?? "", input: () => show() });
    const pause = h("button", { type: "button", title: "space", click: () => hold() }, "pause");
    const head = h("p", { class: "soft" });
    const body = h("ol", { class: "lines" });
    root.append(h("section", {}, h("div", { class: "bar" }, h("h2", {}, "The last log lines, the newest first"), level, rooms, clients, search, pause), head, body));

    function hold(): void {
      paused = !paused;
      text(pause, paused ? "go on" : "pause");
      pause.classList.toggle("on", paused);
      if (!paused) show();
    }

    function line(l: LogLine): HTMLElement {
      const room = l.attrs.find(([k]) => k === "room")?.[1] ?? ""; // Lines of the default room have none.
      const to = (view: string, query: Record<string, string>, v: string) => h("a", { href: `#${view}/${new URLSearchParams({ ...query, room })}` }, v);
      const link = (k: string, v: string) => {
        if ((k === "tick" || k === "before_tick") && /^\d+$/.test(v)) return to("ticks", { tick: v }, v);
        if (k === "client" && /^\d+$/.test(v)) return to("clients", { client: v }, v);
        if (k === "system") return to("loop", { system: v }, v);
        if (k === "room") return to("ticks", {}, v);
        return v;
      };
      return h("li", { class: l.level.toLowerCase(), tabindex: -1, "data-at": l.number }, h("time", {}, new Date(l.time).toLocaleTimeString([], { hour12: false })), h("b", {}, l.level), h("span", {}, l.text),
        ...l.attrs.map(([k, v]) => h("span", { class: "attr" }, `${k}=`, link(k, v))));
    }

    const attr = (l: LogLine, name: string) => l.attrs.find(([k]) => k === name)?.[1];

    /** choices lists the values of an attribute that lines have, and keeps the chosen one. */
    function choices(select: HTMLSelectElement, name: string, fixed: [string, string][]): void {
      const values = new Set(lines.map((l) => attr(l, name)).filter((v) => v !== undefined));
      if (select.value.startsWith("=")) values.add(select.value.slice(1));
      const list = [...fixed, ...[...values].sort((a, b) => a.localeCompare(b, "en", { numeric: true })).map((v) => [`=${v}`, `${name} ${v}`] as [string, string])];
      if (list.length === select.options.length && list.every(([v], i) => select.options[i]!.value === v)) return;
      const chosen = select.value;
      select.replaceChildren(...list.map(([value, title]) => h("option", { value }, title)));
      select.value = chosen;
    }

    /** chosen reports whether a line has the value that a list of choices selects. */
    function chosen(select: HTMLSelectElement, value: string | undefined): boolean {
      return !select.value || (select.value === "none" ? value === undefined : select.value === `=${value}`);
    }

    function show(): void {
      choices(rooms, "room", [["", "all rooms"], ["none", "default room and server"]]);
      choices(clients, "client", [["", "all clients"]]);
      const least = levels.indexOf(level.value), find = search.value.toLowerCase();
      const list = lines.filter((l) => levels.indexOf(l.level) >= least || !levels.includes(l.level))
        .filter((l) => chosen(rooms, attr(l, "room")) && chosen(clients, attr(l, "client")))
        .filter((l) => `${l.text} ${l.attrs.map(([k, v]) => `${k}=${v}`).join(" ")} `.toLowerCase().includes(find && /^client=\d+$|^tick=\d+$/.test(find) ? `${find} ` : find));
      text(head, `${list.length} of ${lines.length} lines. The server keeps the last 1 024.`);
      refill(body, ...list.slice(-shown).reverse().map(line));
      if (list.length === 0) body.append(h("li", { class: "soft" }, lines.length ? "no line matches" : "nothing has been logged yet"));
    }
    show();

    return {
      topics: () => [["topic", "log"]],
      key: (key) => { if (key === " ") hold(); return key === " " || walk(key, body, "li"); },
      on(topic, data) {
        if (topic !== "log") return;
        const more = data as LogLine[];
        const last = lines[lines.length - 1]?.number ?? 0;
        if (more[0] && more[0].number <= last) lines = []; // The stream has begun again.
        lines = [...lines, ...more].slice(-shown);
        if (!paused) show();
      },
    };
  },
};
