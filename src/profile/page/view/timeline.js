// The timeline: one row per lane of each track, zoom by wheel, pan by drag, a span by Shift and drag.

import { exact, frameName, place, percent, quantity } from "../core/format.js";
import { firstBehind, spanTotals, timelineLanes } from "../core/timeline.js";
import { ScrolledCanvas, clipped, h } from "./dom.js";
import { choices } from "./flames.js";

const LANE = 22;
const HEADING = 18;
const RULER = 24;
const LABELS = 172;
const CONTEXT_LANE = 17;
const SHADES = [1, 0.84, 0.92, 0.76];  // neighbours of one kind stay apart

/** A step of 1, 2 or 5 times a power of ten that is at least `least`. */
function tickStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
}

export class TimelinePanel {
  constructor(app) {
    this.app = app;
    this.span = null;
    this.hovered = null;
    this.scrolled = new ScrolledCanvas("Timeline; A and D move, W and S zoom, Escape shows all", (...frame) => this.draw(...frame));
    this.totals = h("div", { class: "totals", hidden: true });
    this.tools = h("div", { class: "tools" });
    this.element = h("div", { class: "panel" }, this.tools, this.scrolled.host, this.totals);
    this.listen();
  }

  update() {
    const { app } = this;
    const { context } = app.state;
    if (context !== this.context) {
      this.context = context;
      const { from, to, lanes } = timelineLanes(app.tree, context);
      this.lanes = lanes;
      if (!this.whole) Object.assign(this, { whole: [from, to], from, to });
      this.placeLanes();
    }
    this.tools.replaceChildren(
      h("button", { class: "plain", onclick: () => this.setRange(...this.whole), title: "Show all (Escape)" }, "Reset zoom"),
      "above slices",
      choices(app, "context", { none: ["nothing", "Slices only"], model: ["the model", "Modules and nodes of the model that slices belong to"], all: ["all callers", "All that slices were called from"] }),
      h("span", { class: "about" }, "Wheel zooms, drag moves, Shift and drag adds up a span."));
    this.scrolled.redraw();
  }

