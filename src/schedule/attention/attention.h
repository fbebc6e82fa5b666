#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/kernel_desc.h"
#include "schedule/product/contraction.h"
#include "tile/core/cuda_attention.h"

namespace heddle::schedule {

// Keys that the scores of 64 neighbouring rows leave: those of [first, last), of which [plain_first, plain_last) are
// plain.
struct KeyRange {
  int64_t first, plain_first, plain_last, last;
  bool operator==(const KeyRange&) const = default;
};

// A number of each batch, which only a run knows, that masks compare keys with: how many keys a sequence has, say.
struct KeyLength {
  Epilogue value;  // as `scores` of AttentionDesc, of no row and no key
  // Ranges of keys while the number is one of [first, last], as AttentionDesc::ranges. Boxes lie side by side,
  // ascending; numbers beyond have all keys, none of them plain.
  struct Box {
    int64_t first, last;
    std::vector<KeyRange> ranges;
  };
  std::vector<Box> boxes;
};

// Keys and values in pages of a pool: those of [i * keys, (i + 1) * keys) of a sequence lie in the page that entry i of
// its line in a table names.
struct KeyPages {
  int64_t keys = 0, pool = 0;  // of a page; how many pages there are
  uint32_t table = 0;          // operand
  DType entries = DType::kI32;
  int64_t offset = 0, sequence = 0, entry = 0;  // strides of the table: from one sequence's line to the next one's, ...
  int64_t heads = 1;                            // batches of a sequence, side by side
  bool clamps = false;                          // AttentionPages::clamps of tile/core/cuda_attention.h
};

// O[batch] = softmax(scores(Q[batch] K[batch]^T)) V[batch] (tile/kernel/cuda/attention/sm90.h,
// tile/kernel/cpu/attention.h).
struct AttentionDesc {
  int64_t m = 0, n = 0, depth = 0, width = 0, batch = 1;  // rows of Q, keys, elements of Q and K, of V and O
  DType type = DType::kF16;                               // of Q; on a GPU of K, V and O, too
  bool tf32 = false;                                      // f32 operands and weights are rounded to tf32
  // Matrices in memory: q by (batch, row, depth), k by (batch, key, depth), v by (batch, width, key).
  // Where keys lie in pages, the outermost dimension of the batches of k and v is the pool, the others are those of
  // a sequence, and there are as many keys as a page has.
  OperandView q, k, v;
  std::optional<KeyPages> pages;
  // Plain scores are products times `scale`. All are where `scaled`; else they are what `scores` says, whose one store
  // is no store: its value is the score; `ranges` says which are plain all the same, for each 64 rows.
  bool scaled = true;
  double scale = 1;
  std::vector<KeyRange> ranges;
  Epilogue scores;
  std::optional<KeyLength> length;  // where it leaves fewer keys than `ranges`, which hold whatever it is
  // A score of each row that is no key's, as `scores` says one: it adds to the sum and takes no value.
  std::optional<Epilogue> sink;
  bool zero_if_empty = false;  // a row all of whose scores are minus infinity gives 0, else NaN
  Epilogue epilogue;           // of O

  // f32 that tensor cores multiply in two parts: three products of tf32.
  bool splits_f32() const { return type == DType::kF32 && !tf32; }
  // Along which dimension memory is contiguous; Q is along its depth.
  bool k_along_depth() const { return k.k == 1; }
  bool v_along_width() const { return v.k != 1 || n == 1; }
  // Keys that lie in lines side by side, as k and v see them.
  int64_t keys_in_line() const { return pages ? pages->keys : n; }
};

// What types an attention has beside those of its operands: of the weights, of the result.
struct AttentionTypes {
  DType weights, result;
};

// What a kind of target does its own way with attention. Without state.
class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;

  // Throw kUnsupportedOperator where the target has no kernel for any attention, for this one.
  virtual void check_target(const Target& target) const = 0;
  virtual void check(const AttentionDesc& attention, const AttentionTypes& types) const = 0;
  // Whether kernels leave out keys by AttentionDesc::length.
  virtual bool reads_lengths() const = 0;
  // Elements of a row of the result that a kernel takes at a time.
  virtual int64_t lanes(const Target& target) const = 0;
  // Configurations with their predicted times, the first one to be taken; there is one at least.
  virtual std::vector<Config> candidates(const AttentionDesc& attention, const Target& target) const = 0;
  // The predicted time of a product, a softmax and a product.
  virtual double separate_us(const AttentionDesc& attention, const Target& target) const = 0;
  // Where scores stay in between.
  virtual std::string_view scores_place() const = 0;
};

// An attention group (passes/fusion/README.md) as a kernel; `configs` as in schedule(). Throws kUnsupportedOperator.
ScheduledGroup schedule_attention(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                  ConfigSource* configs = nullptr);

// Whether schedule_attention() serves a group, and is expected to be faster than a product, a softmax and a product;
// `reason` says why either way.
bool can_attend(const ir::Graph& graph, const ir::Group& group, const Target& target, std::string* reason);

}  // namespace heddle::schedule
