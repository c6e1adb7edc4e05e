// A graph of a client's connection, on a canvas of its own. F3 shows it:
//
//     import { netGraph } from "@netloop/client/netgraph"; // or "./netgraph.js" of a netloop server
//     netGraph(client);
//
// A column has the figures of 50 ms: lines of the round trip, of the delay of the view and of the age
// of the state, bars of the received bytes, and below them a mark for each loss, missed input and
// misprediction. While it is hidden it reads nothing.

import type { Client, Stats } from "./api.js";

/** The options of netGraph. */
export interface NetGraphOptions {
  /** The element that gets the canvas; by default the page's body. */
  parent?: HTMLElement;
  /** The key that shows and hides the graph, a KeyboardEvent.code; "" for none. By default F3. */
  key?: string;
  /** The place in the window, as inset of CSS; by default the lower left corner. */
  inset?: string;
}

/** A graph of one client. */
export interface NetGraph {
  readonly canvas: HTMLCanvasElement;
  /** Shows or hides the graph: without shown the other way round. */
  toggle(shown?: boolean): void;
  /** Removes the canvas, and the graph from the client and the keyboard. */
  remove(): void;
}

const columnMs = 50;
const columns = 164; // two units wide
const second = 20; // columns
const last = 70; // Stage.PostLateUpdate

// The canvas in its own units: those of its text and lines.
const width = 344;
const height = 156;
const margin = 8;
const top = 22;
const bottom = 84; // of the lines and bars
const lane = 6;

// The colours of the round trip, the delay, the age, losses, missed inputs and mispredictions.
const dark = ["#7fb4e6", "#8be28b", "#ffc46b", "#ff7d90", "#cf9bff", "#ff9b54"];
const light = ["#1765ad", "#1a7034", "#8a5200", "#bb1f3a", "#7434bf", "#a34700"];

const texts = ["round trip", "delay", "age", "lost", "inputs missed", "mispredicted"];
/** The figures of a column: three times, three counts and the bytes, the counts as they grow. */
const figures = (s: Stats): number[] => [s.rttMs, s.viewDelayMs, s.ageMs, s.lost, s.inputsMissed, s.mispredicted, s.bytesIn, s.bytesOut, s.snapshotRate];
const counted = 3;
const received = 6;
const sent = 7;

/** Makes the graph of a client, hidden at first. */
export function netGraph(client: Client<any>, options: NetGraphOptions = {}): NetGraph {
  const { parent = document.body, key = "F3", inset = "auto auto 8px 8px" } = options;
  const canvas = document.createElement("canvas");
  canvas.className = "netgraph";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Figures of the connection");
  canvas.style.cssText = `position:fixed;margin:auto;inset:${inset};width:min(100vw - 16px,max(${width}px,18vw));height:auto;aspect-ratio:${width}/${height};z-index:999;pointer-events:none;border-radius:8px;color:CanvasText;background:Canvas;opacity:.92`;
  const g = canvas.getContext("2d")!;
  let history: number[][] = [];
  let next = 0;
  let off: (() => void) | undefined;

  const draw = (): void => {
    const style = getComputedStyle(canvas);
    const ink = style.color;
    const colours = /^rgba?\((\d{3})/.exec(ink) ? dark : light;
    canvas.width = Math.round(canvas.clientWidth * devicePixelRatio); // It clears the canvas too.
    canvas.height = Math.round(canvas.clientHeight * devicePixelRatio);
    g.scale(canvas.width / width, canvas.width / width);
    g.font = `11px ${style.fontFamily}`;
    const now = history.at(-1)!;
    const recent = history.at(-1 - second) ?? history[0]!;
    const grown = (i: number, at: number): number => Math.max(0, history[at]![i]! - (history[at - 1] ?? history[at])![i]!);
    const text = (s: string, colour: string, column: number, y: number): void => {
      g.fillStyle = colour;
      g.fillText(s, margin + column * 114, y, width - 2 * margin - column * 114);
    };
    const x = (at: number): number => width - margin - 2 * (history.length - at);
    const highest = (value: (row: number[], at: number) => number): number => Math.max(...history.map(value));

    g.globalAlpha = 0.25;
    g.fillStyle = ink;
    g.fillRect(margin, bottom, width - 2 * margin, 0.5);
    const most = highest((_, at) => grown(received, at)) || 1;
    history.forEach((_, at) => {
      const h = (grown(received, at) / most) * (bottom - top) * 0.6;
      g.fillRect(x(at), bottom - h, 1.5, h);
    });
    g.globalAlpha = 0.75;
    // A room that sleeps sends no state, so the age of the state grows.
    const scale = Math.min(2000, Math.ceil((highest((row) => Math.max(row[0]!, row[1]!, row[2]!)) + 1) / 50) * 50);
    g.textAlign = "right";
    g.fillText(`${scale} ms`, width - margin, top + 8);
    g.textAlign = "left";
    g.globalAlpha = 1;
    colours.forEach((colour, i) => {
      const lanes = i >= counted;
      g.strokeStyle = g.fillStyle = colour;
      g.beginPath();
      history.forEach((row, at) => {
        if (!lanes) g.lineTo(x(at), bottom - Math.min(1, Math.max(0, row[i]! / scale)) * (bottom - top));
        else if (grown(i, at) > 0) g.fillRect(x(at), bottom + 2 + (i - counted) * lane, 2, lane - 1);
      });
      g.stroke();
      text(`${texts[i]} ${Math.round(now[i]!)}${lanes ? "" : " ms"}`, colour, i % counted, lanes ? bottom + 34 : 14);
    });
    const span = (Math.min(history.length - 1, second) || 1) * columnMs;
    const rate = (i: number): string => `${Math.round(Math.max(0, now[i]! - recent[i]!) * 8 / span)} kbit/s`;
    text(`in ${rate(received)}`, ink, 0, bottom + 48);
    text(`out ${rate(sent)}`, ink, 1, bottom + 48);
    text(`${Math.round(now[sent + 1]!)} snapshots/s`, ink, 2, bottom + 48);
    const wrong = Object.entries(client.mispredictions()).sort((a, b) => b[1] - a[1]);
    text(wrong.slice(0, 4).map(([field, n]) => `${field} ${n}`).join("  "), colours[5]!, 0, bottom + 62);
  };

  const sample = (at: number): void => {
    if (at < next) return;
    next = Math.max(next + columnMs, at);
    history.push(figures(client.stats));
    history = history.slice(-columns);
    draw();
  };
  const toggle = (shown = !off): void => {
    canvas.hidden = !shown;
    canvas.style.display = shown ? "" : "none";
    if (shown) off ??= client.on(last, (f) => sample(f.now));
    else {
      off?.();
      off = undefined;
      history = [];
    }
  };
  const pressed = (e: KeyboardEvent): void => {
    if (e.code !== key || e.repeat) return;
    e.preventDefault();
    toggle();
  };
  parent.append(canvas);
  addEventListener("keydown", pressed);
  toggle(false);
  return {
    canvas,
    toggle,
    remove: () => {
      toggle(false);
      canvas.remove();
      removeEventListener("keydown", pressed);
    },
  };
}
