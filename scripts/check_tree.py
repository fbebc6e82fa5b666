#!/usr/bin/env python3
"""Checks what a compiler does not: the direction of includes, the length of files, functions and folders, words, that files
can be compiled together, that each folder has a README, and that the links of the documentation lead somewhere and the files that it names exist.

Exit status 1 with one line per finding. Limits that are exceeded are findings, not warnings.
"""
import ast
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 600
MAX_FUNCTION = 80
MAX_KERNEL = 250  # functions in tile/kernel
MAX_CLASS = 300  # a class with its methods, wherever they stand
MAX_PARAMETERS = 7
MAX_FILES = 25  # headers and sources directly in a folder of src, tile and tests

# What each folder may include besides itself, include/heddle and base. docs/design/overview.md says why.
ALLOWED = {
    "base": set(),
    "target": set(),
    "ir": {"tile/core"},
    "frontend": {"ir"},
    "passes": {"ir", "target"},
    "schedule": {"ir", "target", "tile/core"},
    "codegen": {"ir", "target", "schedule", "tile/core"},
    "jit": {"target"},
    "tune": {"codegen", "jit", "target", "schedule"},
    "ops": {"ir", "codegen", "jit", "target", "schedule", "runtime", "tune"},
    "runtime": {"jit", "target"},
    "lang": {"ir/op.h", "ir/ops.def", "ir/ops", "ir/text", "codegen", "jit", "target", "schedule", "runtime", "tile/core"},
    "emulator": {"tile/arch"},
    "profile": {"target"},
    "zoo": set(),
    "driver": {"ops", "ir", "target", "frontend", "passes", "schedule", "codegen", "jit", "tune", "runtime", "lang", "profile", "tile/core"},
    "cli": {"ops", "ir", "target", "frontend", "passes", "schedule", "codegen", "jit", "tune", "runtime", "profile", "driver", "zoo"},
    "ort": {"frontend", "runtime", "target", "driver"},
}
# Products beside the compiler: what they know of it is in ALLOWED, and nothing of the compiler knows them. Only these
# folders may include them.
BESIDE = {"profile": {"driver", "cli"}, "zoo": {"cli"}, "emulator": set(), "ort": set()}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]')
# Headers that a freestanding tile header may use.
TILE_SYSTEM = {"stdint.h", "stddef.h"}
# What opens a block that is no function, in code formatted by clang-format.
NO_FUNCTION = re.compile(r'(inline |typedef |export )*(namespace|class|struct|enum|union|extern "C"|using|public|private)\b')
# A file of ours that a page names, not <stdint.h>.
NAMED = re.compile(r"`([\w./-]+\.(?:h|cc|py|sh))`")
# [text](target), not ![picture](target); the target without its fragment.
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]*)(?:#[^)\s]*)?\)")


def tracked_sources():
    for folder in ("include", "src", "tile", "python", "tests", "bench", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".h", ".cc", ".cuh", ".cu", ".def", ".py", ".js", ".mjs"} and "build" not in path.parts:
                yield path


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1), match.group(2)


def check_direction(path, findings):
    relative = path.relative_to(ROOT)
    where = relative.parts[0]
    for number, quote, name in includes(path):
        first = name.split("/")[0]
        if where == "tile":
            if quote == '"' and first != "tile":
                findings.append(f"{relative}:{number}: tile may include tile only, not {name}")
            if quote == "<" and name not in TILE_SYSTEM:
                findings.append(f"{relative}:{number}: tile is freestanding, {name} is not allowed")
        elif where == "src" and quote == '"' and first != "heddle":
            folder = relative.parts[1]
            allowed = ALLOWED[folder] | {folder, "base"}
            if first not in allowed and "/".join(name.split("/")[:2]) not in allowed:
                findings.append(f"{relative}:{number}: {folder} may not include {name}")


def check_beside(findings):
    for name, readers in BESIDE.items():
        for folder in sorted(folder for folder, allowed in ALLOWED.items() if name in allowed and folder not in readers):
            findings.append(f"scripts/check_tree.py: {folder} may not include {name}, which is no part of the compiler")


