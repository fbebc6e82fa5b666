// The three tables: top-down, bottom-up, flat.

import { BottomUp, FLAT_GROUPS, Flat, TopDown, openToMatches } from "../core/rows.js";
import { exact, growth, percent, signed } from "../core/format.js";
import { rooflinePoints } from "../core/roofline.js";
import { changeClass, h } from "./dom.js";
import { TreeTable, valueField } from "./table.js";

/** Columns of a difference: before, now, how much it grew. */
function differenceFields(app, metric) {
  const { unit, title } = app.metricOf(metric);
  const column = (side, inclusive) => ({ metric, side, inclusive });
  const delta = (inclusive, name) => ({
    title: name,
    hint: `${title}: change, ${inclusive ? "with" : "without"} what is called below`,
    column: column("delta", inclusive),
    value: (row) => row.value(column("delta", inclusive)),
    width: "160px",
    style: (row) => changeClass(row.value(column("delta", inclusive))),
    cells: (row) => {
      const change = row.value(column("delta", inclusive));
      if (change === 0) return [h("span", { class: "none" }, "=")];
      const now = row.value(column("now", inclusive));
      return [h("span", { title: exact(change, unit) }, signed(change, unit)), h("span", { class: "share" }, growth(now, now - change))];
    },
  });
  return [
    delta(true, "Change"),
    valueField(app, column("now", true), { title: "Now", hint: `${title} of the newer profile, inclusive`, wide: true }),
    valueField(app, column("before", true), { title: "Before", hint: `${title} of the older profile, inclusive` }),
    delta(false, "Own change"),
  ];
}

/** The share of the device's bound that a row reaches. */
function boundField(app, metric) {
  const points = new Map(rooflinePoints(app.tree, metric).map((point) => [point.node, point]));
  return {
    title: "Of bound",
    hint: "Share of the device's limit (memory or arithmetic) that this row reaches",
    column: { metric, side: "now", inclusive: true },
    value: (row) => points.get(row.node)?.reached ?? -1,
    width: "100px",
    cells: (row) => {
      const point = points.get(row.node);
      return point ? [percent(point.floor, point.time), h("span", { class: "share" }, point.bound.slice(0, 3))]
                   : [h("span", { class: "none" }, "·")];
    },
  };
}

function plainFields(app, metric, extra, withBound) {
  const { title } = app.metricOf(metric);
  const column = (name, inclusive) => ({ metric: name, side: "now", inclusive });
  const fields = [
    valueField(app, column(metric, true), { title: "Total", hint: `${title}, with what is called below (inclusive)`, wide: true }),
    valueField(app, column(metric, false), { title: "Own", hint: `${title}, without what is called below (exclusive)`, wide: true }),
    ...extra.map((name) => valueField(app, column(name, true), { title: name, hint: `${app.metricOf(name).title}, inclusive` })),
  ];
  if (withBound) fields.push(boundField(app, metric));
  return fields;
}

/** A tab with one table. */
class TablePanel {
  /** @param {function(Object): Object} makeView  from the app  @param {number} field  that rows are sorted by at first */
  constructor(app, id, label, makeView, field = 0) {
    this.app = app;
    this.id = id;
    this.makeView = makeView;
    this.table = new TreeTable(app, label);
    this.table.element.id = `table-${id}`;
    this.table.sort.field = app.profile.isDifference ? 0 : field;
    this.tools = h("div", { class: "tools" });
    this.element = h("div", { class: "panel" }, this.tools, this.table.element);
    this.viewKey = null;
    this.fieldsKey = null;
  }

  paintTools() {
    const { app } = this;
    const { group } = app.state;
    const grouping = FLAT_GROUPS.map((name) => h("button", {
      class: "choice", "aria-pressed": String(group === name), onclick: () => app.set({ group: name }),
    }, name));
    const columns = app.profile.isDifference ? [] : app.profile.metrics.filter(({ name }) => name !== app.state.metric).map(({ name, title }) => (
      h("label", { title }, h("input", { type: "checkbox", checked: app.state.columns.includes(name), onchange: () => app.toggleColumn(name) }), name)));
    this.tools.replaceChildren(
      h("button", { class: "hot", title: "Open the chain of rows that each hold at least half of the one above (h)", onclick: () => this.table.hotPath() }, "Hot path"),
      h("button", { class: "plain", title: "Close all rows", onclick: () => this.collapse() }, "Collapse"),
      ...(this.id === "flat" ? ["by", h("span", { class: "group" }, grouping)] : []),
      h("span", { class: "group columns" }, columns.length > 0 ? "columns " : "", ...columns),
      h("span", { class: "about" }, this.about()));
  }

  /** Opens the way to matches, once for each search. */
  showMatches() {
    const { match, state } = this.app;
    if (this.id !== "top-down" || !match || !state.filter || this.matched === match) return;
    this.matched = match;
    openToMatches(this.table.view, match);
  }

  about() {
    return {
      "top-down": "Callers, and below each what it calls.",
      "bottom-up": "What costs by itself, and below each who calls it.",
      flat: "Everything once, whoever called it. A recursion counts once.",
    }[this.id];
  }

  collapse() {
    this.viewKey = null;
    this.update();
  }

  hotPath() {
    this.table.hotPath();
  }

  update(source) {
    const { app, table } = this;
    const { state } = app;
    const viewKey = `${app.generation} ${{ flat: state.group, "bottom-up": state.metric }[this.id]}`;
    const isFresh = viewKey !== this.viewKey;
    if (isFresh) {
      this.viewKey = viewKey;
      table.setView(this.makeView(app));
    }
    const fieldsKey = `${app.generation} ${state.metric} ${state.columns}`;
    if (fieldsKey !== this.fieldsKey) {
      this.fieldsKey = fieldsKey;
      const withBound = this.id === "top-down" && app.profile.roofline !== null;
      table.setFields(app.profile.isDifference ? differenceFields(app, state.metric)
                                               : plainFields(app, state.metric, state.columns, withBound));
    }
    this.showMatches();
    this.paintTools();
    if (source === "table" || source === "theme") {
      table.paint();
    } else {
      table.update();
      if (state.node > 0 && (this.revealed !== state.node || isFresh)) table.reveal(state.node);
    }
    this.revealed = state.node;
  }
}

export function tablePanels(app) {
  return {
    "top-down": () => new TablePanel(app, "top-down", "Callers to callees", ({ tree }) => new TopDown(tree)),
    "bottom-up": () => new TablePanel(app, "bottom-up", "Callees to callers", ({ tree, state }) => new BottomUp(tree, state.metric), 1),
    flat: () => new TablePanel(app, "flat", "All frames", ({ tree, state }) => new Flat(tree, state.group)),
  };
}
