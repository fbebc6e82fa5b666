#include "schedule/product/conv.h"

#include <algorithm>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/expr/lane_stride.h"
#include "schedule/floor.h"
#include "schedule/product/blocking.h"
#include "schedule/product/candidates.h"
#include "schedule/product/conv_problem.h"
#include "schedule/product/filter_taps.h"
#include "schedule/product/packing.h"

namespace heddle::schedule {
namespace {

// A row of output pixels is the unit of work: images of one column (convolutions over a sequence held as height) are
// turned. `strides` are those of the input.
void turn_columns(tile::ConvShape& s, int64_t (&strides)[kSpatial]) {
  if (s.out[2] != 1 || s.in[2] != 1 || s.kernel[2] != 1 || s.out[1] == 1 || s.low[2] != 0) return;
  for (auto* field : {&s.in, &s.out, &s.kernel, &s.stride, &s.dilation, &s.low, &s.lhs_dilation, &strides}) {
    std::swap((*field)[1], (*field)[2]);
  }
}

// Whether no tap of any output falls outside the input.
bool is_unpadded(const tile::ConvShape& s) {
  for (int d = 0; d < 3; ++d) {
    if (s.low[d] > 0 || s.lhs_dilation[d] != 1 || s.reach(d, s.out[d]) - s.low[d] > s.in[d]) return false;
  }
  return true;
}

int64_t lanes_of(const ContractionBuilder& builder, DType compute) {
  return micro_limits(builder.target()).vector_bytes / static_cast<int64_t>(size_of(compute));
}

// Filters as panels: from the constant at compile time, or by a kernel of their own into a workspace.
uint32_t filters(ContractionBuilder& builder, ScheduledGroup& result, const tile::PanelSource& source, int64_t width,
                 Words words = Words::kNone) {
  const ir::ValueId w = builder.anchor().inputs[1];
  if (words != Words::kNone) return builder.input(w, word_packing(source, 0, width, elements_of(words)));
  if (builder.graph().constant_of(w) != nullptr) return builder.input(w, panel_packing(source, 0, width));
  const DType dtype = builder.graph().dtype(w);
  const int64_t elements = tile::packed_elements(source, width);
  const auto index = static_cast<uint32_t>(result.workspaces.size());
  result.workspaces.push_back({elements * static_cast<int64_t>(size_of(dtype))});
  ContractionBuilder packer(builder.graph(), builder.group(), builder.target(), nullptr);
  packer.input(w);
  packer.workspace(index, dtype, elements, Operand::Role::kOutput);
  packer.desc().problem = PackDesc{dtype, source, 0, width};
  Config config;
  config.choice = NoChoice{"pack"};
  config.tasks = source.groups * tile::panel_count(source, width);
  config.reason = "the filters are not constants";
  result.kernels.push_back(packer.finish(config, "pack filters", 0));
  return builder.workspace(index, dtype, elements, Operand::Role::kInput);
}

// Says where the images of a problem lie. What is dense stays out of the text.
template <typename Shape>
void place_images(int64_t& offset, Shape& s, const ImageMemory& x) {
  offset = x.offset;
  if (x.pixel != s.c) s.pixel = x.pixel;
}

ScheduledGroup finish(ContractionBuilder& builder, ScheduledGroup result, const Config& config, std::string label,
                      double flops) {
  label += builder.epilogue_label();
  result.notes.push_back(label + ": " + config.reason);
  result.kernels.push_back(builder.finish(config, label, flops));
  return result;
}

// The label of a convolution whose shape counts channels in words.
std::string label_of(tile::ConvShape s, const ConvDesc& conv) {
  s.c = conv.channels;
  return conv_label(s) + words_label(conv.words, conv.x, conv.w);
}

// Makes the shape count channels in words, if the filters are packed ahead and the operands multiply in words.
void count_words(const ContractionBuilder& builder, tile::ConvShape& s, ConvDesc& desc) {
  const ir::Graph& graph = builder.graph();
  const auto& inputs = builder.anchor().inputs;
  desc.x = graph.dtype(inputs[0]), desc.w = graph.dtype(inputs[1]);
  desc.channels = s.c;
  if (graph.constant_of(inputs[1]) != nullptr) desc.words = words_for(desc.x, desc.w, builder.target());
  s.c = ceil_div(s.c, elements_of(desc.words));
}

// True if the image consists of what the kernel multiplies.
bool reads_whole_words(const ConvDesc& desc, DType compute) {
  const DType element = desc.words == Words::kNone ? compute : element_of(desc.words, true);
  return desc.x == element && desc.channels % elements_of(desc.words) == 0;
}

ScheduledGroup schedule_pointwise(ContractionBuilder& builder, const tile::ConvShape& s, const ImageMemory& x,
                                  const ConvDesc& conv, DType compute, double flops) {
  const ir::Graph& graph = builder.graph();
  const int64_t channels = conv.channels, elements = elements_of(conv.words);
  const ir::Node& node = builder.anchor();
  ScheduledGroup result;
  GemmDesc desc;
  desc.shape.m = s.batch * s.out[0] * s.out[1] * s.out[2];
  desc.shape.n = s.o, desc.shape.k = s.c;
  desc.words = conv.words, desc.terms = channels;
  const auto candidates = [&] {
    return builder.for_extents(gemm_candidates(desc, compute, builder.target()), [&](Config pick) {
      return with_common_height(std::move(pick), desc.shape.m, micro_rows(builder.target(), conv.words, desc.shape.m));
    });
  };
  const Config config =
      choose_config(builder.configs(),
                    {gemm_problem_text(desc.shape, compute, gemm_operand_text(graph, node.inputs[0], x.pixel, 1),
                                       gemm_operand_text(graph, node.inputs[1], 1, channels))},
                    candidates);
  const int64_t width = config.as<CpuGemmConfig>().micro_n;
  desc.a.dtype = graph.dtype(node.inputs[0]);
  desc.a.operand = builder.input(node.inputs[0]);
  desc.a.offset = x.offset, desc.a.row = x.pixel, desc.a.col = 1;
  const int64_t most = micro_rows(builder.target(), conv.words, desc.shape.m);
  const int64_t rows = builder.for_any_extents() ? most : tile::split_rows(desc.shape.m, most).mr;
  const bool collide = tile::rows_collide(x.pixel * static_cast<int64_t>(size_of(conv.x)), rows) && s.o > width;
  const bool whole = reads_whole_words(conv, compute) && x.pixel % elements == 0 && x.offset % elements == 0;
  const bool in_place = !collide && whole;
  desc.a.form = in_place ? GemmOperand::Form::kDirect : GemmOperand::Form::kCopied;
  desc.b.form = GemmOperand::Form::kPacked;
  desc.b.dtype = graph.dtype(node.inputs[1]);
  desc.b.operand = filters(builder, result, {1, 0, 1, 0, channels, 1, s.o, channels}, width, conv.words);
  const Shape& y = graph.shape(node.outputs[0]);
  builder.make_epilogue(1, desc.shape.m, s.o, lanes_of(builder, compute),
                        [&](IndexPool& pool, const Index&, const Index& row, const Index& channel) {
                          std::vector<Index> at = pool.delinear(row, sub_shape(y, 0, y.size() - 1));
                          at.push_back(channel);
                          return at;
                        });
  builder.desc().problem = std::move(desc);
  return finish(builder, std::move(result), config, "conv " + label_of(s, conv), flops);
}

ScheduledGroup schedule_depthwise(ContractionBuilder& builder, const tile::ConvShape& s, const ImageMemory& x,
                                  DType compute) {
  const ir::Graph& graph = builder.graph();
  const ir::Node& node = builder.anchor();
  ScheduledGroup result;
  WindowDesc desc = depthwise_window(graph, node, s);
  place_images(desc.offset, desc.shape, x);
  // Bytes are widened about as fast as words of single bytes are multiplied.
  const Words words = words_for(desc.x, desc.w, builder.target());
  const bool as_stored = desc.x == element_of(words, true) && desc.w == element_of(words, false);
  if (elements_of(words) == 2 && as_stored && summed_steps(compute, s.taps()) == 0) desc.words = words;
  builder.input(node.inputs[0]);
  filters(builder, result, {1, 0, 1, 0, s.taps(), 1, s.groups, s.taps()}, s.groups);
  const Shape& y = graph.shape(node.outputs[0]);
  builder.make_epilogue(s.batch, s.out[0] * s.out[1] * s.out[2], s.groups, lanes_of(builder, compute),
                        [&](IndexPool& pool, const Index& image, const Index& pixel, const Index& channel) {
                          return image_index(pool, y, image, pixel, channel);
                        });
  Config config;
  config.choice = NoChoice{"depthwise"};
  config.tasks = desc.shape.tasks();
  config.reason = "one filter a channel: lanes along the channels, one row of pixels a task";
  const double products = products_inside(desc.shape);
  builder.desc().problem = std::move(desc);
  return finish(builder, std::move(result), config, "depthwise " + conv_label(s), 2 * products);
}

std::string problem_text(const ConvDesc& desc, DType compute, bool constant) {
  const tile::ConvShape& s = desc.shape;
  const auto dims = [](const int64_t(&d)[kSpatial]) { return fmt::format("{}", fmt::join(d, "x")); };
  return fmt::format(
      "cpu {}conv {} batch {} groups {} channels {}->{} in {} out {} kernel {} stride {} dilation {} pad {} "
      "spread {}, x {} {}:{}:{}, w {}",
      desc.planar ? "planar " : "", to_string(compute), s.batch, s.groups, s.c, s.o, dims(s.in), dims(s.out),
      dims(s.kernel), dims(s.stride), dims(s.dilation), dims(s.low), dims(s.lhs_dilation), to_string(desc.x),
      desc.batch, dims(desc.stride), desc.channel, constant ? "constant" : to_string(desc.w));
}

// Lanes along pixels.
ScheduledGroup schedule_planar(ContractionBuilder& builder, tile::ConvShape s, DType compute, double flops) {
  const ir::Graph& graph = builder.graph();
  const ir::Node& node = builder.anchor();
  ScheduledGroup result;
  ConvDesc desc;
  desc.planar = true;
  desc.x = graph.dtype(node.inputs[0]), desc.w = graph.dtype(node.inputs[1]);
  const std::string label = conv_label(s);
  if (is_unpadded(s) && s.taps() == 1 && s.stride[0] == 1 && s.stride[1] == 1 && s.stride[2] == 1 &&
      s.in[0] == s.out[0] && s.in[1] == s.out[1] && s.in[2] == s.out[2]) {
    // An image is one line.
    s.in[2] = s.out[2] = s.in[0] * s.in[1] * s.in[2];
    s.in[0] = s.in[1] = s.out[0] = s.out[1] = 1;
  }
  desc.shape = s;
  desc.direct = desc.x == compute && is_unpadded(s) && s.stride[2] == 1;
  const bool constant = graph.constant_of(node.inputs[1]) != nullptr;
  const Config config = choose_config(builder.configs(), {problem_text(desc, compute, constant)}, [&] {
    return builder.for_extents(planar_candidates(desc, compute, builder.target()), [&](Config pick) {
      return with_widest_tile(std::move(pick), compute, builder.target());
    });
  });
  builder.input(node.inputs[0]);
  filters(builder, result, {s.groups, s.o * s.k(), s.c, s.taps(), s.taps(), 1, s.o, s.k()},
          config.as<CpuPlanarConfig>().micro_m);
  const Shape& y = graph.shape(node.outputs[0]);
  const auto make_epilogue = [&](bool along_rows) {
    builder.set_lanes_along_rows(along_rows);
    // A vector of channels may begin anywhere: columns cannot be split.
    builder.make_epilogue(s.batch, s.out[0] * s.out[1] * s.out[2], s.groups * s.o, s.groups * s.o + 1,
                          [&](IndexPool& pool, const Index& image, const Index& pixel, const Index& channel) {
                            std::vector<Index> at = {image, channel};
                            for (const Index& i : pool.delinear(pixel, sub_shape(y, 2, y.size()))) at.push_back(i);
                            return at;
                          });
    const Epilogue& e = builder.desc().epilogue;
    return std::all_of(e.stores.begin(), e.stores.end(), [&](const Epilogue::Store& store) {
      return lane_stride(e.pool, store.at, {e.lane()}, {}) == 1;
    });
  };
  // Results that have the channels last are transposed in registers.
  if (!make_epilogue(true) && !make_epilogue(false)) make_epilogue(true);
  builder.desc().problem = std::move(desc);
  return finish(builder, std::move(result), config,
                (s.c == 1 && s.o == 1 && s.groups > 1 ? "depthwise " : "conv ") + label, flops);
}

// An epilogue of columns that are neighbours of a row, `interleaved` of them each; false where results lie otherwise.
bool interleave(ContractionBuilder& builder, const tile::ConvShape& s, int64_t interleaved) {
  const Shape& y = builder.graph().shape(builder.anchor().outputs[0]);
  return builder.make_interleaved_epilogue(
      interleaved, s.batch * s.out[0] * s.out[1], s.out[2] * interleaved, s.groups * s.o / interleaved,
      [&](IndexPool& pool, const Index& row, const Index& result, const Index& column) {
        const int64_t rows = s.out[0] * s.out[1];
        const Index pixel = pool.add(pool.scale(pool.mod(row, rows), s.out[2]), pool.div(result, interleaved));
        const Index channel = pool.add(pool.scale(column, interleaved), pool.mod(result, interleaved));
        return image_index(pool, y, pool.div(row, rows), pixel, channel);
      });
}

// How many neighbouring columns, phases of a transposed convolution or pixels that one pixel becomes, are neighbouring
// results of a row. An epilogue takes them apart by a reshape.
int64_t interleaved_columns(const ContractionBuilder& builder, const tile::ConvShape& s, DType compute) {
  const ir::Graph& graph = builder.graph();
  if (summed_steps(compute, s.k()) > 0) return 1;
  const int64_t widest = panel_width(builder.target(), compute, s.o);
  for (const ir::NodeId id : builder.group().nodes) {
    const ir::Node& node = graph.node(id);
    if (node.op != ir::Op::kReshape || id == builder.group().anchor) continue;
    const Shape& shape = graph.shape(node.outputs[0]);
    const int64_t columns = shape.empty() ? 1 : shape.back();
    if (columns < 2 || widest % columns != 0 || s.o % columns != 0) continue;
    ContractionBuilder probe(graph, builder.group(), builder.target(), nullptr);
    if (interleave(probe, s, columns)) return columns;
  }
  return 1;
}

// Leaves out taps that are zero in whole panels. Of `interleaved` columns, each gets panels of its own if that leaves
// out more. Returns the part that is left.
double leave_out_zeros(const Tensor& filters, int64_t interleaved, int64_t lanes, ConvDesc& desc, Config& config) {
  constexpr double kWorth = 0.95;
  CpuConvConfig choice = config.as<CpuConvConfig>();
  tile::ConvShape& s = desc.shape;
  const auto taps_of = [&](tile::ConvShape shape) {
    shape.c = desc.channels;
    return panel_taps(filters, shape, choice.micro_n);
  };
  std::vector<tile::ConvTaps> taps = taps_of(s);
  const auto all = static_cast<double>(static_cast<int64_t>(taps.size()) * s.taps());
  if (interleaved > 1 && lanes % interleaved == 0) {
    tile::ConvShape apart = s;
    apart.phases = interleaved;
    std::vector<tile::ConvTaps> others = taps_of(apart);
    if (static_cast<double>(tap_count(others)) < kWorth * static_cast<double>(tap_count(taps))) {
      s = apart, taps = std::move(others);
    }
  }
  const auto left = static_cast<double>(tap_count(taps));
  if (left >= kWorth * all) return 1;
  config.reason += fmt::format(", {:.0f}% of the taps are not zero", 100 * left / all);
  desc.taps = std::move(taps);
  // A task has all phases of its channels.
  tile::ConvShape blocked = s;
  blocked.block_rows = choice.rows;
  blocked.block_panels = ceil_div(choice.tile_n / choice.micro_n, s.phases) * s.phases;
  choice.tile_n = blocked.block_panels * choice.micro_n;
  config.choice = choice;
  config.tasks = blocked.tasks(choice.micro_n);
  return left / all;
}

// The channels of a word of transformed images: one number in f32, two integers if 16 bits hold the transforms of the
// image. 0 for other types.
int64_t transformed_elements(const ir::Graph& graph, const ir::Node& conv) {
  const DType x = graph.dtype(conv.inputs[0]), w = graph.dtype(conv.inputs[1]);
  const auto is_byte = [](DType type) { return type == DType::kI8 || type == DType::kU8; };
  const DType compute = *contraction_compute(x, w, graph.dtype(conv.outputs[0]));
  if (compute == DType::kF32) return 1;
  const bool has_range = x == DType::kI16 && conv.attrs.has("image_range");
  const bool fits = is_byte(x) || (has_range && conv.attrs.integer("image_range") <= tile::kWinogradImage);
  return compute == DType::kI32 && fits && (is_byte(w) || w == DType::kI16) ? 2 : 0;
}

// The problem for F(4x4, 3x3); nullopt where it does not apply.
std::optional<tile::WinogradShape> winograd_shape(const ir::Graph& graph, const ir::Node& conv,
                                                  const tile::ConvShape& s) {
  const bool plane = s.in[0] == 1 && s.kernel[0] == 1 && s.out[0] == 1 && s.low[0] == 0 && s.groups == 1;
  if (!plane || s.lhs_dilation[0] != 1) return std::nullopt;
  tile::WinogradShape w;
  w.batch = s.batch, w.c = s.c, w.o = s.o;
  w.elements = transformed_elements(graph, conv);
  if (w.elements == 0) return std::nullopt;
  for (int d = 1; d < 3; ++d) {
    if (s.kernel[d] != 3 || s.stride[d] != 1 || s.lhs_dilation[d] != 1) return std::nullopt;
    w.in[d - 1] = s.in[d], w.out[d - 1] = s.out[d], w.low[d - 1] = s.low[d], w.dilation[d - 1] = s.dilation[d];
  }
  return w;
}

ScheduledGroup schedule_winograd(ContractionBuilder& builder, const std::string& label, const tile::WinogradShape& w,
                                 const ImageMemory& x, const Config& config) {
  const ir::Graph& graph = builder.graph();
  const ir::Node& node = builder.anchor();
  WinogradDesc desc{w, graph.dtype(node.inputs[0])};
  place_images(desc.offset, desc.shape, x);
  builder.input(node.inputs[0]);
  const int64_t width = config.as<CpuWinogradConfig>().micro_n;
  builder.input(node.inputs[1],
                w.elements == 1 ? winograd_packing(w.o, w.c, width) : winograd_word_packing(w.o, w.c, width));
  const Shape& y = graph.shape(node.outputs[0]);
  builder.make_epilogue(w.batch, w.out[0] * w.out[1], w.o, lanes_of(builder, builder.desc().compute),
                        [&](IndexPool& pool, const Index& image, const Index& pixel, const Index& channel) {
                          return image_index(pool, y, image, pixel, channel);
                        });
  builder.desc().problem = std::move(desc);
  const double flops = 2.0 * tile::kWinogradPoints * static_cast<double>(w.tiles()) * static_cast<double>(w.c * w.o);
  return finish(builder, {}, config, label, flops);
}

// The direct form and, where it applies (`winograd`), F(4x4, 3x3): the one that the cost model prefers first.
std::vector<Config> both_forms(const ConvDesc& desc, const std::optional<tile::WinogradShape>& winograd, DType compute,
                               const Target& target) {
  std::vector<Config> direct = conv_candidates(desc, compute, target);
  const bool has_matrices = uses_matrices(target, desc.words, desc.shape.out[2]);
  if (!winograd || !allows_winograd(*winograd) || has_matrices) return direct;
  std::string why;
  const bool preferred = prefer_winograd(*winograd, elements_of(desc.words), target, &why);
  std::vector<Config> other = winograd_candidates({.shape = *winograd, .x = desc.x}, target);
  for (Config& config : other) config.reason = why + "; " + config.reason;
  if (preferred) std::swap(direct, other);
  // The other form's pick comes before variations of the first.
  direct.insert(direct.begin() + 1, other.front());
  direct.insert(direct.end(), other.begin() + 1, other.end());
  return direct;
}

// Whether to fold windows one side at a time, with lanes along rows, and not tap by tap along the channels. Compares
// loads for a vector of results; a place in a stride's order costs a scalar load and store an element, unless rows have
// one channel and every other pixel.
bool prefer_rows(const tile::WindowShape& s, int64_t lanes) {
  const auto [depth, height, width] = s.kernel;
  const double vectors = static_cast<double>(ceil_div(s.c, lanes) * lanes) / static_cast<double>(s.c);
  const double by_taps = static_cast<double>(depth * height * width) * vectors;
  const int64_t sorted = s.stride[2] == 1 ? 0 : s.stride[2] == 2 && s.c == 1 ? 1 : lanes;
  const auto by_rows = static_cast<double>((depth * height + 1 + sorted) * s.stride[2] + width);
  return by_rows < by_taps;
}

bool folds_rows(const ir::Graph& graph, const ir::Node& node, const Target& target) {
  if (node.op != ir::Op::kWindowReduce) return false;
  const WindowProblem problem = window_problem(graph, node);
  const int64_t lanes =
      micro_limits(target).vector_bytes / static_cast<int64_t>(size_of(compute_dtype(problem.desc.x)));
  return problem.first < problem.last && prefer_rows(problem.desc.shape, lanes);
}

// The direct form, with `interleaved` columns as neighbours of a row.
ScheduledGroup schedule_direct(ContractionBuilder& builder, const View& view, const std::optional<ImageMemory>& image,
                               ConvDesc desc, Config config, int64_t interleaved, double flops) {
  const tile::ConvShape s = desc.shape;
  const ir::Graph& graph = builder.graph();
  const ir::Node& node = builder.anchor();
  const DType compute = builder.desc().compute;
  const bool constant = graph.constant_of(node.inputs[1]) != nullptr;
  const int64_t filter = s.taps() * desc.channels;
  ScheduledGroup result;
  const int64_t most = micro_rows(builder.target(), desc.words, s.out[2]);
  const int64_t rows = tile::split_rows(s.out[2], most).mr;
  desc.direct = image && image->dense(s.groups * desc.channels) && reads_whole_words(desc, compute) && is_unpadded(s) &&
                !tile::rows_collide(s.groups * s.c * s.stride[2] * static_cast<int64_t>(size_of(compute)), rows);
  builder.input(view.value);
  const int64_t width = config.as<CpuConvConfig>().micro_n;
  const int64_t lanes = lanes_of(builder, compute);
  const bool interleaves = interleaved > 1 && width % interleaved == 0;
  if (constant && summed_steps(compute, s.k()) == 0) {
    flops *= leave_out_zeros(*graph.constant_of(node.inputs[1]), interleaves ? interleaved : 1, lanes, desc, config);
  }
  filters(builder, result,
          {s.groups, s.o * filter, s.taps(), 1, desc.channels, s.taps(), s.o, filter, desc.shape.phases}, width,
          desc.words);
  const Shape& y = graph.shape(node.outputs[0]);
  if (interleaves) {
    HEDDLE_CHECK(interleave(builder, s, interleaved), "columns that were interleaved are not");
    builder.desc().epilogue.panel_phases = desc.shape.phases > 1;
  } else {
    // With groups a vector may begin anywhere: then columns cannot be split.
    const int64_t aligned = s.groups == 1 || s.o % lanes == 0 ? lanes : s.groups * s.o + 1;
    builder.make_epilogue(s.batch, s.out[0] * s.out[1] * s.out[2], s.groups * s.o, aligned,
                          [&](IndexPool& pool, const Index& image, const Index& pixel, const Index& channel) {
                            return image_index(pool, y, image, pixel, channel);
                          });
  }
  const std::string label = "conv " + label_of(s, desc);
  builder.desc().problem = std::move(desc);
  return finish(builder, std::move(result), config, label, flops);
}

}  // namespace

ScheduledGroup schedule_conv(ContractionBuilder& builder) {
  const ir::Graph& graph = builder.graph();
  const ir::Node& node = builder.anchor();
  const DType compute =
      *contraction_compute(graph.dtype(node.inputs[0]), graph.dtype(node.inputs[1]), graph.dtype(node.outputs[0]));
  tile::ConvShape s = conv_shape(graph, node);
  builder.desc().compute = compute;
  if (is_channels_first(node)) {
    int64_t strides[kSpatial] = {1, 1, 1};
    turn_columns(s, strides);
    return schedule_planar(
        builder, s, compute,
        2.0 * static_cast<double>(element_count(graph.shape(node.outputs[0]))) * static_cast<double>(s.k()));
  }
  // A prologue (the change of layout of a model's input) is folded into the copy of the image.
  const View view = builder.view_of(node.inputs[0]);
  if (!view.affine) fail(ErrorCode::kUnsupportedOperator, "conv", "its prologue is no strided view");
  const auto image = view.value == node.inputs[0]
                         ? image_memory(graph.shape(view.value), builder.memory_of(view.value), view.strides.size() - 1)
                         : std::nullopt;
  const bool plain = image.has_value();
  ConvDesc desc;
  desc.offset = view.offset, desc.batch = view.strides.front(),
  desc.channel = s.c * s.groups == 1 ? 1 : view.strides.back();
  place_spatial({view.strides.begin() + 1, view.strides.end() - 1}, desc.stride);
  turn_columns(s, desc.stride);
  // Zeros between the elements of x (lhs_dilation) need no multiplication.
  const int64_t spread = s.lhs_dilation[0] * s.lhs_dilation[1] * s.lhs_dilation[2];
  double flops = 2.0 * static_cast<double>(element_count(graph.shape(node.outputs[0]))) * static_cast<double>(s.k()) /
                 static_cast<double>(spread);
  const int64_t interleaved = interleaved_columns(builder, s, compute);
  const bool constant = graph.constant_of(node.inputs[1]) != nullptr;
  const std::string plain_label = "conv " + conv_label(s);
  auto winograd = plain && constant ? winograd_shape(graph, node, s) : std::nullopt;
  if (winograd && winograd->elements > 1 && !fits_winograd_words(*graph.constant_of(node.inputs[1]))) winograd.reset();
  count_words(builder, s, desc);
  if (plain && is_pointwise(s) && interleaved == 1) {
    return schedule_pointwise(builder, s, *image, desc, compute, flops);
  }
  const bool undilated = s.lhs_dilation[0] == 1 && s.lhs_dilation[1] == 1 && s.lhs_dilation[2] == 1;
  if (plain && desc.channels == 1 && s.o == 1 && s.groups > 1 && undilated) {
    return schedule_depthwise(builder, s, *image, compute);
  }
  desc.shape = s;
  Config config = choose_config(builder.configs(), {problem_text(desc, compute, constant)}, [&] {
    return builder.for_extents(both_forms(desc, winograd, compute, builder.target()), [&](Config pick) {
      const bool is_winograd = pick.get<CpuWinogradConfig>() != nullptr;
      if (is_winograd) return pick;
      return with_common_height(std::move(pick), s.out[2], micro_rows(builder.target(), desc.words, s.out[2]));
    });
  });
  if (config.get<CpuWinogradConfig>() != nullptr) {
    const Words words = winograd->elements > 1 ? Words::kShorts : Words::kNone;
    return schedule_winograd(builder, plain_label + words_label(words, desc.x, desc.w), *winograd, *image, config);
  }
  return schedule_direct(builder, view, image, std::move(desc), std::move(config), interleaved, flops);
}

std::string cpu_placement_cost(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                               const ir::Placement& place, const Target& target) {
  const ir::Node& anchor = graph.node(group.anchor);
  const bool reads = std::find(group.inputs.begin(), group.inputs.end(), value) != group.inputs.end();
  if (reads) return folds_rows(graph, anchor, target) ? "a window folds whole rows of its pixels" : "";
  if (anchor.op != ir::Op::kConv) return {};
  // Tiles of 4x4 pixels come in an order that no prefetcher knows.
  constexpr int64_t kLongRun = 512;
  const auto shape = winograd_shape(graph, anchor, conv_shape(graph, anchor));
  const Words words = words_for(graph.dtype(anchor.inputs[0]), graph.dtype(anchor.inputs[1]), target);
  const auto element = static_cast<int64_t>(size_of(graph.dtype(value)));
  const int64_t run = graph.shape(value).back() * element, bytes = element_count(place.shape) * element;
  const bool is_far = bytes > target.cpu.l2_bytes && run < kLongRun && graph.shape(value).back() != place.shape.back();
  std::string why;
  if (!is_far || !shape || !prefer_winograd(*shape, elements_of(words), target, &why)) return {};
  return fmt::format("Winograd's tiles of pixels of {} bytes would miss the second-level cache", run);
}

ScheduledGroup schedule_window(ContractionBuilder& builder) {
  const ir::Graph& graph = builder.graph();
  const ir::Node& node = builder.anchor();
  const Shape& y = graph.shape(node.outputs[0]);
  WindowProblem problem = window_problem(graph, node);
  const tile::WindowShape& s = problem.desc.shape;
  const DType compute = compute_dtype(problem.desc.x);
  builder.desc().compute = compute;
  builder.input(node.inputs[0]);
  const int64_t lanes = lanes_of(builder, compute);
  const auto image = image_memory(graph.shape(node.inputs[0]), builder.memory_of(node.inputs[0]), problem.last);
  if (!image) fail(ErrorCode::kUnsupportedOperator, "window", "the lines of its images lie apart");
  problem.desc.rows = image->dense(s.c) && folds_rows(graph, node, builder.target());
  place_images(problem.desc.offset, problem.desc.shape, *image);
  const int64_t rows = s.out[0] * s.out[1] * (problem.desc.rows ? 1 : s.out[2]);
  builder.make_epilogue(s.batch, rows, problem.desc.rows ? s.out[2] * s.c : s.c, lanes,
                        [&](IndexPool& pool, const Index& image, const Index& row, const Index& col) {
                          return problem.coordinates(pool, y, image, row, col);
                        });
  Config config;
  config.choice = NoChoice{"window"};
  config.tasks = s.tasks();
  config.reason = problem.desc.rows ? "lanes along rows, windows folded one side at a time, one row of pixels a task"
                                    : "lanes along the channels, one row of pixels a task";
  std::string label = problem.label();
  const double operations = least_folds(problem.desc.shape);
  builder.desc().problem = std::move(problem.desc);
  return finish(builder, {}, config, std::move(label), operations);
}

}  // namespace heddle::schedule
