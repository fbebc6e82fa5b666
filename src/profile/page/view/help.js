// The list of keys.

import { h } from "./dom.js";

const KEYS = [
  ["1 … 8", "the tabs"], ["/", "search; Enter goes to the next match"], ["n, N", "next and previous match, the heaviest first"],
  ["h", "hot path"], ["m", "next metric"], ["t", "light or dark"], ["Escape", "clears search and selection; in a graph, shows all"],
  ["Arrows", "in a table: move, open, close; in a flame graph: callers, callees, neighbours"],
  ["Enter", "in a table: opens or closes; in a flame graph: zooms"], ["+, -, 0", "in a flame graph: zoom in, out, all"],
  ["W, S, A, D", "in the timeline: zoom in, out, move"], ["Ctrl and wheel", "in a flame graph: zooms"],
  ["Shift and drag", "in the timeline: adds up a span"], ["Alt and click", "on a row's triangle: opens two levels"],
];

export function showHelp() {
  const dialog = h("dialog", { class: "help", "aria-label": "Keys" },
                   h("h2", {}, "Keys"), h("dl", {}, KEYS.flatMap(([key, text]) => [h("dt", {}, key), h("dd", {}, text)])),
                   h("p", { class: "muted" }, "The address keeps the tab, the metric, the selected row and the search: it can be copied."),
                   h("form", { method: "dialog" }, h("button", { class: "hot" }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
