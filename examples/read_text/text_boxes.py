"""From the detector's probability map to boxes around lines of text."""

import numpy as np

TEXT_PROBABILITY = 0.3  # a pixel above it belongs to text
BOX_PROBABILITY = 0.5  # the mean that a box needs
GROWTH = 1.6  # the detector marks the core of a line; its area times this over its perimeter is added all round
SHORTEST_SIDE = 3


def runs_of(row):
    """Begin and end of each run of ones."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(np.int8), [0]))))
    return list(zip(edges[::2], edges[1::2]))


def connected_pixels(mask):
    """The connected regions (8 neighbours) of a boolean map, each as arrays of rows and columns."""
    parent = []

    def root(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    runs, previous = [], []
    for y, row in enumerate(mask):
        current = []
        for begin, end in runs_of(row):
            label = len(parent)
            parent.append(label)
            for other_begin, other_end, other in previous:
                if other_begin <= end and begin <= other_end:
                    parent[root(label)] = root(other)
            current.append((begin, end, label))
            runs.append((y, begin, end, label))
        previous = current
    regions = {}
    for y, begin, end, label in runs:
        regions.setdefault(root(label), []).append((y, begin, end))
    for parts in regions.values():
        rows = np.concatenate([np.full(end - begin, y) for y, begin, end in parts])
        yield rows, np.concatenate([np.arange(begin, end) for _, begin, end in parts])


def direction_of(rows, columns):
    """Unit vector along a line of text: its long axis if it has one, else horizontal."""
    points = np.stack([columns, rows]).astype(np.float64)
    values, vectors = np.linalg.eigh(np.cov(points)) if len(rows) > 1 else (np.zeros(2), np.eye(2))
    if values[1] < 9 * values[0] or values[1] == 0:
        return np.array([1.0, 0.0])
    along = vectors[:, 1]
    return along if abs(along[0]) < abs(along[1]) and along[1] > 0 or along[0] > 0 else -along


def box_around(rows, columns):
    """Corners [4,2] as (x, y), clockwise from the top left, of the grown rectangle; None for a speck."""
    along = direction_of(rows, columns)
    across = np.array([-along[1], along[0]])
    points = np.stack([columns, rows], axis=1) + 0.5
    u, v = points @ along, points @ across
    u0, u1, v0, v1 = u.min() - 0.5, u.max() + 0.5, v.min() - 0.5, v.max() + 0.5
    width, height = u1 - u0, v1 - v0
    if min(width, height) < SHORTEST_SIDE:
        return None
    grow = width * height * GROWTH / (2 * (width + height))
    corners = [(u0 - grow, v0 - grow), (u1 + grow, v0 - grow), (u1 + grow, v1 + grow), (u0 - grow, v1 + grow)]
    return np.array([a * along + b * across for a, b in corners])


def find_boxes(probability):
    """Boxes [n,4,2] in pixels of `probability` [height,width], in reading order."""
    boxes = []
    for rows, columns in connected_pixels(probability > TEXT_PROBABILITY):
        if probability[rows, columns].mean() < BOX_PROBABILITY:
            continue
        box = box_around(rows, columns)
        if box is not None:
            boxes.append(box)
    if not boxes:
        return np.zeros((0, 4, 2))
    line_height = np.median([np.linalg.norm(box[3] - box[0]) for box in boxes])
    # Boxes whose middles lie in one band of half a line's height are read from left to right.
    boxes.sort(key=lambda box: box[:, 1].mean())
    lines = [[boxes[0]]]
    for box in boxes[1:]:
        same_line = box[:, 1].mean() - lines[-1][-1][:, 1].mean() < line_height / 2
        lines[-1].append(box) if same_line else lines.append([box])
    return np.array([box for line in lines for box in sorted(line, key=lambda b: b[0, 0])])