def functions(path):
    """(line, lines) of each function. C++ is read by its layout: what starts at the indentation of the file or of a
    class ends with the next brace at the same one."""
    text = path.read_text()
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.lineno, node.end_lineno - node.lineno + 1
        return
    for indentation in ("", "  "):
        start, head = 0, ""
        for number, line in enumerate(text.splitlines(), 1):
            at, rest = line[: len(indentation)], line[len(indentation) :]
            if at != indentation or not rest or rest[0] in " #/":
                continue
            if rest[0] != "}":
                start, head = number, rest
            elif rest == "}" and not NO_FUNCTION.match(head):
                yield start, number - start + 1


def check_functions(path, findings):
    relative = path.relative_to(ROOT)
    limit = MAX_KERNEL if relative.parts[:2] == ("tile", "kernel") else MAX_FUNCTION
    for line, lines in functions(path):
        if lines > limit:
            findings.append(f"{relative}:{line}: a function of {lines} lines, at most {limit}")


def pages():
    yield from ROOT.glob("*.md")
    for folder in ("docs", "src", "tile", "python", "tests", "bench", "examples"):
        yield from (ROOT / folder).rglob("*.md")


def check_links(findings):
    for page in sorted(pages()):
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in LINK.findall(text):
            if target and "://" not in target and not (page.parent / target).exists():
                findings.append(f"{page.relative_to(ROOT)}: the link to {target} leads nowhere")


def check_names(findings):
    """Files that a page names in backticks are there: `name.h`, `folder/name.py`."""
    tracked = {path.name for path in (*tracked_sources(), *(ROOT / "scripts").iterdir())}
    tracked |= {path.name for folder in ("bench", "tests", "tile") for path in (ROOT / folder).rglob("*.sh")}
    for page in sorted(pages()):
        for name in NAMED.findall(page.read_text()):
            if name.rsplit("/", 1)[-1] not in tracked:
                findings.append(f"{page.relative_to(ROOT)}: there is no {name}")


def check_instructions(findings):
    """Inline assembly is in tile/arch only; what the emulator cannot run has a twin for it of the same name."""
    emulated = ROOT / "tile/arch/emulated/tile/arch"
    for path in sorted((ROOT / "tile").rglob("*.h")):
        relative = path.relative_to(ROOT)
        if "emulated" in relative.parts or not re.search(r"\basm\b", path.read_text()):
            continue
        machine = relative.parts[2] if relative.parts[:2] == ("tile", "arch") else ""
        if machine.startswith("sm"):
            if not (emulated / machine / path.name).exists():
                findings.append(f"{relative}: no twin in {emulated.relative_to(ROOT) / machine}")
        elif machine not in ("cpu", "hip") and "cpu" not in relative.parts:
            findings.append(f"{relative}: inline assembly belongs into tile/arch/sm80 or tile/arch/sm90")
    for path in sorted(emulated.rglob("*.h")):
        if not (ROOT / path.relative_to(ROOT / "tile/arch/emulated")).exists():
            findings.append(f"{path.relative_to(ROOT)}: the twin of no header")


# Constants with a unit of time or speed, which a device decides.
FIGURE = re.compile(
    r"\bconstexpr (?:double|float|int|int64_t|auto)\b[^;]*"
    r"\bk\w*(?:Us|Ns|Ms|Seconds|Cycles|Ghz|Gbps|Tbps|Tflops|PerUs|PerCycle|PerSecond) *=")
# A number from a thousand on, but for 1e3 and the like, which convert units.
LARGE = re.compile(r"(?<![\w.])(?!1e\d)(?:\d{4,}(?:\.\d*)?|\d+(?:\.\d+)?e[3-9])\b(?! *<<)")
PREDICTION = re.compile(r"\bpredict_\w+\(")


def check_figures(path, findings):
    """What was measured of a device stands in target/models; formulas read it from there."""
    relative = path.relative_to(ROOT)
    if relative.parts[0] != "src" or relative.parts[1] not in {"schedule", "codegen", "passes", "ops"}:
        return
    lines = [re.sub(r"//.*", "", line) for line in path.read_text().splitlines()]
    found = {number for number, line in enumerate(lines, 1) if FIGURE.search(line)}
    for start, count in functions(path):
        body = lines[start - 1 : start - 1 + count]
        if PREDICTION.search(body[0]):
            found |= {start + i for i, line in enumerate(body) if LARGE.search(line)}
    findings += [f"{relative}:{n}: a figure of a device belongs into src/target/models" for n in sorted(found)]


