// A flame graph on a canvas: zoom by click, by wheel and by keys, pan by drag.

import { exact, frameName, place, percent, quantity, signed } from "../core/format.js";
import { ScrolledCanvas, clipped } from "./dom.js";

const BOX = 19;
const LEAST_WIDTH = 0.5;
const ZOOM_MS = 160;

export class FlameCanvas {
  /** @param {Object} app  @param {string} label  @param {boolean} rootBelow  the root is the lowest row */
  constructor(app, label, rootBelow) {
    this.app = app;
    this.rootBelow = rootBelow;
    this.flame = null;
    this.hovered = -1;
    this.scrolled = new ScrolledCanvas(label, (...frame) => this.draw(...frame));
    this.element = this.scrolled.host;
    this.listen();
  }

  listen() {
    const { canvas } = this.scrolled;
    canvas.addEventListener("mousemove", (event) => this.hover(event));
    canvas.addEventListener("mouseleave", () => this.leave());
    canvas.addEventListener("mousedown", (event) => this.grab(event));
    canvas.addEventListener("dblclick", () => this.zoomTo(0));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && !event.metaKey) return;
      event.preventDefault();
      this.scale(Math.exp((event.deltaY || event.deltaX) * 0.0015), this.scrolled.position(event).x);
    }, { passive: false });
  }

  /** Shows another tree, all of it. */
  setTree(flame, { unit, rootBelow = this.rootBelow }) {
    this.flame = flame;
    this.unit = unit;
    this.rootBelow = rootBelow;
    this.hovered = -1;
    this.from = 0;
    this.to = Math.max(flame.value[0], 1);
    this.zoomed = 0;
    this.scrolled.setContentHeight(flame.levels * BOX + 4);
    this.element.scrollTop = rootBelow ? this.element.scrollHeight : 0;
    this.redraw();
  }

  redraw() {
    this.scrolled.redraw();
  }

  top(node) {
    const { depth, levels } = this.flame;
    const content = Math.max(levels * BOX + 4, this.scrolled.height);
    return this.rootBelow ? content - (depth[node] + 1) * BOX - 2 : depth[node] * BOX + 2;
  }

  draw(context, width, height, scroll) {
    if (!this.flame) return;
    context.textBaseline = "middle";
    const { flame } = this;
    const stack = [0];
    this.perPixel = (this.to - this.from) / width;
    const least = LEAST_WIDTH * this.perPixel;
    while (stack.length > 0) {
      const node = stack.pop();
      this.drawBox(context, node, width, height, scroll);
      let small = 0;
      let smallFrom = 0;
      for (let i = flame.childStart[node]; i < flame.childStart[node + 1]; i++) {
        const child = flame.childList[i];
        const value = flame.value[child];
        if (flame.x[child] >= this.to) break;
        if (flame.x[child] + value <= this.from || value <= 0) continue;
        if (value >= least) {
          stack.push(child);
        } else {
          if (small === 0) smallFrom = flame.x[child];
          small = flame.x[child] + value - smallFrom;
        }
      }
      if (small > least) this.drawSmall(context, node, smallFrom, small, scroll);
    }
  }

  /** Calls too narrow to draw, as one grey box. */
  drawSmall(context, parent, from, value, scroll) {
    const x = (from - this.from) / this.perPixel;
    const y = this.top(parent) - scroll + (this.rootBelow ? -BOX : BOX);
    context.fillStyle = this.app.palette.get("small");
    context.fillRect(x, y, Math.max(1, value / this.perPixel - 1), BOX - 1);
  }

  drawBox(context, node, width, height, scroll) {
    const y = this.top(node) - scroll;
    if (y + BOX < 0 || y > height) return;
    const { flame, app } = this;
    const left = Math.max(0, (flame.x[node] - this.from) / this.perPixel);
    const right = Math.min(width, (flame.x[node] + flame.value[node] - this.from) / this.perPixel);
    const frame = flame.frame[node];
    const boxWidth = Math.max(LEAST_WIDTH, right - left - 1);
    const matched = app.match?.frames[frame] === 1;
    context.globalAlpha = app.match && !matched ? 0.3 : 1;
    context.fillStyle = this.colour(node);
    context.fillRect(left, y, boxWidth, BOX - 1);
    if (matched) {
      context.fillStyle = app.palette.get("match");
      context.fillRect(left, y + BOX - 4, boxWidth, 3);
    }
    const text = clipped(context, app.labels[frame], boxWidth - 8);
    if (text) {
      context.fillStyle = app.palette.get("on-kind");
      context.fillText(text, left + 4, y + (BOX - 1) / 2 + 0.5);
    }
    context.globalAlpha = 1;
    const selected = flame.node[node] === app.state.node && node > 0;
    if (selected || node === this.hovered) {
      context.strokeStyle = app.palette.get(selected ? "selected" : "text");
      context.lineWidth = selected ? 2 : 1;
      context.strokeRect(left + 0.5, y + 0.5, Math.max(1, boxWidth - 1), BOX - 2);
    }
  }

  colour(node) {
    const { flame, app } = this;
    if (flame.delta) return app.palette.change(flame.delta[node] / Math.max(flame.value[node], 1));
    return app.palette.kind(app.profile.frames.kind[flame.frame[node]]);
  }

  /** The node at a point, or -1. */
  at({ x, y }) {
    if (!this.flame) return -1;
    const value = this.from + x * this.perPixel;
    const { flame } = this;
    let node = 0;
    for (;;) {
      const top = this.top(node);
      if (y >= top && y < top + BOX) return value < flame.x[node] + flame.value[node] ? node : -1;
      let next = -1;
      for (let i = flame.childStart[node]; i < flame.childStart[node + 1]; i++) {
        const child = flame.childList[i];
        if (value >= flame.x[child] && value < flame.x[child] + flame.value[child]) next = child;
      }
      if (next < 0) return -1;
      node = next;
    }
  }

  hover(event) {
    if (this.grabbed) return;
    const node = this.at(this.scrolled.position(event));
    if (node !== this.hovered) {
      this.hovered = node;
      this.redraw();
    }
    this.scrolled.canvas.style.cursor = node >= 0 ? "pointer" : "default";
    this.app.hint.show(event, node < 0 ? null : this.describe(node));
  }

  leave() {
    this.hovered = -1;
    this.app.hint.show(null, null);
    this.redraw();
  }

  describe(node) {
    const { flame, app, unit } = this;
    const { frames } = app.profile;
    const frame = flame.frame[node];
    const value = flame.value[node];
    const own = value - this.below(node);
    const lines = [
      frameName(frames, frame),
      [frames.kind[frame], place(frames, frame)].filter(Boolean).join(" · "),
      `${quantity(value, unit)}  ${percent(value, app.wholeOf(app.state.width))} of the run`
        + (flame.parent[node] > 0 ? `, ${percent(value, flame.value[flame.parent[node]])} of its parent` : ""),
    ];
    if (own > 0 && own < value) lines.push(`own ${quantity(own, unit)}`);
    if (flame.delta) lines.push(`change ${signed(flame.delta[node], unit)}`);
    lines.push(exact(value, unit));
    return lines;
  }

  below(node) {
    let sum = 0;
    for (let i = this.flame.childStart[node]; i < this.flame.childStart[node + 1]; i++) sum += this.flame.value[this.flame.childList[i]];
    return sum;
  }

  grab(event) {
    if (event.button !== 0) return;
    const start = { x: event.clientX, from: this.from, to: this.to, moved: false };
    this.grabbed = start;
    const move = (next) => {
      const distance = next.clientX - start.x;
      start.moved ||= Math.abs(distance) > 4;
      if (!start.moved) return;
      this.zoomed = -1;
      this.setRange(start.from - distance * this.perPixel, start.to - distance * this.perPixel);
    };
    const release = (next) => {
      removeEventListener("mousemove", move);
      removeEventListener("mouseup", release);
      this.grabbed = null;
      if (!start.moved) this.click(this.at(this.scrolled.position(next)));
    };
    addEventListener("mousemove", move);
    addEventListener("mouseup", release);
  }

  click(node) {
    if (node < 0) return;
    const { flame } = this;
    this.app.select(flame.node[node]);
    if (this.flame !== flame) return;  // another frame was put into the middle
    this.zoomTo(node === this.zoomed ? Math.max(0, this.flame.parent[node]) : node);
  }

  /** Spans the range of `node` over the whole width. */
  zoomTo(node) {
    this.zoomed = node;
    const { x, value } = this.flame;
    const target = [x[node], x[node] + Math.max(value[node], 1)];
    const start = [this.from, this.to];
    const begin = performance.now();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const step = (now) => {
      if (this.zoomed !== node) return;
      const part = still ? 1 : Math.min(1, Math.max(0, now - begin) / ZOOM_MS);
      const eased = 1 - (1 - part) ** 3;
      this.setRange(start[0] + (target[0] - start[0]) * eased, start[1] + (target[1] - start[1]) * eased);
      if (part < 1) requestAnimationFrame(step);
    };
    step(begin);
    if (still) return;
    requestAnimationFrame(step);
  }

  setRange(from, to) {
    const whole = Math.max(this.flame.value[0], 1);
    const span = Math.min(Math.max(to - from, whole * 1e-9), whole);
    this.from = Math.min(Math.max(from, 0), whole - span);
    this.to = this.from + span;
    this.redraw();
  }

  scale(factor, x) {
    this.zoomed = -1;
    const pivot = this.from + x * this.perPixel;
    this.setRange(pivot - (pivot - this.from) * factor, pivot + (this.to - pivot) * factor);
  }

  bringIntoSight(node) {
    const { x, value } = this.flame;
    if (x[node] < this.from || x[node] + value[node] > this.to) this.setRange(Math.min(x[node], this.from), Math.max(x[node] + value[node], this.to));
    const top = this.top(node);
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop || top + BOX > scrollTop + clientHeight) this.element.scrollTop = top - clientHeight / 2;
  }

  /** The node of the tree that is selected, as it stands here. */
  selectedNode() {
    const { node } = this.app.state;
    if (node < 0) return -1;
    return this.flame.node[node] === node ? node : this.flame.node.indexOf(node);
  }

  key(event) {
    const { flame } = this;
    const at = Math.max(0, this.selectedNode());
    const siblings = at === 0 ? [0] : Array.from(flame.childList.subarray(
      flame.childStart[flame.parent[at]], flame.childStart[flame.parent[at] + 1])).filter((node) => flame.value[node] > 0);
    const place = siblings.indexOf(at);
    const inwards = this.rootBelow ? "ArrowUp" : "ArrowDown";
    const outwards = this.rootBelow ? "ArrowDown" : "ArrowUp";
    const child = flame.childStart[at] < flame.childStart[at + 1] ? flame.childList[flame.childStart[at]] : -1;
    const next = { [inwards]: child, [outwards]: flame.parent[at], ArrowLeft: siblings[place - 1], ArrowRight: siblings[place + 1] };
    if (event.key in next) {
      const node = next[event.key];
      if (node >= 0 && flame.value[node] > 0) {
        this.app.select(flame.node[node]);
        if (this.flame === flame) this.bringIntoSight(node);
      }
    } else if (event.key === "Enter") {
      this.zoomTo(at);
    } else if (event.key === "Escape" || event.key === "0") {
      this.zoomTo(0);
    } else if (event.key === "+" || event.key === "-") {
      this.scale(event.key === "+" ? 0.7 : 1.4, this.scrolled.width / 2);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
