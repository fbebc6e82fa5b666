"""The typed text of a kernel (docs/python/tile.md), made op by op.

A Value is what an op gives or a region takes; it gets its number when the text is written. Ops that nothing needs are left
out of the text, and what a loop carries without changing it is no longer carried.
"""
import contextlib
import math
import threading
from typing import Any, Optional, Sequence

# What stays though nobody uses its result.
_EFFECTS = {
    "store", "store_view", "scatter_view", "atomic_rmw", "atomic_cas", "atomic_view", "assert", "print", "barrier", "assume",
    "yield", "condition", "inline_asm",
}


# How many operations a kernel has at most (lang/ir/verify.cc has the same number).
MOST_OPS = 1 << 16

# What gives something else each time, though it changes nothing.
_ORDERED = {"load", "load_view", "gather_view"}


def _key(kind: str, operands: Sequence["Value"], results: Sequence[str], attributes: Optional[dict]) -> tuple:
    return (kind, *map(id, operands), *results, *((name, str(value)) for name, value in (attributes or {}).items()))


class Value:
    """One result or argument, of a type of the IR."""

    __slots__ = ("type", "hint", "same_as")

    def __init__(self, type: str, hint: str = ""):
        self.type, self.hint, self.same_as = type, hint, None

    def resolved(self) -> "Value":
        value = self
        while value.same_as is not None:
            value = value.same_as
        return value


class Region:
    """Ops with the arguments that they see."""

    def __init__(self, arguments: Sequence[Value] = ()):
        self.arguments, self.ops = list(arguments), []
        self.known = {}  # what was computed here: the same again is the same value


class Op:
    __slots__ = ("kind", "operands", "attributes", "results", "regions", "location", "named")

    def __init__(self, kind, operands, results, attributes, regions, location):
        self.kind, self.operands, self.results = kind, list(operands), list(results)
        self.attributes, self.regions, self.location = attributes or {}, list(regions), location
        self.named = None  # of a for: its index and the arguments that it carries


def _attribute(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return literal(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_attribute(item) for item in value)}]"
    if isinstance(value, Quoted):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
    return str(value)


class Quoted(str):
    """Text that is written between quotation marks."""


