// Convolutions and windows on a GPU: implicit GEMM over the images, or a kernel that slides over channels.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/check.h"
#include "schedule/floor.h"
#include "schedule/product/conv_problem.h"
#include "schedule/product/cuda/contraction.h"
#include "schedule/product/cuda/filter_gradient.h"
#include "schedule/product/packing.h"

namespace heddle::schedule {
namespace {

using Form = OperandView::Form;

// The same convolution whose groups are joined, `together` at a time.
tile::ConvShape joined(tile::ConvShape s, int64_t together) {
  s.groups /= together, s.c *= together, s.o *= together;
  return s;
}

// A convolution with the filters of so many groups joined: a block diagonal, by zeros between the groups.
class CudaConvForm {
 public:
  CudaConvForm(const ContractionBuilder& builder, int64_t together)
      : builder_(builder),
        graph_(builder_.graph()),
        node_(builder_.anchor()),
        groups_(conv_shape(graph_, node_)),
        s_(joined(groups_, together)),
        together_(together),
        run_(together > 1 ? run_of_results() : groups_.o),
        view_(builder_.view_of(node_.inputs[0])) {
    const DType x = graph_.dtype(node_.inputs[0]), w = graph_.dtype(node_.inputs[1]);
    const DType compute = *contraction_compute(x, w, graph_.dtype(node_.outputs[0]));
    builder_.desc().compute = compute;
    if (view_.affine && view_.value == node_.inputs[0]) {
      memory_ = image_memory(graph_.shape(view_.value), builder_.memory_of(view_.value), view_.strides.size() - 1);
    }
    plain_ = memory_.has_value();
    undilated_ = s_.lhs_dilation[0] * s_.lhs_dilation[1] * s_.lhs_dilation[2] == 1;
    if (is_depthwise()) return;
    const Shape& y = graph_.shape(node_.outputs[0]);
    desc_.m = element_count(y) / y.back(), desc_.n = s_.o, desc_.k = s_.k(), desc_.batch = s_.groups;
    set_multiply(desc_, graph_, node_, compute);
    make_image();
    make_filters();
    builder_.set_run(run_ * together_);
    builder_.make_epilogue(desc_.batch, desc_.m, desc_.n, 8,
                           [&](IndexPool& pool, const Index& group, const Index& row, const Index& column) {
                             std::vector<Index> at = pool.delinear(row, sub_shape(y, 0, y.size() - 1));
                             at.push_back(pool.add(pool.scale(group, s_.o), channel_of(pool, column)));
                             return at;
                           });
  }
  CudaConvForm(const CudaConvForm&) = delete;
  CudaConvForm& operator=(const CudaConvForm&) = delete;

  // Channels first are those of depthwise convolutions (cuda_contraction_obstacle()).
  bool is_depthwise() const {
    return is_channels_first(node_) || (plain_ && s_.c == 1 && s_.o == 1 && s_.groups > 1 && undilated_);
  }
  // How many groups may be joined at a time: what makes up to two k-tiles of channels.
  std::vector<int64_t> joins() const {
    std::vector<int64_t> found;
    if (desc_.a.form != Form::kImage || graph_.constant_of(node_.inputs[1]) == nullptr) return found;
    for (int64_t together = 2; together <= s_.groups && together * s_.c <= kMostJoined; ++together) {
      const bool whole = s_.groups % together == 0 && (together * s_.c % kLeastJoined == 0 || together == s_.groups);
      if (whole) found.push_back(together);
    }
    return found;
  }
  Config fastest() { return fastest_config(builder_, desc_); }
  CudaProduct product() const {
    if (is_depthwise()) fail(ErrorCode::kUnsupportedOperator, "conv", "a depthwise convolution is no product");
    const double operations =
        2.0 * static_cast<double>(element_count(graph_.shape(node_.outputs[0]))) * static_cast<double>(groups_.k());
    std::string label = "conv " + conv_label(groups_);
    if (together_ > 1) label += fmt::format(" in {}", s_.groups);
    return {builder_, desc_, std::move(label), operations};
  }
  ScheduledGroup finish() {
    if (is_depthwise()) return depthwise();
    CudaProduct p = product();
    return finish_cuda_gemm(p.builder, std::move(p.product), std::move(p.label), p.operations);
  }

