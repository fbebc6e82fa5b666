// The roofline plot, and beside it the rows with the most time above their bound.

import { percent, quantity } from "../core/format.js";
import { rooflineAxes, rooflinePoints } from "../core/roofline.js";
import { ScrolledCanvas, clipped, h } from "./dom.js";

const MARGIN = { left: 86, right: 22, top: 22, bottom: 48 };
const BOUNDS = ["memory", "compute", "latency"];

export class RooflinePanel {
  constructor(app) {
    this.app = app;
    this.scrolled = new ScrolledCanvas("Roofline plot; the table beside it has the same rows", (...frame) => this.draw(...frame));
    this.list = h("div", { class: "roof-list" });
    this.tools = h("div", { class: "tools" });
    this.element = h("div", { class: "panel" }, this.tools, h("div", { class: "beside" }, this.scrolled.host, this.list));
    this.hovered = null;
    const { canvas } = this.scrolled;
    canvas.addEventListener("mousemove", (event) => this.hover(event));
    canvas.addEventListener("mouseleave", (event) => this.hover(event));
    canvas.addEventListener("click", (event) => {
      const point = this.at(this.scrolled.position(event));
      if (point) app.select(point.node);
    });
  }

  update() {
    const { app } = this;
    this.metric = app.metricOf(app.state.metric).unit === "ns" ? app.state.metric : app.tree.timeMetric();
    this.points = rooflinePoints(app.tree, this.metric);
    this.axes = rooflineAxes(this.points, app.profile.device);
    this.drawn = this.points.filter(({ flops, bytes }) => flops > 0 && bytes > 0);
    this.paintTools();
    this.paintList();
    this.scrolled.redraw();
  }

  paintTools() {
    const { device } = this.app.profile;
    const left = this.points.length - this.drawn.length;
    this.tools.replaceChildren(
      h("span", { class: "about" }, [device?.name, "a point is a row, its area the row's time", left > 0 ? `${left} rows without arithmetic are in the table only` : ""].filter(Boolean).join("; ") + "."),
      h("span", { class: "legend" }, BOUNDS.map((bound) => h("span", { class: "key" }, h("span", { class: `shape shape-${bound}` }), `${bound} bound`))));
  }

  paintList() {
    const { app } = this;
    const whole = app.tree.total(this.metric);
    const gain = ({ time, floor }) => Math.max(0, time - floor);
    const rows = this.points.slice().sort((a, b) => gain(b) - gain(a)).slice(0, 60);
    const head = h("div", { class: "roof-row roof-head" }, ...[["Row", "the largest time above its bound first"], ["Time", "inclusive"], ["Bound", "what the device needs at least"], ["Reached", "bound / time"],
      ["Above", "time above the bound, of the run"]].map(([text, title]) => h("span", { title }, text)));
    this.list.replaceChildren(head, ...rows.map((point) => (
      h("button", { class: `roof-row${point.node === app.state.node ? " row-selected" : ""}`, onclick: () => app.select(point.node) },
        h("span", { class: "name", title: this.nameOf(point) }, h("span", { class: `shape shape-${BOUNDS.includes(point.bound) ? point.bound : "latency"}` }), this.nameOf(point)),
        h("span", {}, quantity(point.time, "ns")), h("span", {}, quantity(point.floor, "ns")), h("span", {}, percent(point.floor, point.time)),
        h("span", {}, percent(gain(point), whole))))));
  }

  /** A kernel's name says little: the part of the model that it belongs to comes first. */
  nameOf({ node }) {
    const { tree, names } = this.app;
    const part = tree.partOfModel(node);
    const own = names[tree.frame[node]];
    return part < 0 || part === node ? own : `${names[tree.frame[part]]}  ${own}`;
  }

  x(intensity) {
    const [low, high] = this.axes.x;
    return MARGIN.left + (Math.log(intensity / low) / Math.log(high / low)) * (this.scrolled.width - MARGIN.left - MARGIN.right);
  }

  y(rate) {
    const [low, high] = this.axes.y;
    const height = this.scrolled.height - MARGIN.top - MARGIN.bottom;
    return MARGIN.top + height - (Math.log(Math.max(rate, low) / low) / Math.log(high / low)) * height;
  }

