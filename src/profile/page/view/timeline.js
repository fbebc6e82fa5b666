// The timeline: one row per lane of each track, zoom by wheel, pan by drag, a span by Shift and drag.

import { exact, frameName, place, percent, quantity } from "../core/format.js";
import { firstBehind, spanTotals, timelineLanes } from "../core/timeline.js";
import { ScrolledCanvas, clipped, h } from "./dom.js";

const LANE = 22;
const HEADING = 18;
const RULER = 24;
const LABELS = 172;
const SHADES = [1, 0.7, 0.85, 0.55];  // neighbours of one kind stay apart

/** A step of 1, 2 or 5 times a power of ten that is at least `least`. */
function tickStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
}

export class TimelinePanel {
  constructor(app) {
    this.app = app;
    this.timeline = app.profile.timeline;
    Object.assign(this, timelineLanes(this.timeline));
    this.whole = [this.from, this.to];
    this.span = null;
    this.hovered = -1;
    this.placeLanes();
    this.scrolled = new ScrolledCanvas("Timeline; A and D move, W and S zoom, Escape shows all", (...frame) => this.draw(...frame));
    this.scrolled.setContentHeight(this.contentHeight);
    this.totals = h("div", { class: "totals", hidden: true });
    this.tools = h("div", { class: "tools" },
                   h("button", { class: "plain", onclick: () => this.setRange(...this.whole), title: "Show all (Escape)" }, "Reset zoom"),
                   h("span", { class: "about" }, "Wheel zooms, drag moves, Shift and drag adds up a span."));
    this.element = h("div", { class: "panel" }, this.tools, this.scrolled.host, this.totals);
    this.listen();
  }

  /** Top of each lane, and of the heading of each process. */
  placeLanes() {
    let y = RULER;
    let process = null;
    for (const lane of this.lanes) {
      if (lane.process !== process) {
        process = lane.process;
        lane.heading = y;
        y += HEADING;
      }
      lane.top = y;
      y += LANE;
    }
    this.contentHeight = y + 8;
  }