# Where the kind of target is asked: in what a target is, and in one file a layer, which has an answer for every kind.
BACKENDS = {"schedule/backend.cc", "codegen/backend.cc", "driver/target/backend.cc"}
KIND = re.compile(r"\bTargetKind\b|\bof_kind\b")
# A compute capability beside an operator of comparison.
CAPABILITY = re.compile(
    r"\bsm_?(?:\(\))? (?:[=!]=|[<>]=?) \w|[\w)] (?:[=!]=|[<>]=?) (?:\w+(?:\.|->))*sm_?\b(?!\.)"
    r"|\bswitch \([\w.>-]*\bsm_?\)")
CHIP = re.compile(
    r"\b(?:[ABHV]\d00|G[HB]\d00|L4|L40S?|T4|RTX|GeForce|Volta|Turing|Ampere|Hopper|Blackwell|Zen \d|Xeon|EPYC|132 SMs"
    r"|(?:[abhv]\d00|l4|rtx\d+)\(\))(?![\w-])")


def check_target(path, findings):
    """Targets are asked for what they have; which kind or chip one is decides nothing outside of src/target."""
    relative = path.relative_to(ROOT)
    if relative.parts[0] not in {"src", "tile"} or relative.parts[:2] == ("src", "target"):
        return
    plays_one = relative.parts[:2] == ("src", "emulator") or relative.parts[:2] == ("tile", "arch")
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where, code = f"{relative}:{number}", re.sub(r"//.*", "", line)
        if KIND.search(code) and "/".join(relative.parts[1:]) not in BACKENDS:
            findings.append(f"{where}: ask the backend of this layer, or a trait of the target, not for its kind")
        if CAPABILITY.search(code) and not plays_one:
            findings.append(f"{where}: ask CudaTarget for what the chip has (has_tma()), not for its compute capability")
        if CHIP.search(line):
            findings.append(f"{where}: the name of a chip; say what it has, or put it into src/target/models")


# Words that docs/glossary.md has replaced by the field's terms.
RETIRED = {
    "copy engine": "TMA", "multiprocessor": "SM", "let_next_begin": "launch_dependents",
    "wait_for_previous": "grid_dependency_wait", "behind_previous": "launder_after_wait", "brings_near": "loads_residual",
    "GemmWalk": "PersistentTileScheduler", "RingPosition": "PipelineState", "give_registers": "warpgroup_reg_dealloc",
    "take_registers": "warpgroup_reg_alloc", "give_sums": "store_partials", "take_sums": "load_partials", "gang": "CTA group",
    "CudaSpread": "ThreadLayout", "CudaKeep": "CachedValue", "unshare": "clone_cheap_producers", "gemm_few": "gemm_skinny",
    "wide_pixels": "space_to_depth", "merge_products": "merge_dots", "known_scatters": "scatter_to_select",
    "partial_reductions": "epilogue_reductions", "GemmPartsArgs": "ClusterSplitKArgs", "gemm_parts": "gemm_cluster_splitk",
    "cuda_separate": "cuda_standalone", "side nodes": "operand producers", "is_separate": "is_standalone", "gemm_lines": "gemm_unaligned",
}
RETIRED_WORD = re.compile(r"\b(" + "|".join(RETIRED) + r")s?\b")


def check_words(path, findings):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for word in RETIRED_WORD.findall(line):
            findings.append(f"{path.relative_to(ROOT)}:{number}: '{word}' is '{RETIRED[word]}' here (docs/glossary.md)")


# Longer than a class should be, and why; these may only become fewer.
LONG_CLASSES = {
    "CudaRunState": (369, "the run of a plan: steps, loops and branches share streams, events and captured graphs"),
    "GraphBuilder": (304, "a method for each ONNX operator of the zoo"),
    "GraphImporter": (303, "nodes, bodies and functions share scopes and values"),
    "PlanBuilder": (423, "steps, buffers and constants of a plan refer to each other by number until it is whole"),
    "TileLoader": (330, "a loop over the pieces of a tile for each form of load, all on the same registers"),
}
MANY_PARAMETERS = {"gemm": 8}  # ops::gemm(), whose arguments are those of BLAS

PARAMETERS = re.compile(
    r"^ *(?:(?:static|inline|constexpr|virtual|explicit|HEDDLE_\w+) )*([\w:<>,&* ]+[ &*])(~?[\w:]+)\(([^;{}]*?)\)"
    r" *(?:const|noexcept|override)* *(?:= 0)?[;{]", re.MULTILINE)
