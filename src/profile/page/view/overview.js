// What the run took, its hot path, what to do, and the rows with the most cost of their own.

import { groupedAdvice } from "../core/advice.js";
import { BottomUp, TopDown, openHotPath } from "../core/rows.js";
import { frameName, growth, place, percent, printable, quantity, signed } from "../core/format.js";
import { changeClass, changeColour, chip, h, kindChip } from "./dom.js";

const CONFIDENCE = { measured: "measured", bound: "an upper bound", guess: "an estimate" };

export class OverviewPanel {
  constructor(app) {
    this.app = app;
    this.element = h("div", { class: "panel overview" });
    this.key = null;
  }

  update() {
    const { app } = this;
    const key = `${app.generation} ${app.state.metric}`;
    if (key === this.key) return;
    this.key = key;
    const left = [this.facts(), this.totals(), this.hotPath()];
    const right = [app.profile.isDifference ? this.changes() : this.advice(), this.heaviest()];
    this.element.replaceChildren(h("div", { class: "cards" }, h("div", { class: "stack" }, left.filter(Boolean)), h("div", { class: "stack" }, right.filter(Boolean))));
  }

  card(title, ...content) {
    return h("section", { class: "card" }, h("h2", {}, title), content);
  }

  facts() {
    const { facts } = this.app.profile;
    if (facts.length === 0) return null;
    return this.card("This run", h("dl", { class: "facts" }, facts.map(([name, value]) => (
      h("div", { class: "fact" }, h("dt", {}, printable(name)), h("dd", {}, printable(value)))))));
  }

  /** All metrics of the run; a click chooses one. */
  totals() {
    const { app } = this;
    const { metrics, isDifference } = app.profile;
    return this.card("Metrics", h("div", { class: "tiles" }, metrics.map(({ name, unit, title }) => {
      const now = app.tree.total(name);
      const before = isDifference ? app.tree.total(name, "before") : 0;
      return h("button", { class: "tile", "aria-pressed": String(name === app.state.metric), onclick: () => app.set({ metric: name }) },
               h("span", { class: "tile-name" }, printable(title)), h("span", { class: "tile-value" }, quantity(now, unit)),
               isDifference ? h("span", { class: changeClass(now - before) }, `${signed(now - before, unit)}, ${growth(now, before)}`) : h("span", { class: "muted" }, name));
    })));
  }

  rowButton(node, frame, value, whole, text) {
    const { app } = this;
    const { frames } = app.profile;
    return h("button", { class: "bar-row", style: `--bar:${Math.min(100, Math.max(0, (100 * value) / Math.max(whole, 1))).toFixed(1)}%`, onclick: () => app.select(node) },
             kindChip(frames.kind[frame]),
             h("span", { class: "name", title: frameName(frames, frame) }, frameName(frames, frame)), h("span", { class: "place" }, place(frames, frame)),
             h("span", { class: "number" }, text), h("span", { class: "share" }, percent(value, whole)));
  }

  hotPath() {
    const { app } = this;
    const column = { metric: app.state.metric, side: "now", inclusive: true };
    const view = new TopDown(app.tree);
    const { unit } = app.metricOf(app.state.metric);
    const whole = view.roots[0].value(column);
    const rows = [];
    for (let row = openHotPath(view.roots[0], column); row.parent; row = row.parent) rows.unshift(row);
    if (rows.length === 0) return null;
    return this.card("Hot path", h("p", { class: "muted" }, "Each row holds at least half of the one above."),
                     rows.map((row) => this.rowButton(row.node, row.frame, row.value(column), whole, quantity(row.value(column), unit))),
                     h("button", { class: "plain", onclick: () => { app.set({ view: "top-down" }); app.select(rows.at(-1).node); } }, "Show in the tree"));
  }

  advice() {
    const { app } = this;
    const { advice, frames } = app.profile;
    if (advice.length === 0) return null;
    const saved = (gain, share) => `saves ${quantity(gain, "ns")}${share > 0 ? `, ${percent(share, 1)}` : ""}`;
    return this.card("Advice", groupedAdvice(advice).map(({ rule, remedy, confidence, gain, share, places }) => {
      const isOne = places.length === 1;
      const confident = CONFIDENCE[confidence] ?? printable(confidence);
      return h("article", { class: "advice" },
               h("div", { class: "advice-head" }, h("strong", {}, printable(rule.replaceAll("_", " "))),
                 h("span", { class: "gain", title: `The gain is ${confident}` }, saved(gain, share)),
                 h("span", { class: "badge" }, confident),
                 isOne ? null : h("span", { class: "badge" }, `${places.length} places`)),
               h("p", { class: "remedy" }, printable(remedy)),
               places.map((entry) => h("p", { class: "advice-place" }, printable(entry.evidence), " ",
                                       h("button", { class: "link", onclick: () => { app.set({ view: "top-down" }); app.select(entry.node); } },
                                         `${frameName(frames, app.tree.frame[entry.node])} ${place(frames, app.tree.frame[entry.node])}`),
                                       isOne ? null : h("span", { class: "muted" }, ` ${saved(entry.gain, entry.share)}`))));
    }));
  }

  heaviest() {
    const { app } = this;
    const column = { metric: app.state.metric, side: "now", inclusive: false };
    const { unit } = app.metricOf(app.state.metric);
    const whole = app.tree.total(app.state.metric);
    const rows = new BottomUp(app.tree, app.state.metric).roots.filter((row) => row.value(column) > 0).sort((a, b) => b.value(column) - a.value(column)).slice(0, 12);
    if (rows.length === 0) return null;
    return this.card("Most cost of their own", rows.map((row) => this.rowButton(row.node, row.frame, row.value(column), whole, quantity(row.value(column), unit))));
  }

  /** Rows of a difference that changed most by themselves. */
  changes() {
    const { app } = this;
    const column = { metric: app.state.metric, side: "delta", inclusive: false };
    const { unit } = app.metricOf(app.state.metric);
    const rows = new BottomUp(app.tree, app.state.metric).roots.filter((row) => row.value(column) !== 0)
      .sort((a, b) => Math.abs(b.value(column)) - Math.abs(a.value(column))).slice(0, 15);
    const { frames } = app.profile;
    return this.card("Largest changes", rows.map((row) => {
      const change = row.value(column);
      const now = row.value({ ...column, side: "now" });
      return h("button", { class: "bar-row", onclick: () => app.select(row.node) },
               chip(changeColour(change / Math.max(now, now - change, 1))),
               h("span", { class: "name" }, frameName(frames, row.frame)), h("span", { class: "place" }, place(frames, row.frame)),
               h("span", { class: `number ${changeClass(change)}` }, signed(change, unit)), h("span", { class: "share" }, growth(now, now - change)));
    }));
  }
}
