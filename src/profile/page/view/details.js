// Beside every tab: the selected row, where it was called from, and its source.

import { exact, frameName, growth, place, percent, printable, quantity, signed } from "../core/format.js";
import { pointOf } from "../core/roofline.js";
import { lineTimes, nodeWithSource, pieces } from "../core/source.js";
import { changeClass, h, kindChip } from "./dom.js";

const LINE = 18;
const MOST_CALLERS = 60;

/** The values of one node, metric by metric. */
function valuesOf(app, node) {
  const { tree, profile } = app;
  const rows = profile.metrics.filter(({ name }) => tree.total(name) !== 0 || (profile.isDifference && tree.total(name, "before") !== 0)).map(({ name, unit, title }) => {
    const total = tree.inclusive(name)[node];
    const own = tree.exclusive(name)[node];
    const change = profile.isDifference ? tree.inclusive(name, "delta")[node] : 0;
    return h("tr", { class: name === app.state.metric ? "current" : "" },
             h("th", { scope: "row", title }, name),
             h("td", { title: exact(total, unit) }, quantity(total, unit)), h("td", { class: "share" }, percent(total, tree.total(name))),
             h("td", { title: exact(own, unit) }, quantity(own, unit)),
             profile.isDifference ? h("td", { class: changeClass(change) }, signed(change, unit), " ", h("span", { class: "share" }, growth(total, total - change))) : null);
  });
  const head = ["", "Total", "", "Own", ...(profile.isDifference ? ["Change"] : [])];
  return h("table", { class: "values" }, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text))), rows);
}

/** The frame of the node in all its contexts, where it has more than this one. */
function contextsOfFrame(app, node) {
  const { metric } = app.state;
  const { unit } = app.metricOf(metric);
  const { count, inclusive, exclusive } = app.tree.frameTotals(app.tree.frame[node], metric);
  if (count < 2) return null;
  const whole = app.tree.total(metric);
  return h("div", { class: "muted" }, `In all its ${count} contexts: total ${quantity(inclusive, unit)}, ${percent(inclusive, whole)}; own ${quantity(exclusive, unit)}.`);
}

/** The node's bound: floor, share reached, bytes and operations. */
function boundOf(app, node) {
  const point = pointOf(app.tree, app.tree.timeMetric(), node);
  if (!point) return null;
  return h("div", { class: "bound" },
           h("div", { class: "meter", title: "Share of the bound that is reached" }, h("div", { class: `meter-fill fill-${point.bound}`, style: `width:${Math.min(100, 100 * point.reached).toFixed(1)}%` })),
           h("div", {}, `${percent(point.floor, point.time)} of the ${printable(point.bound)} bound of ${quantity(point.floor, "ns")}`),
           h("div", { class: "muted" }, `${quantity(point.bytes, "bytes")}, ${quantity(point.flops, "flop")}`));
}

export class Details {
  constructor(app) {
    this.app = app;
    this.summary = h("div", { class: "summary" });
    this.code = h("div", { class: "code", tabindex: 0, "aria-label": "Source" });
    this.picker = h("select", { class: "picker", "aria-label": "Source file", onchange: () => this.showFile(this.picker.value, 0) });
    this.source = h("section", { class: "source" }, h("div", { class: "source-head" }, "Source", this.picker), this.code);
    this.element = h("aside", { class: "details", "aria-label": "Selected row" }, this.summary, this.source);
    this.shown = null;
    this.code.addEventListener("scroll", () => this.paintCode());
    new ResizeObserver(() => this.paintCode()).observe(this.code);
    this.paintPicker();
  }

  paintPicker() {
    const { sources } = this.app.profile;
    this.source.hidden = sources.length === 0;
    this.picker.replaceChildren(...sources.map(({ file }) => h("option", { value: file }, printable(file))));
  }

  update() {
    const { app } = this;
    const node = Math.max(app.state.node, 0);
    const { frames } = app.profile;
    const frame = app.tree.frame[node];
    this.summary.replaceChildren(
      h("h2", {}, kindChip(frames.kind[frame]), frameName(frames, frame)),
      h("div", { class: "muted" }, printable([frames.kind[frame], frames.file[frame] && (frames.file[frame] + (frames.line[frame] > 0 ? `:${frames.line[frame]}` : ""))].filter(Boolean).join(" · "))),
      valuesOf(app, node), ...[contextsOfFrame(app, node), boundOf(app, node), this.adviceOf(node)].filter(Boolean), this.pathOf(node));
    const holder = nodeWithSource(app.tree, node);
    if (holder >= 0) this.showFile(frames.file[app.tree.frame[holder]], frames.line[app.tree.frame[holder]]);
    else if (app.profile.sources.length > 0) this.showFile(this.shown?.file ?? app.profile.sources[0].file, 0);
  }

