"""All steps of an LSTM or a GRU in one launch, forward and backward.

A program takes ROWS sequences of one direction and all their steps, so that programs never wait for each other. Element u of sequence b at
time t of direction d lies at ((t * by_time + b * by_row) * DIRECTIONS + d) * width + u. Matrices are [DIRECTIONS, gates * UNITS, UNITS].

If RESIDENT, a program holds the recurrent matrix. Otherwise it reads the matrix in every step, PART columns or rows at a time, and
multiplies it by what the last step left in memory.
"""
import heddle.tile as tile
import heddle.tile.language as tl
from heddle.tile.language.extra import libdevice


@tile.jit
def _time(step, steps, direction):
    """When the direction takes a step: the second one begins at the end."""
    return step + direction * (steps - 1 - 2 * step)


@tile.jit
def _matrix(weights, GATE: tl.constexpr, UNITS: tl.constexpr):
    """That of a gate: [units of the gate, hidden units]."""
    unit = tl.arange(0, UNITS)
    return tl.load(weights + (GATE * UNITS + unit)[:, None] * UNITS + unit[None, :])


@tile.jit
def _by_gate(a, weights, GATE: tl.constexpr, at, inside, sum, UNITS: tl.constexpr, PRECISION: tl.constexpr):
    """Adds the product of a part of the hidden state, the units `at`, by the columns of a gate."""
    unit = tl.arange(0, UNITS)
    part = tl.load(weights + (GATE * UNITS + unit)[:, None] * UNITS + at[None, :], inside[None, :], other=0.0)
    return tl.dot(a, part.T, sum, input_precision=PRECISION)


@tile.jit
def _gradient_of_hidden(gradients, weights, inside, sum, GATES: tl.constexpr, UNITS: tl.constexpr, PART: tl.constexpr,
                        PRECISION: tl.constexpr):
    """Adds the product of the gates' gradients, in memory from `gradients` on for each row, by the recurrent matrix."""
    unit = tl.arange(0, UNITS)
    for begin in range(0, GATES * UNITS, PART):
        at = begin + tl.arange(0, PART)
        known = at < GATES * UNITS
        a = tl.load(gradients[:, None] + at[None, :], inside[:, None] & known[None, :], other=0.0)
        part = tl.load(weights + at[:, None] * UNITS + unit[None, :], known[:, None], other=0.0)
        sum = tl.dot(a, part, sum, input_precision=PRECISION)
    return sum


