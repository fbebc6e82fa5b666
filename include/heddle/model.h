#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/export.h"
#include "heddle/operators.h"
#include "heddle/tensor.h"

namespace heddle {

// Range of an extent, both ends included.
struct ExtentRange {
  int64_t min = 1, max = 1;
};

// Limits on the cost of importing a model. A model is untrusted data, and a file of a few kilobytes can ask for any
// amount of work. An import that exceeds a limit fails with kLimit.
struct ImportLimits {
  int64_t nodes = 2'000'000;  // after functions are expanded and loops unrolled
  int64_t bytes = 0;          // memory for the messages and constants of an import; 0: the available memory
  int depth = 64;             // nesting of graphs, of functions and of types; at most 512
  double seconds = 120;
};

struct CompileOptions {
  // "cpu", "cuda", "cuda:1". A plan file runs on the kind of device that it was made for, on GPU 0 unless this option
  // names another.
  std::string target = "cpu";
  std::string precision = "f32";  // "f32", "tf32", "f16", "bf16": what an f32 model is computed in
  int threads = 0;                // 0: as many as cores this process may use
  std::string fusion = "stitch";  // "none", "basic", "stitch"
  bool use_cache = true;          // of compiled plans and kernels, on disk ($HEDDLE_CACHE_DIR)

  bool tuned = true;  // take configurations that `heddle tune` found

  // Input name -> shape, for inputs with symbolic extents in the model, and for inputs with a default (an initialiser)
  // for which runs will pass a tensor. A symbolic extent that nothing fixes is guessed so that the model's operators
  // accept it. A later error names the guess.
  std::map<std::string, Shape> shapes;
  // Input name -> value, for inputs that decide shapes (the shape operand of a Reshape) and for text. For other inputs
  // only the shape is used.
  std::map<std::string, Tensor> values;
  // Input name -> value, for inputs that become constants of the plan: weights that the caller owns. They are folded
  // and packed like initialisers, and are no longer inputs of the compiled model. Weights that need no packing are read
  // in the caller's memory, which must stay unchanged. Live models share equal packed weights. The kernels of such
  // plans are cached on disk, the plans are not.
  std::map<std::string, Tensor> constants;

  // Output name -> name of an input of the same type and shape whose memory the output may use, such as the key cache
  // or the optimiser state that a step updates. A * in both names stands for the same text and gives a pair for each
  // output that matches. If the output is the input with some elements replaced (a select by position, a scatter, a
  // concatenation of slices), a run with one memory for both writes only these elements. Other values are copied into
  // that memory after the last read of the input. The caller of a run decides: if it gives the output other memory, the
  // input stays unchanged, which costs a copy.
  std::map<std::string, std::string> alias;
  // The same for every output that is an input with some elements replaced. PortInfo::alias says which were found.
  bool alias_updates = false;

  // Output name -> name of a new input i64[batch]. Of the output [batch, rows, ...], a run computes only the row that
  // the input names for each element of the batch, so the output is [batch, 1, ...]. A text generator needs only the
  // logits of the last token. An index outside takes the nearest row.
  std::map<std::string, std::string> rows;

  // Output name -> name of an input to which the output appends rows along one dimension, such as the key cache of a
  // decoder; a * as in `alias`. The output is only these rows, so the earlier ones need not be copied.
  std::map<std::string, std::string> appended;

  // Ranges of symbolic extents, by their name in the model ("seq") or by input and dimension ("x.1"). If `shapes` does
  // not fix an extent, load() compiles for its largest value. Meanwhile a thread of the model compiles kernels for the
  // rest of the ranges, so run() seldom waits for a compiler. Other values remain allowed. CPU only.
  std::map<std::string, ExtentRange> ranges;
  // On a GPU, a shape that kernels of other shapes can serve runs with these at once, while better ones are compiled in
  // the background. The better plan takes over between two runs, once for each shape. Results may then differ in the
  // last bits. If false, the first run waits for the best kernels.
  bool background = true;
  // Limits on the plans that a model keeps for shapes other than those of load(): their number, and the sum of the
  // memory that each needs in one run. The least recently used plan is dropped first. The newest always stays, and
  // running plans stay alive.
  size_t max_plans = 64;
  int64_t max_plan_bytes = int64_t{1} << 30;

  // Runs on a GPU are enqueue() alone, in memory of the caller. load() then allocates no device memory for run(); the
  // first run() does, and says if there is too little.
  bool callers_memory = false;

  // Follow symbolic links from the model's folder to its external data. Without it such a link is an error (it may lead
  // to any file of this user), unless the model's path is a link too and both lead into one folder.
  bool external_data_links = false;
  ImportLimits limits;

  // The caller's operators by domain and name, "acme::Softmax". They replace the model's functions and Heddle's own
  // operators for such nodes. A plan file contains their kernels and no longer needs them.
  std::map<std::string, Operator> operators;

