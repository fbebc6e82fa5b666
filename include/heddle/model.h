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

// Values that an extent takes, both ends included.
struct ExtentRange {
  int64_t min = 1, max = 1;
};

// What importing a model may take. A model is data of unknown origin, and a file of a few kilobytes can ask for any
// amount of work; beyond a limit its import ends with kLimit.
struct ImportLimits {
  int64_t nodes = 2'000'000;  // when functions are expanded and loops unrolled
  int64_t bytes = 0;  // of what the import makes of the file: messages and constants; 0: the memory that is there
  int depth = 64;     // graphs in graphs, functions in functions, types in types; at most 512
  double seconds = 120;
};

struct CompileOptions {
  // "cpu", "cuda", "cuda:1". A plan file runs on the kind of device that it was made for, on GPU 0 unless this says
  // another.
  std::string target = "cpu";
  std::string precision = "f32";  // "f32", "tf32", "f16", "bf16": what an f32 model is computed in
  int threads = 0;                // 0: as many as cores this process may use
  std::string fusion = "stitch";  // "none", "basic", "stitch"
  bool use_cache = true;          // of compiled plans and kernels, on disk ($HEDDLE_CACHE_DIR)

  bool tuned = true;  // take configurations that `heddle tune` found

  // Input name -> shape, for inputs with symbolic extents in the model, and for inputs with a default (an initialiser)
  // that runs will pass. A symbolic extent that nothing fixes is guessed such that the model's operators accept it; an
  // error after that names the guess.
  std::map<std::string, Shape> shapes;
  // Input name -> value, for inputs that decide shapes (the shape operand of a Reshape) and for text. For other inputs
  // only the shape is used.
  std::map<std::string, Tensor> values;
  // Input name -> value, for inputs that become constants of the plan: weights that the caller owns. They are folded
  // and packed like initialisers, and are no longer inputs of the compiled model. Weights that need no packing are read
  // in the caller's memory, which must stay unchanged. Live models share equal packed weights. The kernels of such
  // plans are cached on disk, the plans are not.
  std::map<std::string, Tensor> constants;

  // Output name -> name of an input of the same type and shape whose memory the output may lie in: a cache of keys that
  // a decode step takes and gives back, the state of an optimiser. With one * in both names, which stands for the same
  // text, a pair for each output that matches. Where the value is the input with some elements replaced (a select by
  // position, a scatter, a concatenation of slices), a run with one memory for both writes these elements only. Other
  // values are copied there when nothing reads the input any more. Who runs the model decides: with other memory for
  // the output the input stays as it is, which costs a copy.
  std::map<std::string, std::string> alias;
  // The same for every output that is an input with some elements replaced. PortInfo::alias says which were found.
  bool alias_updates = false;

  // Ranges of symbolic extents, by their name in the model ("seq") or by input and dimension ("x.1"). load() compiles
  // for the largest values where `shapes` says nothing, and a thread of the model compiles kernels for the rest of the
  // ranges meanwhile, so that run() seldom waits for a compiler. Other values remain allowed. CPU only.
  std::map<std::string, ExtentRange> ranges;
  // Whether a shape that others' kernels can serve runs with these at once, on a GPU, while better ones are compiled in
  // the background. The plan that has them takes over between two runs, once for each shape; results may then differ in
  // the last bits. Without it the first run waits for the best kernels.
  bool background = true;
  // What a model keeps for shapes other than those of load(): so many plans, which may need so much memory in one run.
  // The plan that was not used for longest goes first; the newest always stays, and runs in flight keep theirs.
  size_t max_plans = 64;
  int64_t max_plan_bytes = int64_t{1} << 30;

  // Follow symbolic links from the model's folder to its external data. Without it such a link is an error (it may lead
  // to any file of this user), unless the model's path is a link too and both lead into one folder.
  bool external_data_links = false;
  ImportLimits limits;

  // Operators of the caller's by domain and name, "acme::Softmax". They take the place of what the model's functions or
  // Heddle itself would make of such nodes. A plan file has their kernels and needs them no more.
  std::map<std::string, Operator> operators;

