"""Kernels compiled ahead of time: a C program is built with them and runs. With HEDDLE_TEST_TARGET=cuda for the GPU of HEDDLE_CUDA_DRIVER."""
import contextlib
import io
import os
import pathlib
import subprocess
import tempfile
import unittest

import heddle
import heddle.tile as tile
import heddle.tile.language as tl
from heddle.tile.tools.compile import export, main

ON_GPU = os.environ.get("HEDDLE_TEST_TARGET", "cpu") == "cuda"


@tile.jit
def blend_kernel(out, x, y, weight, n, BLOCK: tl.constexpr):
    """out = x + weight y, and the sum of each block behind the end of out."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, at < n) + weight * tl.load(y + at, at < n)
    tl.store(out + at, values, at < n)
    tl.store(out + n + tl.program_id(0), tl.sum(tl.where(at < n, values, 0.0), axis=0))


SIGNATURE, GRID = "*fp32, *fp32, *fp32, fp32, i32, 96", "(n + BLOCK - 1) / BLOCK"

# 257 elements; what comes out is compared with what C computes.
CHECK = """
enum { N = 257, BLOCKS = 3 };
static float x[N], y[N], out[N + BLOCKS + 1];
static void fill(void) {
  for (int i = 0; i < N; ++i) x[i] = 0.5f * i, y[i] = 3.0f - i;
  for (int i = 0; i < N + BLOCKS + 1; ++i) out[i] = -1;
}
static int check(void) {
  double sums[BLOCKS] = {0};
  for (int i = 0; i < N; ++i) {
    const float wanted = x[i] - 0.25f * y[i];
    sums[i / 96] += wanted;
    if (out[i] - wanted > 1e-4f || wanted - out[i] > 1e-4f) return 10;
  }
  for (int b = 0; b < BLOCKS; ++b) {
    if (out[N + b] - sums[b] > 1e-1 || sums[b] - out[N + b] > 1e-1) return 11;
  }
  return out[N + BLOCKS] == -1 ? 0 : 12;
}
"""

ON_CPU = '#include "blend.h"\n' + CHECK + """
int main(void) {
  fill();
  if (blend_programs(out, x, y, -0.25f, N) != BLOCKS) return 1;
  if (blend_range(1, BLOCKS, out, x, y, -0.25f, N) || blend_range(0, 1, out, x, y, -0.25f, N) || check()) return 2;
  fill();
  return blend(out, x, y, -0.25f, N) ? 3 : check();
}
"""

ON_DEVICE = '#include <stddef.h>\n#include "blend.h"\n' + CHECK + """
extern int cuInit(unsigned), cuDeviceGet(int*, int), cuDevicePrimaryCtxRetain(void**, int), cuCtxSetCurrent(void*), cuCtxSynchronize(void);
extern int cuMemAlloc_v2(void**, size_t), cuMemcpyHtoD_v2(void*, const void*, size_t), cuMemcpyDtoH_v2(void*, void*, size_t);
int main(void) {
  int device;
  void *context, *gpu_x, *gpu_y, *gpu_out;
  fill();
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context)) return 1;
  if (cuMemAlloc_v2(&gpu_x, sizeof x) || cuMemAlloc_v2(&gpu_y, sizeof y) || cuMemAlloc_v2(&gpu_out, sizeof out)) return 2;
  if (cuMemcpyHtoD_v2(gpu_x, x, sizeof x) || cuMemcpyHtoD_v2(gpu_y, y, sizeof y) || cuMemcpyHtoD_v2(gpu_out, out, sizeof out)) return 3;
  if (blend_load() || blend(NULL, gpu_out, gpu_x, gpu_y, -0.25f, N) || cuCtxSynchronize()) return 4;
  if (cuMemcpyDtoH_v2(out, gpu_out, sizeof out) || blend_unload()) return 5;
  return check();
}
"""


class Export(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def build_and_run(self, program, code, *libraries):
        (self.folder / "main.c").write_text(program)
        subprocess.run(["cc", "-std=c99", "-Wall", "-Werror", "main.c", code.name, *libraries, "-o", "main"], cwd=self.folder, check=True)
        self.assertEqual(subprocess.run([self.folder / "main"]).returncode, 0)

    @unittest.skipIf(ON_GPU, "for a CPU")
    def test_c_program(self):
        made = export(blend_kernel, SIGNATURE, GRID, name="blend", folder=self.folder)
        self.assertIn("int blend(float* out, const float* x, const float* y, float weight, int32_t n);", made.header.read_text())
        self.build_and_run(ON_CPU, made.code)

    @unittest.skipUnless(ON_GPU, "for a GPU")
    def test_c_program_on_a_gpu(self):
        target = heddle._core.tile.cuda_target(0)
        made = export(blend_kernel, SIGNATURE, GRID, name="blend", folder=self.folder, target=target)
        driver = os.environ["HEDDLE_CUDA_DRIVER"]
        if "/" in driver:
            self.build_and_run(ON_DEVICE, made.code, driver, f"-Wl,-rpath,{pathlib.Path(driver).parent}")
        else:
            self.build_and_run(ON_DEVICE, made.code, "-l:" + driver)

    @unittest.skipIf(ON_GPU, "for a CPU")
    def test_command(self):
        arguments = [__file__, "-n", "blend_kernel", "-s", "*fp32:16, *fp32, *fp32, fp32, i32:16, 64", "-g", "n / 64", "-t", "cpu-portable", "-on",
                     "plain", "-o", str(self.folder)]
        with contextlib.redirect_stdout(io.StringIO()) as told:
            self.assertEqual(main(arguments), 0)
        self.assertEqual(sorted(pathlib.Path(line).name for line in told.getvalue().split()), ["plain.cc", "plain.h", "plain.o"])
        with contextlib.redirect_stderr(io.StringIO()) as told:
            self.assertEqual(main([*arguments[:2], "blend", *arguments[3:]]), 2)
        self.assertIn("it has blend_kernel", told.getvalue())

    def test_signatures_that_do_not_fit(self):
        for signature, why in (("*fp32", "it has 1 entries"), ("*fp32, *fp32, *fp32, fp32, i32, i32", "BLOCK is a tl.constexpr"),
                               ("*fp32, *fp32, *fp32:8, fp32, i32, 64", "stands 16"), ("*fp32, *fp32, what, fp32, i32, 64", "'what' for y")):
            with self.assertRaises(heddle.InputError) as caught:
                export(blend_kernel, signature, GRID, folder=self.folder)
            self.assertIn(why, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