# Those of interfaces that others have fixed: NVIDIA's driver.
DRIVER = re.compile(r"cu[A-Z]\w+|tensor_map\w*")


def check_parameters(path, findings):
    text = re.sub(r"//[^\n]*", "", path.read_text())
    for match in PARAMETERS.finditer(text):
        result, name, parameters = match.groups()
        if result.strip() == "return" or not result.strip() and not name[0].isupper():
            continue  # a call
        plain = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", re.sub(r"\([^()]*\)|\{[^{}]*\}", "", parameters)))
        typed = '"' not in parameters and all(re.search(r"\w[&*>]* +[&*]*\w|^\w+[&*]*$", part.strip()) for part in plain.split(","))
        count = plain.count(",") + 1
        if typed and count > MANY_PARAMETERS.get(name, MAX_PARAMETERS) and not DRIVER.fullmatch(name):
            line = text.count("\n", 0, match.start()) + 1
            findings.append(f"{path.relative_to(ROOT)}:{line}: {name}() has {count} parameters, at most {MAX_PARAMETERS}")


def class_lengths(paths):
    """Lines by folder and class: its body, and its methods outside of it."""
    lengths = {}
    for path in paths:
        lines, opened = path.read_text().splitlines(), None
        for number, line in enumerate(lines):
            if match := re.match(r"(?:template.*> )?(?:class|struct) (?:HEDDLE_API )?(\w+)[^;]*\{$", line):
                opened = (number, match.group(1))
            elif line == "};" and opened:
                key = (path.parent.relative_to(ROOT), opened[1])
                lengths[key] = lengths.get(key, 0) + number - opened[0] + 1
                opened = None
            elif match := re.match(r"[\w:<>,&* ]*?\b([A-Z]\w+)::~?\w+\([^;]*$", line):
                end = next((i for i in range(number, len(lines)) if lines[i] == "}"), number)
                key = (path.parent.relative_to(ROOT), match.group(1))
                lengths[key] = lengths.get(key, 0) + end - number + 1
    return lengths


def check_classes(findings):
    paths = [path for path in tracked_sources() if path.relative_to(ROOT).parts[0] in {"src", "tile"}]
    for (folder, name), lines in class_lengths(paths).items():
        most = LONG_CLASSES.get(name, (MAX_CLASS, ""))[0]
        if lines > most:
            findings.append(f"{folder}: {name} has {lines} lines, at most {most}")


def check_folders(findings):
    """Few files a folder, so that its listing can be read; results and generated texts are data."""
    for top in ("src", "tile", "tests"):
        for folder in [ROOT / top, *(path for path in (ROOT / top).rglob("*") if path.is_dir())]:
            count = sum(path.suffix in {".h", ".cc", ".def"} for path in folder.iterdir())
            if count > MAX_FILES:
                findings.append(f"{folder.relative_to(ROOT)}: {count} headers and sources, at most {MAX_FILES}")


# Folders of src whose sources define what one list names: a registry, an operator table, a class with one header.
REGISTERED = {
    "cli", "cli/commands", "emulator/driver", "frontend/onnx/ops", "frontend/onnx/ops/classic",
    "frontend/onnx/ops/contrib", "frontend/onnx/ops/quantized", "ir/ops", "lang/cpu/ops", "lang/cuda/ops", "lang/interpret/ops", "lang/ir/rules", "passes/fusion", "passes/simplify/canonicalize",
    "schedule/product/cuda/views", "target/models", "target/models/cpu", "target/models/hip", "zoo",
}
# Sources without a header of their stem beside them, and where that one header for several is; these may only become
# fewer.
UNPAIRED = {
    "base/file/mapped_file.cc": "file.h has all of files", "base/file/temp_dir.cc": "file.h has all of files",
    "driver/report/model_svg.cc": "inspect.h: what is known of a model without compiling it",
    "driver/tune/calibrate_cpu.cc": "calibrate.h: a file a kind of target",
    "driver/tune/calibrate_cuda.cc": "calibrate.h: a file a kind of target",
    "frontend/onnx/expansion.cc": "graph_importer.h: loops of the importer over nodes",
    "frontend/onnx/graph_order.cc": "graph_importer.h: loops of the importer over nodes",
    "frontend/onnx/registry.cc": "op_registry.h: the tables of all families",
    "frontend/onnx/supported.cc": "graph_importer.h: loops of the importer over nodes",
    "ir/text/parse.cc": "text.h: both directions of one grammar", "ir/text/print.cc": "text.h: both directions of one grammar",
    "ops/evaluate.cc": "epilogue.h: the reference of what it lowers", "ops/gemm.cc": "heddle/ops.h is public",
    "passes/pipeline.cc": "pass.h: the list of passes", "schedule/can_compile.cc": "kernel_desc.h: what passes ask the schedule",
    "schedule/product/cuda/conv.cc": "contraction.h: a file a form", "schedule/product/cuda/families.cc": "family.h: the list",
    "schedule/product/cuda/tile_problem.cc": "tile.h: the problem of its families",
    "schedule/product/cuda/wgmma/candidates.cc": "wgmma.h: a file a step", "schedule/product/cuda/wgmma/families.cc": "wgmma.h: a file a step",
    "schedule/product/cuda/wgmma/launches.cc": "wgmma.h: a file a step", "schedule/product/cuda/wgmma/problem.cc": "wgmma.h: a file a step",
    "schedule/product/cuda/window.cc": "contraction.h: a file a form", "schedule/schedule.cc": "kernel_desc.h: what passes ask the schedule",
}


