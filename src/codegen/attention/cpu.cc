#include "codegen/attention/cpu.h"

#include <algorithm>
#include <array>

#include "codegen/product/cpu/functor.h"
#include "codegen/product/cpu/micro_table.h"
#include "codegen/text/kernel_name.h"
#include "schedule/attention/cpu.h"
#include "schedule/product/contraction_builder.h"

namespace heddle::codegen {
namespace {

using schedule::CpuAttentionConfig;

class Emitter {
 public:
  Emitter(const KernelDesc& desc, const AttentionDesc& attention, const CpuAttentionConfig& config,
          const Target& target, bool marked)
      : desc_(desc),
        a_(attention),
        shape_(schedule::attention_shape(attention, config)),
        micro_m_(config.micro_m),
        lanes_(schedule::micro_limits(target).vector_bytes / static_cast<int64_t>(sizeof(float))),
        marked_(marked),
        // Of two vectors and of one: the last panel may be narrow.
        micro_(micro_tables({"float", "float", lanes_, lanes_}, micro_m_, tile::kAttentionVectors * lanes_, target,
                            marked)) {}

  KernelSource run() {
    out_.open(fmt::format("namespace {}_parts {{", kStandIn));
    out_.open("namespace {");
    write_config();
    if (has_ranges_) write_ranges();
    std::string scores = "tile::PlainScores{}", sink = "tile::NoSink{}";
    if (!a_.scaled) scores = "Scores" + initialisers(desc_, write_scores(out_, desc_, a_.scores, sizes_), sizes_);
    if (a_.sink) sink = "Sink" + initialisers(desc_, write_sink(out_, desc_, *a_.sink, sizes_), sizes_);
    const FunctorMembers epilogue = write_epilogue(out_, desc_, a_.epilogue, sizes_, false);
    out_.close("}  // namespace");
    out_.open(fmt::format("extern \"C\" void {}(void* const* operands, void* scratch, int64_t begin, int64_t end) {{",
                          kStandIn));
    if (marked_) out_.raw(argument_line(argument_array(desc_.operands.size())));
    write_shape();
    write_operand("q", a_.q, a_.q.row, a_.q.k);
    write_operand("k", a_.k, a_.k.row, a_.k.k);
    write_operand("v", a_.v, a_.v.k, a_.v.row);
    out_.line("tile::attention<Config>({}, shape, {}, q, k, v, {}, {}, Epilogue{}, scratch, begin, end);", micro_.value,
              has_ranges_ ? "ranges" : "nullptr", scores, sink, initialisers(desc_, epilogue, sizes_));
    out_.close();
    out_.close(fmt::format("}}  // namespace {}_parts", kStandIn));
    return finish();
  }

 private:
  void write_config() {
    out_.open("struct Config {");
    out_.line("static constexpr bool kScaled = {}, kRanges = {}, kZeroIfEmpty = {};", a_.scaled, has_ranges_,
              a_.zero_if_empty);
    schedule::ExprPool pool;
    out_.line("static constexpr float kScale = {};", literal_text(pool[pool.constant(DType::kF32, a_.scale)]));
    out_.close("};");
  }
  // Rows that see no key compute some, so that they come out as the model's do.
  void write_ranges() {
    out_.open("constexpr tile::AttentionKeys ranges[] = {");
    constexpr size_t kLine = 4;
    for (size_t i = 0; i < a_.ranges.size(); i += kLine) {
      std::vector<std::string> texts;
      for (size_t j = i; j < std::min(i + kLine, a_.ranges.size()); ++j) {
        const schedule::KeyRange& r = a_.ranges[j];
        texts.push_back(r.first == r.last
                            ? fmt::format("{{0, 0, 0, {}}}", std::min<int64_t>(a_.n, lanes_))
                            : fmt::format("{{{}, {}, {}, {}}}", r.first, r.plain_first, r.plain_last, r.last));
      }
      out_.line("{},", fmt::join(texts, ", "));
    }
    out_.close("};");
  }
  void write_shape() {
    const tile::AttentionShape& s = shape_;
    out_.line("{} tile::AttentionShape shape{{{}}};", marked_ ? "const" : "constexpr",
              sizes_.fields({{"batches", s.batches},
                             {"m", s.m},
                             {"n", s.n},
                             {"depth", s.depth},
                             {"width", s.width},
                             {"tiles", s.tiles},
                             {"tall", s.tall},
                             {"block_tiles", s.block_tiles},
                             {"block_keys", s.block_keys}}));
  }
  void write_operand(const char* name, const OperandView& o, int64_t line, int64_t element) {
    std::array<int64_t, tile::kBatchDims> extents{}, strides{};
    extents.fill(1);
    for (size_t i = 0; i < o.batch.size(); ++i) {
      const size_t d = extents.size() - o.batch.size() + i;
      extents[d] = o.batch[i].first, strides[d] = o.batch[i].second;
    }
    const std::string at = argument(desc_, o.operand) + sizes_.place(o.offset);
    std::vector<std::string> batch;
    for (const auto& values : {extents, strides}) {
      std::vector<std::string> texts;
      for (const int64_t value : values) texts.push_back(sizes_.of_batch(value));
      batch.push_back(fmt::format("{{{}}}", fmt::join(texts, ", ")));
    }
    out_.line("const tile::AttentionOperand<{}> {}{{{}, {}, {}, {}, {}}};", storage_type(o.dtype), name, at, batch[0],
              batch[1], sizes_.folded(line), sizes_.folded(element));
  }

  KernelSource finish() {
    KernelSource source;
    source.includes = {"tile/kernel/cpu/attention.h", "tile/op/lanes.h", "tile/op/math.h"};
    source.text = out_.text(source.includes);
    source.tasks = shape_.tasks();
    source.scratch_bytes = tile::AttentionScratch(shape_, micro_m_, tile::kAttentionVectors * lanes_).bytes();
    source.others = micro_.texts;
    std::vector<schedule::ExprId> scores = {a_.scores.stores.at(0).value}, results;
    for (const auto& store : a_.epilogue.stores) results.push_back(store.value);
    const std::string name =
        "attention" + operators_of(a_.scores.pool, scores) + operators_of(a_.epilogue.pool, results);
    if (marked_) {
      source.symbol = name;
      return source;
    }
    declare_others(source);
    source.symbol = name_kernel(source.text, name);
    return source;
  }

  const KernelDesc& desc_;
  const AttentionDesc& a_;
  const tile::AttentionShape shape_;
  const int64_t micro_m_, lanes_;
  const bool marked_;
  // Whether rows differ in the keys that they have, or some scores are plain.
  const bool has_ranges_ = std::any_of(a_.ranges.begin(), a_.ranges.end(), [this](const schedule::KeyRange& r) {
    return r.first != 0 || r.last != a_.n || r.plain_first != r.plain_last;
  });
  MicroTables micro_;
  Sizes sizes_{marked_ ? Sizes::Form::kMarked : Sizes::Form::kLiteral};
  Writer out_;
};

}  // namespace

KernelSource emit_cpu_attention(const schedule::KernelPlan& plan, const AttentionDesc& attention, const Target& target,
                                bool marked) {
  return Emitter(plan.desc, attention, plan.config.as<CpuAttentionConfig>(), target, marked).run();
}

}  // namespace heddle::codegen
