// The tabs with flame graphs: one tree, and the sandwich of one frame.

import { bottomUpFlame, sandwich, topDownFlame } from "../core/flame.js";
import { frameName, place, percent, quantity } from "../core/format.js";
import { KINDS, chip, h, kindChip } from "./dom.js";
import { FlameCanvas } from "./flame.js";

/** What the colours mean. */
export function legend(app) {
  if (app.profile.isDifference) {
    const box = (name, text) => h("span", { class: "key" }, chip(name), text);
    return h("span", { class: "legend" }, box("less-4", "gone"), box("less-2", "less"), box("same", "equal"), box("more-2", "more"), box("more-4", "new"));
  }
  const used = new Set(app.profile.frames.kind);
  return h("span", { class: "legend" }, KINDS.filter((kind) => used.has(kind)).map((kind) => (
    h("span", { class: "key" }, kindChip(kind), kind))));
}

/** Buttons of which one is pressed. */
export function choices(app, key, options) {
  return h("span", { class: "group", role: "group" }, Object.entries(options).map(([value, [text, hint]]) => (
    h("button", { class: "choice", title: hint, "aria-pressed": String(app.state[key] === value), onclick: () => app.set({ [key]: value }) }, text))));
}

function widthChoice(app) {
  return app.profile.isDifference ? choices(app, "width", { now: ["now", "Widths are the newer profile's"], before: ["before", "Widths are the older profile's"] }) : null;
}

export class FlamePanel {
  constructor(app) {
    this.app = app;
    this.canvas = new FlameCanvas(app, "Flame graph; arrow keys move, Enter zooms, Escape shows all", false);
    this.tools = h("div", { class: "tools" });
    this.element = h("div", { class: "panel" }, this.tools, this.canvas.element);
    this.key = null;
  }

  update(source) {
    const { app, canvas } = this;
    const { direction, order, metric, width, root } = app.state;
    this.tools.replaceChildren(
      choices(app, "direction", { down: ["callees", "From callers to what they call"], up: ["callers", "Inverted: from what costs to who calls it"] }),
      choices(app, "order", { heavy: ["heaviest first", "The heaviest child is on the left"], time: ["as called", "In the order of first calls"] }),
      choices(app, "root", { top: ["root above", "Icicle"], bottom: ["root below", "Flame"] }),
      ...[widthChoice(app)].filter(Boolean),
      h("button", { class: "plain", title: "Show all (Escape)", onclick: () => canvas.zoomTo(0) }, "Reset zoom"),
      legend(app));
    const key = [app.generation, direction, order, metric, width, root].join(" ");
    if (key !== this.key) {
      this.key = key;
      const flame = direction === "up" ? bottomUpFlame(app.tree, metric, width)
                                       : topDownFlame(app.tree, metric, width, order === "heavy");
      canvas.setTree(flame, { unit: app.metricOf(metric).unit, rootBelow: root === "bottom" });
    }
    if (source === "link") canvas.zoomTo(Math.max(0, canvas.selectedNode()));
    canvas.redraw();
  }
}

export class SandwichPanel {
  constructor(app) {
    this.app = app;
    this.callers = new FlameCanvas(app, "Callers of the selected frame", true);
    this.callees = new FlameCanvas(app, "What the selected frame calls", false);
    this.tools = h("div", { class: "tools" });
    this.title = h("div", { class: "sandwich-title" });
    this.element = h("div", { class: "panel" }, this.tools, h("div", { class: "half" }, this.callers.element), this.title,
                     h("div", { class: "half" }, this.callees.element));
    this.frame = -1;
    this.key = null;
  }

  update() {
    const { app } = this;
    const { metric, width, node } = app.state;
    this.frame = app.tree.frame[Math.max(node, 0)];
    const { frames } = app.profile;
    const key = [app.generation, metric, width, this.frame].join(" ");
    if (key !== this.key) {
      this.key = key;
      const { unit } = app.metricOf(metric);
      const halves = sandwich(app.tree, this.frame, metric, width);
      this.callers.setTree(halves.callers, { unit });
      this.callees.setTree(halves.callees, { unit });
      const value = halves.callees.value[0];
      this.title.replaceChildren(
        kindChip(frames.kind[this.frame]),
        h("strong", {}, frameName(frames, this.frame)), h("span", { class: "place" }, place(frames, this.frame)),
        h("span", { class: "share" }, `${quantity(value, unit)}, ${percent(value, app.wholeOf(width))} of the run`));
    }
    this.tools.replaceChildren(h("span", { class: "about" }, "All callers of the selected row above, all that it calls below, whatever the context. Select a row to put it into the middle."),
                               ...[widthChoice(app)].filter(Boolean), legend(app));
    this.callers.redraw();
    this.callees.redraw();
  }
}