def check_pairs(findings):
    """What a source defines is declared in the header of its stem, beside it or in include/heddle."""
    unpaired = set()
    for path in sorted((ROOT / "src").rglob("*.cc")):
        relative = path.relative_to(ROOT / "src")
        public = ROOT / "include/heddle" / f"{path.stem}.h"
        if relative.parent.as_posix() not in REGISTERED and not path.with_suffix(".h").exists() and not public.exists():
            unpaired.add(relative.as_posix())
    for name in sorted(unpaired - UNPAIRED.keys()):
        findings.append(f"src/{name}: there is no {pathlib.PurePath(name).stem}.h beside it")
    for name in sorted(UNPAIRED.keys() - unpaired):
        findings.append(f"scripts/check_tree.py: src/{name} is in order, leave it out of UNPAIRED")


# Folders of tests that test no one folder of src or tile, and why.
TESTS_OF_SEVERAL = {
    "codegen/golden": "what schedule and codegen write", "contraction": "products on a CPU: schedule, codegen and tile",
    "cuda": "schedules of a GPU and what NVRTC makes of texts", "cuda_contraction": "products on a GPU: schedule, codegen and tile",
    "cuda_runtime": "plans of a GPU: driver, runtime and emulator", "cuda_stitch": "regions on a GPU: schedule, codegen and tile",
    "hip_runtime": "models on an AMD GPU: driver, runtime and emulator", "hip_stitch": "regions on an AMD GPU: schedule, codegen and tile",
    "decisions": "what passes and the schedule decide of the zoo", "examples": "the programs in examples",
    "fuzz": "random and hostile inputs to the whole compiler", "gpu": "what needs a GPU", "hostile": "damaged files",
    "install": "programs against an installed tree", "models": "trained models against ONNX Runtime",
    "onnx": "the official tests of ONNX operators", "ops/emulated": "src/ops on the emulator", "python": "the Python package",
    "tile_core": "tile/core, by several compilers", "tile_cuda": "tile/kernel/cuda and tile/block on the emulator",
}


def check_mirror(findings):
    """The tests of a folder of src stand in the folder of tests of the same name."""
    for folder in sorted({path.parent for path in (ROOT / "tests").rglob("CMakeLists.txt")} - {ROOT / "tests"}):
        relative = folder.relative_to(ROOT / "tests")
        several = {relative.as_posix(), relative.parts[0]} & TESTS_OF_SEVERAL.keys()
        of_tile = relative.parts[0] == "tile" and (ROOT / relative).is_dir()
        if not several and not of_tile and not (ROOT / "src" / relative).is_dir():
            findings.append(f"tests/{relative}: there is no src/{relative}")


# A type, an alias, a constant and a function at the beginning of a line.
LOCAL = [re.compile(text) for text in (r"(?:enum )?(?:struct|class) (\w+)", r"using (\w+ = .*);", r"(?:constexpr|const|inline|static)[^(=;]*?\b(k[A-Z]\w*)(?:\[\])? ?[={]",
                                       r"(?!TEST|INSTANTIATE|return)[A-Za-z][\w:<>,*& ]*?[ *&](\w+\([^()=]*)")]


