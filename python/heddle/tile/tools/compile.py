"""Compiles kernels ahead of time, for programs in C and C++ that have neither Python nor Heddle.

    python -m heddle.tile.tools.compile add.py --kernel-name add_kernel --signature "*fp32:16, *fp32:16, i32, 1024" --grid "(n + 1023) / 1024, 1, 1"

writes a header with the function that launches, and for a CPU an object file, for a GPU C source with the machine code.
"""
import argparse
import ast
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any, List, NamedTuple, Optional, Sequence

from heddle._errors import InputError, MachineError, make
from heddle.tile.runtime.kernel import CompiledKernel, Options, core
from heddle.tile.runtime.specialize import facts_of_signature

# What C calls the types of the IR; floats that it lacks are their bits.
_C_TYPES = {
    "i1": "uint8_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "u8": "uint8_t", "u16": "uint16_t",
    "u32": "uint32_t", "u64": "uint64_t", "f16": "uint16_t", "bf16": "uint16_t", "f32": "float", "f64": "double",
}


def _refused(why: str) -> Exception:
    return make(201, "heddle.tile.tools.compile", why, "", f"heddle.tile.tools.compile: {why}")


class Parameter(NamedTuple):
    """What the function takes for one parameter of the kernel."""

    name: str
    element: str  # "f32"
    is_pointer: bool
    is_written: bool

    @property
    def c_type(self) -> str:
        element = _C_TYPES.get(self.element, "uint8_t")
        return f"{'' if self.is_written else 'const '}{element}*" if self.is_pointer else element


class Exported(NamedTuple):
    """The files of an exported kernel."""

    header: pathlib.Path
    code: pathlib.Path  # an object file, or C source with the machine code
    text: pathlib.Path  # the C++ or CUDA that was compiled


def export(kernel: Any, signature: Any, grid: Any, *, name: Optional[str] = None, folder: Any = ".", target: str = "cpu",
           num_warps: int = 4, num_stages: int = 3) -> Exported:
    """Compiles a kernel for certain types and writes a header and what it declares.

    signature: of each parameter in order, "*fp32" or "*fp32:16" (its address is a multiple of 16), "i32", "i32:16" (the
        number is), "fp32", or the value of a constant: 1024, True, None. One text with commas, or a sequence.
    grid: up to three C expressions of the parameters and the constants, as one text with commas or a sequence.
    name: of the function, by default the kernel's; `folder`: where NAME.h and the others go.
    target: "cpu" for this machine's, "cpu-avx512", "cpu-avx2", "cpu-portable"; "cuda-sm_90a", "cuda-sm_80".

    Raises heddle.InputError for a signature that does not fit the kernel, what compiling raises, and heddle.MachineError
    where there is no compiler.
    """
    name = name or kernel.__name__
    if not name.isidentifier():
        raise _refused(f"name: {name!r} is no name of a function in C")
    words = _words(signature)
    if len(words) != len(kernel.params):
        raise _refused(f"signature: it has {len(words)} entries, {kernel.__name__} has the parameters {', '.join(kernel.arg_names)}")
    facts = tuple(_facts(word, parameter) for word, parameter in zip(words, kernel.params))
    compiled = kernel.instance(facts, Options(num_warps=num_warps, num_stages=num_stages), target)
    parameters = [Parameter(*one) for one in core().export.parameters(compiled.ir)]
    constants = {parameter.name: fact[1] for parameter, fact in zip(kernel.params, facts) if fact[0] == "known"}
    source = _Source(name, kernel, parameters, constants, _grid(grid), compiled)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return _export_cuda(source, folder, target) if target.startswith("cuda") else _export_cpu(source, folder, target)


def _words(written: Any) -> List[Any]:
    if not isinstance(written, str):
        return [one.strip() if isinstance(one, str) else one for one in written]
    return [word.strip() for word in written.split(",")]


def _facts(word: Any, parameter: Any) -> tuple:
    """What is known of a parameter by its entry in the signature."""
    if not isinstance(word, str):
        return ("known", word)
    kind, _, hint = word.partition(":")
    try:
        known = facts_of_signature(kind)
    except ValueError:
        try:
            return ("known", ast.literal_eval(word))
        except (ValueError, SyntaxError):
            raise _refused(f"signature: {word!r} for {parameter.name} is neither a type nor a number; write *fp32, *fp32:16, i32, "
                             "fp32 or a constant") from None
    if parameter.is_constexpr:
        raise _refused(f"signature: {parameter.name} is a tl.constexpr; give its value in place of {word}")
    if hint == "1" and known[0] == "number":
        return ("known", 1)
    if hint not in ("", "16"):
        raise _refused(f"signature: {word!r} for {parameter.name}: behind the colon stands 16, or 1 for the number 1")
    return (*known[:2], hint == "16")


def _grid(written: Any) -> List[str]:
    extents = [str(one).strip() for one in (written.split(",") if isinstance(written, str) else written)]
    if not 1 <= len(extents) <= 3:
        raise _refused(f"grid: it has {len(extents)} extents, not one to three")
    return extents + ["1"] * (3 - len(extents))