@tile.jit(do_not_specialize=["steps", "rows"])
def lstm_kernel(x, weights, h0, c0, y, hidden, cells, gates, h_last, c_last, steps, rows, by_time, by_row, DIRECTIONS: tl.constexpr,
                UNITS: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr, PRECISION: tl.constexpr, RESIDENT: tl.constexpr, WIDE: tl.constexpr):
    """`x`: the gates' products by the input, with all biases. `hidden` and `cells` get the states before each step. `cells` and `gates` may
    be None."""
    d = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.arange(0, UNITS)
    inside = row < rows
    mask = inside[:, None] & (unit >= 0)[None, :]
    first = (d * rows + row)[:, None] * UNITS + unit[None, :]
    weights += d * 4 * UNITS * UNITS
    if RESIDENT:
        to_i, to_f = _matrix(weights, 0, UNITS), _matrix(weights, 1, UNITS)
        to_g, to_o = _matrix(weights, 2, UNITS), _matrix(weights, 3, UNITS)
    h = tl.load(h0 + first, mask, other=0.0).to(WIDE)
    c = tl.load(c0 + first, mask, other=0.0).to(WIDE)
    for step in range(0, steps):
        place = (_time(step, steps, d) * by_time + row.to(tl.int64) * by_row) * DIRECTIONS + d
        own = place[:, None] * UNITS + unit[None, :]
        of_gates = place[:, None] * (4 * UNITS) + unit[None, :]
        tl.store(hidden + own, h, mask)
        if cells is not None:
            tl.store(cells + own, c, mask)
        i = tl.load(x + of_gates, mask, other=0.0).to(WIDE)
        f = tl.load(x + of_gates + UNITS, mask, other=0.0).to(WIDE)
        g = tl.load(x + of_gates + 2 * UNITS, mask, other=0.0).to(WIDE)
        o = tl.load(x + of_gates + 3 * UNITS, mask, other=0.0).to(WIDE)
        if RESIDENT:
            a = h.to(weights.dtype.element_ty)
            i, f = tl.dot(a, to_i.T, i, input_precision=PRECISION), tl.dot(a, to_f.T, f, input_precision=PRECISION)
            g, o = tl.dot(a, to_g.T, g, input_precision=PRECISION), tl.dot(a, to_o.T, o, input_precision=PRECISION)
        else:
            tl.debug_barrier()
            for begin in range(0, UNITS, PART):
                at = begin + tl.arange(0, PART)
                known = at < UNITS
                a = tl.load(hidden + place[:, None] * UNITS + at[None, :], inside[:, None] & known[None, :], other=0.0)
                i = _by_gate(a, weights, 0, at, known, i, UNITS, PRECISION)
                f = _by_gate(a, weights, 1, at, known, f, UNITS, PRECISION)
                g = _by_gate(a, weights, 2, at, known, g, UNITS, PRECISION)
                o = _by_gate(a, weights, 3, at, known, o, UNITS, PRECISION)
        i, f, g, o = tl.sigmoid(i), tl.sigmoid(f), libdevice.tanh(g), tl.sigmoid(o)
        c = f * c + i * g
        h = o * libdevice.tanh(c)
        if gates is not None:
            tl.store(gates + of_gates, i, mask)
            tl.store(gates + of_gates + UNITS, f, mask)
            tl.store(gates + of_gates + 2 * UNITS, g, mask)
            tl.store(gates + of_gates + 3 * UNITS, o, mask)
        tl.store(y + own, h, mask)
    tl.store(h_last + first, h, mask)
    tl.store(c_last + first, c, mask)


@tile.jit(do_not_specialize=["steps", "rows"])
def lstm_backward_kernel(dy, dh_last, dc_last, weights, cells, gates, dgates, dh0, dc0, steps, rows, by_time, by_row,
                         DIRECTIONS: tl.constexpr, UNITS: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr, PRECISION: tl.constexpr,
                         RESIDENT: tl.constexpr, WIDE: tl.constexpr):
    d = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.arange(0, UNITS)
    inside = row < rows
    mask = inside[:, None] & (unit >= 0)[None, :]
    first = (d * rows + row)[:, None] * UNITS + unit[None, :]
    weights += d * 4 * UNITS * UNITS
    if RESIDENT:
        to_i, to_f = _matrix(weights, 0, UNITS), _matrix(weights, 1, UNITS)
        to_g, to_o = _matrix(weights, 2, UNITS), _matrix(weights, 3, UNITS)
    dh = tl.load(dh_last + first, mask, other=0.0).to(WIDE)
    dc = tl.load(dc_last + first, mask, other=0.0).to(WIDE)
    for back in range(0, steps):
        place = (_time(steps - 1 - back, steps, d) * by_time + row.to(tl.int64) * by_row) * DIRECTIONS + d
        own = place[:, None] * UNITS + unit[None, :]
        of_gates = place[:, None] * (4 * UNITS) + unit[None, :]
        i = tl.load(gates + of_gates, mask, other=0.0).to(WIDE)
        f = tl.load(gates + of_gates + UNITS, mask, other=0.0).to(WIDE)
        g = tl.load(gates + of_gates + 2 * UNITS, mask, other=0.0).to(WIDE)
        o = tl.load(gates + of_gates + 3 * UNITS, mask, other=0.0).to(WIDE)
        before = tl.load(cells + own, mask, other=0.0)
        dh += tl.load(dy + own, mask, other=0.0).to(WIDE)
        c = libdevice.tanh(f * before + i * g)
        dc += dh * o * (1.0 - c * c)
        di, df, dg = dc * g * i * (1.0 - i), dc * before * f * (1.0 - f), dc * i * (1.0 - g * g)
        do = dh * c * o * (1.0 - o)
        tl.store(dgates + of_gates, di, mask)
        tl.store(dgates + of_gates + UNITS, df, mask)
        tl.store(dgates + of_gates + 2 * UNITS, dg, mask)
        tl.store(dgates + of_gates + 3 * UNITS, do, mask)
        dc *= f
        if RESIDENT:
            dh = tl.dot(di.to(to_i.dtype), to_i, input_precision=PRECISION)
            dh = tl.dot(df.to(to_f.dtype), to_f, dh, input_precision=PRECISION)
            dh = tl.dot(dg.to(to_g.dtype), to_g, dh, input_precision=PRECISION)
            dh = tl.dot(do.to(to_o.dtype), to_o, dh, input_precision=PRECISION)
        else:
            tl.debug_barrier()
            dh = _gradient_of_hidden(dgates + place * (4 * UNITS), weights, inside, tl.zeros((ROWS, UNITS), WIDE), 4, UNITS, PART,
                                     PRECISION)
    tl.store(dh0 + first, dh, mask)
    tl.store(dc0 + first, dc, mask)


