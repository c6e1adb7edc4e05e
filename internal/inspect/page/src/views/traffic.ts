import { h, text } from "../dom.js";
import { bytes, count, digits, percent, rate } from "../format.js";
import { Table } from "../table.js";
import { Treemap, type Leaf } from "../treemap.js";
import { Rates } from "../values.js";
import type { Cost, Costs, Values } from "../types.js";
import type { Kind } from "../view.js";

interface Row {
  class: string;
  field: string;
  perSecond: number;
  share: number;
}

export const traffic: Kind = {
  name: "traffic",
  title: "Traffic",
  make(root, page) {
    const head = h("p", { class: "soft" });
    const map = new Treemap((l) => `${l.group}${l.name ? `.${l.name}` : ""}: ${bytes(l.size)} a second`);
    const reasons = h("dl", { class: "facts three" });
    const search = h("input", { type: "search", placeholder: "class or field ( / )", "aria-label": "Find a field", input: () => table.update(all) });
    let all: Row[] = [];
    const table = new Table<Row>(
      [
        { title: "class", left: true, show: (r) => r.class, order: (r) => r.class },
        { title: "field", left: true, show: (r) => r.field || "(heads of records)", order: (r) => r.field },
        { title: "bytes/s", show: (r) => bytes(r.perSecond), order: (r) => r.perSecond },
        { title: "share", show: (r) => percent(r.share), order: (r) => r.share },
      ],
      { key: (r) => `${r.class}.${r.field}`, sort: 2, up: false, filter: (r) => `${r.class}.${r.field}`.toLowerCase().includes(search.value.toLowerCase()), empty: "no snapshot has been sent yet" },
    );
    let costs: Costs = { tick: 0, seconds: 0, bytes: 0, objects: [] };
    const counted = h("p", { class: "soft" });
    const perSecond = (n: number) => (costs.seconds > 0 ? n / costs.seconds : 0);
    const dearest = new Table<Cost>(
      [
        { title: "object", left: true, show: (o) => h("a", { href: `#state/find=${o.id}&object=${o.id}` }, o.id) },
        { title: "class", left: true, show: (o) => o.class },
        { title: "owner", show: (o) => (o.owner ? h("a", { href: `#clients/client=${o.owner}` }, String(o.owner)) : "–") },
        { title: "bytes/s", show: (o) => bytes(perSecond(o.bytes)) },
        { title: "share", hint: "of the bytes of all objects", show: (o) => percent(o.bytes / costs.bytes) },
        { title: "records/s", hint: "of all clients together", show: (o) => rate(perSecond(o.records)) },
        { title: "B/record", show: (o) => digits(o.bytes / o.records) },
        { title: "full", hint: "records with all fields, since this view was opened: for new clients, and for those that see the object anew", show: (o) => count(o.fulls) },
      ],
      { key: (o) => o.id, open: (o) => page.open("state", { find: o.id, object: o.id }), empty: "no record has been sent since this view was opened" },
    );
    dearest.element.classList.add("dearest");
    root.append(
      h("section", {}, h("h2", {}, "Bytes of state by class and field, over the last minute"), head, map.element),
      h("div", { class: "columns" },
        h("section", {}, h("div", { class: "bar" }, h("h2", {}, "Fields"), search), table.element),
        h("div", { class: "stack" },
          h("section", {}, h("h2", {}, "The objects that cost most"), counted, dearest.element),
          h("section", {}, h("h2", {}, "Snapshots and full states"), reasons))));
    const rates = new Rates(60);
    return {
      topics: () => [["topic", "metrics"], ["prefix", "replication"], ["prefix", "snapshot"], ["prefix", "full_states"], ["prefix", "transport"], ["prefix", "visibility"], ["topic", "costs"]],
      key: (key) => { if (key === "j" || key === "k") table.move(key === "j" ? 1 : -1); return key === "j" || key === "k"; },
      end: () => map.end(),
      on(topic, data) {
        if (topic === "costs") {
          costs = data as Costs;
          text(counted, costs.seconds > 0 ? `In ${page.room ? `the room ${page.room}` : "the default room"}, over the last ${Math.round(costs.seconds)} s: ${bytes(perSecond(costs.bytes))} a second in records. Counted while this view is open.` : "Counting has begun.");
          dearest.update(costs.objects);
        }
        if (topic !== "metrics") return;
        const v = data as Values;
        const of = rates.take(v);
        const total = of("replication_bytes_total");
        const leaves: Leaf[] = [];
        all = [];
        for (const c of v["replication_bytes_total"] ?? []) {
          const name = c.labels![0]!, size = of("replication_bytes_total", name);
          const fields = (v["replication_field_bytes_total"] ?? []).filter((f) => f.labels![0] === name).map((f) => ({ field: f.labels![1]!, per: of("replication_field_bytes_total", name, f.labels![1]!) }));
          const known = fields.reduce((n, f) => n + f.per, 0);
          const scale = known > size ? size / known : 1; // The fields are estimated from samples.
          for (const f of fields) {
            all.push({ class: name, field: f.field, perSecond: f.per * scale, share: total ? (f.per * scale) / total : 0 });
            leaves.push({ group: name, name: f.field, size: f.per * scale });
          }
          const rest = Math.max(size - known * scale, 0);
          all.push({ class: name, field: "", perSecond: rest, share: total ? rest / total : 0 });
          leaves.push({ group: name, name: "", size: rest });
        }
        table.update(all);
        map.element.hidden = total === 0;
        map.update(leaves);
        text(head, `${bytes(total)} a second of state in ${rate(of("snapshot_records_total"))} records; ${bytes(of("transport_bytes_total", "out"))} a second in all, ${rate(of("transport_packets_total", "out"))} datagrams.`);
        const list = (name: string) => (v[name] ?? []).filter((s) => s.value > 0).map((s) => `${(s.labels ?? []).join(" ")} ${count(s.value)}`).join(", ") || "none";
        const facts: [string, string][] = [["full states, by reason", list("full_states_total")], ["deferred snapshots", list("snapshots_deferred_total")], ["records that waited", list("snapshot_records_waited_total")], ["visibility", list("visibility_changes_total")]];
        reasons.replaceChildren(...facts.flatMap(([k, x]) => [h("dt", {}, k), h("dd", {}, x)]));
      },
    };
  },
};
