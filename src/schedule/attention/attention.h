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

// The keys that a tile of 64 neighbouring rows may attend to: [first, last). Keys in [plain_first, plain_last) have
// plain scores (AttentionDesc::scaled).
struct KeyRange {
  int64_t first, plain_first, plain_last, last;
  bool operator==(const KeyRange&) const = default;
};

// A number per batch that is known only at run time. Masks compare the indices of keys with this number. An example is
// the number of keys of a sequence.
struct KeyLength {
  Epilogue value;  // described like AttentionDesc::scores, but independent of row and key
  // `ranges` are the ranges of keys, as in AttentionDesc::ranges, if the number is in [first, last]. Boxes are adjacent
  // and ascending. For numbers outside all boxes, every key is computed and no score is plain.
  struct Box {
    int64_t first, last;
    std::vector<KeyRange> ranges;
  };
  std::vector<Box> boxes;
};

// Keys and values in pages of a pool. Each sequence has a row in the page table. Entry i of the row is the index of the
// page that holds keys [i * keys, (i + 1) * keys) of the sequence.
struct KeyPages {
  int64_t keys = 0, pool = 0;  // keys per page; pages in the pool
  uint32_t table = 0;          // the operand that is the page table
  DType entries = DType::kI32;
  int64_t offset = 0, sequence = 0, entry = 0;  // of the table: offset; strides between sequences and between entries
  int64_t heads = 1;                            // consecutive batches that share a sequence
  bool clamps = false;                          // AttentionPages::clamps of tile/core/cuda_attention.h
};

// O[batch] = softmax(scores(Q[batch] K[batch]^T)) V[batch] (tile/kernel/cuda/attention/sm90.h,
// tile/kernel/cpu/attention.h).
struct AttentionDesc {
  int64_t m = 0, n = 0, depth = 0, width = 0, batch = 1;  // rows of Q; keys; row length of Q and K; of V and O
  DType type = DType::kF16;                               // of Q; on a GPU also of K, V and O
  bool tf32 = false;                                      // f32 operands and weights are rounded to tf32
  // Matrices in memory: q by (batch, row, depth), k by (batch, key, depth), v by (batch, width, key). If keys are
  // stored in pages, the outermost batch dimension of k and v is the page in the pool, the other batch dimensions are
  // those of a sequence, and the number of keys is that of one page.
  OperandView q, k, v;
  std::optional<KeyPages> pages;
  // A plain score is a product times `scale`. If `scaled`, all scores are plain. Otherwise `scores` computes the
  // scores. The only store of `scores` has the score as its value and is not executed. `ranges` then gives, for each
  // block of 64 rows, the keys whose scores are plain.
  bool scaled = true;
  double scale = 1;
  std::vector<KeyRange> ranges;
  Epilogue scores;
  std::optional<KeyLength> length;  // may leave fewer keys than `ranges`, which hold for any length
  // An extra score for each row, described like `scores`. The extra score belongs to no key. Its exponential is added
  // to the sum of the softmax. It has no row of V.
  std::optional<Epilogue> sink;
  bool zero_if_empty = false;  // result of rows whose scores are all minus infinity: 0 if set, else NaN
  Epilogue epilogue;           // applied to O

  // True if f32 operands are split into two tf32 parts, so that tensor cores need three tf32 products per f32 product.
  bool splits_f32() const { return type == DType::kF32 && !tf32; }
  // k_along_depth(): K is contiguous along its depth. v_along_width(): V is contiguous along its width. Q is always
  // contiguous along its depth.
  bool k_along_depth() const { return k.k == 1; }
  bool v_along_width() const { return v.k != 1 || n == 1; }
  // Returns the number of consecutive keys that are evenly spaced in memory, both in k and in v: the keys of a page, or
  // all keys if there are no pages.
  int64_t keys_in_line() const { return pages ? pages->keys : n; }
};

// The types of an attention besides those of its operands: the type of the weights and of the result.
struct AttentionTypes {
  DType weights, result;
};

// The target-specific part of scheduling attention. Stateless.
class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;

  // check_target() throws kUnsupportedOperator if the target has no attention kernels. check() throws
  // kUnsupportedOperator if the target has no kernel for this attention.
  virtual void check_target(const Target& target) const = 0;
  virtual void check(const AttentionDesc& attention, const AttentionTypes& types) const = 0;
  // True if kernels skip keys according to AttentionDesc::length.
  virtual bool reads_lengths() const = 0;
  // The number of elements of a result row that a kernel processes at a time.
  virtual int64_t lanes(const Target& target) const = 0;
  // Returns configurations with their predicted times. Never empty; the first configuration is the default.
  virtual std::vector<Config> candidates(const AttentionDesc& attention, const Target& target) const = 0;
  // Returns the predicted time of three separate kernels: for a product, the softmax and the second product.
  virtual double separate_us(const AttentionDesc& attention, const Target& target) const = 0;
  // Returns the name of the memory that holds the scores between the two products.
  virtual std::string_view scores_place() const = 0;
};

// Schedules an attention group (passes/fusion/README.md) as one kernel. `configs`: see schedule(). Throws
// kUnsupportedOperator.
ScheduledGroup schedule_attention(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                  ConfigSource* configs = nullptr);

// True if schedule_attention() supports a group and is expected to beat three separate kernels: for a product, the
// softmax and the second product. `reason` explains the answer in either case.
bool can_attend(const ir::Graph& graph, const ir::Group& group, const Target& target, std::string* reason);

}  // namespace heddle::schedule