@tile.jit(do_not_specialize=["steps", "rows"])
def gru_kernel(x, weights, bias, h0, y, hidden, gates, h_last, steps, rows, by_time, by_row, DIRECTIONS: tl.constexpr, UNITS: tl.constexpr,
               ROWS: tl.constexpr, PART: tl.constexpr, PRECISION: tl.constexpr, RESIDENT: tl.constexpr, WIDE: tl.constexpr):
    """`x`: the gates' products by the input. `hidden` gets the state before each step, `gates`, which may be None, the three gates and the
    third one's product by the hidden state."""
    d = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.arange(0, UNITS)
    inside = row < rows
    mask = inside[:, None] & (unit >= 0)[None, :]
    first = (d * rows + row)[:, None] * UNITS + unit[None, :]
    weights += d * 3 * UNITS * UNITS
    of_r, of_z, of_n = tl.zeros((UNITS,), WIDE), tl.zeros((UNITS,), WIDE), tl.zeros((UNITS,), WIDE)
    if bias is not None:
        of_r = tl.load(bias + d * 3 * UNITS + unit).to(WIDE)
        of_z = tl.load(bias + (d * 3 + 1) * UNITS + unit).to(WIDE)
        of_n = tl.load(bias + (d * 3 + 2) * UNITS + unit).to(WIDE)
    if RESIDENT:
        to_r, to_z, to_n = _matrix(weights, 0, UNITS), _matrix(weights, 1, UNITS), _matrix(weights, 2, UNITS)
    h = tl.load(h0 + first, mask, other=0.0).to(WIDE)
    for step in range(0, steps):
        place = (_time(step, steps, d) * by_time + row.to(tl.int64) * by_row) * DIRECTIONS + d
        own = place[:, None] * UNITS + unit[None, :]
        tl.store(hidden + own, h, mask)
        of_x = x + place[:, None] * (3 * UNITS) + unit[None, :]
        r = tl.load(of_x, mask, other=0.0).to(WIDE) + of_r[None, :]
        z = tl.load(of_x + UNITS, mask, other=0.0).to(WIDE) + of_z[None, :]
        n = tl.load(of_x + 2 * UNITS, mask, other=0.0).to(WIDE)
        inner = tl.zeros((ROWS, UNITS), WIDE) + of_n[None, :]
        if RESIDENT:
            a = h.to(weights.dtype.element_ty)
            r, z = tl.dot(a, to_r.T, r, input_precision=PRECISION), tl.dot(a, to_z.T, z, input_precision=PRECISION)
            inner = tl.dot(a, to_n.T, inner, input_precision=PRECISION)
        else:
            tl.debug_barrier()
            for begin in range(0, UNITS, PART):
                at = begin + tl.arange(0, PART)
                known = at < UNITS
                a = tl.load(hidden + place[:, None] * UNITS + at[None, :], inside[:, None] & known[None, :], other=0.0)
                r = _by_gate(a, weights, 0, at, known, r, UNITS, PRECISION)
                z = _by_gate(a, weights, 1, at, known, z, UNITS, PRECISION)
                inner = _by_gate(a, weights, 2, at, known, inner, UNITS, PRECISION)
        r, z = tl.sigmoid(r), tl.sigmoid(z)
        n = libdevice.tanh(n + r * inner)
        h = n + z * (h - n)
        if gates is not None:
            of_gates = gates + place[:, None] * (4 * UNITS) + unit[None, :]
            tl.store(of_gates, r, mask)
            tl.store(of_gates + UNITS, z, mask)
            tl.store(of_gates + 2 * UNITS, n, mask)
            tl.store(of_gates + 3 * UNITS, inner, mask)
        tl.store(y + own, h, mask)
    tl.store(h_last + first, h, mask)


