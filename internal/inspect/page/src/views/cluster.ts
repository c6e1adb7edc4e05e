import { h, text } from "../dom.js";
import { age, count, time } from "../format.js";
import { Table } from "../table.js";
import type { Cluster, ClusterRoom, ClusterServer, Move } from "../types.js";
import type { Kind } from "../view.js";

/** word is a state in words and a color. */
const word = (color: string, line: string, title = "") => h("span", { class: color, title: title || undefined }, line);

/** states are the states of a server, as netloop_cluster_servers counts them. */
function states(s: ClusterServer): HTMLElement {
  const alive = s.suspect ? word("bad", "suspect", "three heartbeats are missing") : word("good", "alive");
  return h("span", {}, alive, s.draining ? word("warm", " draining", "it takes no new room") : "");
}

/** roomColors are the colors of the states of rooms. */
const roomColors: Record<string, string> = { open: "good", closing: "warm", hung: "bad", unknown: "bad" };
const roomHints: Record<string, string> = {
  unlisted: "private, locked or closing: its server does not tell which",
  unknown: "its server is suspect",
  hung: "a tick does not end",
};

/** moveColors are the colors of the states of moves; others are on the way. */
const moveColors: Record<string, string> = { arrived: "good", returned: "warm", failed: "bad", expired: "bad", "taken over": "warm" };
const moveHints: Record<string, string> = {
  moving: "the room runs no tick until it has moved",
  reserved: "the client has a ticket for a seat of the other server",
  left: "its connection has ended, its seat is kept until the other server confirms the arrival",
  returned: "it continues where it was",
  failed: "it has not left",
  expired: "no server has confirmed its arrival: its seat is free",
  "taken over": "another program of the player has its place",
};

/** full reports whether a part of a limit is used up. */
const full = (n: number, max: number) => n >= max;

