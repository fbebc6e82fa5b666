"""All steps of an LSTM or a GRU in one launch, forward and backward.

A group of programs takes ROWS sequences of one direction and all their steps. Each program of a group computes SHARE hidden units of them. If
these are not all, the programs of a group wait for each other in every step and exchange their results through memory. Programs start in the
order of their numbers and those of a group are neighbours, so the groups before an incomplete one end and make room for the rest of it.

Element u of sequence b at time t of direction d lies at ((t * by_time + b * by_row) * DIRECTIONS + d) * width + u. Matrices are
[DIRECTIONS, gates * UNITS, UNITS].

If KEPT, a program keeps its part of the recurrent matrix on the chip. Otherwise it has all units, reads the matrix in every step, PART columns
or rows at a time, and multiplies it by what the last step left in memory.
"""
import heddle.tile as tile
import heddle.tile.language as tl
from heddle.tile.language.extra import libdevice


@tile.jit
def _own(rows, ROWS: tl.constexpr, UNITS: tl.constexpr, SHARE: tl.constexpr):
    """The group of the program, its sequences and units, and which of them exist."""
    group = tl.program_id(0)
    unit = tl.arange(0, SHARE)
    if SHARE < UNITS:
        programs: tl.constexpr = (UNITS + SHARE - 1) // SHARE
        unit += group % programs * SHARE
        group = group // programs
    row = group * ROWS + tl.arange(0, ROWS)
    return group, row, unit, (row < rows)[:, None] & (unit < UNITS)[None, :]


@tile.jit
def _place(step, steps, by_time, row, by_row, d, DIRECTIONS: tl.constexpr):
    """The number of each row's vector in a sequence. The second direction begins at the end."""
    return ((step + d * (steps - 1 - 2 * step)) * by_time + row.to(tl.int64) * by_row) * DIRECTIONS + d


@tile.jit
def _arrive(arrived, UNITS: tl.constexpr, SHARE: tl.constexpr):
    """Shows what the program has stored to the others of its group."""
    tl.debug_barrier()
    if SHARE < UNITS:
        tl.atomic_add(arrived, 1, sem="relaxed")


@tile.jit
def _await(arrived, times, UNITS: tl.constexpr, SHARE: tl.constexpr):
    """Waits until all programs of the group have arrived so many times."""
    if SHARE < UNITS:
        programs: tl.constexpr = (UNITS + SHARE - 1) // SHARE
        while tl.load(arrived, volatile=True) < times * programs:
            pass


@tile.jit
def _load_four(pointers, mask, UNITS: tl.constexpr, WIDE: tl.constexpr):
    return (tl.load(pointers, mask, other=0.0).to(WIDE), tl.load(pointers + UNITS, mask, other=0.0).to(WIDE),
            tl.load(pointers + 2 * UNITS, mask, other=0.0).to(WIDE), tl.load(pointers + 3 * UNITS, mask, other=0.0).to(WIDE))


@tile.jit
def _store_four(pointers, a, b, c, d, mask, UNITS: tl.constexpr):
    tl.store(pointers, a, mask)
    tl.store(pointers + UNITS, b, mask)
    tl.store(pointers + 2 * UNITS, c, mask)
    tl.store(pointers + 3 * UNITS, d, mask)