@tile.jit(do_not_specialize=["steps", "rows"])
def gru_backward_kernel(dy, dh_last, weights, hidden, gates, dx, dgates, dh0, steps, rows, by_time, by_row, DIRECTIONS: tl.constexpr,
                        UNITS: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr, PRECISION: tl.constexpr, RESIDENT: tl.constexpr, WIDE: tl.constexpr):
    """`dx` and `dgates` get the gradients of the products by the input and by the hidden state."""
    d = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.arange(0, UNITS)
    inside = row < rows
    mask = inside[:, None] & (unit >= 0)[None, :]
    first = (d * rows + row)[:, None] * UNITS + unit[None, :]
    weights += d * 3 * UNITS * UNITS
    if RESIDENT:
        to_r, to_z, to_n = _matrix(weights, 0, UNITS), _matrix(weights, 1, UNITS), _matrix(weights, 2, UNITS)
    dh = tl.load(dh_last + first, mask, other=0.0).to(WIDE)
    for back in range(0, steps):
        place = (_time(steps - 1 - back, steps, d) * by_time + row.to(tl.int64) * by_row) * DIRECTIONS + d
        own = place[:, None] * UNITS + unit[None, :]
        of_gates = gates + place[:, None] * (4 * UNITS) + unit[None, :]
        r = tl.load(of_gates, mask, other=0.0).to(WIDE)
        z = tl.load(of_gates + UNITS, mask, other=0.0).to(WIDE)
        n = tl.load(of_gates + 2 * UNITS, mask, other=0.0).to(WIDE)
        inner = tl.load(of_gates + 3 * UNITS, mask, other=0.0).to(WIDE)
        before = tl.load(hidden + own, mask, other=0.0).to(WIDE)
        dh += tl.load(dy + own, mask, other=0.0).to(WIDE)
        dn = dh * (1.0 - z) * (1.0 - n * n)
        dz = dh * (before - n) * z * (1.0 - z)
        dr = dn * inner * r * (1.0 - r)
        of_three = place[:, None] * (3 * UNITS) + unit[None, :]
        tl.store(dx + of_three, dr, mask)
        tl.store(dx + of_three + UNITS, dz, mask)
        tl.store(dx + of_three + 2 * UNITS, dn, mask)
        tl.store(dgates + of_three, dr, mask)
        tl.store(dgates + of_three + UNITS, dz, mask)
        tl.store(dgates + of_three + 2 * UNITS, dn * r, mask)
        dh *= z
        if RESIDENT:
            dh = tl.dot(dr.to(to_r.dtype), to_r, dh, input_precision=PRECISION)
            dh = tl.dot(dz.to(to_z.dtype), to_z, dh, input_precision=PRECISION)
            dh = tl.dot((dn * r).to(to_n.dtype), to_n, dh, input_precision=PRECISION)
        else:
            tl.debug_barrier()
            dh = _gradient_of_hidden(dgates + place * (3 * UNITS), weights, inside, dh, 3, UNITS, PART, PRECISION)
    tl.store(dh0 + first, dh, mask)