  std::vector<std::string> disabled_passes;  // names as `heddle opt --list` prints them
  // Rules that join contractions to do without: "attention", "back-to-back".
  std::vector<std::string> disabled_fusion;
  // Parts of the stitching optimiser to do without: "adaptive-mapping", "data-reuse", "dominant-merging".
  std::vector<std::string> disabled_stitching;
  // Who shares a row or columns that a stitch kernel reduces on a GPU, to compare with what the cost model picks (""):
  // "warp", "block", "cluster" or "parts". Where that cannot be, the model picks.
  std::string stitch_mapping;
  // Called by one thread at a time, at each stage and whenever kernels are done, with the share of all work done.
  std::function<void(const std::string& stage, double fraction)> progress;
};

// A dense row-major tensor in the memory of a model's GPU, which the caller owns. `data`: its address on the device, a
// multiple of 16; null where the tensor has no elements.
struct DeviceTensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
};

// What Model::enqueue() takes for inputs of certain shapes: its outputs, and bytes of device memory beside them.
struct EnqueueNeeds {
  std::vector<PortInfo> outputs;
  size_t workspace_bytes = 0;
};

// A compiled model: a plan for each set of input shapes that it met lately. Copies share it; run() may be called from
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

  // Inputs by name; dtypes must match, and every input without a default is required. Each choice of given defaults
  // gets its own plan, as each set of shapes does, since defaults are folded into it; so does each value of a text
  // input. New shapes are compiled when they first occur (a model from a plan file refuses them), one set at a time;
  // runs in known shapes do not wait. On a CPU, their kernels take what varies as arguments (the batch from load() on),
  // so most shapes after the first few need no compiler; such kernels may round differently from those of load(). On a
  // GPU see CompileOptions::background. Returns the outputs in order. Throws Error: kInvalidInput, and whatever
  // compiling or running can throw.
  std::vector<Tensor> run(const std::map<std::string, Tensor>& inputs) const;
  // The same with memory of the caller for outputs by name, of their dtypes and shapes; others get memory of their own.
  // It overlaps no other output and no input, but for that of PortInfo::alias, whose memory it may be from its first
  // byte on. Throws Error besides: kUnsupportedType where an output is text.
  std::vector<Tensor> run_into(const std::map<std::string, Tensor>& inputs,
                               const std::map<std::string, Tensor>& outputs) const;

  // Compiles for inputs of these shapes, in the order of inputs(), unless that was done, and says what enqueue() takes
  // then. Throws Error: kInvalidInput for a wrong number of shapes, kInvalidArgument for a model on a CPU,
  // kUnknownShape where values of inputs decide shapes, kUnsupportedType where an output is text, kUnsupportedOperator
  // where the host takes part in a run; whatever compiling can throw. The plan stays as long as the model, beside those
  // that CompileOptions::max_plans counts, and its needs with it. prepare() waits for the best kernels whatever
  // CompileOptions::background says.
  EnqueueNeeds prepare(const std::vector<Shape>& inputs) const;

  // Puts one run onto `stream` (a cudaStream_t or CUstream of the model's GPU; null: the default stream) and returns:
  // no copy of inputs or outputs, no waiting, and for shapes that prepare() has seen no allocation on the device. On a
  // stream that captures, the run becomes a part of the caller's graph. `inputs` and `outputs` are in the order of
  // inputs() and of prepare(), and overlap neither each other (but for PortInfo::alias) nor `workspace`, device memory
  // of prepare()'s size at a multiple of 256. All of it, and the model, are in use until the stream has passed the run.
  // Several threads may enqueue at once, each with outputs and a workspace of its own. Throws Error: kInvalidInput,
  // kDevice, and what prepare() does.
  void enqueue(const std::vector<DeviceTensor>& inputs, const std::vector<DeviceTensor>& outputs, void* workspace,
               void* stream = nullptr) const;

  // Compiles the model once more with all that is known of its nodes, runs it for about `seconds` on inputs of these
  // shapes (random values where `inputs` has none) and says which nodes take the time: a profile in its JSON form
  // (docs/reference/profile-json.md), which `heddle profile show` prints. Throws Error: kInvalidArgument for a plan
  // file, which no longer knows the nodes of its model; whatever compiling or running can throw.
  std::string profile(const std::map<std::string, Tensor>& inputs = {}, double seconds = 1) const;

  // Writes a plan file, for the shapes of load(), that load() takes in place of the model, without compiler or source.
  // Throws kFile.
  void save(const std::string& path) const;

  class HEDDLE_LOCAL Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace heddle
