"""Kernels over a table of tensors: the update of an optimiser, and the norm of all gradients.

A program takes one chunk of one tensor. `chunks` has a word for each program: the row of the tensor in its upper half, the number of the
chunk within the tensor in its lower half. `words` begins with the rows, which have the columns that Column names and then the addresses
of states. Chunks are read in blocks without masks but the last, so that loads and stores are vectors.
"""
import heddle.tile as tile
import heddle.tile.language as tl
from heddle.tile.language.extra import libdevice


class Column:
    """The words of a row.

    NUMBERS is where among the words the float32 numbers of the tensor's group begin: the learning rate, then those that the rule reads.
    LEARNING_RATE is 0, or the address of a learning rate in place of the first number. STEP is 0 for rules that count no steps.
    """

    PARAMETER, GRADIENT, STEP, LEARNING_RATE, NUMBERS, SIZE, STATES = range(7)


MOST_STATES = 3
ROW = Column.STATES + MOST_STATES
_ROW = tl.constexpr(ROW)
_PARAMETER, _GRADIENT, _STEP = tl.constexpr(Column.PARAMETER), tl.constexpr(Column.GRADIENT), tl.constexpr(Column.STEP)
_LEARNING_RATE, _NUMBERS = tl.constexpr(Column.LEARNING_RATE), tl.constexpr(Column.NUMBERS)
_SIZE, _STATES = tl.constexpr(Column.SIZE), tl.constexpr(Column.STATES)


@tile.jit
def _pointer(row, column, TYPE: tl.constexpr, ALIGNMENT: tl.constexpr):
    return tl.multiple_of(tl.load(row + column).to(tl.pointer_type(TYPE)), ALIGNMENT)


