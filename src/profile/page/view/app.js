// The page: its state, the tabs that show it, the keyboard, and the fragment of the address that keeps it.

import { decode } from "../core/decode.js";
import { difference } from "../core/difference.js";
import { frameName, percent, place, printable, quantity } from "../core/format.js";
import { matchedTotal, search } from "../core/search.js";
import { CONTEXTS } from "../core/timeline.js";
import { Tree } from "../core/tree.js";
import { Details } from "./details.js";
import { Hint, Palette, h } from "./dom.js";
import { FlamePanel, SandwichPanel } from "./flames.js";
import { showHelp } from "./help.js";
import { OverviewPanel } from "./overview.js";
import { RooflinePanel } from "./roofline.js";
import { tablePanels } from "./tables.js";
import { TimelinePanel } from "./timeline.js";

const TITLES = {
  flame: "Flame graph", overview: "Overview", "top-down": "Top-down", "bottom-up": "Bottom-up", flat: "Flat",
  sandwich: "Sandwich", timeline: "Timeline", roofline: "Roofline",
};

/** What the fragment keeps, and where it starts. */
const START = {
  view: "flame", metric: "", node: -1, query: "", filter: false, width: "now", direction: "down", order: "heavy",
  root: "top", group: "frame", columns: "", context: "model",
};

/** The profile that a text holds: JSON, or a page of ours with one in it. */
export function profileIn(text) {
  if (/^\s*</.test(text)) {
    const element = new DOMParser().parseFromString(text, "text/html").getElementById("profile");
    if (!element) throw new Error("This page holds no profile.");
    return decode(element.textContent);
  }
  return decode(text);
}