def local_names(path):
    """(namespace, name, whether it is in an unnamed namespace) of what a file defines, overloads of a function by their parameters."""
    spaces = []
    for line in path.read_text().splitlines():
        if match := re.match(r"(?:inline )?namespace ([\w:]*) ?\{", line):
            spaces.append(match[1])
        elif line.startswith("}  // namespace"):
            spaces.pop()
        else:
            for match in filter(None, (pattern.match(line) for pattern in LOCAL)):
                yield "::".join(filter(None, spaces)), match[1], "" in spaces


def hidden_by(space, name, declared):
    """The header that declares a name in this namespace or one around it."""
    parts = space.split("::")
    return next(filter(None, (declared.get(("::".join(parts[:count]), name)) for count in range(len(parts), 0, -1))), None)


def check_unity(findings):
    """Files of src/X, of a folder of tests and of python/binding may be one unit (HEDDLE_UNITY): a name in an unnamed namespace occurs once."""
    seen, declared = {}, {}
    for path in tracked_sources():
        parts = path.relative_to(ROOT).parts
        if path.suffix not in {".h", ".cc"} or (parts[0] not in {"src", "tests"} and parts[:2] != ("python", "binding")):
            continue
        folder = ROOT / parts[0] / parts[1] if parts[0] == "src" else path.parent
        for space, name, unnamed in local_names(path):
            if path.suffix == ".cc" and unnamed:
                seen.setdefault((folder, space, name), set()).add(path)
            elif path.suffix == ".h" and "(" not in name:
                declared.setdefault((space, name.split(" ")[0]), path)
    aliases = {}
    for folder, space, name in [key for key in seen if " = " in key[2]]:
        paths = seen.pop((folder, space, name))  # the same alias may occur again
        aliases.setdefault((folder, space, name.split(" ")[0]), []).append(paths)
    for key, paths in aliases.items():
        if len(paths) > 1 or key in seen or hidden_by(key[1], key[2], declared):
            seen[key] = set.union(seen.get(key, set()), *paths)
    for (folder, space, name), paths in seen.items():
        hidden = hidden_by(space, name, declared)
        if len(paths) > 1 or hidden:
            names = ", ".join(sorted(path.relative_to(folder).as_posix() for path in paths) + ([str(hidden.relative_to(ROOT))] if hidden else []))
            findings.append(f"{folder.relative_to(ROOT)}: {name.split('(')[0]} is defined in {names}, which may be compiled together")


def check_choices(path, findings):
    """What differs between families of kernels is asked of the family, by its methods."""
    if path.relative_to(ROOT).parts[0] != "src":
        return
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.search(r"\balgorithm\w*(?:\(\))? *[!=]=", line):
            findings.append(f"{path.relative_to(ROOT)}:{number}: a comparison of an algorithm; ask its family instead")


# What is coded once, in the files of one place: (what, where, the rule).
ONCE = [
    (re.compile(r"\bdriver(?:\(\))?(?:\.|->)launch\("), "src/runtime/cuda", "launch_kernel() of runtime/cuda/launch.h launches kernels"),
    (re.compile(r"\balignas\(64\) \w*Map\b"), "src/runtime/cuda", "runtime/cuda/tensor_map.h has tensor maps and their cache"),
]


# The folders of src/driver, each of which may include those in front of it.
DRIVER_FLOORS = ["shapes", "model", "target", "tile", "options", "plan", "compile", "verify", "tune", "report", "api"]


def check_driver(path, findings):
    parts = path.relative_to(ROOT).parts
    if parts[:2] != ("src", "driver") or len(parts) < 4:
        return
    for number, _, name in includes(path):
        other = name.split("/")
        if other[0] == "driver" and len(other) > 2 and DRIVER_FLOORS.index(other[1]) > DRIVER_FLOORS.index(parts[2]):
            findings.append(f"{path.relative_to(ROOT)}:{number}: driver/{parts[2]} is below driver/{other[1]}")


