import { h, text } from "../dom.js";
import { age, bytes, count, ms, time } from "../format.js";
import { Plot } from "../plot.js";
import { Share } from "../share.js";
import { Table } from "../table.js";
import type { Client, Clients, Traffic } from "../types.js";
import type { Kind } from "../view.js";

/** The part of missed inputs that is marked. */
const manyMissed = 0.02;
/** The share of lost packets, and the age of the newest acknowledgement, that are marked. */
const manyLost = 0.05, oldAck = 1e9;

const loss = (c: Client): string => (c.loss === null ? "–" : `${(c.loss * 100).toFixed(1)} %`);
const acked = (c: Client): string => (c.ack_age_ns === null ? "–" : time(c.ack_age_ns));

/** queued names the messages that wait in both directions. */
function queued(c: Client): string {
  const to = [c.queued_bytes ? bytes(c.queued_bytes) : "", c.queued_messages ? String(c.queued_messages) : ""].filter(Boolean).join(" + ");
  return [to && `${to} to it`, c.waiting ? `${count(c.waiting)} from it` : ""].filter(Boolean).join(", ") || "–";
}

export const clients: Kind = {
  name: "clients",
  title: "Clients",
  make(root, page) {
    let followed = Number(page.parameter("client") ?? 0);
    let all: Client[] = [];
    const before = new Map<number, { at: number; bytes: number; sent: number; received: number; snapshots: number; deferred: number; missed: number; inputs: number }>();
    const speeds = new Map<number, { bytes: number; sent: number; received: number; snapshots: number; deferred: number; missed: number }>();
    const search = h("input", { type: "search", placeholder: "subject, address, transport ( / )", "aria-label": "Filter clients", input: () => table.update(all) });
    const head = h("p", { class: "soft" });
    const of = (c: Client) => speeds.get(c.client) ?? { bytes: 0, sent: 0, received: 0, snapshots: 0, deferred: 0, missed: 0 };
    const table = new Table<Client>(
      [
        { title: "client", show: (c) => String(c.client), order: (c) => c.client },
        { title: "subject", left: true, show: (c) => c.subject || "–", order: (c) => c.subject },
        { title: "address", left: true, show: (c) => c.addr, order: (c) => c.addr },
        { title: "transport", left: true, show: (c) => (c.simulated ? h("span", { title: `an operator has put the network ${c.simulated} around the connection` }, c.transport, h("b", { class: "alarm" }, " simulated")) : c.transport), order: (c) => c.transport + c.simulated },
        { title: "state", left: true, show: (c) => (c.waits ? c.waits : c.state), order: (c) => c.state + c.waits, warn: (c) => c.state !== "connected" || c.waits !== "" },
        { title: "RTT ms", show: (c) => ms(c.rtt_ns), order: (c) => c.rtt_ns, warn: (c) => c.rtt_ns > 250e6 },
        { title: "loss", hint: "lost packets among the last 50 or more with snapshots", show: loss, order: (c) => c.loss ?? -1, warn: (c) => (c.loss ?? 0) > manyLost },
        { title: "ack age", hint: "since the newest acknowledgement of a snapshot", show: acked, order: (c) => c.ack_age_ns ?? -1, warn: (c) => (c.ack_age_ns ?? 0) > oldAck },
        { title: "in flight", hint: "snapshots under way, and how many the link takes", show: (c) => `${c.in_flight} / ${c.window}`, order: (c) => c.in_flight },
        { title: "silent", hint: "game time since its last data", show: (c) => time(c.silent_ns), order: (c) => c.silent_ns, warn: (c) => c.silent_ns > 1e9 },
        { title: "snapshots/s", show: (c) => of(c).snapshots.toFixed(0), order: (c) => of(c).snapshots },
        { title: "deferred/s", hint: "snapshots that were due and could not leave", show: (c) => of(c).deferred.toFixed(0), order: (c) => of(c).deferred, warn: (c) => of(c).deferred > of(c).snapshots },
        { title: "state/s", hint: "bytes of snapshots a second", show: (c) => bytes(of(c).bytes), order: (c) => of(c).bytes },
        { title: "sent/s", hint: "bytes of all datagrams and of the stream a second", show: (c) => bytes(of(c).sent), order: (c) => of(c).sent },
        { title: "received/s", hint: "bytes of all datagrams and of the stream a second", show: (c) => bytes(of(c).received), order: (c) => of(c).received },
        { title: "waiting", hint: "messages: to the client in bytes (reliable) and number (unreliable); from it", show: queued, order: (c) => c.queued_bytes + c.queued_messages + c.waiting, warn: (c) => c.queued_bytes > 64 << 10 },
        { title: "missed", hint: "fixed steps without an input, of the last second", show: (c) => (c.inputs + c.inputs_missed > 0 ? of(c).missed.toFixed(0) : "–"), order: (c) => of(c).missed, warn: (c) => of(c).missed > 60 * manyMissed },
        { title: "mispredicted", hint: "wrong predictions of objects since its join, as the client's own library reports them, once a second", show: (c) => (c.inputs || c.mispredicted ? count(c.mispredicted) : "–"), order: (c) => c.mispredicted },
        { title: "margin ms", hint: "95 of 100 inputs were at least this early", show: (c) => (c.inputs ? ms(c.input_margin_ns) : "–"), order: (c) => c.input_margin_ns, warn: (c) => c.inputs > 0 && c.input_margin_ns < 0 },
        { title: "joined", show: (c) => age(c.age_ns), order: (c) => c.age_ns },
        { title: "", show: (c) => { const client = c.client; return h("button", { class: "write", type: "button", click: () => { if (confirm(`Remove client ${client}?`)) void page.act("/api/clients/kick", { client }); } }, "kick"); } },
      ],
      { key: (c) => String(c.client), sort: 0, filter: (c) => `${c.client} ${c.subject} ${c.addr} ${c.transport} ${c.state} ${c.waits}`.toLowerCase().includes(search.value.toLowerCase()), open: (c) => { follow(c.client); page.subscribe(); }, empty: "no client is in the room" },
    );
    const card = h("section", { class: "card", hidden: true });
    const title = h("h2"), facts = h("dl", { class: "facts three" });
    const network = h("input", { type: "text", class: "network", placeholder: "rtt=150ms,jitter=20ms,loss=5%", title: "also delay, dup, reorder, rate and buffer, and up. or down. before each", "aria-label": "Network of the client", spellcheck: false });
    const simulate = (network: string) => void page.act("/api/clients/simulate", { client: followed, network });
    const emulation = h("form", { class: "bar write", submit: (e: Event) => { e.preventDefault(); simulate(network.value); } },
      h("span", { class: "soft" }, "emulated network"), network, h("button", { type: "submit" }, "simulate"), h("button", { type: "button", click: () => { network.value = ""; simulate(""); } }, "remove"));
    let plots: Plot[] = [];
    let share: Share | undefined;
    root.append(h("div", { class: "stack" }, card, h("section", {}, h("div", { class: "bar" }, h("h2", {}, "Clients of the room"), search), head, table.element)));
    if (followed) follow(followed);

    function follow(client: number): void {
      if (client !== followed) network.value = "";
      followed = client;
      table.chosen = String(client);
      page.note({ client });
      plots.forEach((p) => p.end());
      plots = [new Plot("round trip", "ms", ["RTT"], ["accent"]), new Plot("state a second", "B", ["bytes"], ["good"]), new Plot("snapshots a second", "", ["sent", "deferred"], ["accent", "warm"])];
      share?.end();
      share = new Share();
      card.hidden = false;
      card.replaceChildren(h("div", { class: "bar" }, title, h("span", { class: "grow" }),
        h("button", { type: "button", click: () => page.open("state", { client }) }, "its state"),
        h("button", { type: "button", click: () => page.open("log", { find: `client=${client}` }) }, "its log"),
        h("button", { type: "button", title: "esc", click: () => page.open("clients") }, "close")), facts, emulation, h("div", { class: "columns three" }, ...plots.map((p) => p.element)), share.element);
      show();
    }

    function show(): void {
      const c = all.find((x) => x.client === followed);
      if (!followed) return;
      text(title, c ? `Client ${c.client}${c.subject ? `, ${c.subject}` : ""}` : `Client ${followed} is not in the room`);
      if (!c) return;
      const rows: [string, string][] = [
        ["address", c.addr], ["transport", c.simulated ? `${c.transport}, simulated: ${c.simulated}` : c.transport], ["state", c.waits ? `${c.state}, no snapshot: ${c.waits}` : c.state],
        ["snapshots", count(c.snapshots)], ["of them deferred first", `${count(c.slot_busy)} slot_busy, ${count(c.window_closed)} window_closed`], ["bytes of state", bytes(c.bytes)],
        ["sent, received", `${bytes(c.sent_bytes)}, ${bytes(c.received_bytes)}`], ["loss, newest ack", `${loss(c)}, ${acked(c)}`], ["waiting messages", queued(c)],
        ["inputs", count(c.inputs)], ["missed, late", `${count(c.inputs_missed)}, ${count(c.inputs_late)}`], ["mispredicted", `${count(c.mispredicted)}, by its own report`], ["looks back", `${time(c.rewind_ns)}, ${count(c.views_clamped)} views clamped`],
      ];
      facts.replaceChildren(...rows.flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)]));
    }

    return {
      topics: () => [["topic", "clients"], ...(followed ? [["topic", "traffic"], ["client", String(followed)]] as [string, string][] : [])],
      trouble: (topic, line) => { if (topic === "traffic") share?.trouble(line); else page.say(line, true); },
      key: (key) => { if (key === "j" || key === "k") table.move(key === "j" ? 1 : -1); return key === "j" || key === "k"; },
      end: () => { plots.forEach((p) => p.end()); share?.end(); },
      on(topic, data) {
        if (topic === "traffic") share?.take(data as Traffic);
        if (topic !== "clients") return;
        const r = data as Clients, at = performance.now();
        all = r.clients;
        for (const c of all) {
          const now = { at, bytes: c.bytes, sent: c.sent_bytes, received: c.received_bytes, snapshots: c.snapshots, deferred: c.slot_busy + c.window_closed, missed: c.inputs_missed, inputs: c.inputs };
          const was = before.get(c.client);
          if (was) {
            const s = (at - was.at) / 1000;
            const a = (of: "bytes" | "sent" | "received" | "snapshots" | "deferred" | "missed") => Math.max(now[of] - was[of], 0) / s;
            speeds.set(c.client, { bytes: a("bytes"), sent: a("sent"), received: a("received"), snapshots: a("snapshots"), deferred: a("deferred"), missed: a("missed") });
          }
          before.set(c.client, now);
        }
        const n = all.length + r.more, few = all.filter((c) => c.state === "connected" && of(c).deferred > of(c).snapshots);
        head.replaceChildren(
          `${count(n)} ${n === 1 ? "client" : "clients"} at tick ${count(r.tick)}${r.more ? `, of which the first ${count(all.length)} are listed` : ""}. Click one to follow it.`,
          ...(few.length ? [h("b", { class: "alarm" }, few.length === 1 ? " One gets few snapshots: " : ` ${count(few.length)} get few snapshots: `), ...few.slice(0, 3).flatMap((c, i) => [
            i ? ", " : "", h("a", { href: `#clients/client=${c.client}` }, `client ${c.client}`), c.waits ? ` (${c.waits})` : ""]), few.length > 3 ? ", …" : ""] : []));
        table.update(all);
        const c = all.find((x) => x.client === followed);
        if (c && plots.length) {
          const s = of(c);
          plots[0]!.add([c.rtt_ns / 1e6]);
          if (!speeds.has(c.client)) return show(); // A rate needs two answers.
          plots[1]!.add([s.bytes]);
          plots[2]!.add([s.snapshots, s.deferred]);
        }
        show();
      },
    };
  },
};
