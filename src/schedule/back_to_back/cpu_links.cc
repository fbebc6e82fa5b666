#include "schedule/back_to_back/cpu_links.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/divide.h"
#include "heddle/error.h"
#include "tile/core/winograd.h"

namespace heddle::schedule {
namespace {

// How a contraction sees its result: images of pixels of channels, where it says so, else batches of rows.
struct Map {
  int64_t images = 1, rows = 1, pixels = 1, channels = 1;
  bool is_image = false;

  int64_t all_pixels() const { return images * rows * pixels; }
};

Map map_of(const GemmDesc& gemm) {
  return {gemm.shape.batches(), gemm.shape.m, 1, gemm.shape.n, false};
}
Map map_of(const ConvDesc& conv) {
  const tile::ConvShape& s = conv.shape;
  if (conv.planar) refuse_back_to_back("a convolution has channels first");
  if (s.out[0] != 1 || s.kernel[0] != 1) refuse_back_to_back("a convolution has three dimensions");
  return {s.batch, s.out[1], s.out[2], s.groups * s.o, true};
}
Map map_of(const WinogradDesc& winograd) {
  const tile::WinogradShape& s = winograd.shape;
  if (s.dilation[0] != 1) refuse_back_to_back("the rows of a dilated convolution are made out of order");
  return {s.batch, s.out[0], s.out[1], s.o, true};
}
Map map_of(const WindowDesc& window) {
  const tile::WindowShape& s = window.shape;
  if (s.out[0] != 1 || s.in[0] != 1) refuse_back_to_back("a window has three dimensions");
  return {s.batch, s.out[1], s.out[2], s.c, true};
}
template <typename Problem>
Map map_of(const Problem&) {
  refuse_back_to_back("its weights are no constants");
}

// The distances of batches, rows and columns in memory, where batches are one run of rows or have a distance of their
// own.
struct StoredMap {
  int64_t offset = 0, batch = 0, row = 0, column = 0;
};

// Where a product finds its operand A.
std::optional<StoredMap> read_by(const GemmDesc& gemm) {
  if (gemm.a.form == GemmOperand::Form::kComputed) return std::nullopt;
  StoredMap place{gemm.a.offset, 0, gemm.a.row, gemm.a.col};
  int64_t inner = 1;
  for (int d = tile::kBatchDims - 1; d >= 0; --d) {
    const int64_t extent = gemm.shape.batch[d];
    if (extent == 1) continue;
    if (inner == 1) place.batch = gemm.a.batch[d];
    if (gemm.a.batch[d] != place.batch * inner) return std::nullopt;
    inner *= extent;
  }
  return place;
}

// Whether two matrices are the same rows in the same order.
bool agree(const Map& made, StoredMap stored, const Map& read, StoredMap at) {
  if (stored.offset != at.offset || (stored.column != at.column && made.channels > 1)) return false;
  if (made.all_pixels() != read.all_pixels()) return false;
  // A batch of one row, or one batch, has the distance that rows of all batches would have.
  const auto complete = [](const Map& map, StoredMap& place) {
    const int64_t rows = map.rows * map.pixels;
    if (rows == 1) place.row = place.batch;
    if (map.images == 1) place.batch = place.row * rows;
    return place.batch == place.row * rows;
  };
  const bool is_run = complete(made, stored), reads_run = complete(read, at);
  if (stored.row != at.row && made.all_pixels() > 1) return false;
  return made.images == read.images ? stored.batch == at.batch : is_run && reads_run;
}

class Linker {
 public:
  Linker(std::vector<ScheduledKernel> kernels, const std::vector<ir::ValueId>& inner)
      : kernels_(std::move(kernels)), inner_(inner) {}

  CpuChainParts run() {
    for (const ScheduledKernel& kernel : kernels_) {
      const auto body = kernel.desc.get<ContractionDesc>();
      if (body == nullptr) refuse_back_to_back("a part of it is no contraction");
      bodies_.push_back(*body);
      maps_.push_back(body->visit([](const auto& problem) { return map_of(problem); }));
    }
    for (size_t i = 0; i + 1 < kernels_.size(); ++i) connect(i);
    place_rows();
    for (size_t i = 0; i < kernels_.size(); ++i) add(i);
    return std::move(parts_);
  }

 private:
  // The operands between two links as they lie in scratch: pixel after pixel.
  void connect(size_t i) {
    Epilogue& e = bodies_[i].epilogue;
    if (e.stores.size() != 1 || !e.reductions.empty()) refuse_back_to_back("the first one has other results");
    if (!e.bounds.empty()) refuse_back_to_back("the second one multiplies a part of what the first one makes");
    const auto stored = affine_place(e, e.stores[0].at);
    if (!stored || e.interleaved > 1) refuse_back_to_back("what the first one makes is stored in no order of rows");
    const StoredMap made{(*stored)[3], (*stored)[0], (*stored)[1], (*stored)[2]};
    ContractionDesc& next = bodies_[i + 1];
    Map read = maps_[i + 1];
    if (auto* gemm = std::get_if<GemmDesc>(&next.problem)) {
      const auto at = read_by(*gemm);
      if (gemm->b.form != GemmOperand::Form::kPacked) refuse_back_to_back("its weights are no constants");
      if (!at || gemm->terms != maps_[i].channels || !agree(maps_[i], made, read, *at)) {
        refuse_back_to_back("the rows that the second one multiplies are not those that the first one makes");
      }
      read_from_scratch(*gemm, maps_[i].channels);
    } else if (const auto* window = next.get<WindowDesc>()) {
      const tile::WindowShape& s = window->shape;
      read.rows = s.in[1], read.pixels = s.in[2];
      const StoredMap dense{0, s.in[1] * s.in[2] * s.c, s.c, 1};
      // Winograd's form makes four rows at a time.
      const bool by_four = bodies_[i].get<WinogradDesc>() != nullptr;
      if (by_four || s.c != maps_[i].channels || !agree(maps_[i], made, read, dense)) {
        refuse_back_to_back("the image that the second one reads is not what the first one makes");
      }
    } else {
      refuse_back_to_back("the second convolution has larger windows than a pixel over more than a channel");
    }
    IndexPool& pool = e.pool.indices;
    const int64_t rows = maps_[i].rows * maps_[i].pixels, channels = maps_[i].channels;
    const Index pixel = pool.add(pool.scale(pool.var(e.batch), rows), pool.var(e.row));
    const Index column = pool.add(pool.scale(pool.var(e.col_outer), e.split), pool.var(e.col));
    e.stores[0].at = pool.add(pool.scale(pixel, channels), column);
  }
  static void read_from_scratch(GemmDesc& gemm, int64_t channels) {
    gemm.a.offset = 0, gemm.a.row = channels, gemm.a.col = 1;
    int64_t stride = gemm.shape.m * channels;
    for (int d = tile::kBatchDims - 1; d >= 0; --d) {
      gemm.a.batch[d] = stride;
      stride *= gemm.shape.batch[d];
    }
  }

