"""Timing kernels and comparing their results."""
import statistics
import sys
import time
from typing import Any, Callable, Optional, Sequence

_MODES = ("min", "max", "mean", "median", "all")


def _clock() -> tuple:
    """(starts a measurement, ends it in milliseconds) of the GPU where torch has one, else of the host."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return time.perf_counter, lambda start: (time.perf_counter() - start) * 1e3

    def start() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def stop(begin: Any) -> float:
        end = torch.cuda.Event(enable_timing=True)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    return start, stop


def _flush() -> Callable:
    """What empties the GPU's L2 between runs."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return lambda: None
    buffer = torch.empty(256 << 18, dtype=torch.int, device="cuda")
    return buffer.zero_


def _quantile(ordered: Sequence[float], share: float) -> float:
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def do_bench(fn: Callable, warmup: float = 25, rep: float = 100, grad_to_none=None, quantiles: Optional[Sequence[float]] = None,
             return_mode: str = "mean") -> Any:
    """Milliseconds that fn() takes, of about `rep` milliseconds of runs after `warmup` of them.

    `quantiles` of the times, or one of "min", "max", "mean", "median", "all" of them.
    """
    if return_mode not in _MODES:
        raise ValueError(f"return_mode is one of {', '.join(_MODES)}, not {return_mode!r}")
    start, stop = _clock()
    flush = _flush()
    fn()
    begin = start()
    for _ in range(5):
        fn()
    estimate = max(stop(begin) / 5, 1e-4)
    for _ in range(max(1, int(warmup / estimate))):
        fn()
    times = []
    for _ in range(max(1, int(rep / estimate))):
        for tensor in grad_to_none or ():
            tensor.grad = None
        flush()
        begin = start()
        fn()
        times.append(stop(begin))
    return _summary(times, quantiles, return_mode)


def _summary(times: list, quantiles: Optional[Sequence[float]], return_mode: str) -> Any:
    times.sort()
    if quantiles is not None:
        found = [_quantile(times, share) for share in quantiles]
        return found[0] if len(found) == 1 else found
    if return_mode == "all":
        return times
    return {"min": min, "max": max, "mean": statistics.fmean, "median": statistics.median}[return_mode](times)


def do_bench_cudagraph(fn: Callable, rep: float = 20, grad_to_none=None, quantiles: Optional[Sequence[float]] = None,
                       return_mode: str = "mean") -> Any:
    """Milliseconds that fn() takes without what its launches cost: of CUDA graphs of about `rep` milliseconds of calls.

    Without a GPU there are no graphs: it is do_bench() then.
    """
    if return_mode not in _MODES:
        raise ValueError(f"return_mode is one of {', '.join(_MODES)}, not {return_mode!r}")
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return do_bench(fn, warmup=rep / 4, rep=rep, grad_to_none=grad_to_none, quantiles=quantiles, return_mode=return_mode)
    with torch.cuda.stream(torch.cuda.Stream()):
        fn()
        for tensor in grad_to_none or ():  # gradients are made anew in each call, as a graph does it
            tensor.detach_().requires_grad_(True)
            tensor.grad = None
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(5):
            fn()
        end.record()
        torch.cuda.synchronize()
        calls = max(1, int(rep / max(begin.elapsed_time(end) / 5, 1e-4)))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                for tensor in grad_to_none or ():
                    tensor.grad = None
                fn()
        torch.cuda.synchronize()
        times = []
        for _ in range(10):
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / calls)
    return _summary(times, quantiles, return_mode)


def assert_close(x: Any, y: Any, atol: Optional[float] = None, rtol: Optional[float] = None, err_msg: str = "") -> None:
    """Raises AssertionError where two arrays differ by more than atol + rtol * |y|."""
    import numpy

    x, y = (value.detach().cpu().float().numpy() if hasattr(value, "detach") else numpy.asarray(value) for value in (x, y))
    numpy.testing.assert_allclose(x, y, atol=1e-2 if atol is None else atol, rtol=0.0 if rtol is None else rtol, err_msg=err_msg,
                                  equal_nan=True)


class Benchmark:
    """What a performance report measures: values of the x axis, and a line for each value of another argument."""

    def __init__(self, x_names: Sequence[str], x_vals: Sequence[Any], line_arg: str, line_vals: Sequence[Any],
                 line_names: Sequence[str], plot_name: str, args: dict, xlabel: str = "", ylabel: str = "", x_log: bool = False,
                 y_log: bool = False, styles=None):
        self.x_names, self.x_vals, self.line_arg, self.line_vals = x_names, x_vals, line_arg, line_vals
        self.line_names, self.plot_name, self.args, self.xlabel, self.ylabel = line_names, plot_name, args, xlabel, ylabel


class Mark:
    """A function with what a report measures of it."""

    def __init__(self, fn: Callable, benchmarks: Any):
        self.fn, self.benchmarks = fn, benchmarks

    def run(self, show_plots: bool = False, print_data: bool = False, save_path: str = "", return_df: bool = False, **words: Any) -> Any:
        """Measures, prints a table where asked, and gives the rows: {benchmark's name: [(x, values of the lines)]}."""
        tables = {}
        for bench in self.benchmarks if isinstance(self.benchmarks, (list, tuple)) else [self.benchmarks]:
            rows = []
            for x in bench.x_vals:
                values = x if isinstance(x, (list, tuple)) else [x] * len(bench.x_names)
                arguments = {**dict(zip(bench.x_names, values)), **bench.args, **words}
                lines = [self.fn(**arguments, **{bench.line_arg: line}) for line in bench.line_vals]
                rows.append((x, [line[0] if isinstance(line, (tuple, list)) else line for line in lines]))
            tables[bench.plot_name] = rows
            if print_data:
                print(f"{bench.plot_name}:\n{', '.join(bench.x_names)}  {'  '.join(bench.line_names)}")
                for x, lines in rows:
                    print(f"{x}  {'  '.join(f'{line:.6g}' for line in lines)}")
        return tables


def perf_report(benchmarks: Any) -> Callable:
    """Makes a function of a benchmark's arguments one whose `.run()` prints a table."""
    return lambda fn: Mark(fn, benchmarks)