class _Source:
    """Pieces of C for one function."""

    def __init__(self, name: str, kernel: Any, parameters: Sequence[Parameter], constants: dict, grid: List[str], compiled: CompiledKernel):
        self.name, self.kernel, self.parameters, self.compiled = name, kernel, parameters, compiled
        self.constants = {key: value for key, value in constants.items() if isinstance(value, (int, float))}
        self.grid = grid

    @property
    def declared(self) -> str:
        return ", ".join(f"{one.c_type} {one.name}" for one in self.parameters)

    @property
    def passed(self) -> str:
        return ", ".join(one.name for one in self.parameters)

    @property
    def title(self) -> str:
        known = ", ".join(f"{key} = {value}" for key, value in self.constants.items())
        return f"{self.kernel.__name__} of {pathlib.Path(self.kernel.source.file).name}" + (f", {known}" if known else "")

    def grid_lines(self) -> str:
        """The extents of the grid as `grid`, from expressions of parameters and constants."""
        used = re.findall(r"[A-Za-z_]\w*", " ".join(self.grid))
        lines = [f"  const {'double' if isinstance(value, float) else 'int64_t'} {key} = {float(value) if isinstance(value, float) else int(value)};"
                 for key, value in self.constants.items() if key in used]
        extents = ", ".join(f"(int64_t)({extent})" for extent in self.grid)
        return "\n".join([*lines, f"  const int64_t grid[3] = {{{extents}}};"])

    def header(self, functions: str) -> str:
        guard = f"HEDDLE_TILE_{self.name.upper()}_H"
        return (f"// {self.title}\n#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
                f"{functions}\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n")


def _separate(head: str, tail: str) -> str:
    return head + (", " if head and tail else "") + tail


_CPU_HEADER = """// Runs the programs of the grid one after another, on the thread that calls. 0: done; 1: no memory for tiles; 2: an
// assertion failed.
int {name}({declared});

// How many programs there are, and those from `begin` to `end`, for threads of the caller: they may run in any order and
// at once, unless the kernel says otherwise.
int64_t {name}_programs({declared});
int {name}_range({range});
"""

_CPU_CODE = """
#include <stdlib.h>
#include <string.h>

#include "{name}.h"

namespace {{

template <typename T>
int64_t word_of(T value) {{
  int64_t word = 0;
  memcpy(&word, &value, sizeof value);
  if constexpr (T(-1) < T(0) && T(1) / 2 == T(0)) word = int64_t(value);
  return word;
}}
template <typename T>
int64_t word_of(T* pointer) {{
  return reinterpret_cast<int64_t>(pointer);
}}

void failed(void* self, int64_t, const int64_t*, int64_t) {{
  *static_cast<int*>(self) = 2;
}}

int run(const int64_t* words, int64_t begin, int64_t end) {{
  int status = 0;
  constexpr size_t kScratch = {scratch};
  void* const scratch = kScratch == 0 ? nullptr : aligned_alloc(64, (kScratch + 63) / 64 * 64);
  if (kScratch != 0 && scratch == nullptr) return 1;
  heddle::tile::program_services services{{&status, nullptr, &failed}};
  void* const operands[] = {{const_cast<int64_t*>(words), &services}};
  {symbol}(operands, scratch, begin, end);
  free(scratch);
  return status;
}}

}}  // namespace

extern "C" int64_t {name}_programs({declared}) {{
{grid}
  return grid[0] * grid[1] * grid[2];
}}

extern "C" int {name}_range({range}) {{
{grid}
  const int64_t words[] = {{{words}}};
  return run(words, begin, end);
}}

extern "C" int {name}({declared}) {{
  return {name}_range({call});
}}
"""