export const cluster: Kind = {
  name: "cluster",
  title: "Cluster",
  make(root, page) {
    let last: Cluster | undefined;
    let now = 0;
    let find = ""; // the filter that the server applies
    let asked = 0;
    const state = h("p", { role: "status" });
    const servers = new Table<ClusterServer>(
      [
        { title: "server", left: true, show: (s) => h("span", { title: s.id }, s.id, s.own ? h("small", { class: "soft" }, " this one") : ""), order: (s) => s.id },
        { title: "state", left: true, show: states, order: (s) => `${s.suspect} ${s.draining}` },
        { title: "rooms", show: (s) => `${count(s.rooms)} / ${count(s.max_rooms)}`, order: (s) => s.rooms, warn: (s) => full(s.rooms, s.max_rooms) },
        { title: "clients", show: (s) => `${count(s.clients)} / ${count(s.max_clients)}`, order: (s) => s.clients, warn: (s) => full(s.clients, s.max_clients) },
        { title: "overload", hint: "the level of its most overloaded room", left: true, show: (s) => word(s.overload === "normal" ? "good" : "bad", s.overload), order: (s) => s.overload },
        { title: "region", left: true, show: (s) => s.region || "–", order: (s) => s.region },
        { title: "zone", left: true, show: (s) => s.zone || "–", order: (s) => s.zone },
        { title: "schema", hint: "a server opens rooms on servers with its own schema only", left: true, show: (s) => {
          const own = last?.servers.find((x) => x.own)?.schema ?? s.schema;
          return word(s.schema === own ? "" : "warm", s.schema.slice(0, 8), s.schema === own ? s.schema : `${s.schema}: another schema than that of this server`);
        }, order: (s) => s.schema },
        { title: "addresses", left: true, show: (s) => h("ul", { class: "addresses" }, ...s.addresses.map((a) => h("li", {}, h("small", { class: "soft" }, `${a.carrier} `), a.addr))) },
      ],
      { key: (s) => s.id, sort: 0, up: true, open: (s) => { filter.value = filter.value === s.id ? "" : s.id; typed(); }, empty: "no server is known" },
    );
    const matches = (r: ClusterRoom) => [r.name, r.kind, r.server].some((x) => x.includes(filter.value));
    // Only a part of many rooms is sent: then the server applies the filter.
    const typed = () => {
      rooms.update(last?.rooms ?? []);
      if (find === "" && (!last || last.total === last.rooms.length)) return;
      find = filter.value;
      clearTimeout(asked);
      asked = window.setTimeout(() => page.subscribe(), 300);
    };
    const filter = h("input", { type: "search", placeholder: "name, kind or server ( / )", "aria-label": "Filter rooms", input: typed });
    const more = h("p", { class: "soft" });
    const rooms = new Table<ClusterRoom>(
      [
        { title: "room", left: true, show: (r) => h("span", { title: r.name }, r.name), order: (r) => r.name },
        { title: "kind", left: true, show: (r) => r.kind || "–", order: (r) => r.kind },
        { title: "state", left: true, show: (r) => word(roomColors[r.state] ?? "", r.locked ? `${r.state}, locked` : r.state, roomHints[r.state]), order: (r) => r.state },
        { title: "players", hint: "taken and reserved seats", show: (r) => `${r.players} / ${r.max}`, order: (r) => r.players, warn: (r) => full(r.players, r.max) },
        { title: "server", left: true, show: (r) => h("span", { title: r.server }, r.own ? "this one" : r.server), order: (r) => r.server },
      ],
      {
        key: (r) => `${r.server}/${r.name}`, sort: 3, up: false, filter: matches, empty: "no room",
        open: (r) => (r.own ? page.open("ticks", { room: r.name }) : page.say(`the room ${r.name} is on server ${r.server}: its inspector has the ticks`)),
      },
    );
    const end = (server: string, room: string, own: boolean) => h("span", { title: `${room || "(default)"} on server ${server}` }, room || "(default)", h("small", { class: "soft" }, own ? " here" : ` on ${server || "another server"}`));
    const moves = new Table<Move>(
      [
        { title: "began", left: true, show: (m) => `${age(Math.max(0, now - Date.parse(m.time)) * 1e6)} ago`, order: (m) => Date.parse(m.time) },
        { title: "client", left: true, show: (m) => (!m.client ? "the room" : m.out ? h("a", { href: `#clients/${new URLSearchParams({ room: m.from_room, client: String(m.client) })}` }, `client ${m.client}`) : `client ${m.client}`), order: (m) => m.client },
        { title: "state", left: true, show: (m) => word(moveColors[m.state] ?? "warm", m.state, moveHints[m.state]), order: (m) => m.state },
        { title: "took", hint: "until its newest state", show: (m) => (m.took_ns ? time(m.took_ns) : "–"), order: (m) => m.took_ns },
        { title: "from", left: true, show: (m) => end(m.from_server, m.from_room, m.out), order: (m) => m.from_room },
        { title: "to", left: true, show: (m) => end(m.to_server, m.to_room, !m.out), order: (m) => m.to_room },
        { title: "", left: true, show: (m) => h("span", { title: m.text || undefined }, m.text) },
      ],
      { key: (m) => `${m.time} ${m.out} ${m.from_server} ${m.from_room} ${m.client}`, sort: 0, up: false, empty: "no client of this server has moved to or from another one" },
    );
    const all = h("div", { class: "stack", hidden: true },
      h("section", {}, h("h2", {}, "Servers"), servers.element),
      h("section", {}, h("h2", {}, "Rooms of all servers ", filter), more, rooms.element),
      h("section", {}, h("h2", {}, "Moves to and from this server"), moves.element));
    root.append(h("section", {}, state), all);
    return {
      topics: () => [["topic", "cluster"], ...(find ? [["find", find]] as [string, string][] : [])],
      key: (key) => { if (key === "j" || key === "k") rooms.move(key === "j" ? 1 : -1); return key === "j" || key === "k"; },
      end: () => clearTimeout(asked),
      on(topic, data) {
        if (topic !== "cluster") return;
        const c = (last = data as Cluster);
        const own = c.servers.find((s) => s.own);
        all.hidden = c.server === "";
        state.replaceChildren(...(c.server === "" ? [c.text] : [
          word(c.connected ? "good" : "bad", c.text), ` · server ${c.server}`, own?.region ? ` in region ${own.region}` : "",
          ` · ${count(c.servers.filter((s) => !s.suspect).length)} of ${count(c.servers.length)} servers alive`,
        ]));
        now = Date.now();
        servers.update(c.servers);
        const left = c.total - c.rooms.length;
        more.hidden = left === 0;
        text(more, `${count(c.rooms.length)} of ${count(c.total)} rooms: the filter selects among all of them.`);
        rooms.update(c.rooms);
        moves.update(c.moves);
      },
    };
  },
};
