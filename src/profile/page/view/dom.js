// Elements, canvases and colours of the style sheet. Text of a profile enters the page as text nodes only.

/** An element: `h("button", {class: "plain", onclick: f}, "text", child, ...)`; null children are left out. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "hidden") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Kinds of frames that have a colour of their own, in the order of legends. */
export const KINDS = ["python", "module", "operator", "node", "phase", "native", "kernel", "copy", "memset", "sync"];

/** The variable of the style sheet with the colour of a kind of frame. */
function kindColour(kind) {
  return `kind-${KINDS.includes(kind) ? kind : "other"}`;
}

/** The variable with the colour of a change: from -1, all of it gone, to 1, all of it new. */
export function changeColour(share) {
  const size = Math.min(1, Math.abs(share));
  const step = size < 0.01 ? 0 : size < 0.05 ? 1 : size < 0.2 ? 2 : size < 0.5 ? 3 : 4;
  return step === 0 ? "same" : `${share > 0 ? "more" : "less"}-${step}`;
}

/** The class of a text that tells a change. */
export function changeClass(change) {
  return change > 0 ? "cell-more" : change < 0 ? "cell-less" : "";
}

/** A small box in a colour of the style sheet. */
export function chip(colour, title) {
  return h("span", { class: "chip", style: `background:var(--${colour})`, title });
}

export function kindChip(kind) {
  return chip(kindColour(kind), kind);
}

/** The colours of the style sheet in the current theme, for canvases. */
export class Palette {
  constructor() {
    this.probe = h("span", { hidden: true });
    document.body.append(this.probe);
    this.known = new Map();
  }

  /** Takes the colours anew, for another theme. */
  read() {
    this.known.clear();
  }

  get(name) {
    if (!this.known.has(name)) {
      this.probe.style.color = `var(--${name})`;
      this.known.set(name, getComputedStyle(this.probe).color);
    }
    return this.known.get(name);
  }

  kind(kind) {
    return this.get(kindColour(kind));
  }

  change(share) {
    return this.get(changeColour(share));
  }
}

/**
 * A canvas as large as what shows of its scrolling host, with a spacer that gives the host its height to scroll.
 * `draw(context, width, height, top)` runs at most once a frame after `redraw()`.
 */
export class ScrolledCanvas {
  constructor(label, draw) {
    this.canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": label });
    this.spacer = h("div", { class: "spacer" });
    this.host = h("div", { class: "scrolled" }, this.canvas, this.spacer);
    this.draw = draw;
    this.width = 0;
    this.height = 0;
    this.pending = 0;
    this.host.addEventListener("scroll", () => this.redraw());
    new ResizeObserver(() => this.redraw()).observe(this.host);
  }

  setContentHeight(height) {
    this.spacer.style.height = `${height}px`;
  }

  redraw() {
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      this.paint();
    });
  }

  paint() {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (width === 0 || height === 0) return;
    const scale = window.devicePixelRatio || 1;
    if (this.width !== width || this.height !== height || this.scale !== scale) {
      Object.assign(this, { width, height, scale });
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    this.draw(context, width, height, this.host.scrollTop);
  }

  /** Where the pointer is: x in the canvas, y in the content. */
  position(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top + this.host.scrollTop };
  }
}

const FONT = "12px system-ui, sans-serif";
const widths = new Map();

/** `text`, or as much of it as `room` pixels hold; "" where that is too little to read. */
export function clipped(context, text, room) {
  if (room < 14) return "";
  context.font = FONT;
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size > 50000) widths.clear();
    width = context.measureText(text).width;
    widths.set(text, width);
  }
  if (width <= room) return text;
  const length = Math.floor((room - 8) / (width / text.length));
  return length < 2 ? "" : `${text.slice(0, length)}…`;
}

/** The hint beside the pointer. */
export class Hint {
  constructor() {
    this.element = h("div", { class: "hint", role: "tooltip", hidden: true });
    document.body.append(this.element);
  }

  /** @param {?(string | Node)[]} lines  the first is the heading; null hides */
  show(event, lines) {
    this.element.hidden = !lines;
    if (!lines) return;
    this.element.replaceChildren(...lines.filter(Boolean).map((line, i) => h("div", { class: i === 0 ? "hint-name" : "" }, line)));
    const { offsetWidth, offsetHeight } = this.element;
    const x = event.clientX + 14 + offsetWidth > innerWidth ? event.clientX - offsetWidth - 10 : event.clientX + 14;
    const y = event.clientY + 18 + offsetHeight > innerHeight ? event.clientY - offsetHeight - 10 : event.clientY + 18;
    this.element.style.left = `${Math.max(4, x)}px`;
    this.element.style.top = `${Math.max(4, y)}px`;
  }
}
