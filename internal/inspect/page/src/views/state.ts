import { get } from "../api.js";
import { h, text } from "../dom.js";
import { count } from "../format.js";
import { WorldMap } from "../map.js";
import { fieldTree, show, summary, type Field } from "../objects.js";
import { Table } from "../table.js";
import type { Class, Explanation, Grid, State, StateObject } from "../types.js";
import type { Subscription } from "../api.js";
import type { Kind } from "../view.js";

export const state: Kind = {
  name: "state",
  title: "State",
  make(root, page) {
    const client = page.parameter("client");
    let classes: Class[] = [];
    let objects: StateObject[] = [];
    let grids: Grid[] = [];
    let chosen = page.parameter("object") ?? "";
    let reasons = new Map<string, string>(); // by path of a field
    const kind = h("select", { "aria-label": "Class", change: () => page.subscribe() }, h("option", { value: "" }, "all classes"));
    const search = h("input", { type: "search", placeholder: "id, class, owner=3 ( / )", "aria-label": "Find objects", value: page.parameter("find") ?? "", input: () => later() });
    const of = h("input", { type: "number", min: 1, placeholder: "client", "aria-label": "Client to compare with", value: client ?? "", change: () => page.open("state", of.value ? { client: of.value } : {}) });
    const head = h("p", { class: "soft" });
    const map = new WorldMap((id) => choose(id));
    const viewer = h("select", { "aria-label": "Show the view of a client", change: () => page.open("state", viewer.value ? { client: viewer.value } : {}) });
    const mapBox = h("section", { hidden: true }, h("div", { class: "bar" }, h("h2", {}, "Map"), viewer), map.element);
    const tree = h("section", {}, h("p", { class: "soft" }, "Click an object: its fields are shown here as they change."));
    const seen = new Map<string, { values: string; changed: number }>();
    const table = new Table<StateObject>(
      [
        { title: "object", left: true, show: (o) => o.id, order: (o) => Number(o.id.split(".")[0]) },
        { title: "class", left: true, show: (o) => o.class, order: (o) => o.class },
        { title: "owner", show: (o) => (o.owner ? String(o.owner) : "–"), order: (o) => o.owner },
        { title: "changed", hint: "the tick of the last change", show: (o) => count(o.changed ?? 0), order: (o) => o.changed ?? 0 },
        ...(client ? [{ title: "client has", left: true, show: (o: StateObject) => behind(o), order: (o: StateObject) => behind(o), warn: (o: StateObject) => o.shown === true && !o.copy }] : []),
        { title: "values", left: true, show: (o) => summary(classes.find((c) => c.name === o.class), o.values) },
      ],
      { key: (o) => o.id, open: (o) => choose(o.id), empty: "no object matches" },
    );
    table.element.classList.add("objects");
    root.append(
      h("section", {}, h("div", { class: "bar" }, h("h2", {}, client ? `Objects, beside the copy of client ${client}` : "Objects"), kind, search, h("label", { class: "soft" }, "compare with ", of)), head, table.element),
      h("div", { class: "columns wide" }, tree, mapBox));
    void get<Class[]>("/api/classes").then((all) => {
      classes = all;
      kind.append(...all.map((c) => h("option", { value: c.name }, c.name)));
      kind.value = page.parameter("class") ?? "";
      mapBox.hidden = !all.some((c) => c.map.length === 2);
      if (kind.value) page.subscribe();
    }).catch((e: Error) => page.say(e.message, true));

    /** behind says how a client's copy differs from the server's state. */
    function behind(o: StateObject): string {
      if (!o.shown) return "not visible";
      if (!o.copy) return "nothing acknowledged";
      const c = classes.find((x) => x.name === o.class);
      const wrong = o.values.flatMap((v, i) => (o.copy![i] !== null && JSON.stringify(v) !== JSON.stringify(o.copy![i]) ? [c?.fields[i] ?? "?"] : []));
      return wrong.length ? `older ${wrong.join(", ")}` : "the same";
    }

    let timer = 0;
    function later(): void {
      clearTimeout(timer);
      timer = window.setTimeout(() => page.subscribe(), 250);
    }

    function choose(id: string): void {
      if (id !== chosen) reasons = new Map();
      chosen = id;
      table.chosen = id;
      draw();
    }

    async function explain(path: string): Promise<void> {
      try {
        const x = await get<Explanation>("/explain", { ...(page.room ? { room: page.room } : {}), client: client!, object: chosen, field: path });
        const c = classes.find((k) => k.name === x.class), rule = c?.read[c.fields.indexOf(x.field)];
        reasons.set(path, x.reason === "no_permission" && rule ? `${x.text}: the field has the rule read=${rule}` : x.text);
      } catch (e) {
        reasons.set(path, (e as Error).message);
      }
      draw();
    }

    function rows(o: StateObject, c: Class, fields: Field[], depth: number): HTMLElement[] {
      return fields.flatMap((f) => {
        const name = h("td", { class: "left", style: `padding-left:${8 + 16 * depth}px` }, f.name);
        if (f.index < 0) return [h("tr", { class: "group" }, name, h("td", { colspan: 4 })), ...rows(o, c, f.children, depth + 1)];
        const value = show(o.values[f.index]), key = `${o.id} ${f.path}`;
        const was = seen.get(key);
        if (!was || was.values !== value) seen.set(key, { values: value, changed: was ? performance.now() : -1e9 });
        const flash = performance.now() - seen.get(key)!.changed < 900;
        const copy = o.copy?.[f.index];
        const hidden = o.values[f.index] === null && c.read[f.index] ? `needs role write: read=${c.read[f.index]}` : "";
        const reason = reasons.get(f.path);
        return [
          h("tr", { class: flash ? "flash" : "" }, name, h("td", { class: "left soft" }, c.types[f.index]! + (c.read[f.index] ? `, read=${c.read[f.index]}` : "")), h("td", { class: "left value", title: hidden }, hidden || value),
            ...(client ? [h("td", { class: `left value ${o.copy && copy !== null && show(copy) !== value ? "differs" : ""}` }, o.copy ? show(copy) : "–"), h("td", {}, h("button", { type: "button", click: () => void explain(f.path) }, "why?"))] : [])),
          ...(reason ? [h("tr", { class: "reason" }, h("td", { colspan: 5, class: "left" }, reason))] : []),
        ];
      });
    }

    /** offer lists the owners of objects, whose views the map can show. */
    function offer(): void {
      const owners = [...new Set(objects.map((o) => o.owner).concat(Number(client ?? 0)))].filter((id) => id > 0).sort((a, b) => a - b);
      if (viewer.dataset["owners"] === owners.join()) return;
      viewer.dataset["owners"] = owners.join();
      viewer.replaceChildren(h("option", { value: "" }, "view of no client"), ...owners.map((id) => h("option", { value: id }, `view of client ${id}`)));
      viewer.value = client ?? "";
    }

    function draw(): void {
      const o = objects.find((x) => x.id === chosen);
      offer();
      table.update(objects);
      map.update(classes, objects, chosen, client !== undefined, grids);
      if (!chosen || tree.querySelector("button:active")) return;
      const c = o && classes.find((x) => x.name === o.class);
      if (!o || !c) {
        tree.replaceChildren(h("p", { class: "soft" }, `Object ${chosen} is not among the listed ones: it has ended, or the search leaves it out.`));
        return;
      }
      tree.replaceChildren(
        h("h2", {}, `${o.class} ${o.id}`),
        h("p", { class: "soft" }, o.owner ? h("a", { href: `#clients/client=${o.owner}` }, `owned by client ${o.owner}`) : "without an owner", o.owner && String(o.owner) !== client ? h("span", {}, " (", h("a", { href: `#state/client=${o.owner}&object=${o.id}` }, "its view"), ")") : "", `, weight ${o.weight ?? 1}, changed at tick ${count(o.changed ?? 0)}`,
          client ? `; client ${client} ${o.shown ? `has acknowledged tick ${count(o.acknowledged ?? 0)}` : "does not see it"}` : ""),
        h("table", { class: "fields" }, h("thead", {}, h("tr", {}, ...["field", "type", "server", ...(client ? [`client ${client}`, ""] : [])].map((t) => h("th", { class: "left" }, t)))), h("tbody", {}, ...rows(o, c, fieldTree(c), 0))));
    }
    return {
      topics(): Subscription {
        const all: Subscription = [["topic", "state"]];
        if (kind.value) all.push(["class", kind.value]);
        if (search.value) all.push(["find", search.value]);
        if (client) all.push(["client", client]);
        return all;
      },
      key: (key) => { if (key === "j" || key === "k") table.move(key === "j" ? 1 : -1); return key === "j" || key === "k"; },
      trouble: (_topic, line) => text(head, line),
      end() { map.end(); clearTimeout(timer); },
      on(topic, data) {
        if (topic !== "state") return;
        const s = data as State;
        objects = s.objects;
        grids = s.grids;
        if (seen.size > 20_000) seen.clear();
        text(head, `${count(objects.length + s.more)} objects as of tick ${count(s.tick)}${s.more ? `, of which the first ${objects.length} are shown: choose a class or search` : ""}.`);
        draw();
      },
    };
  },
};
