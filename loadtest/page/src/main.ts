// The report of a load test. All texts of results are untrusted: they become text nodes.
import { byId, h } from "../../../internal/inspect/page/src/dom.js";
import { follow } from "./chart.js";
import { calls, clients, configuration, feel, generator, growth, joins, load, losses, processes, snapshots, traffic, worst } from "./parts.js";
import type { Report } from "./result.js";
import { search, verdict } from "./verdict.js";

const { runs, search: found } = JSON.parse(byId("data").textContent!) as Report;
const several = runs.length > 1;

const title = found ? `Search with ${found.steps.length} runs` : several ? `${runs.length} load tests` : `Load test with ${runs[0]!.result.clients.connected} clients`;
document.title = title;
const first = runs[0]?.result.run;
const begun = first && `${first.flags?.addr || "–"} · ${first.begin.slice(0, 16).replace("T", " ")} UTC · seed ${first.seed}`;
byId("report").replaceChildren(
  h("header", {}, h("h1", {}, title), h("p", {}, several ? runs.map((r) => r.name).join(" · ") : begun)),
  ...(found ? search(found) : []),
);
if (runs.length > 0) {
  const parts = [generator, clients, load, snapshots, calls, feel, losses, traffic, joins, worst, processes, growth, configuration];
  byId("report").append(
    h("div", { class: "cards" }, ...runs.map((r, i) => verdict(r, i, several))),
    ...parts.map((part) => part(runs)).filter((e) => e !== undefined),
  );
}
follow();