@tile.jit
def _sum_of_squares(g, at, size, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    inside = at + tl.arange(0, BLOCK)
    if MASKED:
        x = tl.load(g + inside, inside < size, other=0.0).to(tl.float32)
    else:
        x = tl.load(g + inside).to(tl.float32)
    return tl.sum(x * x)


@tile.jit(do_not_specialize=["first", "total"])
def norm_kernel(words, chunks, partials, first, total, count, norm, scale, GRADIENT: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
                ALIGNMENT: tl.constexpr):
    """Adds the square norms of chunks into `partials` from `first` on. The last of `total` programs, which may be those of several
    launches, adds them in the order of the chunks, so that the norm is the same in each run."""
    word = tl.load(chunks + tl.program_id(0))
    row = words + (word >> 32) * _ROW
    size = tl.load(row + _SIZE)
    g = _pointer(row, _GRADIENT, GRADIENT, ALIGNMENT)
    begin = (word & 0x7fffffff) * CHUNK
    end = tl.minimum(begin + CHUNK, size)
    whole = begin + (end - begin) // BLOCK * BLOCK
    sum = 0.0
    for at in range(begin, whole, BLOCK):
        sum += _sum_of_squares(g, tl.multiple_of(at, BLOCK), size, BLOCK, False)
    if whole < end:
        sum += _sum_of_squares(g, tl.multiple_of(whole, BLOCK), size, BLOCK, True)
    tl.store(partials + first + tl.program_id(0), sum)
    if tl.atomic_add(count, 1) == total - 1:
        tl.store(count, 0)
        all = 0.0
        for at in range(0, total, BLOCK):
            index = at + tl.arange(0, BLOCK)
            all += tl.sum(tl.load(partials + index, index < total, other=0.0))
        all = tl.sqrt(all)
        if scale is not None:
            all /= tl.load(scale)
        tl.store(norm, all)


@tile.jit
def _update(p, g, states, at, size, factor, numbers, STATES: tl.constexpr, RULE: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    """One block of a tensor."""
    inside = at + tl.arange(0, BLOCK)
    mask = inside < size if MASKED else None
    x = tl.load(p + inside, mask).to(tl.float32)
    slope = tl.load(g + inside, mask).to(tl.float32) * factor
    if STATES == 0:
        x = RULE(x, slope, numbers)
    elif STATES == 1:
        x, s0 = RULE(x, slope, tl.load(states[0] + inside, mask), numbers)
        tl.store(states[0] + inside, s0, mask)
    elif STATES == 2:
        x, s0, s1 = RULE(x, slope, tl.load(states[0] + inside, mask), tl.load(states[1] + inside, mask), numbers)
        tl.store(states[0] + inside, s0, mask)
        tl.store(states[1] + inside, s1, mask)
    else:
        x, s0, s1, s2 = RULE(x, slope, tl.load(states[0] + inside, mask), tl.load(states[1] + inside, mask),
                             tl.load(states[2] + inside, mask), numbers)
        tl.store(states[0] + inside, s0, mask)
        tl.store(states[1] + inside, s1, mask)
        tl.store(states[2] + inside, s2, mask)
    tl.store(p + inside, x, mask)


@tile.jit(do_not_specialize=["tensors", "total"])
def update_kernel(words, chunks, tensors, total, count, scale, skip, norm, max_norm, SCALARS: tl.constexpr, RULE: tl.constexpr,
                  STATES: tl.constexpr, COUNTS: tl.constexpr, PARAMETER: tl.constexpr, GRADIENT: tl.constexpr, CHUNK: tl.constexpr,
                  BLOCK: tl.constexpr, ALIGNMENT: tl.constexpr):
    """Updates all tensors of a table. If the rule COUNTS steps, the last of `total` programs advances the counters, which all have read.

    Gradients are divided by `scale`, then scaled so that their norm is at most `max_norm`. If `skip` is not 0, nothing changes.
    """
    goes = True
    if skip is not None:
        goes = tl.load(skip) == 0.0
    if goes:
        word = tl.load(chunks + tl.program_id(0))
        row = words + (word >> 32) * _ROW
        size = tl.load(row + _SIZE)
        factor = 1.0
        if scale is not None:
            factor /= tl.load(scale)
        if norm is not None:
            factor *= tl.minimum(max_norm / (tl.load(norm) + 1e-6), 1.0, propagate_nan=tl.PropagateNan.ALL)
        step = 0.0
        if COUNTS:
            step = tl.load(_pointer(row, _STEP, tl.float32, 4)) + 1.0
        group = (words + tl.load(row + _NUMBERS)).to(tl.pointer_type(tl.float32), bitcast=True)
        rate = tl.load(group)
        if tl.load(row + _LEARNING_RATE) != 0:
            rate = tl.load(_pointer(row, _LEARNING_RATE, tl.float32, 4))
        numbers = SCALARS(group + 1, rate, step)
        p, g = _pointer(row, _PARAMETER, PARAMETER, ALIGNMENT), _pointer(row, _GRADIENT, GRADIENT, ALIGNMENT)
        states = (_pointer(row, _STATES, tl.float32, ALIGNMENT), _pointer(row, _STATES + 1, tl.float32, ALIGNMENT),
                  _pointer(row, _STATES + 2, tl.float32, ALIGNMENT))
        begin = (word & 0x7fffffff) * CHUNK
        end = tl.minimum(begin + CHUNK, size)
        whole = begin + (end - begin) // BLOCK * BLOCK
        for at in range(begin, whole, BLOCK):
            _update(p, g, states, tl.multiple_of(at, BLOCK), size, factor, numbers, STATES, RULE, BLOCK, False)
        if whole < end:
            _update(p, g, states, tl.multiple_of(whole, BLOCK), size, factor, numbers, STATES, RULE, BLOCK, True)
        if COUNTS:
            if tl.atomic_add(count, 1) == total - 1:
                tl.store(count, 0)
                for first in range(0, tensors, 128):
                    index = first + tl.arange(0, 128)
                    steps = tl.load(words + index * _ROW + _STEP, index < tensors, other=0).to(tl.pointer_type(tl.float32))
                    tl.store(steps, tl.load(steps, index < tensors, other=0.0) + 1.0, index < tensors)


@tile.jit
def adam_scalars(numbers, rate, step):
    """Numbers: beta1, 1 - beta1, log(beta1), the same of beta2, eps, decoupled decay, decay in the gradient, sign of the gradient."""
    first = -libdevice.expm1(step * tl.load(numbers + 2))
    second = tl.sqrt(-libdevice.expm1(step * tl.load(numbers + 5)))
    return (tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 3), tl.load(numbers + 4), rate / first, 1.0 / second,
            tl.load(numbers + 6), 1.0 - rate * tl.load(numbers + 7), tl.load(numbers + 8), tl.load(numbers + 9))


@tile.jit
def adam(p, g, mean, square, numbers):
    beta1, rest1, beta2, rest2, rate, correction, eps, keep, decay, sign = numbers
    g = sign * g + decay * p
    mean = beta1 * mean + rest1 * g
    square = beta2 * square + rest2 * g * g
    return keep * p - rate * (mean / (tl.sqrt(square) * correction + eps)), mean, square


@tile.jit
def amsgrad(p, g, mean, square, largest, numbers):
    beta1, rest1, beta2, rest2, rate, correction, eps, keep, decay, sign = numbers
    g = sign * g + decay * p
    mean = beta1 * mean + rest1 * g
    square = beta2 * square + rest2 * g * g
    largest = tl.maximum(largest, square)
    return keep * p - rate * (mean / (tl.sqrt(largest) * correction + eps)), mean, square, largest


@tile.jit
def sgd_scalars(numbers, rate, step):
    """Numbers: momentum, 1 for Nesterov's, decay in the gradient, sign of the gradient."""
    return rate, tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2), tl.load(numbers + 3)


@tile.jit
def sgd(p, g, numbers):
    rate, momentum, nesterov, decay, sign = numbers
    return p - rate * (sign * g + decay * p)


@tile.jit
def momentum(p, g, buffer, numbers):
    rate, momentum, nesterov, decay, sign = numbers
    g = sign * g + decay * p
    buffer = momentum * buffer + g
    return p - rate * tl.where(nesterov != 0.0, g + momentum * buffer, buffer), buffer


@tile.jit
def lion_scalars(numbers, rate, step):
    """Numbers: beta1, 1 - beta1, beta2, 1 - beta2, decoupled decay, sign of the gradient."""
    return (rate, tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2), tl.load(numbers + 3), 1.0 - rate * tl.load(numbers + 4),
            tl.load(numbers + 5))


@tile.jit
def lion(p, g, mean, numbers):
    rate, beta1, rest1, beta2, rest2, keep, sign = numbers
    g *= sign
    direction = beta1 * mean + rest1 * g
    direction = tl.where(direction > 0.0, 1.0, tl.where(direction < 0.0, -1.0, direction))
    return keep * p - rate * direction, beta2 * mean + rest2 * g
