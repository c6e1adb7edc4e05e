// The display around the arena: scores, chat, network figures, and errors. Texts are always set as
// text, never as HTML: names and chat are from other players.

/** NetFigures are the figures of the network panel. */
export interface NetFigures {
  transport: string;
  rttMs: number;
  snapshotsPerSecond: number;
  interpolationMs: number;
  mispredictions: number;
  kbitPerSecond: number;
  frameMs: number;
}

/** Worse are the settings of the network sliders. */
export interface Worse {
  delayMs: number;
  jitterMs: number;
  loss: number; // 0 to 1
}

const chatLines = 8;
const chatFades = 9_000; // ms

/** Hud shows texts and figures. */
export class Hud {
  onSay: (text: string) => void = () => {};
  onJoin: (name: string) => void = () => {};
  onWorse: (w: Worse) => void = () => {};
  onAgain: () => void = () => {};
  onGraph: (shown: boolean) => void = () => {};
  ghosts = false;
  graph = false;

  private readonly rows: { row: HTMLLIElement; name: HTMLSpanElement; score: HTMLSpanElement }[] = [];
  private readonly net = ["n-transport", "n-rtt", "n-rate", "n-delay", "n-wrong", "n-bytes", "n-frame"].map((id) => by(id));

  constructor() {
    by("join").addEventListener("submit", (e) => {
      e.preventDefault();
      this.onJoin((by("name") as HTMLInputElement).value.trim());
    });
    const say = by("say") as HTMLInputElement;
    say.form!.addEventListener("submit", (e) => {
      e.preventDefault();
      const text = say.value.trim();
      say.value = "";
      this.closeChat();
      if (text) this.onSay(text);
    });
    say.addEventListener("keydown", (e) => { if (e.key === "Escape") this.closeChat(); });
    say.addEventListener("blur", () => by("chat").classList.remove("open"));
    by("net-fold").addEventListener("click", () => this.foldNet());
    by("trouble-again").addEventListener("click", () => this.onAgain());
    const ghosts = by("ghosts") as HTMLInputElement;
    ghosts.addEventListener("change", () => this.showGhosts(ghosts.checked));
    const graph = by("graph") as HTMLInputElement;
    graph.addEventListener("change", () => this.showGraph(graph.checked));
    for (const id of ["s-delay", "s-jitter", "s-loss"]) by(id).addEventListener("input", () => this.slide());
    if (window.innerWidth < 720) this.foldNet();
  }

  /** playing shows the panels of a player with a ship, or of a spectator. */
  playing(name: string | undefined): void {
    by("intro").hidden = name !== undefined;
    by("me").hidden = name === undefined;
    by("me-name").textContent = name ?? "";
  }

  /** connected shows the panels once they have content. */
  connected(): void {
    for (const id of ["scores", "net", "chat"]) by(id).hidden = false;
  }

  intro(text: string): void { set(by("intro-text"), text); }

  /** joining shows the form for a name. */
  joining(shown: boolean): void { by("join").hidden = !shown; }

  /** duel shows the state of a duel; an empty text hides it. */
  duel(text: string): void {
    by("duel").hidden = text === "";
    set(by("duel"), text);
  }

  /** trouble shows an error, and offers another attempt; an empty title hides it. */
  trouble(title: string, text = "", again = true): void {
    by("trouble").hidden = title === "";
    set(by("trouble-title"), title);
    set(by("trouble-text"), text);
    by("trouble-again").hidden = !again;
  }

  me(hull: number, score: number): void {
    set(by("me-hull"), "▮".repeat(hull) || "–");
    set(by("me-score"), `${score} points`);
  }

  scores(best: readonly { name: string; score: number }[], own: string | undefined): void {
    const list = document.querySelector("#scores ol")!;
    while (this.rows.length < best.length) {
      const row = document.createElement("li");
      const name = row.appendChild(document.createElement("span"));
      const score = row.appendChild(document.createElement("span"));
      list.append(row);
      this.rows.push({ row, name, score });
    }
    this.rows.forEach((r, i) => {
      const one = best[i];
      r.row.hidden = !one;
      if (!one) return;
      set(r.name, one.name);
      set(r.score, String(one.score));
      r.row.classList.toggle("own", one.name === own);
    });
  }

  figures(f: NetFigures): void {
    const texts = [
      f.transport,
      `${f.rttMs.toFixed(f.rttMs < 10 ? 1 : 0)} ms`,
      `${f.snapshotsPerSecond.toFixed(0)} / s`,
      `${f.interpolationMs.toFixed(0)} ms`,
      String(f.mispredictions),
      `${f.kbitPerSecond.toFixed(0)} kbit/s`,
      `${f.frameMs.toFixed(1)} ms`,
    ];
    texts.forEach((t, i) => set(this.net[i]!, t));
  }

  said(name: string, text: string): void {
    const list = document.querySelector("#chat ul")!;
    const line = document.createElement("li");
    if (name) line.appendChild(document.createElement("b")).textContent = name;
    line.append(text);
    list.append(line);
    while (list.children.length > chatLines) list.firstElementChild!.remove();
    setTimeout(() => line.classList.add("old"), chatFades);
  }

  openChat(): void {
    by("chat").classList.add("open");
    (by("say") as HTMLInputElement).focus();
  }

  private closeChat(): void {
    (by("say") as HTMLInputElement).blur();
  }

  foldNet(): void {
    const folded = by("net").classList.toggle("folded");
    set(by("net-fold"), folded ? "+" : "–");
    by("net-fold").setAttribute("aria-expanded", String(!folded));
  }

  showGhosts(shown: boolean): void {
    this.ghosts = shown;
    (by("ghosts") as HTMLInputElement).checked = shown;
    by("legend").hidden = !shown;
  }

  /** showGraph shows the graph of the connection. */
  showGraph(shown: boolean): void {
    this.graph = shown;
    (by("graph") as HTMLInputElement).checked = shown;
    this.onGraph(shown);
  }

  private slide(): void {
    const value = (id: string, unit: string): number => {
      const slider = by(id) as HTMLInputElement;
      set(slider.nextElementSibling as HTMLElement, `${slider.value} ${unit}`);
      return Number(slider.value);
    };
    this.onWorse({ delayMs: value("s-delay", "ms"), jitterMs: value("s-jitter", "ms"), loss: value("s-loss", "%") / 100 });
  }
}

function by(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}: it is older than its program`);
  return found;
}

/** set changes a text only if it differs, because each change causes a new layout. */
function set(e: HTMLElement, text: string): void {
  if (e.textContent !== text) e.textContent = text;
}
