"""Charts of the performance pages as SVG: strips (a dot for each case) and bars, both on a logarithmic axis around 1.

Written by hand rather than by a plotting library: the text is the same on every machine, so a chart changes in a commit
only where a result did, and its colours follow the reader's light or dark theme.
"""

import html
import math
import statistics

STYLE = """
text { font: 12px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 } .note, .tick { fill: #59636e } .tick { font-size: 11px }
.value { font-weight: 600 } .sheet { fill: #ffffff; stroke: #d1d9e0 }
.grid { stroke: #d1d9e0 } .one { stroke: #59636e; stroke-width: 1.5 } .mean { stroke: #1f2328; stroke-width: 2.5 }
.c0 { fill: #2f6fd0 } .c1 { fill: #87b3ee } .c2 { fill: #1a7f64 } .c3 { fill: #7fc9b2 } .c4 { fill: #b98a2f } .lost { fill: #d1502f }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .note, .tick { fill: #9198a1 } .sheet { fill: #0d1117; stroke: #3d444d } .grid { stroke: #2a313a }
.one { stroke: #9198a1 } .mean { stroke: #e6edf3 } .c0 { fill: #5b9bf5 } .c1 { fill: #2c5a9c } .c2 { fill: #3fb68f }
.c3 { fill: #1f6b54 } .c4 { fill: #d5a84a } .lost { fill: #f0704d } }
"""
WIDTH, TOP, BOTTOM = 880, 62, 34
TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]


def ratio_text(value):
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}"


class Axis:
    """A logarithmic axis from `left` to `right` that holds all values, and 1."""

    def __init__(self, values, left, right):
        self.low = math.log(min(0.85, *values)) - 0.03
        self.high = math.log(max(1.6, *values)) + 0.03
        self.left, self.right = left, right

    def __call__(self, value):
        return self.left + (math.log(value) - self.low) / (self.high - self.low) * (self.right - self.left)

    def svg(self, bottom):
        shown = [tick for tick in (*TICKS, 1.25, 1.5) if self.low <= math.log(tick) <= self.high]
        if self.high - self.low > 1.5:
            shown = [tick for tick in shown if tick not in (1.25, 1.5)]
        text = ""
        for tick in sorted(shown):
            kind = "one" if tick == 1 else "grid"
            text += f'<path class="{kind}" d="M{self(tick):.1f},{TOP - 8}V{bottom + 4}"/>'
            text += f'<text class="tick" x="{self(tick):.1f}" y="{bottom + 18}" text-anchor="middle">{tick:g}x</text>\n'
        return text


def sheet(title, note, height, body):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect class="sheet" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>\n'
        f'<text class="title" x="16" y="24">{html.escape(title)}</text>\n'
        f'<text class="note" x="16" y="42">{html.escape(note)}</text>\n{body}</svg>\n'
    )


def strips(title, note, rows):
    """rows: (label, [(case, ratio)]). A dot for each case, a stroke and a number for the geometric mean."""
    axis = Axis([ratio for _, cases in rows for _, ratio in cases], 330, WIDTH - 76)
    step = 26
    bottom = TOP + step * len(rows)
    body = axis.svg(bottom)
    for index, (label, cases) in enumerate(rows):
        y = TOP + step * index + step / 2
        mean = statistics.geometric_mean([ratio for _, ratio in cases])
        body += f'<text x="312" y="{y + 4:.0f}" text-anchor="end">{html.escape(label)}</text>\n'
        for number, (case, ratio) in enumerate(cases):
            lift = (number * 7 % 5 - 2) * 2.2 if len(cases) > 3 else 0  # so that equal ratios are told apart
            kind = "c0" if ratio >= 1 else "lost"
            body += f'<circle class="{kind}" cx="{axis(ratio):.1f}" cy="{y + lift:.1f}" r="3" fill-opacity="0.7">'
            body += f"<title>{html.escape(case)}: {ratio_text(ratio)}</title></circle>\n"
        body += f'<path class="mean" d="M{axis(mean):.1f},{y - 9:.0f}V{y + 9:.0f}"/>'
        body += f'<text class="value" x="{WIDTH - 16}" y="{y + 4:.0f}" text-anchor="end">{ratio_text(mean)}x</text>\n'
    return sheet(title, note, bottom + BOTTOM, body)


def legend(names):
    x, text = WIDTH - 16, ""
    for index, name in reversed(list(enumerate(names))):
        x -= 7 * len(name)
        text += f'<text class="note" x="{x}" y="42">{html.escape(name)}</text>'
        text += f'<rect class="c{index}" x="{x - 15}" y="33" width="10" height="10" rx="2"/>\n'
        x -= 30
    return text


def bars(title, note, names, rows):
    """rows: (label, [ratio or None for each of names]). Bars begin at 1: what is lost goes to the left."""
    axis = Axis([ratio for _, ratios in rows for ratio in ratios if ratio], 250, WIDTH - 60)
    thick = 11
    bottom = TOP + sum(thick * sum(map(bool, ratios)) + 7 for _, ratios in rows)
    body = axis.svg(bottom) + (legend(names) if len(names) > 1 else "")
    y = TOP
    for label, ratios in rows:
        height = thick * sum(map(bool, ratios))
        body += f'<text x="236" y="{y + height / 2 + 4:.1f}" text-anchor="end">{html.escape(label)}</text>\n'
        for series, ratio in enumerate(ratios):
            if not ratio:
                continue
            begin, end = sorted((axis(1), axis(ratio)))
            kind = f"c{series}" if ratio >= 1 else "lost"
            body += f'<rect class="{kind}" x="{begin:.1f}" y="{y}" width="{max(end - begin, 1):.1f}" height="{thick - 1}" rx="1.5"/>'
            body += f'<text class="tick" x="{end + 5:.1f}" y="{y + thick - 3}">{ratio_text(ratio)}</text>\n'
            y += thick
        y += 7
    return sheet(title, note, bottom + BOTTOM, body)
