import { h, text } from "../dom.js";
import { count, percent, rate, time } from "../format.js";
import { Table } from "../table.js";
import { Rates } from "../values.js";
import type { Payloads, Values, Waits } from "../types.js";
import type { Kind } from "../view.js";

/** Row is a method at a stage. */
interface Row {
  method: string;
  stage: string;
  perSecond: number;
  ran: number;
  others: [string, number, number][]; // outcome, total, per second
}

export const rpcs: Kind = {
  name: "rpcs",
  title: "RPCs",
  make(root, page) {
    let watched = page.parameter("method") ?? "";
    const search = h("input", { type: "search", placeholder: "method ( / )", "aria-label": "Find a method", input: () => table.update(all) });
    const waiting = h("dl", { class: "facts three" });
    let all: Row[] = [];
    let waits: Waits[] = []; // the answers of the last ten seconds
    const newest = (r: Row) => waits.at(-1)?.methods.find((m) => m.method === r.method);
    const mean = (r: Row) => {
      const now = newest(r), was = waits.length > 1 ? waits[0]!.methods.find((m) => m.method === r.method) : undefined;
      const n = (now?.count ?? 0) - (was?.count ?? 0);
      return n > 0 ? (now!.sum_ns - (was?.sum_ns ?? 0)) / n : -1;
    };
    const dropped = (r: Row) => r.others.reduce((n, [, , per]) => n + per, 0);
    const table = new Table<Row>(
      [
        { title: "method", left: true, show: (r) => r.method, order: (r) => r.method },
        { title: "stage", left: true, show: (r) => r.stage, order: (r) => r.stage },
        { title: "ran/s", hint: "over the last minute", show: (r) => rate(r.perSecond), order: (r) => r.perSecond },
        { title: "ran", show: (r) => count(r.ran), order: (r) => r.ran },
        { title: "waits", hint: "average time from arrival to handler over ten seconds, of all stages, in the chosen room", show: (r) => (mean(r) < 0 ? "–" : time(mean(r))), order: mean },
        { title: "longest wait", hint: "since this view was opened, in the chosen room", show: (r) => (newest(r) ? time(newest(r)!.max_ns) : "–"), order: (r) => newest(r)?.max_ns ?? -1 },
        { title: "did not run/s", show: (r) => rate(dropped(r)), order: dropped, warn: (r) => dropped(r) > 0 },
        { title: "other outcomes", left: true, show: (r) => r.others.filter(([, n]) => n > 0).map(([o, n]) => `${o} ${count(n)}`).join(", ") || "–" },
      ],
      { key: (r) => `${r.method} ${r.stage}`, open: (r) => watch(r.method), sort: 2, up: false, filter: (r) => `${r.method} ${r.stage}`.toLowerCase().includes(search.value.toLowerCase()), empty: "no message has reached a queue yet" },
    );
    const card = h("section", { class: "card", hidden: true }), title = h("h2"), trouble = h("p", { class: "soft", role: "status" });
    let last: Payloads | undefined;
    const payloads = new Table<Payloads["payloads"][number]>(
      [
        { title: "tick", show: (p) => count(p.tick) },
        { title: "client", left: true, show: (p) => (p.client ? h("a", { href: `#clients/client=${p.client}` }, `client ${p.client}`) : "to clients") },
        { title: "stage", left: true, show: (p) => p.stage || "default" },
        { title: "outcome", left: true, show: (p) => p.outcome, warn: (p) => !["ran", "sent", "accepted", "late"].includes(p.outcome) },
        { title: "message", left: true, show: (p) => (p.cut ? `${String(p.value)}… and ${count(p.cut)} bytes more` : JSON.stringify(p.value)) },
      ],
      { key: (p) => String(last!.payloads.length - last!.payloads.indexOf(p)), empty: "none since this is shown: messages are kept only while somebody looks" },
    );
    payloads.element.classList.add("payloads");
    card.append(h("div", { class: "bar" }, title, h("span", { class: "grow" }),
      h("button", { type: "button", click: () => page.open("playground", { method: watched }) }, "send one"),
      h("button", { type: "button", title: "esc", click: () => page.open("rpcs") }, "close")), trouble, payloads.element);
    watch(watched);

    function watch(method: string): void {
      watched = method;
      card.hidden = method === "";
      if (method === "") return;
      text(title, `The last messages of ${method} in this room`);
      text(trouble, "");
      payloads.update([]);
      page.note({ method });
      page.subscribe();
    }

    root.append(card,
      h("section", {}, h("h2", {}, "Queues of all rooms"), waiting),
      h("section", {}, h("div", { class: "bar" }, h("h2", {}, "Messages by method and stage"), search), table.element));
    const rates = new Rates(60);
    return {
      topics: () => [["topic", "metrics"], ["prefix", "rpc"], ["prefix", "queue_depth"], ["prefix", "inputs_total"], ["prefix", "queue_drops"], ["topic", "waits"],
        ...(watched ? [["topic", "payloads"], ["method", watched]] as [string, string][] : [])],
      trouble: (topic, line) => {
        if (topic !== "payloads") return page.say(line, true);
        text(trouble, line);
        payloads.element.hidden = true;
      },
      key: (key) => { if (key === "j" || key === "k") table.move(key === "j" ? 1 : -1); return key === "j" || key === "k"; },
      on(topic, data) {
        if (topic === "payloads") {
          last = data as Payloads;
          if (last.method !== watched) return;
          text(trouble, "");
          payloads.element.hidden = false;
          payloads.update(last.payloads);
        }
        if (topic === "waits") {
          const w = data as Waits, last = waits.at(-1);
          if (last && w.seconds < last.seconds) waits = []; // Counting began anew.
          waits = [...waits, w].slice(-10);
          table.update(all);
        }
        if (topic !== "metrics") return;
        const v = data as Values;
        const of = rates.take(v);
        const rows = new Map<string, Row>();
        for (const s of v["rpcs_total"] ?? []) {
          const [method, stage, outcome] = s.labels as [string, string, string];
          const r = rows.get(`${method}\n${stage}`) ?? { method, stage, perSecond: 0, ran: 0, others: [] };
          rows.set(`${method}\n${stage}`, r);
          const per = of("rpcs_total", method, stage, outcome);
          if (outcome === "ran") [r.ran, r.perSecond] = [s.value, per];
          else if (outcome !== "accepted") r.others.push([outcome, s.value, per]);
        }
        all = [...rows.values()];
        table.update(all);
        const inputs = (v["inputs_total"] ?? []).map((s) => [s.labels![0]!, s.value] as const);
        const total = inputs.filter(([o]) => o === "applied" || o === "missed").reduce((n, [, x]) => n + x, 0);
        const missed = inputs.find(([o]) => o === "missed")?.[1] ?? 0;
        const drops = (v["queue_drops_total"] ?? []).filter((s) => s.value > 0).map((s) => `${s.labels!.join(" ")}: ${count(s.value)}`);
        const facts: [string, string][] = [
          ["waiting", (v["queue_depth"] ?? []).filter((s) => s.value > 0).map((s) => `${s.labels![0]}: ${count(s.value)}`).join(", ") || "none"],
          ["waited for a later tick", `${rate(of("rpcs_waited_total"))} a second`],
          ["limits against clients", `${rate(of("rpc_limits_total"))} a second`],
          ["inputs missed", total ? percent(missed / total) : "no inputs"],
          ["dropped", drops.join(", ") || "none"],
        ];
        waiting.replaceChildren(...facts.flatMap(([k, x]) => [h("dt", {}, k), h("dd", {}, x)]));
      },
    };
  },
};
