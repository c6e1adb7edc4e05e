import uPlot from "uplot";
import { color, h } from "../../../internal/inspect/page/src/dom.js";
import { digits } from "../../../internal/inspect/page/src/format.js";
import { span } from "./show.js";

/** Line is a line of a chart. Points without a value make a gap. */
export interface Line {
  label: string;
  color: string; // of the style sheet
  points: [number, number | null][];
  dash?: number[];
  /** right lines belong to the axis on the right. */
  right?: boolean;
  fill?: boolean;
}

export interface Options {
  title: string;
  x: "time" | "percentile" | "clients";
  value: (y: number) => string;
  right?: (y: number) => string;
  /** window is shaded: the measured time. */
  window?: [number, number] | undefined;
  height?: number;
}

/** The charts of the page. They are drawn again in other colors, and at another width to be printed. */
const all: { draw: (width?: number) => void }[] = [];
const printed = 680;

/** chart makes a chart of lines, or a dash if no line has two points. */
export function chart(o: Options, lines: Line[]): HTMLElement {
  const known = lines.filter((l) => l.points.filter((p) => p[1] !== null).length > 1);
  const box = h("div", { class: known.length > 0 ? "plot" : "plot none" });
  const figure = h("figure", {}, h("figcaption", {}, o.title), box);
  if (known.length === 0) {
    box.append("–");
    return figure;
  }
  const data = uPlot.join(known.map((l) => [l.points.map((p) => p[0]), l.points.map((p) => p[1])] as uPlot.AlignedData));
  let plot: uPlot | undefined;
  const draw = (width = Math.floor(box.clientWidth)) => {
    plot?.destroy();
    plot = width > 0 ? new uPlot(settings(o, known, width), data, box) : undefined;
  };
  new ResizeObserver(() => {
    const width = Math.floor(box.clientWidth);
    if (plot && width > 0) plot.setSize({ width, height: plot.height });
    else draw();
  }).observe(box);
  all.push({ draw });
  return figure;
}

/** follow draws the charts again if the colors change, and in light colors for the printer. */
export function follow(): void {
  const again = (width?: number) => all.forEach((c) => c.draw(width));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => again());
  const print = (on: boolean) => {
    document.documentElement.classList.toggle("print", on);
    again(on ? printed : undefined);
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
}

function settings(o: Options, lines: Line[], width: number): uPlot.Options {
  const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 14; // larger on large screens
  const axis = { stroke: color("soft"), ticks: { show: false }, font: `${12 * scale}px system-ui, sans-serif` };
  const grid = { stroke: color("line"), width: 1 };
  const zero = (room: number): uPlot.Scale.Range => (_u, _min, max) => [0, (max ?? 1) * room || 1];
  const right = o.right && lines.some((l) => l.right) ? o.right : undefined;
  const small = width < 480;
  const size = small ? 56 : 62 * scale;
  return {
    width, height: (o.height ?? 220) * scale, padding: [10, right ? 0 : 14, 0, 0],
    cursor: { drag: { x: o.x === "time", y: false }, points: { size: 6 }, ...(o.x === "time" ? { sync: { key: "time" } } : {}) },
    legend: { live: true },
    scales: {
      x: { time: false, ...(o.x === "percentile" ? { distr: 3, log: 10, range: (_u: uPlot, _min: number, max: number) => [1, Math.max(max, 10)] as uPlot.Range.MinMax } : {}) },
      y: { range: zero(1.1) },
      ...(right ? { right: { range: zero(1.3) } } : {}), // so that a constant number is below a constant budget
    },
    axes: [
      { ...axis, grid, size: 30 * scale, ...horizontal(o.x, small) },
      { ...axis, grid, size, values: (_u, v) => v.map((y) => short(o.value(y))) },
      ...(right ? [{ ...axis, grid: { show: false }, size, side: 1, scale: "right", values: (_u: uPlot, v: number[]) => v.map((y) => (Number.isInteger(y) ? right(y) : "")) }] : []),
    ],
    series: [
      {},
      ...lines.map((l): uPlot.Series => {
        const stroke = color(l.color);
        const value = l.right && right ? right : o.value;
        return {
          label: l.label, stroke, width: 1.75, points: { show: o.x === "clients", size: 5 }, ...(l.dash ? { dash: l.dash } : {}), ...(l.fill ? { fill: `${stroke}22` } : {}),
          scale: l.right && right ? "right" : "y", spanGaps: o.x !== "time", value: (_u, v, _i, at) => (v === null || v === undefined ? (at === null ? "" : "–") : value(v)),
        };
      }),
    ],
    hooks: { drawClear: [(u) => shade(u, o.window)] },
  };
}

/** short removes the zeros at the end of a decimal fraction. */
function short(text: string): string {
  return text.replace(/\.(\d*?)0+(?= )/, (_, digits) => (digits === "" ? "" : `.${digits}`));
}

/** horizontal returns the labels of the axis below a chart. */
function horizontal(x: Options["x"], small: boolean): uPlot.Axis {
  switch (x) {
    case "time": return { space: 70, values: (_u, v) => v.map(span) };
    case "clients": return { space: 60, values: (_u, v) => v.map(String) };
    case "percentile": return {
      splits: (u) => [1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter((at) => at <= u.scales.x!.max!),
      filter: (_u, splits) => splits.map((at) => (small && at === 2 ? null : at)),
      values: (_u, v) => v.map((at) => (at === null ? "" : `${percentile(at)} %`)),
    };
  }
}

/** percentile returns p of 1/(1-p), in percent and without digits of rounding. */
function percentile(x: number): string {
  return (100 - 100 / x).toFixed(Math.max(0, Math.round(Math.log10(x)) - 2));
}

/** shade draws the background of the measured time. */
function shade(u: uPlot, window?: [number, number]): void {
  if (!window) return;
  const at = (x: number) => Math.min(Math.max(u.valToPos(x, "x", true), u.bbox.left), u.bbox.left + u.bbox.width);
  u.ctx.fillStyle = color("hover");
  u.ctx.fillRect(at(window[0]), u.bbox.top, at(window[1]) - at(window[0]), u.bbox.height);
}

/** whole formats whole numbers, and others with three digits. */
export function whole(y: number): string {
  return Number.isInteger(y) ? String(y) : digits(y);
}