def check_circles(findings):
    """No circle of include directives among folders; one that dispatches to its own folders and they to it is none."""
    arrows = {}
    for path in sorted((ROOT / "src").rglob("*.[hc]*")):
        own = path.parent.relative_to(ROOT / "src")
        for _, _, name in includes(path):
            other = pathlib.PurePath(name).parent
            if (ROOT / "src" / name).exists() and own != other and own not in other.parents and other not in own.parents:
                arrows.setdefault(own, set()).add(other)
    done = set()

    def walk(folder, way):
        if folder in way:
            findings.append("a circle of folders: " + " -> ".join(f.as_posix() for f in [*way[way.index(folder):], folder]))
        elif folder not in done:
            done.add(folder)
            for other in sorted(arrows.get(folder, ())):
                walk(other, [*way, folder])

    for folder in sorted(arrows):
        walk(folder, [])


def check_once(path, findings):
    relative = path.relative_to(ROOT)
    if relative.parts[0] not in {"src", "bench"}:
        return
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for what, where, rule in ONCE:
            if not relative.as_posix().startswith(where + "/") and what.search(line):
                findings.append(f"{relative}:{number}: {rule}")


LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
MASKS = re.compile(r"\{\} [&|^] ~?\{\}|~\(?\{\}")


@functools.cache
def functions_of_operations():
    """Calls of what kernels write for elementwise operations."""
    names = set(re.findall(r'"tile::(\w+)"', (ROOT / "src/ir/ops.def").read_text()))
    return re.compile(r"\btile::(?:" + "|".join(sorted(names)) + r")\(")


def check_operations(path, findings):
    """Operations stand in one table, and one folder writes their C++."""
    relative = path.relative_to(ROOT).as_posix()
    if path.name == "ops.def" and relative != "src/ir/ops.def":
        findings.append(f"{relative}: a second table of operations; src/ir/ops.def has them all")
    if not relative.startswith("src/") or relative.startswith("src/codegen/scalar/") or path.suffix == ".def":
        return
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for literal in LITERAL.findall(re.sub(r"//.*", "", line)):
            if functions_of_operations().search(literal) or MASKS.search(literal):
                findings.append(f"{relative}:{number}: the C++ of an operation; codegen/scalar/spelling.h writes it")


OPTION_GIVEN = re.compile(r'add_(?:option|flag)\("(?:-\w,)?--([\w-]+)')


@functools.cache
def options_of_the_command():
    return {name for source in (ROOT / "src/cli").glob("*.cc") for name in OPTION_GIVEN.findall(source.read_text())}


def check_messages(path, findings):
    """Python's users read the library's messages, too: options stand in them by the functions of base/interface/option.h.

    The whole of a command, `heddle opt --list`, is the same for all.
    """
    relative = path.relative_to(ROOT)
    if relative.parts[0] != "src" or relative.parts[1] in {"cli", "emulator"} or relative.parts[1:3] == ("base", "interface"):
        return
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for literal in LITERAL.findall(re.sub(r"//.*", "", line)):
            for name in re.findall(r"(?<![\w-])--([\w-]+)", re.sub(r"heddle \w+ --[\w-]+", "", literal)):
                if name in options_of_the_command():
                    findings.append(f"{relative}:{number}: --{name} is an option of the command only; use option:: of base/interface/option.h")


def main():
    findings = []
    for path in tracked_sources():
        lines = path.read_text().count("\n")
        if lines > MAX_LINES:
            findings.append(f"{path.relative_to(ROOT)}: {lines} lines, at most {MAX_LINES}")
        check_functions(path, findings)
        if path.suffix in {".h", ".cc", ".def"}:
            check_direction(path, findings)
            check_figures(path, findings)
            check_target(path, findings)
            check_choices(path, findings)
            check_messages(path, findings)
            check_once(path, findings)
            check_operations(path, findings)
            check_driver(path, findings)
            if path.relative_to(ROOT).parts[0] in {"src", "include"}:
                check_parameters(path, findings)
        check_words(path, findings)
    check_beside(findings)
    check_classes(findings)
    check_folders(findings)
    check_circles(findings)
    check_pairs(findings)
    check_unity(findings)
    check_mirror(findings)
    check_links(findings)
    check_names(findings)
    check_instructions(findings)
    for folder in [*(ROOT / "src").iterdir(), ROOT / "tile"]:  # the first README below it counts (frontend/onnx)
        if folder.is_dir() and any(folder.rglob("*.[ch]*")) and not any(folder.rglob("README.md")):
            findings.append(f"{folder.relative_to(ROOT)}: no README.md")
    print("\n".join(findings) or "tree: includes, lengths, folder READMEs, links and names of files are in order")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