@tile.jit
def _whole(pointers, inside, WIDTH: tl.constexpr):
    """Vectors of all programs of the group, with zeros up to a multiple of what tensor cores multiply."""
    at = tl.arange(0, (WIDTH + 15) // 16 * 16)
    if WIDTH % 16 == 0:
        return tl.load(pointers[:, None] + at[None, :], inside[:, None], other=0.0)
    return tl.load(pointers[:, None] + at[None, :], inside[:, None] & (at < WIDTH)[None, :], other=0.0)


@tile.jit
def _slots(UNITS: tl.constexpr, SHARE: tl.constexpr, ABSENT: tl.constexpr):
    """The columns of a tile with four gates of the program's units: the position of each in a vector of all gates, and whether it exists.

    Eight columns of a gate follow eight of another, so that the thread that holds a unit's gate after a product by tensor cores holds the
    others, too. The slot ABSENT is no gate; with 4, all are.
    """
    column = tl.arange(0, 4 * SHARE)
    slot = column // (2 * SHARE) * 2 + column // 8 % 2
    unit = column % (2 * SHARE) // 16 * 8 + column % 8
    if SHARE < UNITS:
        unit += tl.program_id(0) % ((UNITS + SHARE - 1) // SHARE) * SHARE
    gate = slot - (slot > ABSENT).to(tl.int32)
    return gate * UNITS + unit, (slot != ABSENT) & (unit < UNITS)


@tile.jit
def _apart(x, ROWS: tl.constexpr, SHARE: tl.constexpr):
    """The four gates of a tile with the columns of _slots()."""
    even, odd = tl.split(x.reshape(ROWS, 2, SHARE // 8, 2, 8).permute(0, 2, 4, 1, 3))
    a, c = tl.split(even)
    b, d = tl.split(odd)
    return a.reshape(ROWS, SHARE), b.reshape(ROWS, SHARE), c.reshape(ROWS, SHARE), d.reshape(ROWS, SHARE)


@tile.jit
def _together(a, b, c, d, ROWS: tl.constexpr, SHARE: tl.constexpr):
    """The inverse of _apart()."""
    even = tl.join(a.reshape(ROWS, SHARE // 8, 8), c.reshape(ROWS, SHARE // 8, 8))
    odd = tl.join(b.reshape(ROWS, SHARE // 8, 8), d.reshape(ROWS, SHARE // 8, 8))
    return tl.join(even, odd).permute(0, 3, 1, 4, 2).reshape(ROWS, 4 * SHARE)


@tile.jit
def _columns_to_own(weights, UNITS: tl.constexpr, SHARE: tl.constexpr, ABSENT: tl.constexpr):
    """The part of the recurrent matrix that makes the gates of the program's units: [columns of _slots(), hidden units]."""
    at, there = _slots(UNITS, SHARE, ABSENT)
    unit = tl.arange(0, (UNITS + 15) // 16 * 16)
    return tl.load(weights + at[:, None] * UNITS + unit[None, :], there[:, None] & (unit < UNITS)[None, :], other=0.0)


@tile.jit
def _rows_to_own(weights, unit, GATES: tl.constexpr, UNITS: tl.constexpr, SHARE: tl.constexpr):
    """The part of the recurrent matrix that takes gradients of gates to the program's units: [gates, units]."""
    if SHARE >= UNITS:
        return _columns_to_own(weights, UNITS, SHARE, 4 if GATES == 4 else 2)
    gate = tl.arange(0, (GATES * UNITS + 15) // 16 * 16)
    return tl.load(weights + gate[:, None] * UNITS + unit[None, :], (gate < GATES * UNITS)[:, None] & (unit < UNITS)[None, :], other=0.0)


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
def lstm_kernel(x, weights, h0, c0, y, hidden, cells, gates, h_last, c_last, arrived, steps, rows, by_time, by_row, DIRECTIONS: tl.constexpr,
                UNITS: tl.constexpr, SHARE: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr, PRECISION: tl.constexpr,
                KEPT: tl.constexpr, WIDE: tl.constexpr):
    """`x`: the gates' products by the input, with all biases. `hidden` and `cells` get the states before each step. `cells` and `gates` may
    be None. `arrived`: a zero for each group, or None if a program has all units."""
    d = tl.program_id(1)
    group, row, unit, mask = _own(rows, ROWS, UNITS, SHARE)
    inside = row < rows
    first = (d * rows + row)[:, None] * UNITS + unit[None, :]
    weights += d * 4 * UNITS * UNITS
    if SHARE < UNITS:
        arrived += group * DIRECTIONS + d
    if KEPT:
        kept = _columns_to_own(weights, UNITS, SHARE, 4)
        at, there = _slots(UNITS, SHARE, 4)
        both = inside[:, None] & there[None, :]
    h = tl.load(h0 + first, mask, other=0.0).to(WIDE)
    c = tl.load(c0 + first, mask, other=0.0).to(WIDE)
    tl.store(hidden + _place(0, steps, by_time, row, by_row, d, DIRECTIONS)[:, None] * UNITS + unit[None, :], h, mask)
    _arrive(arrived, UNITS, SHARE)
    for step in range(0, steps):
        place = _place(step, steps, by_time, row, by_row, d, DIRECTIONS)
        own = place[:, None] * UNITS + unit[None, :]
        of_gates = place[:, None] * (4 * UNITS) + unit[None, :]
        if cells is not None:
            tl.store(cells + own, c, mask)
        if KEPT:
            sums = tl.load(x + place[:, None] * (4 * UNITS) + at[None, :], both, other=0.0).to(WIDE)
            _await(arrived, step + 1, UNITS, SHARE)
            if SHARE < UNITS:
                a = _whole(hidden + place * UNITS, inside, UNITS)
            else:
                a = h.to(weights.dtype.element_ty)
            i, f, g, o = _apart(tl.dot(a, kept.T, sums, input_precision=PRECISION), ROWS, SHARE)
        else:
            i, f, g, o = _load_four(x + of_gates, mask, UNITS, WIDE)
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
        then = _place(step + 1, steps, by_time, row, by_row, d, DIRECTIONS)
        tl.store(hidden + then[:, None] * UNITS + unit[None, :], h, mask & (step + 1 < steps))
        _arrive(arrived, UNITS, SHARE)
        # What no other program waits for is stored while it waits itself.
        if gates is not None:
            _store_four(gates + of_gates, i, f, g, o, mask, UNITS)
        tl.store(y + own, h, mask)
    tl.store(h_last + first, h, mask)
    tl.store(c_last + first, c, mask)


@tile.jit(do_not_specialize=["steps", "rows"])
def lstm_backward_kernel(dy, dh_last, dc_last, weights, cells, gates, dgates, dh0, dc0, arrived, steps, rows, by_time, by_row,
                         DIRECTIONS: tl.constexpr, UNITS: tl.constexpr, SHARE: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr,
                         PRECISION: tl.constexpr, KEPT: tl.constexpr, WIDE: tl.constexpr):
    d = tl.program_id(1)
    group, row, unit, mask = _own(rows, ROWS, UNITS, SHARE)
    inside = row < rows
    first = (d * rows + row)[:, None] * UNITS + unit[None, :]
    weights += d * 4 * UNITS * UNITS
    if SHARE < UNITS:
        arrived += group * DIRECTIONS + d
    if KEPT:
        kept = _rows_to_own(weights, unit, 4, UNITS, SHARE)
        if SHARE >= UNITS:
            a = tl.zeros((ROWS, 4 * SHARE), weights.dtype.element_ty)
    dh = tl.load(dh_last + first, mask, other=0.0).to(WIDE)
    dc = tl.load(dc_last + first, mask, other=0.0).to(WIDE)
    # A trip begins with the product of the gradients of the trip before, and after the last one only that is left.
    for back in range(0, steps + 1):
        place = _place(steps - 1 - back, steps, by_time, row, by_row, d, DIRECTIONS)
        now = mask & (back < steps)
        own = place[:, None] * UNITS + unit[None, :]
        of_gates = place[:, None] * (4 * UNITS) + unit[None, :]
        i, f, g, o = _load_four(gates + of_gates, now, UNITS, WIDE)
        before = tl.load(cells + own, now, other=0.0)
        of_y = tl.load(dy + own, now, other=0.0).to(WIDE)
        after = _place(steps - back, steps, by_time, row, by_row, d, DIRECTIONS) * (4 * UNITS)
        if KEPT:
            _await(arrived, back, UNITS, SHARE)
            if SHARE < UNITS:
                a = _whole(dgates + after, inside & (back > 0), 4 * UNITS)
            dh = tl.dot(a, kept, dh, input_precision=PRECISION)
        elif back > 0:
            dh = _gradient_of_hidden(dgates + after, weights, inside, dh, 4, UNITS, PART, PRECISION)
        if back < steps:
            of_h = dh + of_y
            c = libdevice.tanh(f * before + i * g)
            dc += of_h * o * (1.0 - c * c)
            di, df, dg = dc * g * i * (1.0 - i), dc * before * f * (1.0 - f), dc * i * (1.0 - g * g)
            do = of_h * c * o * (1.0 - o)
            _store_four(dgates + of_gates, di, df, dg, do, mask, UNITS)
            dc *= f
            dh = tl.zeros((ROWS, SHARE), WIDE)
            if KEPT:
                if SHARE >= UNITS:
                    a = _together(di, df, dg, do, ROWS, SHARE).to(weights.dtype.element_ty)
            _arrive(arrived, UNITS, SHARE)
    tl.store(dh0 + first, dh, mask)
    tl.store(dc0 + first, dc, mask)


@tile.jit(do_not_specialize=["steps", "rows"])
def gru_kernel(x, weights, bias, h0, y, hidden, gates, h_last, arrived, steps, rows, by_time, by_row, DIRECTIONS: tl.constexpr,
               UNITS: tl.constexpr, SHARE: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr, PRECISION: tl.constexpr,
               KEPT: tl.constexpr, WIDE: tl.constexpr):
    """`x`: the gates' products by the input. `hidden` gets the state before each step, `gates`, which may be None, the three gates and the
    third one's product by the hidden state."""
    d = tl.program_id(1)
    group, row, unit, mask = _own(rows, ROWS, UNITS, SHARE)
    inside = row < rows
    first = (d * rows + row)[:, None] * UNITS + unit[None, :]
    weights += d * 3 * UNITS * UNITS
    if SHARE < UNITS:
        arrived += group * DIRECTIONS + d
    if KEPT:
        # The third slot is the new gate's product by the input, the fourth one that by the hidden state.
        kept = _columns_to_own(weights, UNITS, SHARE, 2)
        at, there = _slots(UNITS, SHARE, 3)
        both = inside[:, None] & there[None, :]
        added = tl.zeros((4 * SHARE,), WIDE)
        if bias is not None:
            of_bias, biased = _slots(UNITS, SHARE, 2)
            added = tl.load(bias + d * 3 * UNITS + of_bias, biased, other=0.0).to(WIDE)
    else:
        of_r, of_z, of_n = tl.zeros((UNITS,), WIDE), tl.zeros((UNITS,), WIDE), tl.zeros((UNITS,), WIDE)
        if bias is not None:
            of_r = tl.load(bias + d * 3 * UNITS + unit).to(WIDE)
            of_z = tl.load(bias + (d * 3 + 1) * UNITS + unit).to(WIDE)
            of_n = tl.load(bias + (d * 3 + 2) * UNITS + unit).to(WIDE)
    h = tl.load(h0 + first, mask, other=0.0).to(WIDE)
    tl.store(hidden + _place(0, steps, by_time, row, by_row, d, DIRECTIONS)[:, None] * UNITS + unit[None, :], h, mask)
    _arrive(arrived, UNITS, SHARE)
    for step in range(0, steps):
        place = _place(step, steps, by_time, row, by_row, d, DIRECTIONS)
        own = place[:, None] * UNITS + unit[None, :]
        if KEPT:
            sums = tl.load(x + place[:, None] * (3 * UNITS) + at[None, :], both, other=0.0).to(WIDE) + added[None, :]
            _await(arrived, step + 1, UNITS, SHARE)
            if SHARE < UNITS:
                a = _whole(hidden + place * UNITS, inside, UNITS)
            else:
                a = h.to(weights.dtype.element_ty)
            r, z, n, inner = _apart(tl.dot(a, kept.T, sums, input_precision=PRECISION), ROWS, SHARE)
        else:
            of_x = x + place[:, None] * (3 * UNITS) + unit[None, :]
            r = tl.load(of_x, mask, other=0.0).to(WIDE) + of_r[None, :]
            z = tl.load(of_x + UNITS, mask, other=0.0).to(WIDE) + of_z[None, :]
            n = tl.load(of_x + 2 * UNITS, mask, other=0.0).to(WIDE)
            inner = tl.zeros((ROWS, UNITS), WIDE) + of_n[None, :]
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
        then = _place(step + 1, steps, by_time, row, by_row, d, DIRECTIONS)
        tl.store(hidden + then[:, None] * UNITS + unit[None, :], h, mask & (step + 1 < steps))
        _arrive(arrived, UNITS, SHARE)
        if gates is not None:
            _store_four(gates + place[:, None] * (4 * UNITS) + unit[None, :], r, z, n, inner, mask, UNITS)
        tl.store(y + own, h, mask)
    tl.store(h_last + first, h, mask)


@tile.jit(do_not_specialize=["steps", "rows"])
def gru_backward_kernel(dy, dh_last, weights, hidden, gates, dx, dgates, dh0, arrived, steps, rows, by_time, by_row, DIRECTIONS: tl.constexpr,
                        UNITS: tl.constexpr, SHARE: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr, PRECISION: tl.constexpr,
                        KEPT: tl.constexpr, WIDE: tl.constexpr):
    """`dx` and `dgates` get the gradients of the products by the input and by the hidden state."""
    d = tl.program_id(1)
    group, row, unit, mask = _own(rows, ROWS, UNITS, SHARE)
    inside = row < rows
    first = (d * rows + row)[:, None] * UNITS + unit[None, :]
    weights += d * 3 * UNITS * UNITS
    if SHARE < UNITS:
        arrived += group * DIRECTIONS + d
    if KEPT:
        kept = _rows_to_own(weights, unit, 3, UNITS, SHARE)
        if SHARE >= UNITS:
            a = tl.zeros((ROWS, 4 * SHARE), weights.dtype.element_ty)
    dh = tl.load(dh_last + first, mask, other=0.0).to(WIDE)
    for back in range(0, steps + 1):
        place = _place(steps - 1 - back, steps, by_time, row, by_row, d, DIRECTIONS)
        now = mask & (back < steps)
        own = place[:, None] * UNITS + unit[None, :]
        r, z, n, inner = _load_four(gates + place[:, None] * (4 * UNITS) + unit[None, :], now, UNITS, WIDE)
        before = tl.load(hidden + own, now, other=0.0).to(WIDE)
        of_y = tl.load(dy + own, now, other=0.0).to(WIDE)
        after = _place(steps - back, steps, by_time, row, by_row, d, DIRECTIONS) * (3 * UNITS)
        if KEPT:
            _await(arrived, back, UNITS, SHARE)
            if SHARE < UNITS:
                a = _whole(dgates + after, inside & (back > 0), 3 * UNITS)
            dh = tl.dot(a, kept, dh, input_precision=PRECISION)
        elif back > 0:
            dh = _gradient_of_hidden(dgates + after, weights, inside, dh, 3, UNITS, PART, PRECISION)
        if back < steps:
            dh += of_y
            dn = dh * (1.0 - z) * (1.0 - n * n)
            dz = dh * (before - n) * z * (1.0 - z)
            dr = dn * inner * r * (1.0 - r)
            of_three = place[:, None] * (3 * UNITS) + unit[None, :]
            tl.store(dgates + of_three, dr, mask)
            tl.store(dgates + of_three + UNITS, dz, mask)
            tl.store(dgates + of_three + 2 * UNITS, dn * r, mask)
            dh *= z
            if KEPT:
                if SHARE >= UNITS:
                    a = _together(dr, dz, tl.zeros_like(dn), dn * r, ROWS, SHARE).to(weights.dtype.element_ty)
            _arrive(arrived, UNITS, SHARE)
            tl.store(dx + of_three, dr, mask)
            tl.store(dx + of_three + UNITS, dz, mask)
            tl.store(dx + of_three + 2 * UNITS, dn, mask)
    tl.store(dh0 + first, dh, mask)