  listen() {
    const { canvas } = this.scrolled;
    canvas.addEventListener("mousemove", (event) => this.hover(event));
    canvas.addEventListener("mouseleave", () => this.leave());
    canvas.addEventListener("mousedown", (event) => this.grab(event));
    canvas.addEventListener("dblclick", () => this.setRange(...this.whole));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("wheel", (event) => {
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this.move(event.deltaX / Math.max(this.plotWidth, 1));
      } else {
        this.zoom(Math.exp(event.deltaY * 0.0015), this.timeAt(this.scrolled.position(event).x));
      }
      event.preventDefault();
    }, { passive: false });
  }

  get plotWidth() {
    return this.scrolled.width - LABELS;
  }

  timeAt(x) {
    return this.from + ((x - LABELS) / this.plotWidth) * (this.to - this.from);
  }

  xOf(time) {
    return LABELS + ((time - this.from) / (this.to - this.from)) * this.plotWidth;
  }

  setRange(from, to) {
    const whole = this.whole[1] - this.whole[0];
    const length = Math.min(whole, Math.max(to - from, 10));
    this.from = Math.min(Math.max(from, this.whole[0]), this.whole[1] - length);
    this.to = this.from + length;
    this.scrolled.redraw();
  }

  zoom(factor, pivot) {
    this.setRange(pivot - (pivot - this.from) * factor, pivot + (this.to - pivot) * factor);
  }

  move(share) {
    const step = (this.to - this.from) * share;
    this.setRange(this.from + step, this.to + step);
  }

  draw(context, width, height, scroll) {
    context.textBaseline = "middle";
    for (const lane of this.lanes) {
      const y = lane.top - scroll;
      if (lane.heading !== undefined) this.drawHeading(context, lane, width, scroll);
      if (y + LANE < 0 || y > height) continue;
      this.drawLane(context, lane, width, y);
    }
    this.drawRuler(context, width, height);
    this.drawSpan(context, height);
  }

  drawHeading(context, lane, width, scroll) {
    const { palette } = this.app;
    context.fillStyle = palette.get("raised");
    context.fillRect(0, lane.heading - scroll, width, HEADING - 1);
    context.fillStyle = palette.get("muted");
    context.fillText(clipped(context, lane.process, width - 20), 8, lane.heading - scroll + HEADING / 2);
  }

  drawLane(context, lane, width, y) {
    const { app, timeline } = this;
    context.save();
    context.beginPath();
    context.rect(LABELS, y, width - LABELS, LANE);
    context.clip();
    const perPixel = (this.to - this.from) / this.plotWidth;
    let i = firstBehind(timeline, lane.slices, this.from);
    while (i < lane.slices.length && timeline.start[lane.slices[i]] < this.to) {
      const slice = lane.slices[i];
      const end = timeline.start[slice] + timeline.duration[slice];
      this.drawSlice(context, slice, y, perPixel);
      // Slices that end within the same half pixel are drawn once.
      i = end - timeline.start[slice] < perPixel / 2 ? Math.max(i + 1, firstBehind(timeline, lane.slices, end + perPixel / 2)) : i + 1;
    }
    context.restore();
    context.fillStyle = app.palette.get("text");
    context.fillText(clipped(context, lane.lane === 0 ? lane.name : "", LABELS - 16), 8, y + LANE / 2);
    context.strokeStyle = app.palette.get("line");
    context.beginPath();
    context.moveTo(0, y + LANE - 0.5);
    context.lineTo(width, y + LANE - 0.5);
    context.stroke();
  }

  drawSlice(context, slice, y, perPixel) {
    const { app, timeline } = this;
    const node = timeline.node[slice];
    const left = this.xOf(timeline.start[slice]);
    const width = Math.max(1, timeline.duration[slice] / perPixel - 0.5);
    const frame = node < 0 ? -1 : app.tree.frame[node];
    const faded = app.match && !(frame >= 0 && app.match.frames[frame]);
    context.globalAlpha = faded ? 0.15 : SHADES[(frame + SHADES.length) % SHADES.length];
    context.fillStyle = app.palette.kind(frame < 0 ? "other" : app.profile.frames.kind[frame]);
    context.fillRect(left, y + 2, width, LANE - 5);
    const inside = Math.max(left, LABELS);
    const text = frame < 0 ? "" : clipped(context, app.names[frame], Math.min(left + width, this.scrolled.width) - inside - 6);
    if (text) {
      context.fillStyle = app.palette.get("on-kind");
      context.fillText(text, inside + 3, y + LANE / 2);
    }
    context.globalAlpha = 1;
    if (slice === this.hovered || (node > 0 && node === app.state.node)) {
      context.strokeStyle = app.palette.get(slice === this.hovered ? "text" : "selected");
      context.lineWidth = 1.5;
      context.strokeRect(left + 0.5, y + 2.5, Math.max(1, width - 1), LANE - 6);
      context.lineWidth = 1;
    }
  }

  drawRuler(context, width, height) {
    const { palette } = this.app;
    context.fillStyle = palette.get("panel");
    context.fillRect(0, 0, width, RULER);
    const step = tickStep(((this.to - this.from) * 90) / Math.max(this.plotWidth, 90));
    const first = Math.ceil((this.from - this.whole[0]) / step) * step;
    context.font = "11px system-ui, sans-serif";
    for (let tick = first; tick + this.whole[0] <= this.to; tick += step) {
      const x = Math.round(this.xOf(tick + this.whole[0])) + 0.5;
      context.strokeStyle = palette.get("grid");
      context.beginPath();
      context.moveTo(x, RULER - 6);
      context.lineTo(x, height);
      context.stroke();
      context.fillStyle = palette.get("muted");
      context.fillText(quantity(tick, "ns"), x + 4, RULER / 2);
    }
  }

  drawSpan(context, height) {
    if (!this.span) return;
    const [from, to] = this.span.map((time) => Math.max(LABELS, this.xOf(time)));
    context.fillStyle = this.app.palette.get("span");
    context.fillRect(from, RULER, to - from, height);
    context.fillStyle = this.app.palette.get("text");
    context.fillText(quantity(this.span[1] - this.span[0], "ns"), from + 4, RULER + 10);
  }

  /** The slice at a point, or -1. */
  at({ x, y }) {
    if (x < LABELS) return -1;
    const lane = this.lanes.find(({ top }) => y >= top && y < top + LANE);
    if (!lane) return -1;
    const slack = (1.5 * (this.to - this.from)) / this.plotWidth;
    const time = this.timeAt(x);
    const slice = lane.slices[firstBehind(this.timeline, lane.slices, time - slack)];
    return slice !== undefined && this.timeline.start[slice] <= time + slack ? slice : -1;
  }

  hover(event) {
    if (this.grabbed) return;
    const slice = this.at(this.scrolled.position(event));
    if (slice !== this.hovered) {
      this.hovered = slice;
      this.scrolled.redraw();
    }
    this.app.hint.show(event, slice < 0 ? null : this.describe(slice));
  }

  leave() {
    this.hovered = -1;
    this.app.hint.show(null, null);
    this.scrolled.redraw();
  }

  describe(slice) {
    const { app, timeline } = this;
    const node = timeline.node[slice];
    const { frames } = app.profile;
    const duration = timeline.duration[slice];
    const lines = [node < 0 ? "(unknown)" : frameName(frames, app.tree.frame[node]),
                   `${quantity(duration, "ns")} from ${quantity(timeline.start[slice] - this.whole[0], "ns")}`, exact(duration, "ns")];
    if (node > 0) {
      const callers = app.tree.path(node).slice(1, -1).reverse().slice(0, 4);
      lines.push(...callers.map((at) => `‹ ${frameName(frames, app.tree.frame[at])} ${place(frames, app.tree.frame[at])}`));
    }
    return lines;
  }

  grab(event) {
    if (event.button !== 0) return;
    const start = { x: event.clientX, from: this.from, to: this.to, moved: false, time: this.timeAt(this.scrolled.position(event).x) };
    this.grabbed = start;
    const move = (next) => {
      start.moved ||= Math.abs(next.clientX - start.x) > 4;
      if (!start.moved) return;
      if (event.shiftKey) {
        const time = this.timeAt(this.scrolled.position(next).x);
        this.setSpan([Math.min(start.time, time), Math.max(start.time, time)]);
      } else {
        const distance = ((next.clientX - start.x) / this.plotWidth) * (start.to - start.from);
        this.setRange(start.from - distance, start.to - distance);
      }
    };
    const release = (next) => {
      removeEventListener("mousemove", move);
      removeEventListener("mouseup", release);
      this.grabbed = null;
      if (start.moved) return;
      const slice = this.at(this.scrolled.position(next));
      if (slice >= 0 && this.timeline.node[slice] >= 0) this.app.select(this.timeline.node[slice]);
      else this.setSpan(null);
    };
    addEventListener("mousemove", move);
    addEventListener("mouseup", release);
  }

  /** Adds up what ran in a span. */
  setSpan(span) {
    this.span = span;
    this.scrolled.redraw();
    this.totals.hidden = span === null;
    if (!span) return;
    const length = span[1] - span[0];
    const { frames } = this.app.profile;
    const totals = spanTotals(this.app.tree, this.lanes, ...span);
    const rows = totals.slice(0, 12).map(({ frame, node, count, time }) => (
      h("button", { class: "total", onclick: () => node >= 0 && this.app.select(node) },
        h("span", { class: "name" }, frame < 0 ? "(unknown)" : frameName(frames, frame)),
        h("span", { class: "number" }, `${count} ×`), h("span", { class: "number" }, quantity(time, "ns")),
        h("span", { class: "number" }, percent(time, length)))));
    this.totals.replaceChildren(h("div", { class: "total-title" }, `${quantity(length, "ns")}: ${totals.length} different rows`), ...rows);
  }

  key(event) {
    const middle = (this.from + this.to) / 2;
    const actions = {
      a: () => this.move(-0.2), d: () => this.move(0.2), w: () => this.zoom(0.7, middle), s: () => this.zoom(1.4, middle),
      ArrowLeft: () => this.move(-0.1), ArrowRight: () => this.move(0.1), "+": () => this.zoom(0.7, middle), "-": () => this.zoom(1.4, middle),
      Escape: () => (this.span ? this.setSpan(null) : this.setRange(...this.whole)),
    };
    if (!(event.key in actions)) return;
    actions[event.key]();
    event.preventDefault();
    event.stopPropagation();
  }

  update() {
    this.scrolled.redraw();
  }
}
