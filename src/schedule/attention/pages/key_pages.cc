#include "schedule/attention/pages/key_pages.h"

#include <fmt/format.h>

#include <limits>

#include "schedule/attention/chain.h"

namespace heddle::schedule {
namespace {

// Without the sequences, along which an operand in pages does not move; pages in front.
void place_pages(OperandView& o, int64_t sequences, int64_t pool, int64_t stride) {
  if (sequences > 1) {
    o.batch.front().first /= sequences;  // neighbours along which nothing moves are joined
    if (o.batch.front().first == 1) o.batch.erase(o.batch.begin());
  }
  o.batch.insert(o.batch.begin(), {pool, stride});
}

}  // namespace

void set_pages(AttentionDesc& desc, const AttentionForm& form, const AttentionValues& values) {
  if (!form.pages) return;
  const AttentionForm::Pages& p = *form.pages;
  constexpr int64_t kStep = 16;  // of tiles of keys
  if (p.keys % kStep != 0) {
    refuse_attention(fmt::format("its pages have {} keys, which is no multiple of {}", p.keys, kStep));
  }
  KeyPages pages{p.keys, p.pool, values.operand(p.table), values.dtype(p.table), p.offset, 0, p.entry, 1, p.clamps};
  int64_t sequences = 1;
  for (const AttentionForm::Batch& b : form.batch) {
    if (b.extent == 1) continue;
    if (b.table == 0) {
      pages.heads *= b.extent;
      continue;
    }
    if (b.k != 0 || b.v != 0) refuse_attention("its sequences have pools of their own");
    if (pages.heads > 1) refuse_attention("its heads lie around its sequences");
    if (sequences > 1 && pages.sequence != b.extent * b.table) {
      refuse_attention("the lines of its table of pages have several strides");
    }
    sequences *= b.extent;
    pages.sequence = b.table;
  }
  if (p.pool * pages.heads > std::numeric_limits<int32_t>::max()) refuse_attention("its pool has too many pages");
  place_pages(desc.k, sequences, p.pool, p.k);
  place_pages(desc.v, sequences, p.pool, p.v);
  desc.v.depth = p.keys;
  desc.pages = pages;
}

bool fits_pages(const AttentionDesc& a, int64_t tile_n) {
  if (!a.pages || a.pages->keys % tile_n == 0) return true;
  constexpr int64_t kMostPages = 8;  // of a tile: a thread has their numbers in registers
  if (tile_n % a.pages->keys != 0 || tile_n / a.pages->keys > kMostPages) return false;
  const auto along_k = [](const OperandView& o, int64_t lines) { return traits_of(o, lines, 1, o.dtype).along_k; };
  return along_k(a.k, a.keys_in_line()) && !along_k(a.v, a.width);
}

}  // namespace heddle::schedule