  // Products take over the images of the convolutions and windows beside them.
  void place_rows() {
    const auto image = std::find_if(maps_.begin(), maps_.end(), [](const Map& m) { return m.is_image; });
    int64_t images = 1;
    for (const Map& m : maps_) images = std::max(images, image == maps_.end() ? m.images : image->images);
    parts_.desc.images = images;
    for (size_t i = 0; i < maps_.size(); ++i) {
      Map& m = maps_[i];
      if (m.is_image) continue;
      if ((m.images != 1 && m.images != images) || m.all_pixels() % images != 0)
        refuse_back_to_back("their batches differ");
      by_image_.resize(maps_.size());
      by_image_[i] = m.images > 1;
      m.rows = m.all_pixels() / images, m.images = images;
      const Map* like = nullptr;
      Map before;
      if (i > 0) {
        like = &maps_[i - 1];
      } else if (const auto* window = bodies_[1].get<WindowDesc>()) {
        before.rows = window->shape.in[1], before.pixels = window->shape.in[2];
        like = &before;
      }
      if (like == nullptr) continue;
      if (like->rows * like->pixels != m.rows) refuse_back_to_back("their images differ");
      m.rows = like->rows, m.pixels = like->pixels;
    }
    by_image_.resize(maps_.size());
  }

  tile::ChainLink rows_of(size_t i) const {
    tile::ChainLink rows;
    rows.rows = maps_[i].rows;
    const auto element = static_cast<int64_t>(size_of(stored_type(i)));
    rows.row_bytes = maps_[i].pixels * maps_[i].channels * element;
    if (const auto* window = bodies_[i].get<WindowDesc>()) {
      const tile::WindowShape& s = window->shape;
      rows.kernel = s.kernel[1], rows.stride = s.stride[1], rows.dilation = s.dilation[1], rows.low = s.low[1];
    }
    return rows;
  }
  DType stored_type(size_t i) const {
    return kernels_[i].desc.operands.at(bodies_[i].epilogue.stores.at(0).operand).dtype;
  }

  void add(size_t i) {
    ScheduledKernel& kernel = kernels_[i];
    CpuLink link;
    for (size_t k = 0; k < kernel.bindings.size(); ++k) {
      const Binding& b = kernel.bindings[k];
      const bool output = kernel.desc.operands[k].role == Operand::Role::kOutput;
      if (b.kind != Binding::Kind::kValue) refuse_back_to_back("its weights are no constants");
      if (i > 0 && b.value == inner_[i - 1] && !output) {
        link.operands.push_back(CpuLink::kBefore);
      } else if (i + 1 < kernels_.size() && b.value == inner_[i] && output) {
        link.operands.push_back(CpuLink::kMade);
      } else {
        link.operands.push_back(operand(b, kernel.desc.operands[k]));
      }
    }
    link.rows = rows_of(i), link.pixels = maps_[i].pixels, link.by_image = by_image_[i];
    link.desc = std::move(kernel.desc);
    link.desc.body = std::make_shared<const ContractionDesc>(std::move(bodies_[i]));
    link.config = std::move(kernel.config);
    if (link.config.get<CpuWinogradConfig>() != nullptr) parts_.desc.unit = tile::kWinogradOut;
    parts_.desc.links.push_back(std::move(link));
  }

  uint32_t operand(const Binding& binding, const Operand& operand) {
    for (size_t k = 0; k < parts_.operands.size(); ++k) {
      const Operand& known = parts_.operands[k];
      if (parts_.bindings[k].value == binding.value && known.packing == operand.packing && known.role == operand.role) {
        return static_cast<uint32_t>(k);
      }
    }
    parts_.operands.push_back(operand);
    parts_.bindings.push_back(binding);
    return static_cast<uint32_t>(parts_.operands.size() - 1);
  }

  std::vector<ScheduledKernel> kernels_;
  const std::vector<ir::ValueId>& inner_;
  std::vector<ContractionDesc> bodies_;
  std::vector<Map> maps_;
  std::vector<bool> by_image_;
  CpuChainParts parts_;
};

}  // namespace

CpuChainParts link_kernels(std::vector<ScheduledKernel> kernels, const std::vector<ir::ValueId>& inner) {
  return Linker(std::move(kernels), inner).run();
}

}  // namespace heddle::schedule