export class App {
  /** @param {import("../core/decode.js").Profile} profile */
  constructor(profile, root) {
    this.root = root;
    this.own = profile;
    this.generation = 0;
    this.palette = new Palette();
    this.hint = new Hint();
    this.build();
    this.open(profile, this.fromFragment());
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) !== this.fragment()) this.set(this.fromFragment(), "link");
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
  }

  /** Shows a profile: the one of the page, or its difference to another. */
  open(profile, state) {
    this.profile = profile;
    this.tree = new Tree(profile);
    this.names = profile.frames.name.map((_, frame) => frameName(profile.frames, frame));
    this.labels = this.names.map((name, frame) => `${name}  ${place(profile.frames, frame)}`.trimEnd());
    this.generation++;
    this.panels = new Map();
    this.state = { ...START, metric: this.startMetric(), ...state };
    this.makers = {
      flame: () => new FlamePanel(this), overview: () => new OverviewPanel(this), ...tablePanels(this),
      sandwich: () => new SandwichPanel(this),
    };
    if (profile.timeline?.count > 0) this.makers.timeline = () => new TimelinePanel(this);
    if (profile.roofline?.count > 0) this.makers.roofline = () => new RooflinePanel(this);
    this.details = new Details(this);
    this.side.replaceChildren(this.details.element);
    this.paintTabs();
    this.paintMetrics();
    document.title = `${printable(profile.title) || "Profile"} · Heddle`;
    this.heading.textContent = printable(profile.title);
    this.heading.title = this.heading.textContent;
    this.compare.textContent = profile === this.own ? "Compare…" : "End comparison";
    this.compare.hidden = this.own.isDifference;
    this.set(this.state, "link");
  }

  /** The first metric with a value. */
  startMetric() {
    return (this.profile.metrics.find(({ name }) => this.tree.total(name) > 0) ?? this.profile.metrics[0]).name;
  }

  metricOf(name) {
    return this.profile.metrics.find((metric) => metric.name === name) ?? this.profile.metrics[0];
  }

  wholeOf(side) {
    return this.tree.total(this.state.metric, side);
  }

  build() {
    this.heading = h("h1", {});
    this.metric = h("select", { id: "metric", "aria-label": "Metric", title: "What is measured (m: next)", onchange: () => this.set({ metric: this.metric.value }) });
    this.query = h("input", { id: "search", type: "search", placeholder: "Search  /", "aria-label": "Search: words, /regular expression/, kind:kernel",
                              title: "Words, /regular expression/, kind:kernel; Enter goes to the next match", spellcheck: "false", oninput: () => this.set({ query: this.query.value }) });
    this.found = h("output", { class: "found", for: "search" });
    this.filter = h("button", { class: "choice", title: "Tables show matches only", onclick: () => this.set({ filter: !this.state.filter }) }, "only matches");
    this.picked = h("input", { type: "file", accept: ".json,.html", hidden: true, onchange: () => this.compareWith(this.picked.files[0]) });
    this.compare = h("button", { class: "plain", title: "Compare with an older profile: its JSON or its page", onclick: () => this.toggleComparison() });
    const theme = h("button", { class: "plain", title: "Light or dark (t)", "aria-label": "Light or dark", onclick: () => this.toggleTheme() }, "◐");
    const help = h("button", { class: "plain", title: "Keys (?)", "aria-label": "Keys", onclick: showHelp }, "?");
    this.tabs = h("div", { class: "tabs", role: "tablist" });
    this.panel = h("main", { id: "panel", role: "tabpanel", tabindex: -1 });
    this.side = h("div", { class: "side" });
    const splitter = h("div", { class: "splitter", role: "separator", "aria-orientation": "vertical", tabindex: 0, "aria-label": "Width of the details" });
    this.body = h("div", { class: "body" }, this.panel, splitter, this.side);
    this.listenToSplitter(splitter);
    this.notice = h("div", { class: "notice", role: "alert", hidden: true });
    this.root.replaceChildren(
      h("header", { class: "bar" }, h("span", { class: "brand", "aria-hidden": "true" }), this.heading, this.metric,
        h("span", { class: "search" }, this.query, this.found, this.filter), this.compare, this.picked, theme, help),
      this.tabs, this.notice, this.body);
    this.query.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.nextMatch(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") this.query.blur();
    });
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files.length > 0) this.compareWith(event.dataTransfer.files[0]);
    });
  }

  listenToSplitter(splitter) {
    const setWidth = (width) => {
      this.body.style.setProperty("--side", `${Math.min(Math.max(width, 0), innerWidth - 320)}px`);
    };
    splitter.addEventListener("pointerdown", (event) => {
      splitter.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    splitter.addEventListener("pointermove", (event) => {
      if (splitter.hasPointerCapture(event.pointerId)) setWidth(innerWidth - event.clientX);
    });
    splitter.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: 32, ArrowRight: -32 }[event.key];
      if (step) setWidth(this.side.offsetWidth + step);
    });
  }

  paintTabs() {
    this.tabs.replaceChildren(...Object.keys(this.makers).map((view, i) => (
      h("button", { role: "tab", id: `tab-${view}`, "aria-controls": "panel", title: `${i + 1}`, onclick: () => this.set({ view }) }, TITLES[view]))));
  }

  paintMetrics() {
    this.metric.replaceChildren(...this.profile.metrics.map(({ name, unit, title }) => (
      h("option", { value: name }, `${printable(title)} · ${quantity(this.tree.total(name), unit)}`))));
  }

  /** Changes the state and shows it. `source` is who did it: "table" and "link" are known to panels. */
  set(patch, source = "") {
    const before = this.state;
    this.state = { ...before, ...patch };
    const { state } = this;
    if (!Array.isArray(state.columns)) state.columns = state.columns ? state.columns.split(",") : [];
    if (!Object.hasOwn(this.makers, state.view)) state.view = START.view;
    if (this.metricOf(state.metric).name !== state.metric) state.metric = this.startMetric();
    if (!(state.node < this.tree.count)) state.node = -1;
    if (!Object.hasOwn(CONTEXTS, state.context)) state.context = START.context;
    if (state.query !== this.searched || this.searchedIn !== this.generation) this.search();
    this.paintHeader();
    const panel = this.panelOf(state.view);
    if (this.panel.firstElementChild !== panel.element) this.panel.replaceChildren(panel.element);
    panel.update(source);
    this.details.update();
    if (location.hash.slice(1) !== this.fragment()) history.replaceState(null, "", `#${this.fragment()}`);
  }

  panelOf(view) {
    if (!this.panels.has(view)) this.panels.set(view, this.makers[view]());
    return this.panels.get(view);
  }

  paintHeader() {
    const { state } = this;
    for (const tab of this.tabs.children) {
      const isCurrent = tab.id === `tab-${state.view}`;
      tab.setAttribute("aria-selected", String(isCurrent));
      tab.tabIndex = isCurrent ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `tab-${state.view}`);
    this.metric.value = state.metric;
    if (this.query.value !== state.query) this.query.value = state.query;
    this.filter.setAttribute("aria-pressed", String(state.filter));
    this.filter.hidden = !this.match;
    if (this.searchError) this.found.textContent = this.searchError;
    else if (!this.match) this.found.textContent = "";
    else {
      const share = percent(matchedTotal(this.tree, this.match, state.metric), this.tree.total(state.metric));
      this.found.textContent = `${this.match.count} rows, ${share}`;
    }
  }

  search() {
    this.searched = this.state.query;
    this.searchedIn = this.generation;
    this.matchAt = -1;
    this.searchError = "";
    try {
      this.match = search(this.tree, this.state.query);
    } catch (error) {
      this.match = null;
      this.searchError = "no regular expression";
    }
  }

  /** Selects the next match, the heaviest first. */
  nextMatch(step) {
    if (!this.match || this.match.count === 0) return;
    const values = this.tree.inclusive(this.state.metric);
    const nodes = [];
    for (let i = 0; i < this.tree.count; i++) if (this.match.nodes[i]) nodes.push(i);
    nodes.sort((a, b) => values[b] - values[a] || a - b);
    this.matchAt = (this.matchAt + step + nodes.length) % nodes.length;
    this.select(nodes[this.matchAt]);
  }

  select(node, source = "") {
    if (node !== this.state.node) this.set({ node }, source);
  }

  toggleColumn(name) {
    const { columns } = this.state;
    this.set({ columns: columns.includes(name) ? columns.filter((known) => known !== name) : [...columns, name] });
  }

  fragment() {
    const pairs = Object.entries(START).map(([key, start]) => [key, String(this.state[key]), String(start)]);
    return new URLSearchParams(pairs.filter(([key, value, start]) => value !== start || key === "view").map(([key, value]) => [key, value])).toString();
  }

  fromFragment() {
    const state = { ...START };
    for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
      if (!Object.hasOwn(START, key)) continue;
      if (key === "node") state.node = /^\d+$/.test(value) ? Number(value) : -1;
      else state[key] = key === "filter" ? value === "true" : value;
    }
    return state;
  }

  async compareWith(file) {
    if (!file) return;
    this.notice.hidden = true;
    try {
      const before = profileIn(await file.text());
      if (before.isDifference || this.own.isDifference) throw new Error("A difference cannot be compared once more.");
      this.open(difference(this.own, before), { view: this.state.view, metric: this.state.metric });
    } catch (error) {
      this.notice.hidden = false;
      this.notice.textContent = `${file.name}: ${error.message}`;
    }
    this.picked.value = "";
  }

  toggleComparison() {
    if (this.profile === this.own) this.picked.click();
    else this.open(this.own, { view: this.state.view, metric: this.state.metric });
  }

  toggleTheme() {
    const { dataset } = document.documentElement;
    const isDark = dataset.theme ? dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    dataset.theme = isDark ? "light" : "dark";
    try {
      localStorage.setItem("heddle-theme", dataset.theme);
    } catch {
      // Pages from files may have no storage.
    }
    this.repaint();
  }

  repaint() {
    this.palette.read();
    this.panelOf(this.state.view).update("theme");
  }

  key(event) {
    const typing = /^(?:INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey || typing || document.querySelector("dialog[open]")) return;
    const views = Object.keys(this.makers);
    const actions = {
      "/": () => this.query.select(), "?": showHelp, t: () => this.toggleTheme(), n: () => this.nextMatch(1), N: () => this.nextMatch(-1),
      m: () => this.nextMetric(), h: () => this.hotPath(), Escape: () => this.set({ query: "", node: -1 }),
    };
    const number = Number(event.key);
    if (number >= 1 && number <= views.length) this.set({ view: views[number - 1] });
    else if (Object.hasOwn(actions, event.key)) actions[event.key]();
    else if (event.target.getAttribute?.("role") === "tab" && /^Arrow(?:Left|Right)$/.test(event.key)) this.nextTab(event.key === "ArrowRight" ? 1 : -1);
    else return;
    event.preventDefault();
  }

  nextTab(step) {
    const views = Object.keys(this.makers);
    const view = views[(views.indexOf(this.state.view) + step + views.length) % views.length];
    this.set({ view });
    document.getElementById(`tab-${view}`).focus();
  }

  nextMetric() {
    const names = this.profile.metrics.map(({ name }) => name);
    this.set({ metric: names[(names.indexOf(this.state.metric) + 1) % names.length] });
  }

  hotPath() {
    if (!this.panelOf(this.state.view).hotPath) this.set({ view: "top-down" });
    this.panelOf(this.state.view).hotPath();
  }
}