  draw(context, width, height) {
    if (!this.axes) return;
    context.textBaseline = "middle";
    this.drawGrid(context, width, height);
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, MARGIN.top - 12, width - MARGIN.left - MARGIN.right + 12, height - MARGIN.top - MARGIN.bottom + 24);
    context.clip();
    this.drawRoofs(context);
    for (const point of this.drawn) this.drawPoint(context, point);
    context.restore();
    if (this.drawn.length > 0) return;
    context.fillStyle = this.app.palette.get("muted");
    context.fillText("No row has both operations and bytes.", MARGIN.left + 20, MARGIN.top + 20);
  }

  drawGrid(context, width, height) {
    const { palette } = this.app;
    context.font = "11px system-ui, sans-serif";
    context.strokeStyle = palette.get("grid");
    context.fillStyle = palette.get("muted");
    const bottom = height - MARGIN.bottom;
    const line = (x0, y0, x1, y1) => {
      context.beginPath();
      context.moveTo(x0, y0);
      context.lineTo(x1, y1);
      context.stroke();
    };
    context.textAlign = "center";
    for (let value = this.axes.x[0]; value <= this.axes.x[1] * 1.001; value *= 10) {
      const x = Math.round(this.x(value)) + 0.5;
      line(x, MARGIN.top, x, bottom);
      context.fillText(String(Number(value.toPrecision(3))), x, bottom + 14);
    }
    context.fillText("FLOP per byte", (MARGIN.left + width - MARGIN.right) / 2, bottom + 34);
    context.textAlign = "right";
    for (let value = this.axes.y[0]; value <= this.axes.y[1] * 1.001; value *= 10) {
      const y = Math.round(this.y(value)) + 0.5;
      line(MARGIN.left, y, width - MARGIN.right, y);
      context.fillText(quantity(Math.round(value), "flop/s"), MARGIN.left - 8, y);
    }
    context.textAlign = "left";
  }

  drawRoofs(context) {
    const { device } = this.app.profile;
    if (!device || !(device.bandwidth > 0)) return;
    const { palette } = this.app;
    const peaks = Object.entries(device.flops ?? {}).filter(([, peak]) => peak > 0).sort((a, b) => b[1] - a[1]);
    const [low, high] = this.axes.x;
    const highest = peaks.length > 0 ? peaks[0][1] : this.axes.y[1];
    context.strokeStyle = palette.get("roof");
    context.fillStyle = palette.get("text");
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(this.x(low), this.y(low * device.bandwidth));
    context.lineTo(this.x(highest / device.bandwidth), this.y(highest));
    for (const [, peak] of peaks) {
      context.moveTo(this.x(peak / device.bandwidth), this.y(peak));
      context.lineTo(this.x(high), this.y(peak));
    }
    context.stroke();
    context.lineWidth = 1;
    context.textAlign = "right";
    for (const [name, peak] of peaks) context.fillText(`${name} ${quantity(peak, "flop/s")}`, this.x(high) - 4, this.y(peak) - 9);
    context.textAlign = "left";
    this.labelBandwidth(context, device.bandwidth, highest);
  }

  /** Along the slope, where it shows. */
  labelBandwidth(context, bandwidth, highest) {
    const from = Math.max(this.axes.x[0], this.axes.y[0] / bandwidth);
    const middle = Math.sqrt(from * Math.min(highest / bandwidth, this.axes.x[1]));
    const angle = Math.atan2(this.y(middle * 10 * bandwidth) - this.y(middle * bandwidth), this.x(middle * 10) - this.x(middle));
    context.save();
    context.translate(this.x(middle), this.y(middle * bandwidth));
    context.rotate(angle);
    context.textAlign = "center";
    context.fillText(`memory ${quantity(bandwidth, "bytes/s")}`, 0, -10);
    context.restore();
  }

  radius(point) {
    return 4 + 22 * Math.sqrt(point.time / Math.max(this.app.tree.total(this.metric), 1));
  }

  drawPoint(context, point) {
    const { palette, state, match, tree } = this.app;
    const [x, y, r] = [this.x(point.intensity), this.y(point.rate), this.radius(point)];
    const isSelected = point.node === state.node;
    const faded = match && !match.frames[tree.frame[point.node]];
    context.globalAlpha = faded ? 0.12 : 0.72;
    context.fillStyle = palette.get(`bound-${BOUNDS.includes(point.bound) ? point.bound : "latency"}`);
    context.beginPath();
    if (point.bound === "compute") {
      context.rect(x - r * 0.88, y - r * 0.88, r * 1.76, r * 1.76);
    } else if (point.bound === "memory") {
      context.arc(x, y, r, 0, 2 * Math.PI);
    } else {
      context.moveTo(x, y - r * 1.2);
      context.lineTo(x + r * 1.1, y + r * 0.8);
      context.lineTo(x - r * 1.1, y + r * 0.8);
      context.closePath();
    }
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = palette.get(isSelected ? "selected" : point === this.hovered ? "text" : "panel");
    context.lineWidth = isSelected ? 3 : 1;
    context.stroke();
    context.lineWidth = 1;
    if (!isSelected && point !== this.hovered) return;
    context.fillStyle = palette.get("text");
    context.fillText(clipped(context, this.nameOf(point), 260), x + r + 5, y);
  }

  /** The smallest point under the pointer. */
  at({ x, y }) {
    const near = this.drawn.filter((point) => Math.hypot(this.x(point.intensity) - x, this.y(point.rate) - y) <= this.radius(point) + 2);
    return near.reduce((best, point) => (best === null || point.time < best.time ? point : best), null);
  }

  hover(event) {
    const point = event.type === "mouseleave" ? null : this.at(this.scrolled.position(event));
    if (point !== this.hovered) {
      this.hovered = point;
      this.scrolled.redraw();
    }
    this.scrolled.canvas.style.cursor = point ? "pointer" : "default";
    this.app.hint.show(event, point && [
      this.nameOf(point),
      `${quantity(point.time, "ns")}, bound ${quantity(point.floor, "ns")}: ${percent(point.floor, point.time)} reached`,
      `${quantity(point.flops, "flop")}, ${quantity(point.bytes, "bytes")}, ${point.intensity.toPrecision(3)} FLOP per byte`,
      `${quantity(point.rate, "flop/s")}, ${point.bound} bound`,
    ]);
  }
}
