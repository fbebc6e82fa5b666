"""The kernels of run_kernels.py, in a process of their own: python public_kernels.py heddle|triton FOLDER cpu|cuda; a command a line on
standard input, an answer a line on standard output."""
import importlib
import json
import pathlib
import runpy
import statistics
import sys
import traceback
import types

PACKAGE, FOLDER, DEVICE = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]

if PACKAGE == "triton":
    sys.path.remove(str(pathlib.Path(__file__).resolve().parent))  # where triton/ is ours

import torch  # noqa: E402
import torch.distributed.tensor  # noqa: E402, F401: Liger-Kernel expects it
import torch.nn.functional as F  # noqa: E402
import triton  # noqa: E402

if PACKAGE == "heddle" and DEVICE == "cuda":
    from heddle.tile.runtime import driver

    triton.runtime.driver.active = driver.active
LARGE = DEVICE == "cuda"
F16 = torch.float16


def checkout(*names):
    """The first of the folders that is there."""
    for name in names:
        if (FOLDER / name).is_dir():
            return FOLDER / name
    sys.exit(f"{FOLDER} has no {' or '.join(names)}")


def stub(name, path=None, **members):
    """A module of that name with `members`; with a path, a package whose __init__ is not run."""
    module = types.ModuleType(name)
    module.__dict__.update(members)
    if path is not None:
        module.__path__ = [str(path)]
    sys.modules[name] = module
    return module


def liger(name):
    root = checkout("Liger-Kernel") / "src/liger_kernel"
    stub("liger_kernel", root)
    stub("liger_kernel.ops", root / "ops")
    return importlib.import_module(f"liger_kernel.ops.{name}")


class NoDevice:
    """What stands for torch.cuda on a CPU."""

    def __call__(self, *_):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    device = property(lambda self: self)


def flag_gems(name):
    root = checkout("FlagGems") / "src/flag_gems"
    stub("flag_gems", root)
    stub("flag_gems.runtime", torch_device_fn=torch.cuda if LARGE else NoDevice())
    stub("flag_gems.ops", root / "ops")
    stub("flag_gems.utils", root / "utils", libentry=lambda: lambda kernel: kernel)
    stub("flag_gems.utils.triton_lang_helper", use_tl_extra=lambda function: function)
    stub("flag_gems.utils.triton_version_utils", HAS_TLE=False)
    return importlib.import_module(f"flag_gems.ops.{name}")


def fla(name):
    root = checkout("flash-linear-attention") / "fla"
    stub("fla", root)
    stub("fla.ops", root / "ops")
    stub("fla.ops.utils", root / "ops/utils")
    stub("fla.ops.backends", dispatch=lambda *_, **__: lambda function: function)
    stub("fla.ops.utils.cache", fla_cache_autotune=triton.autotune)
    stub("fla.ops.utils.index", prepare_chunk_indices=None)
    stub("fla.utils", autotune_cache_kwargs={}, check_shared_mem=lambda *_: True, input_guard=lambda function: function)
    return importlib.import_module(f"fla.ops.utils.{name}")


def tutorial(name):
    """The globals of one of Triton's tutorials, whose benchmarks are not run."""
    report, triton.testing.perf_report = triton.testing.perf_report, lambda *_: lambda _function: types.SimpleNamespace(run=lambda **_: None)
    try:
        return runpy.run_path(str(checkout("triton", "triton-cpu") / "python/tutorials" / name), run_name="tutorial")
    finally:
        triton.testing.perf_report = report


def random(*shape, dtype=F16, scale=1.0):
    return (torch.randn(*shape, device=DEVICE, dtype=torch.float32) * scale).to(dtype)


def gradients(function, inputs, seed):
    """A function of nothing that computes function(*inputs), and the gradients of it with respect to `inputs` for `seed`."""

    def run():
        given = [x.detach().requires_grad_() for x in inputs]
        outputs = function(*given)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return [y.detach() for y in outputs] + list(torch.autograd.grad(outputs, given, [seed(y) for y in outputs]))

    return run