  std::vector<std::string> disabled_passes;  // names as `heddle opt --list` prints them
  // Disabled rules that join contractions: "attention", "back-to-back".
  std::vector<std::string> disabled_fusion;
  // Disabled parts of the stitching optimiser: "adaptive-mapping", "data-reuse", "dominant-merging".
  std::vector<std::string> disabled_stitching;
  // The threads that share a row or columns that a stitch kernel reduces on a GPU: "warp", "block", "cluster" or
  // "parts". "" lets the cost model pick; other values are for comparison with its choice. It also picks if the mapping
  // is not possible.
  std::string stitch_mapping;
  // Called by one thread at a time, at each stage and whenever kernels are done, with the share of all work done.
  std::function<void(const std::string& stage, double fraction)> progress;
};

// A dense row-major tensor in the memory of a model's GPU, which the caller owns. `data`: its address on the device, a
// multiple of 16; null if the tensor has no elements.
struct DeviceTensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
};

// Requirements of Model::enqueue() for inputs of certain shapes: its outputs, and bytes of additional device memory.
struct EnqueueNeeds {
  std::vector<PortInfo> outputs;
  size_t workspace_bytes = 0;
};

// A compiled model: it has a plan for each recently used set of input shapes. Copies share it; run() may be called from
// several threads at once.
class HEDDLE_API Model {
 public:
  // Reads an ONNX file, textual IR (.hir) or a plan file and compiles it (or takes it from the cache). Throws Error.
  static Model load(const std::string& path, const CompileOptions& options = {});

  // The ports in the model's order, with the shapes that load() compiled for.
  const std::vector<PortInfo>& inputs() const;
  const std::vector<PortInfo>& outputs() const;
  // Further inputs that run() accepts: those whose default (an initialiser) is a constant in the plan of load(), with
  // the shapes of the defaults. An input with a default that CompileOptions::shapes names is in inputs() instead.
  const std::vector<PortInfo>& optional_inputs() const;

  // Takes inputs by name. Dtypes must match, and every input without a default is required. Each set of shapes gets its
  // own plan. So does each choice of given defaults, since defaults are folded into the plan, and each value of a text
  // input. New shapes are compiled when they first occur, one set at a time (a model from a plan file refuses them).
  // Runs with known shapes do not wait. On a CPU, kernels for new shapes take the numbers that vary as arguments (the
  // batch from load() on), so most shapes after the first few need no compiler. Such kernels may round differently from
  // those of load(). For a GPU, see CompileOptions::background. Returns the outputs in order. Throws Error:
  // kInvalidInput, and the errors of compiling and running.
  std::vector<Tensor> run(const std::map<std::string, Tensor>& inputs) const;
  // The same, with the caller's memory for the named outputs, of their dtypes and shapes; other outputs are allocated.
  // An output's memory may not overlap another output or an input. Only the input that PortInfo::alias names may share
  // its memory, from its first byte on. Also throws kUnsupportedType if an output is text.
  std::vector<Tensor> run_into(const std::map<std::string, Tensor>& inputs,
                               const std::map<std::string, Tensor>& outputs) const;

  // Compiles for inputs of these shapes, in the order of inputs(), unless that was done, and returns the requirements
  // of enqueue(). Throws Error: kInvalidInput for a wrong number of shapes, kInvalidArgument for a model on a CPU,
  // kUnknownShape if values of inputs decide shapes, kUnsupportedType if an output is text, kUnsupportedOperator if the
  // host takes part in a run, and the errors of compiling. The plan and its requirements last as long as the model;
  // CompileOptions::max_plans does not count it. prepare() waits for the best kernels whatever
  // CompileOptions::background says.
  EnqueueNeeds prepare(const std::vector<Shape>& inputs) const;

  // Enqueues one run on `stream` (a cudaStream_t or CUstream of the model's GPU; null: the default stream) and returns
  // without waiting and without copying inputs or outputs. For shapes that prepare() has seen, it allocates no device
  // memory. On a capturing stream, the run becomes part of the caller's graph. `inputs` are in the order of inputs(),
  // `outputs` in that of prepare(). They overlap neither each other (except for PortInfo::alias) nor `workspace`, which
  // is device memory of prepare()'s size, aligned to 256 bytes. All of these, and the model, are in use until the
  // stream has passed the run. Several threads may enqueue at once, each with its own outputs and workspace. Throws
  // Error: kInvalidInput, kDevice, and the errors of prepare().
  void enqueue(const std::vector<DeviceTensor>& inputs, const std::vector<DeviceTensor>& outputs, void* workspace,
               void* stream = nullptr) const;

  // Compiles the model again, keeping the information about its nodes, and runs it for about `seconds` on inputs of
  // these shapes (random values where `inputs` has none). Returns the time that each node takes, as a profile in JSON
  // (docs/reference/profile-json.md), which `heddle profile show` prints. Throws Error: kInvalidArgument for a plan
  // file, which no longer knows the nodes of its model, and the errors of compiling and running.
  std::string profile(const std::map<std::string, Tensor>& inputs = {}, double seconds = 1) const;

  // Writes a plan file for the shapes of load(). load() takes it in place of the model, and needs neither compiler nor
  // source for it. Throws kFile.
  void save(const std::string& path) const;

  class HEDDLE_LOCAL Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace heddle