def literal(value: Any) -> str:
    """A number as the IR reads it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(float(value))


class Builder:
    """Collects the ops of one kernel."""

    def __init__(self, options: Any):
        self.options = options
        self.regions = [Region()]
        self.files: dict[str, int] = {}
        self.calls: list[tuple] = []  # places of the calls that are being inlined, outermost first
        self.place: Optional[tuple] = None  # (file, line, column)
        self.count = 0  # of ops, in all regions
        self.used_globals: dict[tuple, Any] = {}  # (name, id of its module's names) -> (value, these names)

    # -- where ops come from
    def _location(self) -> str:
        if self.place is None:
            return ""
        written = []
        for file, line, column in [self.place, *reversed(self.calls)]:
            number = self.files.setdefault(file, len(self.files))
            written.append(f"{number}:{line}:{column}")
        return "@" + " < ".join(written)

    @contextlib.contextmanager
    def inlined(self):
        """What is emitted belongs to a call at the present place."""
        place = self.place
        self.calls.append(place)
        try:
            yield
        finally:
            self.calls.pop()
            self.place = place

    # -- ops
    def emit(self, kind: str, operands: Sequence[Value] = (), results: Sequence[str] = (), attributes: Optional[dict] = None,
             regions: Sequence[Region] = ()) -> list[Value]:
        key = None if kind in _EFFECTS or kind in _ORDERED or regions else _key(kind, operands, results, attributes)
        if key is not None:
            for region in self.regions:
                if key in region.known:
                    return region.known[key]
        self.count += 1
        if self.count > MOST_OPS:
            raise ValueError(f"the kernel has more than {MOST_OPS} operations: unroll less, with tl.range in place of tl.static_range, or "
                             "split the kernel")
        op = Op(kind, operands, [Value(type) for type in results], attributes, regions, self._location())
        self.regions[-1].ops.append(op)
        if key is not None:
            self.regions[-1].known[key] = op.results
        return op.results

    def one(self, kind: str, operands: Sequence[Value], result: str, **attributes: Any) -> Value:
        return self.emit(kind, operands, [result], attributes)[0]

    def constant(self, value: Any, type: str) -> Value:
        return self.one("constant", [], type, value=Literal(literal(value)))

    @contextlib.contextmanager
    def region(self, arguments: Sequence[Value] = ()):
        """A new region that takes what is emitted; whoever opens it hands it to an op."""
        region = Region(arguments)
        self.regions.append(region)
        try:
            yield region
        finally:
            self.regions.pop()

    def terminate(self, region: Region, kind: str, operands: Sequence[Value]) -> None:
        region.ops.append(Op(kind, operands, [], {}, [], self._location()))


class Literal(str):
    """A number that is written already."""


# -- after the visit

def drop_invariant_carries(region: Region) -> None:
    """Loops carry only what they change."""
    for op in region.ops:
        for inner in op.regions:
            drop_invariant_carries(inner)
        if op.kind not in ("for", "while"):
            continue
        first = 3 if op.kind == "for" else 0
        body = op.regions[-1]
        if op.kind == "for":
            arguments = [body.arguments[1:]]
        else:
            arguments = [op.regions[0].arguments, body.arguments]
        yielded, kept = body.ops[-1].operands, []
        for i, result in enumerate(op.results):
            own = {id(group[i]) for group in arguments}
            init = op.operands[first + i].resolved()
            if id(yielded[i].resolved()) in own or yielded[i].resolved() is init:
                for group in arguments:
                    group[i].same_as = init
                result.same_as = init
            else:
                kept.append(i)
        if len(kept) < len(op.results):
            _keep(op, first, kept)


def _keep(op: Op, first: int, kept: list[int]) -> None:
    op.operands = op.operands[:first] + [op.operands[first + i] for i in kept]
    op.results = [op.results[i] for i in kept]
    lead = 1 if op.kind == "for" else 0
    for region in op.regions:
        region.arguments = region.arguments[:lead] + [region.arguments[lead + i] for i in kept]
    end = op.regions[-1].ops[-1]
    end.operands = [end.operands[i] for i in kept]
    if op.kind == "while":
        end = op.regions[0].ops[-1]
        end.operands = end.operands[:1] + [end.operands[1 + i] for i in kept]


def _is_volatile(op: Op) -> bool:
    """A load of what other programs write meanwhile."""
    return op.kind in ("load", "load_view") and op.attributes.get("cache") == "cv"


def _has_effect(op: Op) -> bool:
    if op.kind in _EFFECTS or _is_volatile(op):
        return op.kind not in ("yield", "condition")
    return any(_has_effect(inner) for region in op.regions for inner in region.ops)


def drop_unused(region: Region, used: set) -> None:
    """Ops without effect whose results nothing needs, from the last to the first."""
    kept = []
    for op in reversed(region.ops):
        needed = op.kind in ("yield", "condition", "while") or _has_effect(op)
        if not needed and not any(id(result) in used for result in op.results):
            continue
        for inner in reversed(op.regions):
            drop_unused(inner, used)
        used.update(id(operand.resolved()) for operand in op.operands)
        kept.append(op)
    region.ops = kept[::-1]


class Printer:
    """Writes a region as text."""

    def __init__(self):
        self.names: dict[int, str] = {}
        self.lines: list[str] = []

    def name(self, value: Value) -> str:
        value = value.resolved()
        if id(value) not in self.names:
            self.names[id(value)] = f"%{len(self.names)}" if not value.hint else f"%{value.hint}"
        return self.names[id(value)]

    def list(self, values: Sequence[Value]) -> str:
        return ", ".join(self.name(value) for value in values)

    def typed(self, values: Sequence[Value]) -> str:
        return ", ".join(f"{self.name(value)}: {value.type}" for value in values)

    def region(self, region: Region, indent: str) -> None:
        for op in region.ops:
            self.op(op, indent)

    def op(self, op: Op, indent: str) -> None:
        results = f"{self.list(op.results)} = " if op.results else ""
        attributes = ", ".join(f"{key} = {_attribute(value)}" for key, value in op.attributes.items() if value is not None)
        attributes = f" {{{attributes}}}" if attributes else ""
        types = f" : {', '.join(result.type for result in op.results)}" if op.results else ""
        place = f"  {op.location}" if op.location else ""
        if op.kind == "for":
            head = f"{results}for {self._loop(op)}{attributes}{types}"
            self._block(op, head, place, indent)
        elif op.kind == "while":
            carried = self._carried(op.regions[0].arguments, op.operands)
            self.lines.append(f"{indent}{results}while ({carried}){attributes}{types}{place} {{")
            self.region(op.regions[0], indent + "  ")
            self.lines.append(f"{indent}}} do {{ ({self.list(op.regions[1].arguments)})")
            self.region(op.regions[1], indent + "  ")
            self.lines.append(f"{indent}}}")
        elif op.kind == "if":
            self.lines.append(f"{indent}{results}if {self.list(op.operands)}{types}{place} {{")
            self.region(op.regions[0], indent + "  ")
            if op.results or len(op.regions[1].ops) > 1:
                self.lines.append(f"{indent}}} else {{")
                self.region(op.regions[1], indent + "  ")
            self.lines.append(f"{indent}}}")
        elif op.regions:
            head = f"{results}{op.kind} {self.list(op.operands)}{attributes}{types}"
            self.lines.append(f"{indent}{head}{place} {{ ({self.typed(op.regions[0].arguments)})")
            self.region(op.regions[0], indent + "  ")
            self.lines.append(f"{indent}}}")
        else:
            operands = f" {self.list(op.operands)}" if op.operands else ""
            self.lines.append(f"{indent}{results}{op.kind}{operands}{attributes}{types}{place}")

    def _carried(self, arguments, inits) -> str:
        return ", ".join(f"{self.name(argument)} = {self.name(init)}" for argument, init in zip(arguments, inits))

    def _loop(self, op: Op) -> str:
        low, high, step = (self.name(operand) for operand in op.operands[:3])
        carried = self._carried(op.regions[0].arguments[1:], op.operands[3:])
        return f"{self.name(op.regions[0].arguments[0])} = {low} to {high} step {step} ({carried})"

    def _block(self, op: Op, head: str, place: str, indent: str) -> None:
        self.lines.append(f"{indent}{head}{place} {{")
        self.region(op.regions[0], indent + "  ")
        self.lines.append(f"{indent}}}")


def write(builder: Builder, name: str, parameters: Sequence[tuple[Value, dict]], attributes: dict) -> str:
    """The whole text: `parameters` with the facts that hold for each."""
    body = builder.regions[0]
    drop_invariant_carries(body)
    drop_unused(body, set())
    printer = Printer()
    head = []
    for value, facts in parameters:
        written = f" {{{', '.join(f'{key} = {_attribute(fact)}' for key, fact in facts.items())}}}" if facts else ""
        head.append(f"{printer.name(value)}: {value.type}{written}")
    printer.region(body, "  ")
    files = [f"file {number} {_attribute(Quoted(file))}" for file, number in builder.files.items()]
    options = ", ".join(f"{key} = {_attribute(value)}" for key, value in attributes.items() if value is not None)
    options = f" {{{options}}}" if options else ""
    return "\n".join(["tile_ir 2", *files, f"kernel @{name}({', '.join(head)}){options} {{", *printer.lines, "}", ""])


# -- the builder of the kernel that this thread compiles now

_current = threading.local()


def builder() -> Builder:
    found = getattr(_current, "builder", None)
    if found is None:
        raise RuntimeError(
            "functions of heddle.tile.language are for the inside of a @jit function: they describe a kernel and compute nothing here")
    return found


@contextlib.contextmanager
def building(made: Builder):
    before = getattr(_current, "builder", None)
    _current.builder = made
    try:
        yield made
    finally:
        _current.builder = before


def is_building() -> bool:
    return getattr(_current, "builder", None) is not None
