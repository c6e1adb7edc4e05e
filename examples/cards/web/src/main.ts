// The page of the card game.
//
//   clicks, keys ──▶ Session (connection, tickets, calls) ──▶ lobby and tables of the server
//                       │ changes
//                       ▼
//                    showLobby, TableView: the page, drawn anew where it is another

import { find, say } from "./dom.js";
import { showLobby } from "./lobby.js";
import { Session } from "./session.js";
import { TableView } from "./table.js";

const noteMs = 6000;

let dirty = true;
let noted = 0;
let turn = "";

const session = new Session(remembered(), {
  changed: () => { dirty = true; },
  note: (text) => {
    find("note").hidden = text === "";
    say(find("note"), text);
    noted = performance.now();
  },
  trouble: (t) => {
    find("trouble").hidden = t === undefined;
    if (!t) return;
    say(find("trouble-title"), t.title);
    say(find("trouble-text"), t.text);
    find("trouble-again").hidden = !t.again;
  },
});
const view = new TableView(session);

/** remembered returns the player's last name. */
function remembered(): string {
  const asked = new URLSearchParams(location.search).get("name");
  try {
    const name = asked || localStorage.getItem("cards.name") || `guest ${Math.floor(Math.random() * 900 + 100)}`;
    localStorage.setItem("cards.name", name);
    return name;
  } catch { // A browser may store no data for pages.
    return asked || "guest";
  }
}

/** rename changes the player's name, and reconnects. */
function rename(name: string): void {
  if (name === "" || name === session.name) return;
  session.name = name;
  try { localStorage.setItem("cards.name", name); } catch {} // As above.
  void session.go({});
}

/** frame runs and draws one frame. */
function frame(now: number): void {
  requestAnimationFrame(frame);
  session.client?.step(now);
  const t = session.table();
  if (dirty && !session.onTheWay()) {
    dirty = false;
    find("lobby").hidden = t !== undefined;
    find("table").hidden = t === undefined;
    const at = t ? `${t.Name} ${t.Round} ${t.Turns} ${t.Phase}` : "";
    if (at !== turn) view.began();
    turn = at;
    if (t) view.show(t);
    else showLobby(session);
  } else if (t) {
    const { all, own } = session.seats();
    view.tick(t, all, own);
  }
  if (!find("note").hidden && now - noted > noteMs) find("note").hidden = true;
}

/** submit passes the text of a form to fn, and clears the form. */
function submit(form: string, input: string, fn: (text: string) => void): void {
  find(form).onsubmit = (e) => {
    e.preventDefault();
    const text = find<HTMLInputElement>(input).value.trim();
    if (text !== "") fn(text);
    if (form !== "who") find<HTMLInputElement>(input).value = "";
    (document.activeElement as HTMLElement | null)?.blur();
  };
}

find<HTMLInputElement>("name").value = session.name;
find("play").onclick = () => session.sit({});
find("private").onclick = () => session.sit({ Private: true });
find("name").onchange = () => rename(find<HTMLInputElement>("name").value.trim());
submit("who", "name", rename);
submit("open", "table-name", (text) => session.sit({ Table: text }));
submit("enter", "code", (text) => session.enter(text.toUpperCase()));
find("trouble-again").onclick = () => location.reload();
window.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target instanceof HTMLInputElement || !session.table()) return;
  if (view.key(e.key)) e.preventDefault();
});
window.addEventListener("pagehide", () => session.client?.close());
// For the browser's console, and for tests: the session.
Object.defineProperty(window, "cards", { value: session });
requestAnimationFrame(frame);
void session.go({});