 private:
  // Filters of a group whose results are neighbours where they are stored: those of one phase of a transposed
  // convolution.
  int64_t run_of_results() const {
    for (const ir::NodeId id : builder_.group().nodes) {
      const ir::Node& node = graph_.node(id);
      if (node.op != ir::Op::kReshape || node.inputs[0] != node_.outputs[0]) continue;
      const int64_t run = graph_.shape(node.outputs[0]).back();
      return groups_.o % run == 0 ? run : groups_.o;
    }
    return groups_.o;
  }
  // The channel of a column, from its first group's first one on. Joined groups have such neighbours side by side.
  Index channel_of(IndexPool& pool, const Index& column) const {
    if (run_ == groups_.o) return column;
    const std::vector<Index> at = pool.delinear(column, {groups_.o / run_, together_, run_});
    return pool.linear(std::vector<Index>{at[1], at[0], at[2]}, {together_, groups_.o / run_, run_});
  }

  static constexpr int64_t kLeastJoined = 16, kMostJoined = 128;  // channels

  void make_image() {
    OperandView& o = desc_.a;
    o.dtype = graph_.dtype(node_.inputs[0]);
    if (plain_ && is_pointwise(s_)) {
      o.form = Form::kMatrix;
      o.offset = memory_->offset, o.row = memory_->pixel, o.k = 1, o.depth = s_.c;
      o.operand = builder_.input(node_.inputs[0]);
      return;
    }
    bool image =
        plain_ && undilated_ &&
        element_count(graph_.shape(node_.inputs[0])) / (s_.c * s_.groups) * memory_->pixel < (int64_t{1} << 31);
    for (const int64_t low : s_.low) image = image && low >= 0;
    if (!image) return compute_image();
    o.form = Form::kImage;
    o.offset = memory_->offset;
    o.operand = builder_.input(node_.inputs[0]);
    const auto i = [](int64_t v) { return static_cast<int32_t>(v); };
    tile::GemmImageArgs& a = o.image;
    a.group = s_.c;
    a.images = i(s_.batch), a.channels = i(s_.c), a.pixel = i(memory_->pixel);
    for (int d = 0; d < 3; ++d) {
      a.size[d] = i(s_.in[d]), a.out[d] = i(s_.out[d]), a.window[d] = i(s_.kernel[d]);
      a.stride[d] = i(s_.stride[d]), a.dilation[d] = i(s_.dilation[d]), a.before[d] = i(s_.low[d]);
      a.after[d] = i(std::max<int64_t>(s_.reach(d, s_.out[d]) - s_.in[d] - s_.low[d], 0));
    }
  }

  // Any prologue, padding and dilation: the element of the image under a tap, or zero.
  void compute_image() {
    OperandView& o = desc_.a;
    IndexPool& pool = desc_.pool.indices;
    const std::vector<Index> at = loops_of(o, desc_, desc_.m);
    const Shape& x = graph_.shape(node_.inputs[0]);
    const Shape out = {s_.batch, s_.out[0], s_.out[1], s_.out[2]};
    const std::vector<Index> place = pool.delinear(at[1], out);
    const std::vector<Index> tap = pool.delinear(at[2], {s_.kernel[0], s_.kernel[1], s_.kernel[2], s_.c});
    std::vector<Index> index = {place[0]};
    struct Guard {
      Index index;
      int64_t end;
    };
    std::vector<Guard> guards;
    const size_t rank = x.size() - 2;
    for (size_t i = 0; i < rank; ++i) {
      const size_t d = kSpatial - rank + i;
      Index p = pool.add(pool.scale(place[1 + d], s_.stride[d]), pool.scale(tap[d], s_.dilation[d]));
      p = pool.offset(p, -s_.low[d]);
      if (s_.lhs_dilation[d] > 1) {
        guards.push_back({pool.mod(p, s_.lhs_dilation[d]), 1});
        p = pool.div(p, s_.lhs_dilation[d]);
      }
      guards.push_back({p, s_.in[d]});
      index.push_back(p);
    }
    index.push_back(pool.add(pool.scale(at[0], s_.c), tap[3]));
    // What a guard refuses is not read, so the indices may be taken as they are.
    ExprId element = builder_.inline_operand(desc_.pool, node_.inputs[0], index, nullptr);
    const DType dtype = desc_.pool[element].dtype;
    const ExprId zero = is_float(dtype) ? desc_.pool.constant(dtype, 0) : desc_.pool.integer(dtype, 0);
    for (const Guard& guard : guards) element = desc_.pool.guard(guard.index, 0, guard.end, element, zero);
    o.element = element;
  }

