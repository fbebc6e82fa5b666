// A table of tree rows: only rows in sight are elements, so that 10^5 rows scroll as 100 do.

import { openHotPath, visibleRows } from "../core/rows.js";
import { exact, frameName, place, percent, printable, quantity } from "../core/format.js";
import { h, kindChip } from "./dom.js";

const ROW_HEIGHT = 24;
const SPARE = 6;
const MOST_INDENTED = 40;

/** How far the name of a row stands from the left; levels below the last indented one stand together. */
function indent(depth) {
  return Math.min(depth, MOST_INDENTED) * 14 + 6;
}

/**
 * @typedef {Object} Field  a column of the table
 * @property {string} title
 * @property {string} hint
 * @property {import("../core/rows.js").Column} column  whose small values are folded where the table is sorted by this
 * @property {function(Row): number} value  that it is sorted by
 * @property {string} width
 * @property {function(Row): (string | Node)[]} cells  what a cell holds
 * @property {?function(Row): number} bar  share from 0 to 1
 */

export class TreeTable {
  /** @param {Object} app */
  constructor(app, label) {
    this.app = app;
    this.view = null;
    this.fields = [];
    this.sort = { field: 0, descending: true };
    this.entries = [];
    this.cursor = -1;
    this.head = h("div", { class: "table-head", role: "row" });
    this.rows = h("div", { class: "table-rows", role: "presentation" });
    this.body = h("div", { class: "table-body", role: "presentation" }, this.rows);
    this.element = h("div", { class: "table", role: "treegrid", tabindex: 0, "aria-label": label },
                     this.head, this.body);
    this.body.addEventListener("scroll", () => this.paintSoon());
    this.element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.paintSoon()).observe(this.body);
  }

  setView(view) {
    this.view = view;
    this.cursor = -1;
    this.body.scrollTop = 0;
  }

  /** @param {Field[]} fields */
  setFields(fields) {
    this.fields = fields;
    if (this.sort.field >= fields.length) this.sort.field = 0;
    this.element.style.setProperty("--columns", `minmax(220px, 1fr) ${fields.map(({ width }) => width).join(" ")}`);
  }

  nameOf(row) {
    const { frames } = this.app.profile;
    return row.frame < 0 ? printable(row.label) || "(no file)" : frameName(frames, row.frame);
  }

  order() {
    const { field, descending } = this.sort;
    return {
      valueOf: field < 0 ? (row) => this.nameOf(row) : this.fields[field].value,
      weight: this.fields[Math.max(field, 0)].column,
      descending,
      match: this.app.state.filter ? this.app.match : null,
    };
  }

  /** Takes open rows, order, filter and selection anew. */
  update() {
    this.entries = visibleRows(this.view, this.order());
    this.cursor = Math.min(this.cursor, this.entries.length - 1);
    this.element.setAttribute("aria-rowcount", this.entries.length);
    this.rows.style.height = `${this.entries.length * ROW_HEIGHT}px`;
    this.paintHead();
    this.paint();
  }

  paintHead() {
    const cell = (title, hint, field) => {
      const isSorted = this.sort.field === field;
      const arrow = isSorted ? (this.sort.descending ? " ▾" : " ▴") : "";
      return h("div", { role: "columnheader", class: field < 0 ? "cell-name" : "cell",
                        "aria-sort": isSorted ? (this.sort.descending ? "descending" : "ascending") : "none" },
               h("button", { class: "sort", title: hint, onclick: () => this.sortBy(field) }, title + arrow));
    };
    this.head.replaceChildren(cell("Name", "Sort by name", -1),
                              ...this.fields.map(({ title, hint }, i) => cell(title, hint, i)));
  }

  sortBy(field) {
    const descending = this.sort.field === field ? !this.sort.descending : field >= 0;
    this.sort = { field, descending };
    this.update();
  }

  paintSoon() {
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      this.paint();
    });
  }

  paint() {
    const first = Math.max(0, Math.floor(this.body.scrollTop / ROW_HEIGHT) - SPARE);
    const last = Math.min(this.entries.length, Math.ceil((this.body.scrollTop + this.body.clientHeight) / ROW_HEIGHT) + SPARE);
    const painted = [];
    for (let i = first; i < last; i++) painted.push(this.entries[i].more ? this.moreRow(i) : this.row(i));
    this.rows.replaceChildren(...painted);
    const cursor = painted[this.cursor - first];
    if (cursor) this.element.setAttribute("aria-activedescendant", cursor.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  rowElement(i, properties, ...cells) {
    const isCursor = i === this.cursor;
    return h("div", { role: "row", id: `${this.element.id}-${i}`, style: `top:${i * ROW_HEIGHT}px`, "aria-rowindex": i + 1,
                      "aria-selected": String(isCursor), ...properties, class: `row ${properties.class ?? ""}` }, cells);
  }

  moreRow(i) {
    const { more, parent, depth } = this.entries[i];
    const { weight } = this.order();
    const sum = more.reduce((total, row) => total + row.value(weight), 0);
    const share = percent(sum, this.app.tree.total(weight.metric, weight.side));
    const open = () => {
      parent.isUnfolded = true;
      this.update();
    };
    return this.rowElement(i, { class: "row-more", onclick: open },
                           h("div", { class: "cell-name", role: "gridcell", style: `padding-left:${indent(depth) + 20}px` },
                             `${more.length} more, ${share}`));
  }

  row(i) {
    const { row, depth } = this.entries[i];
    const { app } = this;
    const { frames } = app.profile;
    const matched = row.frame >= 0 && app.match?.frames[row.frame] === 1;
    const hasChildren = row.view.hasChildren(row);
    const kind = row.frame < 0 ? row.label : frames.kind[row.frame];
    const toggle = h("span", { class: `toggle${hasChildren ? "" : " toggle-none"}`, "aria-hidden": "true",
                               onclick: (event) => { event.stopPropagation(); this.toggle(row, event.altKey); } },
                     row.isOpen ? "▾" : "▸");
    const name = h("div", { class: "cell-name", role: "gridcell", style: `padding-left:${indent(depth)}px` },
                   toggle, kindChip(kind),
                   h("span", { class: matched ? "name matched" : "name", title: this.nameOf(row) }, this.nameOf(row)),
                   h("span", { class: "place" }, place(frames, row.frame)));
    const cells = this.fields.map((field) => {
      const bar = field.bar ? Math.min(1, Math.max(0, field.bar(row))) : 0;
      const style = bar > 0 ? `--bar:${(100 * bar).toFixed(1)}%` : "";
      return h("div", { class: `cell${bar > 0 ? " cell-bar" : ""} ${field.style?.(row) ?? ""}`, role: "gridcell", style }, field.cells(row));
    });
    const properties = { class: row.node === app.state.node && row.frame >= 0 ? "row-selected" : "",
                         "aria-level": depth + 1, onclick: () => this.pick(i), ondblclick: () => this.toggle(row, false) };
    if (hasChildren) properties["aria-expanded"] = String(row.isOpen);
    return this.rowElement(i, properties, name, cells);
  }

  toggle(row, deep) {
    row.isOpen = !row.isOpen && row.view.hasChildren(row);
    if (deep && row.isOpen) for (const child of row.children()) child.isOpen = child.view.hasChildren(child);
    this.update();
  }

  pick(i) {
    this.cursor = i;
    const { row, more, parent } = this.entries[i];
    if (more) {
      parent.isUnfolded = true;
      this.update();
    } else {
      if (row.frame >= 0) this.app.select(row.node, "table");
      this.paint();
    }
    this.element.focus({ preventScroll: true });
  }

  scrollTo(i) {
    const top = i * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.body;
    if (top < scrollTop) this.body.scrollTop = top - ROW_HEIGHT;
    else if (top + 2 * ROW_HEIGHT > scrollTop + clientHeight) this.body.scrollTop = top - clientHeight + 3 * ROW_HEIGHT;
  }

  /** Puts the cursor onto `row` and scrolls to it. */
  goTo(row) {
    this.entries = visibleRows(this.view, this.order());
    this.cursor = this.entries.findIndex((entry) => entry.row === row);
    this.update();
    if (this.cursor >= 0) this.scrollTo(this.cursor);
    this.paint();
  }

  /** Opens the way to the row of `node` and goes there. */
  reveal(node) {
    const row = this.view.reveal(node);
    if (row) this.goTo(row);
  }

  /** From the row at the cursor, or from the heaviest root. */
  hotPath() {
    const { weight } = this.order();
    const roots = this.view.roots.slice().sort((a, b) => Math.abs(b.value(weight)) - Math.abs(a.value(weight)));
    const start = this.entries[this.cursor]?.row ?? roots[0];
    if (!start) return;
    const end = openHotPath(start, weight);
    this.goTo(end);
    if (end.frame >= 0) this.app.select(end.node, "table");
  }

  key(event) {
    const entry = this.entries[this.cursor];
    const page = Math.max(1, Math.floor(this.body.clientHeight / ROW_HEIGHT) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.target !== this.element) return;
    if (event.key in steps) {
      const target = Math.min(this.entries.length - 1, Math.max(0, this.cursor + steps[event.key]));
      this.cursor = target;
      this.scrollTo(target);
      if (this.entries[target]?.row) this.pick(target);
      this.paint();
    } else if (event.key === "ArrowRight" && entry?.row) {
      if (!entry.row.isOpen && entry.row.view.hasChildren(entry.row)) this.toggle(entry.row, false);
      else if (entry.row.isOpen && this.cursor + 1 < this.entries.length) this.pick(this.cursor + 1);
    } else if (event.key === "ArrowLeft" && entry?.row) {
      if (entry.row.isOpen) this.toggle(entry.row, false);
      else if (entry.row.parent) this.goTo(entry.row.parent);
    } else if (event.key === "Enter" && entry) {
      if (entry.more) this.pick(this.cursor);
      else this.toggle(entry.row, event.altKey);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

/** A field with a value and its share of the run. */
export function valueField(app, column, { title, hint, wide }) {
  const { unit } = app.metricOf(column.metric);
  const whole = app.tree.total(column.metric, column.side);
  return {
    title, hint, column,
    value: (row) => row.value(column),
    width: wide ? "146px" : "90px",
    bar: wide ? (row) => row.value(column) / Math.max(whole, 1) : null,
    cells: (row) => {
      const value = row.value(column);
      if (value === 0) return [h("span", { class: "none" }, "·")];
      const text = h("span", { title: exact(value, unit) }, quantity(value, unit));
      return wide ? [text, h("span", { class: "share" }, percent(value, whole))] : [text];
    },
  };
}
