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
    const format = (n: number) => (unit === "B" ? bytes(n) : `${digits(n)}${unit ? " " + unit : ""}`);
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
        scales: { x: { time: true }, y: { range: (_u, _min, max) => [0, Math.max(max * 1.1, unit === "" ? 1 : 0.01)] } },
        legend: { live: true },
        axes: [{ ...axis, space: 70 }, { ...axis, size: 58, values: (_u, v) => v.map(format) }],
        series: [
          { value: (_u, v) => (v === null ? "" : new Date(v * 1000).toLocaleTimeString()) },
          ...names.map((label, i) => ({ label, stroke: color(colors[i]!), width: 1.5, ...(label === "budget" ? { dash: [4, 4] } : {}), value: (_u: uPlot, v: number | null) => (v === null ? "–" : format(v)) })),
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
  }

  end(): void {
    this.observer.disconnect();
    this.plot?.destroy();
  }
}