  // Filters as rows of k = (tap, channel).
  void make_filters() {
    OperandView& o = desc_.b;
    const ir::ValueId w = node_.inputs[1];
    o.dtype = graph_.dtype(w);
    o.form = Form::kMatrix;
    if (desc_.batch > 1) o.batch = {{desc_.batch, s_.o * s_.k()}};
    o.row = s_.k(), o.k = 1, o.depth = s_.k();
    const auto element = static_cast<int64_t>(size_of(o.dtype));
    const bool ordered = s_.taps() == 1 || s_.c == 1 || has_channels_last_filters(node_);
    const bool constant = graph_.constant_of(w) != nullptr;
    const int64_t pitch = (s_.k() * element + kCopyBytes - 1) / kCopyBytes * kCopyBytes / element;
    const int64_t taps = s_.taps(), of_group = groups_.k();
    const bool last = has_channels_last_filters(node_);
    const tile::PanelSource filters{groups_.groups, groups_.o * of_group, taps,      last ? groups_.c : 1,
                                    groups_.c,      last ? 1 : taps,      groups_.o, of_group};
    if (together_ > 1) {
      o.operand = builder_.input(w, diagonal_packing(filters, pitch, together_, run_));
      o.row = o.depth = pitch;
      if (desc_.batch > 1) o.batch = {{desc_.batch, s_.o * pitch}};
    } else if (ordered && (!constant || s_.k() * element % kCopyBytes == 0)) {
      o.operand = builder_.input(w);
    } else if (constant) {
      o.operand = builder_.input(w, rows_packing(filters, 0, pitch));
      o.row = o.depth = pitch;
      if (desc_.batch > 1) o.batch = {{desc_.batch, s_.o * pitch}};
    } else {
      const std::vector<Index> at = loops_of(o, desc_, desc_.n);
      IndexPool& pool = desc_.pool.indices;
      const std::vector<Index> k = pool.delinear(at[2], {s_.taps(), s_.c});
      const Index place = pool.linear(std::vector<Index>{at[0], at[1], k[1], k[0]}, {s_.groups, s_.o, s_.c, s_.taps()});
      o.element = desc_.pool.load(o.dtype, builder_.input(w), place);
    }
  }

  ScheduledGroup depthwise() {
    WindowDesc desc = depthwise_window(graph_, node_, s_);
    if (!desc.rows) desc.offset = memory_->offset, desc.shape.pixel = memory_->pixel;
    builder_.input(node_.inputs[0]);
    const ir::ValueId w = node_.inputs[1];
    const bool constant = graph_.constant_of(w) != nullptr && !desc.rows;  // and better packed
    desc.packed = constant;
    desc.filter_operand = builder_.input(
        w, constant ? panel_packing({1, 0, 1, 0, s_.taps(), 1, s_.groups, s_.taps()}, 0, s_.groups) : Packing{});
    const Shape& y = graph_.shape(node_.outputs[0]);
    const double operations = 2 * products_inside(desc.shape);
    const bool rows = desc.rows;
    return finish_cuda_window(builder_, std::move(desc), "depthwise " + conv_label(s_), operations,
                              [&](IndexPool& pool, const Index& image, const Index& row, const Index& col) {
                                if (!rows) return image_index(pool, y, image, row, col);
                                std::vector<Index> at = pool.delinear(image, sub_shape(y, 0, 2));
                                for (const Index& i : pool.delinear(row, sub_shape(y, 2, y.size() - 1)))
                                  at.push_back(i);
                                at.push_back(col);
                                return at;
                              });
  }

  ContractionBuilder builder_;
  const ir::Graph& graph_;
  const ir::Node& node_;
  const tile::ConvShape groups_;  // as the model has it
  const tile::ConvShape s_;       // as it is computed
  const int64_t together_;
  const int64_t run_;  // neighbouring filters of a group, as columns
  const View view_;
  std::optional<ImageMemory> memory_;  // where no prologue changes the image
  bool plain_ = false, undilated_ = false;
  Product desc_;
};

}  // namespace

CudaProduct cuda_conv_product(const ContractionBuilder& builder) {
  return CudaConvForm(builder, 1).product();
}

ScheduledGroup schedule_cuda_conv(ContractionBuilder& builder) {
  if (const auto gradient = filter_gradient_of(builder)) return schedule_cuda_filter_gradient(builder, *gradient);
  auto best = std::make_unique<CudaConvForm>(builder, 1);
  const std::vector<int64_t> joins = best->joins();
  // Joined groups multiply many zeros. Without wgmma, to which these hardly matter, the gain has to be larger than what
  // predictions err by.
  constexpr double kClearly = 0.75;
  double fastest = joins.empty() ? 0 : best->fastest().predicted_us;
  for (const int64_t together : joins) {
    auto other = std::make_unique<CudaConvForm>(builder, together);
    const Config config = other->fastest();
    const double us = config.predicted_us / (cuda_family_of(config).uses_wgmma() ? 1 : kClearly);
    if (us < fastest) fastest = us, best = std::move(other);
  }
  return best->finish();
}

}  // namespace heddle::schedule