  adviceOf(node) {
    const advice = this.app.profile.advice.filter((entry) => entry.node === node);
    if (advice.length === 0) return null;
    return h("div", { class: "advice-note" }, advice.map(({ rule, remedy }) => h("div", {}, h("strong", {}, printable(rule.replaceAll("_", " "))), ": ", printable(remedy))));
  }

  /** The rows from the root to the selected one, as buttons. */
  pathOf(node) {
    const { app } = this;
    const { frames } = app.profile;
    const whole = app.tree.total(app.state.metric);
    const values = app.tree.inclusive(app.state.metric);
    const steps = app.tree.path(node).slice(1, -1).reverse();
    if (steps.length === 0) return h("div", {});
    return h("details", { class: "path", open: true }, h("summary", {}, `Called from (${steps.length})`), steps.slice(0, MOST_CALLERS).map((at) => (
      h("button", { class: "step", onclick: () => app.select(at) },
        kindChip(frames.kind[app.tree.frame[at]]),
        h("span", { class: "name" }, frameName(frames, app.tree.frame[at])), h("span", { class: "place" }, place(frames, app.tree.frame[at])),
        h("span", { class: "share" }, percent(values[at], whole))))));
  }

  showFile(file, line) {
    const { app } = this;
    const source = app.profile.sources.find((entry) => entry.file === file);
    if (!source) return;
    const key = `${app.generation} ${file} ${app.state.metric}`;
    if (this.shown?.key !== key) {
      const times = lineTimes(app.tree, file, app.state.metric);
      const most = Math.max(1, ...Array.from(times.values(), ({ inclusive }) => inclusive));
      this.shown = { key, file, source, times, most };
      this.picker.value = file;
      this.code.replaceChildren(h("div", { class: "code-lines", style: `height:${source.lines.length * LINE}px` }));
    }
    this.line = line;
    if (line > 0) {
      const top = (line - source.firstLine) * LINE;
      const { scrollTop, clientHeight } = this.code;
      if (top < scrollTop || top + 2 * LINE > scrollTop + clientHeight) this.code.scrollTop = top - clientHeight / 3;
    }
    this.paintCode();
  }

  paintCode() {
    if (!this.shown) return;
    const { source } = this.shown;
    const first = Math.max(0, Math.floor(this.code.scrollTop / LINE) - 10);
    const last = Math.min(source.lines.length, first + Math.ceil(this.code.clientHeight / LINE) + 20);
    const rows = [];
    for (let i = first; i < last; i++) rows.push(this.codeLine(source, i));
    this.code.firstElementChild.replaceChildren(...rows);
  }

  codeLine(source, i) {
    const { app } = this;
    const { times, most } = this.shown;
    const number = source.firstLine + i;
    const time = times.get(number);
    const { unit } = app.metricOf(app.state.metric);
    const hint = time ? `${exact(time.inclusive, unit)}, own ${exact(time.exclusive, unit)}` : "";
    const text = pieces(source.lines[i], source.file).map(([kind, piece]) => (kind ? h("span", { class: `code-${kind}` }, printable(piece.replaceAll("\t", "    "))) : printable(piece.replaceAll("\t", "    "))));
    return h("div", { class: `code-line${number === this.line ? " code-current" : ""}${time ? " code-hot" : ""}`, style: `top:${i * LINE}px`, title: hint,
                      onclick: time ? () => app.select(time.node) : null },
             h("span", { class: "margin", style: time ? `--heat:${((100 * time.inclusive) / most).toFixed(1)}%` : "" }, time && time.inclusive > 0 ? quantity(time.inclusive, unit) : ""),
             h("span", { class: "margin-share" }, time && time.inclusive > 0 ? percent(time.inclusive, app.tree.total(app.state.metric)) : ""),
             h("span", { class: "line-number" }, String(number)), h("span", { class: "line-text" }, text));
  }
}
