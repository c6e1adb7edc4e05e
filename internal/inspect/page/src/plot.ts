import uPlot from "uplot";
import { color, h } from "./dom.js";
import { bytes, digits } from "./format.js";

/** The number of points of a plot: five minutes of seconds. */
const points = 300;

/** Plot is a plot over the last five minutes. */
export class Plot {
  readonly element: HTMLElement;
  private readonly data: number[][];
  private plot: uPlot | undefined;
  private readonly observer: ResizeObserver;

  constructor(title: string, unit: string, names: string[], colors: string[]) {
    this.data = [[], ...names.map(() => [])];
    const box = h("div", { class: "plot" });
    this.element = h("figure", {}, h("figcaption", {}, title), box);
    const format = (n: number) => (unit === "B" ? bytes(n) : `${Number.isInteger(n) ? n : digits(n)}${unit ? " " + unit : ""}`);
    const clock = (at: number) => new Date(at * 1000).toLocaleTimeString([], { hour12: false });
    const axis = { stroke: color("soft"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    this.observer = new ResizeObserver(() => {
      const width = Math.floor(box.clientWidth);
      if (width === 0) return;
      if (this.plot) {
        this.plot.setSize({ width, height: 170 });
        return;
      }
      this.plot = new uPlot({
        width, height: 170, padding: [8, 8, 0, 0], cursor: { drag: { x: false, y: false }, points: { size: 6 } },
        scales: { x: { time: true, range: (_u, min, max) => { const end = max ?? Date.now() / 1000; return [Math.min(min ?? end, end - 60), end]; } }, y: { range: (_u, _min, max) => [0, Math.max(max * 1.1, unit === "B" ? 100 : 1)] } },
        legend: { live: true },
        axes: [{ ...axis, space: 80, size: 28, values: (_u, v) => v.map(clock) }, { ...axis, size: 58, values: (_u, v) => v.map(format) }],
        series: [
          { value: (_u, v) => (v === null ? "" : clock(v)) },
          ...names.map((label, i) => ({ label, stroke: color(colors[i]!), width: 1.5, points: { show: false }, ...(label === "budget" ? { dash: [4, 4] } : {}), value: (_u: uPlot, v: number | null) => (v === null ? "–" : format(v)) })),
        ],
      }, this.data as uPlot.AlignedData, box);
    });
    this.observer.observe(box);
  }

  /** add adds the values of now. */
  add(values: number[]): void {
    this.data[0]!.push(Date.now() / 1000);
    values.forEach((v, i) => this.data[i + 1]!.push(v));
    if (this.data[0]!.length > points) this.data.forEach((d) => d.shift());
    this.plot?.setData(this.data as uPlot.AlignedData);
    if (this.plot && this.plot.cursor.idx == null) this.plot.setLegend({ idx: this.data[0]!.length - 1 }); // The latest values.
  }

  end(): void {
    this.observer.disconnect();
    this.plot?.destroy();
  }
}
