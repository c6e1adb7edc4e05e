import { get } from "../api.js";
import { byId, h, refill, text, walk } from "../dom.js";
import { bytes, count } from "../format.js";
import { MessageForm } from "../form.js";
import { Converter } from "../message.js";
import { Player, type Line } from "../player.js";
import type { Class, Forms, MethodForm } from "../types.js";
import type { Kind } from "../view.js";

/** The most clients of a tab. */
const maxPlayers = 8;
/** The time between two updates of the figures, in milliseconds. */
const period = 250;

// The clients outlive the view: a tab sends a message, and shows its effect in another view.
const players: Player[] = [];
let chosen: Player | undefined;
let opened = 0;
let forms: Forms | undefined;
let classes: string[] = [];
let redraw = () => {};
let scheduled = 0;

/** later shows a change of a client: soon, and not for each of many messages. */
function later(): void {
  scheduled ||= window.setTimeout(() => {
    scheduled = 0;
    byId("nav").querySelector("a[href='#playground']")?.classList.toggle("playing", players.some((p) => !p.ended));
    redraw();
  }, 30);
}

addEventListener("pagehide", () => players.forEach((p) => p.client?.close()));

export const playground: Kind = {
  name: "playground",
  title: "Playground",
  make(root, page) {
    const field = (name: string, attrs: Record<string, string>) => h("input", { "aria-label": name, autocomplete: "off", spellcheck: "false", ...attrs });
    const room = field("Room", { type: "text", placeholder: "(default)", value: page.parameter("room") ?? page.room });
    const token = field("Token of the game", { type: "password", placeholder: "none", autocomplete: "new-password" });
    const ticket = field("Ticket or code", { type: "password", placeholder: "none", autocomplete: "new-password" });
    const params = field("Params as JSON", { type: "text", placeholder: "none" });
    const spectate = h("input", { type: "checkbox" });
    const openButton = h("button", { type: "submit", class: "primary" }, "Open a client here");
    const chips = h("div", { class: "chips", role: "group", "aria-label": "Clients of this tab" });
    const card = h("section", { class: "card", hidden: true });
    const title = h("h2"), facts = h("dl", { class: "facts three" }), lines = h("ol", { class: "lines talk" });
    const drop = h("button", { type: "button", click: () => chosen?.drop() }, "drop its connection");
    const back = h("button", { type: "button", click: () => chosen?.comeBack() }, "come back");
    const target = field("Ticket or code of another room", { type: "password", placeholder: "ticket or code", autocomplete: "new-password" });
    const move = h("button", { type: "button", click: () => { chosen?.move(target.value.trim()); target.value = ""; } }, "move");
    const leave = h("button", { type: "button", click: () => chosen && close(chosen) }, "leave");
    const method = h("select", { "aria-label": "Method", change: () => compose() });
    const stage = h("select", { "aria-label": "Stage" });
    const send = h("button", { type: "button", class: "primary", click: () => transmit() }, "send");
    const reader = h("p", { class: "soft", hidden: true }, "Opening a client needs a token of role write, of the file of --admin-token-file.");
    const editor = h("div"), wrong = h("p", { class: "wrong", role: "status" });
    let form: MessageForm | undefined, described = "", ended = false;

    root.append(
      h("section", { class: "opening" },
        h("form", { submit: (e) => { e.preventDefault(); open(); } },
          h("label", {}, "room ", room), h("label", {}, "game token ", token), h("label", {}, "ticket ", ticket), h("label", {}, "params ", params),
          h("label", {}, spectate, " spectator"), openButton),
        h("p", { class: "soft" }, `The client joins as any player does, over WebTransport if the game is on this machine, and else over a WebSocket of this listener, and plays until it leaves or this tab closes. A tab has at most ${maxPlayers} clients.`),
        reader, wrong, chips),
      card);
    card.append(
      title,
      h("div", { class: "bar" }, drop, back, h("span", { class: "move" }, target, move),
        h("button", { type: "button", click: () => chosen?.client && page.open("state", { ...at(chosen), client: chosen.client.id }) }, "its state"),
        h("button", { type: "button", click: () => chosen?.client && page.open("clients", { ...at(chosen), client: chosen.client.id }) }, "its link"), leave),
      facts,
      h("div", { class: "columns" },
        h("div", { class: "composer" }, h("div", { class: "bar" }, h("b", {}, "Send"), method, stage, send), editor),
        h("div", {}, h("b", {}, "Sent and received"), lines)));

    redraw = show;
    const timer = setInterval(show, period);
    void describe(page.room);

    /** describe lists the methods that a room handles, and the others. */
    async function describe(of: string): Promise<void> {
      described = of;
      try {
        const [f, c] = await Promise.all([get<Forms>("/api/methods", { room: of || undefined }), get<Class[]>("/api/classes")]);
        [forms, classes] = [f, c.map((x) => x.name)];
        if (ended) return; // Another view owns the address now.
      } catch (e) {
        return text(wrong, (e as Error).message);
      }
      const sent = forms.methods.filter((m) => !m.server_only), was = form ? method.value : page.parameter("method");
      const group = (label: string, all: MethodForm[]) => all.length > 0 && h("optgroup", { label }, ...all.map((m) => h("option", { value: m.name }, m.name)));
      const groups = [
        group("messages", sent.filter((m) => m.handled && !m.call)), group("calls", sent.filter((m) => m.handled && m.call)),
        forms.input && h("optgroup", { label: "inputs" }, h("option", { value: "" }, "input of each step")), group("not handled by this room", sent.filter((m) => !m.handled)),
      ];
      method.replaceChildren(...groups.filter((g) => g instanceof Node));
      if (was !== undefined && sent.some((m) => m.name === was)) method.value = was;
      if (!form || method.value !== was) compose();
      show();
    }

    function open(): void {
      let values: unknown;
      try {
        values = params.value.trim() ? JSON.parse(params.value) : undefined;
      } catch (e) {
        return text(wrong, `The params are no JSON: ${(e as Error).message}`);
      }
      if (players.length >= maxPlayers) return text(wrong, `This tab has ${maxPlayers} clients, which is the most: leave with one first.`);
      text(wrong, "");
      if (chosen?.ended && !chosen.client) close(chosen); // It could not join.
      chosen = new Player(++opened, { room: room.value.trim(), token: token.value, ticket: ticket.value.trim(), spectate: spectate.checked, params: values }, forms!, classes, later);
      players.push(chosen);
      show();
    }

    function close(p: Player): void {
      p.leave();
      later();
      players.splice(players.indexOf(p), 1);
      chosen = players[0];
      show();
    }

    /** compose makes the form of the chosen method. */
    function compose(): void {
      const m = forms!.methods.find((x) => x.name === method.value);
      const type = m?.message ?? forms!.input;
      stage.replaceChildren(...(m?.stages ?? []).map((s) => h("option", { value: s.number }, s.name)));
      stage.hidden = (m?.stages.length ?? 0) < 2;
      text(send, m ? (m.call ? "ask" : "send") : "hold");
      form = type ? new MessageForm(new Converter(forms!), type) : undefined;
      editor.replaceChildren(...(form ? [form.element] : []));
      if (method.value) page.note({ method: method.value });
    }

    function transmit(): void {
      if (!chosen?.client || !form?.valid) return;
      const m = forms!.methods.find((x) => x.name === method.value);
      try {
        if (m) chosen.send(m, m.stages.length > 1 ? Number(stage.value) : undefined, form.message());
        else chosen.hold(form.message());
      } catch (e) {
        page.say((e as Error).message, true);
      }
    }

    function show(): void {
      openButton.disabled = !forms || !page.write;
      reader.hidden = !document.documentElement.classList.contains("reader");
      const key = players.map((p) => `${p.number} ${p.status} ${p === chosen}`).join("\n");
      if (chips.dataset["key"] !== key) {
        chips.dataset["key"] = key;
        chips.replaceChildren(...players.map((p) => h("button", { type: "button", class: p === chosen ? "on" : "", "aria-pressed": String(p === chosen), click: () => { chosen = p; show(); } }, `${name(p)}: ${p.status}`)));
      }
      chips.hidden = players.length < 2;
      card.hidden = !chosen;
      if (!chosen) return;
      const p = chosen, c = p.client, s = c?.stats;
      if (c && !p.ended && c.room !== described) void describe(c.room);
      text(title, `${name(p)}${p.ended ? ":" : ""} ${p.status}`);
      title.className = p.ended ? "bad" : "";
      const rows: [string, string][] = c && s ? [
        ["room", c.room || "(default)"], ["client", String(c.id)], ["transport", s.transport],
        ["round trip", s.synced ? `${s.rttMs.toFixed(1)} ms` : "is measured"], ["tick", `${count(s.serverTick)}, of the state ${count(s.appliedTick)}`],
        ["objects in view", count(p.objects)], ["snapshots", `${s.snapshotRate.toFixed(0)} a second, ${count(s.snapshots)} in all`],
        ["bytes", `${bytes(s.bytesIn)} received, ${bytes(s.bytesOut)} sent`], ["drops", `${s.drops}, of which ${s.resumes} resumed`],
      ] : [["room", p.opening.room || "(default)"]];
      facts.replaceChildren(...rows.flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)]));
      drop.disabled = !c || p.ended !== "" || p.dropped;
      back.disabled = !p.dropped || p.ended !== "";
      send.disabled = move.disabled = !c || p.ended !== "";
      text(leave, p.ended ? "close" : "leave");
      const newest = `${p.number} ${p.lines.length} ${p.lines[0]?.at} ${p.lines[0]?.text}`;
      if (lines.dataset["newest"] === newest) return;
      lines.dataset["newest"] = newest;
      refill(lines, ...p.lines.map(item));
    }

    return {
      topics: () => [],
      key: (key) => walk(key, lines, "li"),
      on: () => {},
      end: () => { clearInterval(timer); redraw = () => {}; ended = true; },
    };
  },
};

const signs: Record<Line["kind"], string> = { sent: "→", received: "←", answer: "←", note: "·", wrong: "!" };

function item(l: Line): HTMLElement {
  return h("li", { class: l.kind, tabindex: -1, "data-at": `${l.at} ${l.text}` }, h("time", {}, new Date(l.at).toTimeString().slice(0, 8)), " ", h("i", { title: l.kind }, signs[l.kind]), " ", l.method && h("b", {}, l.method), " ", h("span", {}, l.text));
}

/** at is the part of an address for the room of a client. */
function at(p: Player): Record<string, string> {
  return p.client ? { room: p.client.room } : {};
}

function name(p: Player): string {
  return p.client ? `Client ${p.client.id}` : "A client";
}
