import { h, text } from "../dom.js";
import { age, bytes, count, ms, percent, rate } from "../format.js";
import { LadderPanel } from "../ladder.js";
import { Plot } from "../plot.js";
import { Table } from "../table.js";
import type { Overview, Quantiles, Room, Rooms, Values } from "../types.js";
import type { Kind } from "../view.js";
import { Rates, sum } from "../values.js";

/** tile is one figure with its name. */
function tile(name: string, hint: string) {
  const value = h("strong"), more = h("small");
  const element = h("div", { class: "tile", title: hint }, h("span", {}, name), value, more);
  return {
    element,
    set(v: string, m = "", kind = "") {
      text(value, v);
      text(more, m);
      element.className = `tile ${kind}`;
    },
  };
}

export const overview: Kind = {
  name: "overview",
  title: "Overview",
  make(root, page) {
    const tiles = {
      rate: tile("rate", "Ticks per second of all rooms together, over the last five seconds."),
      tick: tile("tick p99", "99 of 100 ticks of the last minute took at most this time."),
      late: tile("lateness p99", "99 of 100 ticks of the last minute began at most this long after their deadline."),
      headroom: tile("headroom", "The part of the tick period that 99 of 100 ticks of the last minute left unused."),
      clients: tile("clients", "Clients in all rooms, those included that may come back."),
      overload: tile("overload", "The level of the most overloaded room: normal, halved (fewer snapshots), shedding (objects of low priority wait), refusing (no new clients)."),
      out: tile("sent", "Bytes of datagrams and stream data to clients."),
      in: tile("received", "Bytes of datagrams and stream data from clients."),
      memory: tile("heap", "Live and unswept objects of the Go heap."),
      gc: tile("collector", "CPU time of the garbage collector, of all that the process may use."),
    };
    const windows = h("tbody");
    const ladder = new LadderPanel();
    const facts = h("dl", { class: "facts" });
    const carriers = h("p", { class: "soft" });
    const tickPlot = new Plot("tick duration and lateness, p99 of ten seconds", "ms", ["tick p99", "lateness p99", "budget"], ["accent", "warm", "bad"]);
    const clientPlot = new Plot("clients", "", ["clients"], ["good"]);
    const bytePlot = new Plot("bytes a second", "B", ["sent", "received"], ["accent", "good"]);
    const filter = h("input", { type: "search", placeholder: "filter rooms ( / )", "aria-label": "Filter rooms", input: () => table.update(last) });
    let last: Room[] = [];
    let standard = ""; // name of the default room, which cannot be closed
    const table = new Table<Room>(
      [
        { title: "room", left: true, show: (r) => r.name || "(default)", order: (r) => r.name },
        { title: "kind", left: true, show: (r) => r.kind || "–", order: (r) => r.kind },
        { title: "state", left: true, show: (r) => (r.locked ? `${r.state}, locked` : r.state), order: (r) => r.state, warn: (r) => r.state === "hung" },
        { title: "clients", show: (r) => `${r.clients} / ${r.max}`, order: (r) => r.clients, warn: (r) => r.clients >= r.max },
        { title: "rate", show: (r) => `${rate(r.rate_hz)} Hz`, order: (r) => r.rate_hz },
        { title: "tick p99", hint: "since the room was opened, in ms", show: (r) => ms(r.tick_p99_ns), order: (r) => r.tick_p99_ns, warn: (r) => r.tick_p99_ns * r.rate_hz > 1e9 },
        { title: "late p99", hint: "since the room was opened, in ms", show: (r) => ms(r.late_p99_ns), order: (r) => r.late_p99_ns },
        { title: "overruns", hint: "ticks that took longer than the period", show: (r) => count(r.overruns), order: (r) => r.overruns, warn: (r) => r.overruns > 0 },
        { title: "age", show: (r) => age(r.age_ns), order: (r) => r.age_ns },
        {
          title: "",
          show: (r) => {
            const room = r.name;
            const word = r.locked ? "unlock" : "lock";
            const lock = h("button", { class: "write", type: "button", click: () => void page.act(`/api/rooms/${word}`, { room }) }, word);
            const end = (word: string, question: string, drain: string) => h("button", { class: "write", type: "button", click: () => { if (confirm(question)) void page.act("/rooms/close", { room, drain }); } }, word);
            const ends = [end("drain", `Close the room ${room} in 30 s?`, "30s"), end("close", `Close the room ${room} now? Its ${count(r.clients)} clients lose their connection.`, "0s")];
            return h("span", { class: "actions" }, lock, ...(room === standard ? [] : ends));
          },
        },
      ],
      { key: (r) => r.name, sort: 3, up: false, filter: (r) => `${r.name} ${r.kind} ${r.state}`.includes(filter.value), open: (r) => page.open("ticks", { room: r.name }), empty: "no room has this name" },
    );
    root.append(
      h("section", { class: "tiles" }, ...Object.values(tiles).map((t) => t.element)),
      h("div", { class: "columns" },
        h("div", { class: "stack" },
          h("section", {}, h("h2", {}, "Ticks of all rooms"),
            h("div", { class: "scroll" }, h("table", { class: "windows" },
              h("thead", {}, h("tr", {}, ...["last", "ticks", "tick p50", "p95", "p99", "max", "late p50", "p95", "p99", "max", "over", "dropped"].map((t) => h("th", {}, t)))), windows)),
            h("p", { class: "soft" }, "Times in ms, rounded up by at most 4.4 %; max is exact.")),
          ladder.element),
        h("section", {}, h("h2", {}, "Server"), facts, carriers)),
      h("div", { class: "columns three" }, tickPlot.element, clientPlot.element, bytePlot.element),
      h("section", {}, h("h2", {}, "Rooms ", filter), table.element),
    );
    const rates = new Rates();
    let gc: { at: number; gc: number; cpu: number } | undefined;
    const window = (name: string, ticks: number, tick: Quantiles, late: Quantiles, over: number, dropped: number) =>
      h("tr", {}, ...[name, count(ticks), ms(tick.p50_ns), ms(tick.p95_ns), ms(tick.p99_ns), ms(tick.max_ns), ms(late.p50_ns), ms(late.p95_ns), ms(late.p99_ns), ms(late.max_ns), count(over), count(dropped)].map((t) => h("td", {}, t)));
    return {
      topics: () => [["topic", "metrics"], ["prefix", "clients"], ["prefix", "transport_clients"], ["prefix", "transport_bytes"], ["prefix", "joins"], ["prefix", "record_clients"]],
      key: (key) => { if (key === "j" || key === "k") table.move(key === "j" ? 1 : -1); return key === "j" || key === "k"; },
      end: () => [tickPlot, clientPlot, bytePlot].forEach((p) => p.end()),
      on(topic, data) {
        if (topic === "rooms") table.update((last = (data as Rooms).rooms));
        if (topic === "metrics") {
          const v = data as Values;
          const of = rates.take(v);
          const clients = sum(v["clients"]);
          tiles.clients.set(count(clients), `${count(sum(v["clients_dropped"]))} lost their connection`);
          const sent = of("transport_bytes_total", "out"), received = of("transport_bytes_total", "in");
          tiles.out.set(`${bytes(sent)}/s`, clients > 0 ? `${bytes(sent / clients)}/s a client` : "");
          tiles.in.set(`${bytes(received)}/s`, clients > 0 ? `${bytes(received / clients)}/s a client` : "");
          clientPlot.add([clients]);
          if (rates.ready) bytePlot.add([sent, received]);
          const list = (name: string) => (v[name] ?? []).filter((j) => j.value > 0).map((j) => `${count(j.value)} over ${j.labels![0]}`).join(", ") || "none";
          text(carriers, `Connected: ${list("transport_clients")}. Joined since the start: ${list("joins_total")}. Datagrams of ${count(sum(v["record_clients"]))} clients travel beside QUIC.`);
        }
        if (topic !== "overview") return;
        const o = data as Overview;
        standard = o.room;
        const minute = o.windows[1]!;
        const used = minute.tick.p99_ns / o.budget_ns;
        tiles.rate.set(`${rate(o.rate_hz)} Hz`, o.rooms > 1 ? `${o.rooms} rooms` : `of ${rate(1e9 / o.budget_ns)} Hz`);
        tiles.tick.set(`${ms(minute.tick.p99_ns)} ms`, `of ${ms(o.budget_ns)} ms`, used > 1 ? "bad" : used > 0.5 ? "warm" : "good");
        tiles.late.set(`${ms(minute.lateness.p99_ns)} ms`, `max ${ms(minute.lateness.max_ns)} ms`);
        tiles.headroom.set(percent(Math.max(0, 1 - used)), `${count(minute.overruns)} of ${count(minute.ticks)} over`, used > 1 ? "bad" : used > 0.5 ? "warm" : "good");
        tiles.overload.set(o.overload, o.ready || o.note || "", o.overload === "normal" ? "good" : "bad");
        ladder.update(o.ladder, o.rooms);
        tiles.memory.set(bytes(o.memory.heap_bytes), `${bytes(o.memory.total_bytes)} mapped`);
        const now = { at: Date.now(), gc: o.memory.gc_cpu_seconds, cpu: o.memory.cpu_seconds };
        if (gc && now.cpu > gc.cpu) tiles.gc.set(percent((now.gc - gc.gc) / (now.cpu - gc.cpu)), `${count(o.memory.gc_cycles)} cycles`);
        else tiles.gc.set("–", `${count(o.memory.gc_cycles)} cycles`);
        gc = now;
        windows.replaceChildren(...o.windows.map((w, i) => window(["10 s", "1 min", "5 min"][i]!, w.ticks, w.tick, w.lateness, w.overruns, w.dropped)));
        const state = o.ready ? `refuses clients: ${o.ready}` : o.note || "admits clients";
        facts.replaceChildren(...[
          ["game", o.game], ["netloop", o.version], ["up for", age(o.uptime_seconds * 1e9)], ["state", /quarantine/.test(state) ? h("a", { href: "#loop" }, state) : state],
          ["goroutines", count(o.memory.goroutines)], ["actions", o.write ? "permitted" : "need a token of role write"],
        ].flatMap(([k, v]) => [h("dt", {}, k!), h("dd", {}, v!)]));
        tickPlot.add([o.windows[0]!.tick.p99_ns / 1e6, o.windows[0]!.lateness.p99_ns / 1e6, o.budget_ns / 1e6]);
      },
    };
  },
};