def _export_cpu(source: _Source, folder: pathlib.Path, target: str) -> Exported:
    if "print " in source.compiled.ir and re.search(r"^\s*print ", source.compiled.ir, re.MULTILINE):
        raise _refused(f"{source.kernel.__name__} prints, and an exported kernel has nobody to print for; leave device_print out")
    text, symbol, scratch = core().export.cpu_text(source.compiled.ir)
    name = source.name
    words = ", ".join(["grid[0]", "grid[1]", "grid[2]", *(f"word_of({one.name})" for one in source.parameters)])
    spelt = {"name": name, "declared": source.declared, "symbol": symbol, "scratch": scratch, "grid": source.grid_lines(), "words": words,
             "range": _separate("int64_t begin, int64_t end", source.declared),
             "call": _separate(f"0, {name}_programs({source.passed})", source.passed)}
    made = Exported(folder / f"{name}.h", folder / f"{name}.o", folder / f"{name}.cc")
    made.header.write_text(source.header(_CPU_HEADER.format(**spelt)))
    made.text.write_text(text + _CPU_CODE.format(**spelt))
    with tempfile.TemporaryDirectory() as headers:
        command = [*core().export.compiler_command(target, headers), "-c", str(made.text), "-o", str(made.code)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        why = f"{command[0]} does not compile it: {done.stderr.strip()}"
        raise make(403, str(made.text), why, "", f"{made.text}: {why}")
    return made


_CUDA_HEADER = """// Launches the grid on a stream (CUstream or cudaStream_t; null: the default one) of the context that is current, with
// pointers to device memory, and does not wait. The result is a CUresult, 0 where all is well. The first call loads
// the machine code into the context; a program with several threads calls {name}_load() before.
int {name}({stream});
int {name}_load(void);
int {name}_unload(void);
"""

_CUDA_CODE = """// {title}
#include "{name}.h"

// Of the driver (libcuda.so.1).
typedef void* Handle;
extern int cuModuleLoadData(Handle* module, const void* image);
extern int cuModuleUnload(Handle module);
extern int cuModuleGetFunction(Handle* function, Handle module, const char* name);
extern int cuFuncSetAttribute(Handle function, int attribute, int value);
extern int cuLaunchKernel(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned shared_bytes, Handle stream, void** parameters, void** extra);

static const unsigned char code[] __attribute__((aligned(64))) = {{
{code}
}};

static Handle module, function;

int {name}_load(void) {{
  const int shared_bytes_attribute = 8;
  int status;
  if (function) return 0;
  status = cuModuleLoadData(&module, code);
  if (status) return status;
  Handle found;
  status = cuModuleGetFunction(&found, module, "{symbol}");
  if (!status && {shared} > 49152) status = cuFuncSetAttribute(found, shared_bytes_attribute, {shared});
  if (status) {{
    cuModuleUnload(module);
    return status;
  }}
  function = found;
  return 0;
}}

int {name}_unload(void) {{
  if (!function) return 0;
  function = 0;
  return cuModuleUnload(module);
}}

int {name}({stream}) {{
{grid}
  void* parameters[] = {{{addresses}}};
  const int status = {name}_load();
  if (status || !grid[0] || !grid[1] || !grid[2]) return status;
  return cuLaunchKernel(function, (unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2], {threads}, 1, 1, {shared}, stream,
                        parameters, 0);
}}
"""


def _export_cuda(source: _Source, folder: pathlib.Path, target: str) -> Exported:
    text, symbol, code, threads, shared = core().export.cuda_code(source.compiled.ir, target)
    lines = [", ".join(str(byte) for byte in code[at:at + 32]) + "," for at in range(0, len(code), 32)]
    spelt = {"name": source.name, "title": source.title, "symbol": symbol, "threads": threads, "shared": shared, "grid": source.grid_lines(),
             "code": "\n".join(lines), "stream": _separate("void* stream", source.declared),
             "addresses": ", ".join([*(f"(void*)&{one.name}" for one in source.parameters), "0"])}
    made = Exported(folder / f"{source.name}.h", folder / f"{source.name}.c", folder / f"{source.name}.cu")
    made.header.write_text(source.header(_CUDA_HEADER.format(**spelt)))
    made.code.write_text(_CUDA_CODE.format(**spelt))
    made.text.write_text(text)
    return made


def _kernel_of(path: str, name: str) -> Any:
    """A kernel of a Python file, which is run for that."""
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    if spec is None or not pathlib.Path(path).is_file():
        raise _refused(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(pathlib.Path(path).parent))
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    kernel = getattr(found, "inlined", None)
    if kernel is None:
        kernels = sorted(key for key, value in vars(module).items() if hasattr(value, "inlined"))
        raise _refused(f"{path} has no kernel {name}; it has {', '.join(kernels) or 'none'}")
    return kernel


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m heddle.tile.tools.compile", description="Compiles a kernel ahead of time for C and C++.")
    parser.add_argument("path", help="the Python file with the kernel")
    parser.add_argument("--kernel-name", "-n", required=True)
    parser.add_argument("--signature", "-s", required=True, help='"*fp32:16, i32, 1024": a type or a constant for each parameter')
    parser.add_argument("--grid", "-g", required=True, help='"(n + 1023) / 1024, 1, 1": C expressions of the parameters')
    parser.add_argument("--target", "-t", default="cpu", help="cpu, cpu-avx512, cpu-avx2, cpu-portable, cuda-sm_90a, cuda-sm_80")
    parser.add_argument("--num-warps", "-w", type=int, default=4)
    parser.add_argument("--num-stages", "-ns", type=int, default=3)
    parser.add_argument("--out-name", "-on", help="of the function, by default the kernel's")
    parser.add_argument("--out-path", "-o", default=".", help="the folder for the files")
    given = parser.parse_args(arguments)
    try:
        made = export(_kernel_of(given.path, given.kernel_name), given.signature, given.grid, name=given.out_name, folder=given.out_path,
                      target=given.target, num_warps=given.num_warps, num_stages=given.num_stages)
    except (InputError, MachineError) as error:
        print(error, file=sys.stderr)
        return 2
    for path in made:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