def like_first(y):
    """A gradient that is the same in each run."""
    return torch.arange(y.numel(), device=y.device).mul(0.7).sin().reshape(y.shape).to(y.dtype)


def differentiable(function, reference, *inputs):
    """The case of an operator with its gradients; `reference` on float64."""
    exact = gradients(reference, [x.double() for x in inputs], lambda y: like_first(y.float()).to(inputs[0].dtype).double())
    return gradients(function, inputs, like_first), exact


def flash_attention():
    function = tutorial("06-fused-attention.py")["attention"]
    q, k, v = (random(*((4, 16, 4096, 128) if LARGE else (1, 2, 256, 64)), scale=0.5) for _ in range(3))
    return (lambda: [function(q, k, v, True, 0.125, False)],
            lambda: [F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True, scale=0.125)])


def flash_attention_backward():
    function = tutorial("06-fused-attention.py")["attention"]
    inputs = [random(*((4, 16, 2048, 64) if LARGE else (1, 1, 256, 64)), scale=0.5) for _ in range(3)]
    return differentiable(lambda q, k, v: function(q, k, v, True, 0.125, False),
                          lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.125), *inputs)


def rms_norm():
    function = liger("rms_norm").LigerRMSNormFunction.apply
    n = 4096 if LARGE else 520
    return differentiable(lambda x, w: function(x, w, 1e-5, 0.0, "llama", False), lambda x, w: F.rms_norm(x, (n,), w, 1e-5),
                          random(8192 if LARGE else 33, n), random(n))


def layer_norm_backward():
    function = tutorial("05-layer-norm.py")["layer_norm"]
    n = 4096 if LARGE else 520
    return differentiable(lambda x, w, b: function(x, (n,), w, b, 1e-5), lambda x, w, b: F.layer_norm(x, (n,), w, b, 1e-5),
                          *(random(*shape, dtype=torch.float32) for shape in ((4096 if LARGE else 33, n), (n,), (n,))))


def grouped_gemm():
    function = tutorial("08-grouped-gemm.py")["group_gemm_fn"]
    m = (1024, 2048, 4096, 512) if LARGE else (128, 256, 384)
    a, b = [random(x, 1024 if LARGE else 64, scale=0.1) for x in m], [random(1024 if LARGE else 64, x, scale=0.1) for x in m]
    return lambda: function(a, b), lambda: [x.double() @ y.double() for x, y in zip(a, b)]


def cross_entropy():
    function = liger("cross_entropy").LigerCrossEntropyFunction.apply
    m, n = (4096, 50257) if LARGE else (17, 1031)
    x, target = random(m, n), torch.randint(0, n, (m,), device=DEVICE)
    # The gradient is written where the logits were.
    return differentiable(lambda x: function(x.clone(), target, None)[0], lambda x: F.cross_entropy(x, target), x)