  /** Top and height of each lane, and of the heading of each process. */
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
      lane.height = lane.isContext ? CONTEXT_LANE : LANE;
      y += lane.height;
    }
    this.scrolled.setContentHeight(y + 8);
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
    const ticks = this.ticks();
    this.drawTicks(context, ticks, height);
    for (const lane of this.lanes) {
      const y = lane.top - scroll;
      if (lane.heading !== undefined) this.drawHeading(context, lane, width, scroll);
      if (y + lane.height < 0 || y > height) continue;
      this.drawLane(context, lane, width, y);
    }
    this.drawRuler(context, ticks, width);
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
    const { palette } = this.app;
    context.save();
    context.beginPath();
    context.rect(LABELS, y, width - LABELS, lane.height);
    context.clip();
    const perPixel = (this.to - this.from) / this.plotWidth;
    let i = firstBehind(lane, this.from);
    while (i < lane.start.length && lane.start[i] < this.to) {
      this.drawSlice(context, lane, i, perPixel);
      // What ends within the same pixel is drawn once.
      i = lane.end[i] - lane.start[i] < perPixel ? Math.max(i + 1, firstBehind(lane, lane.end[i] + perPixel)) : i + 1;
    }
    context.restore();
    context.fillStyle = palette.get("text");
    context.fillText(clipped(context, lane.name, LABELS - 16), 8, y + lane.height / 2);
    if (lane.isContext) return;
    context.strokeStyle = palette.get("line");
    context.beginPath();
    context.moveTo(0, y + LANE - 0.5);
    context.lineTo(width, y + LANE - 0.5);
    context.stroke();
  }

  drawSlice(context, lane, i, perPixel) {
    const { app } = this;
    const node = lane.node[i];
    const y = lane.top - this.scrolled.host.scrollTop;
    const left = this.xOf(lane.start[i]);
    const width = Math.max(1, (lane.end[i] - lane.start[i]) / perPixel - 0.5);
    const frame = node < 0 ? -1 : app.tree.frame[node];
    const faded = app.match && !(frame >= 0 && app.match.frames[frame]);
    context.globalAlpha = faded ? 0.15 : SHADES[(frame + SHADES.length) % SHADES.length];
    context.fillStyle = app.palette.kind(frame < 0 ? "other" : app.profile.frames.kind[frame]);
    context.fillRect(left, y + 1, width, lane.height - (lane.isContext ? 1 : 4));
    const inside = Math.max(left, LABELS);
    const text = frame < 0 ? "" : clipped(context, app.labels[frame], Math.min(left + width, this.scrolled.width) - inside - 6);
    if (text) {
      context.globalAlpha = faded ? 0.4 : 1;
      context.fillStyle = app.palette.get("on-kind");
      context.fillText(text, inside + 3, y + lane.height / 2);
    }
    context.globalAlpha = 1;
    const isHovered = this.hovered?.lane === lane && this.hovered.i === i;
    if (isHovered || (node > 0 && node === app.state.node)) {
      context.strokeStyle = app.palette.get(isHovered ? "text" : "selected");
      context.lineWidth = 1.5;
      context.strokeRect(left + 0.5, y + 1.5, Math.max(1, width - 1), lane.height - 5);
      context.lineWidth = 1;
    }
  }

  /** Times of the ruler, from the first slice on. */
  ticks() {
    const step = tickStep(((this.to - this.from) * 90) / Math.max(this.plotWidth, 90));
    const ticks = [];
    for (let tick = Math.ceil((this.from - this.whole[0]) / step) * step; tick + this.whole[0] <= this.to; tick += step) ticks.push(tick);
    return ticks;
  }

  tickX(tick) {
    return Math.round(this.xOf(tick + this.whole[0])) + 0.5;
  }

  drawTicks(context, ticks, height) {
    context.strokeStyle = this.app.palette.get("grid");
    context.beginPath();
    for (const tick of ticks) {
      context.moveTo(this.tickX(tick), RULER - 6);
      context.lineTo(this.tickX(tick), height);
    }
    context.stroke();
  }

  /** Above the lanes, which scroll below it. */
  drawRuler(context, ticks, width) {
    const { palette } = this.app;
    context.fillStyle = palette.get("panel");
    context.fillRect(0, 0, width, RULER);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = palette.get("muted");
    for (const tick of ticks) context.fillText(quantity(tick, "ns"), this.tickX(tick) + 4, RULER / 2);
  }

  drawSpan(context, height) {
    if (!this.span) return;
    const [from, to] = this.span.map((time) => Math.max(LABELS, this.xOf(time)));
    context.fillStyle = this.app.palette.get("span");
    context.fillRect(from, RULER, to - from, height);
    context.fillStyle = this.app.palette.get("text");
    context.fillText(quantity(this.span[1] - this.span[0], "ns"), from + 4, RULER + 10);
  }

  /** The lane and the index in it of what is at a point, or null. */
  at({ x, y }) {
    const lane = this.lanes.find(({ top, height }) => y >= top && y < top + height);
    if (x < LABELS || !lane) return null;
    const slack = (1.5 * (this.to - this.from)) / this.plotWidth;
    const time = this.timeAt(x);
    const i = firstBehind(lane, time - slack);
    return lane.start[i] <= time + slack ? { lane, i } : null;
  }

  hover(event) {
    if (this.grabbed) return;
    const found = this.at(this.scrolled.position(event));
    if (found?.lane !== this.hovered?.lane || found?.i !== this.hovered?.i) this.scrolled.redraw();
    this.hovered = found;
    this.app.hint.show(event, found && this.describe(found));
  }

  leave() {
    this.hovered = null;
    this.app.hint.show(null, null);
    this.scrolled.redraw();
  }

  describe({ lane, i }) {
    const { app } = this;
    const node = lane.node[i];
    const { frames } = app.profile;
    const duration = lane.end[i] - lane.start[i];
    const lines = [node < 0 ? "(unknown)" : frameName(frames, app.tree.frame[node]),
                   `${quantity(duration, "ns")} from ${quantity(lane.start[i] - this.whole[0], "ns")}`, exact(duration, "ns")];
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
      const found = this.at(this.scrolled.position(next));
      if (found && found.lane.node[found.i] >= 0) this.app.select(found.lane.node[found.i]);
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
  }}