def rope():
    function = liger("rope").LigerRopeFunction.apply
    b, h, s, d = (4, 32, 2048, 128) if LARGE else (2, 4, 33, 64)
    angle = torch.arange(s, device=DEVICE)[:, None] * 10000.0 ** (-torch.arange(0, d, 2, device=DEVICE) / d)
    cos, sin = (f(torch.cat([angle, angle], 1))[None].to(F16) for f in (torch.cos, torch.sin))

    def half(x):
        return torch.cat([-x[..., d // 2:], x[..., :d // 2]], -1)

    def reference(q, k):
        return tuple(x * cos.double()[:, None] + half(x) * sin.double()[:, None] for x in (q, k))

    return differentiable(lambda q, k: function(q.clone(), k.clone(), cos, sin), reference, random(b, h, s, d), random(b, h // 4, s, d))


def swiglu():
    function = liger("swiglu").LigerSiLUMulFunction.apply
    shape = (4096, 11008) if LARGE else (17, 515)
    return differentiable(lambda a, b: function(a.clone(), b.clone()), lambda a, b: F.silu(a) * b, random(*shape), random(*shape))


def top_k():
    function = flag_gems("topk").topk
    x = torch.randn(256 if LARGE else 9, 32000 if LARGE else 1000, device=DEVICE)
    return lambda: list(function(x, 8)), lambda: list(torch.topk(x, 8))


def histogram():
    function = flag_gems("histc").histc
    x = torch.randn(1 << 24 if LARGE else 5003, device=DEVICE)
    return lambda: [function(x, 64, -3.0, 3.0)], lambda: [torch.histc(x.float().cpu(), 64, -3.0, 3.0).to(DEVICE)]


def scan():
    function = fla("cumsum").chunk_local_cumsum_scalar
    x = torch.randn(8 if LARGE else 2, 8192 if LARGE else 100, 64 if LARGE else 3, device=DEVICE)
    b, t, h = x.shape
    whole = F.pad(x.double(), (0, 0, 0, -t % 64)).reshape(b, -1, 64, h).cumsum(2).reshape(b, -1, h)[:, :t]
    return lambda: [function(x, 64)], lambda: [whole]


CASES = {function.__name__.replace("_", " "): function
         for function in (flash_attention, flash_attention_backward, rms_norm, grouped_gemm, cross_entropy, rope, swiglu, layer_norm_backward,
                          top_k, histogram, scan)}
made = {}


def check(case):
    """What is wrong with the results of a case, or None."""
    try:
        torch.manual_seed(0)
        run, reference = made[case] = CASES[case]()
        for i, (got, wanted) in enumerate(zip(run(), reference(), strict=True)):
            scale = max(1.0, float(wanted.detach().double().abs().max()))
            error = float((got.detach().double() - wanted.double()).abs().max()) / scale
            if not error <= (1e-6 if got.dtype not in (F16, torch.float32) else 1e-4 if got.dtype == torch.float32 else 4e-3):
                return {"error": f"result {i} is off by {error:.2g} of its largest element"}
        return {"error": None}
    except Exception:
        return {"error": traceback.format_exc(limit=-3)[-1500:]}


def captured(run):
    """`run` as a CUDA graph where it can be one, and whether it is; what failed leaves a process that is good for little."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            run()
    except RuntimeError:
        torch.cuda.synchronize()
        return run, False
    return graph.replay, True


def kernel_times(run, flush, runs):
    """Microseconds of the kernels of a run, on average, which no graph holds: what the host does between them does not count."""
    from torch.profiler import ProfilerActivity, profile

    def kernels(of):
        with profile(activities=[ProfilerActivity.CUDA]) as recording:
            for _ in range(runs):
                of()
            torch.cuda.synchronize()
        return [e for e in recording.events() if e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith("Mem")]

    def both():
        flush()
        run()

    of_flush = {e.name for e in kernels(flush)}
    return sum(e.device_time for e in kernels(both) if e.name not in of_flush) / runs


def time(case, runs):
    """Median microseconds of a run behind one that overwrites the L2."""
    run, *rest = made[case]
    if len(rest) == 1:
        made[case] = run, rest[0], *captured(run)
    launch, trash = made[case][2], torch.empty(256 << 18, dtype=torch.int32, device=DEVICE)
    if not made[case][3]:
        return {"us": kernel_times(launch, trash.zero_, runs), "captured": False}
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(runs)]
    for begin, end in pairs:
        trash.zero_()
        begin.record()
        launch()
        end.record()
    torch.cuda.synchronize()
    return {"us": statistics.median(begin.elapsed_time(end) * 1e3 for begin, end in pairs), "captured": True}


def main():
    commands = {"cases": lambda: list(CASES), "check": check, "time": time}
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print("\n" + json.dumps({"answer": commands[name](*arguments)}), flush=True)


if __name__ == "__main__":
    main()
