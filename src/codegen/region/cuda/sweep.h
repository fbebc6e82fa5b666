#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/scalar/scalar.h"
#include "schedule/region/cuda/launch.h"

namespace heddle::codegen {

// Writes the sweeps of a stitch kernel: each as two nested walks of a thread over its points.
class CudaSweepWriter {
 public:
  CudaSweepWriter(const schedule::CudaStitchDesc& body, Writer& out);

  ScalarEmitter& emitter() { return emitter_; }
  // Variables that are bound outside of sweeps.
  uint64_t bound = 0;
  // Written once after a stage's points and before its threads combine what they have.
  std::function<void()> between;
  bool has_live = false;  // some teams of a warp have no iteration: they compute but do not store

  const schedule::SharedMemory memory;

  // A place in the block's shared memory.
  static std::string shared(int64_t offset) { return sum("raw_shared", fmt::format("{}", offset)); }

  // Registers that live across sweeps: running results of the serial loop; kept values.
  void declare_carried();
  void declare_keeps(const std::vector<schedule::CudaStage>& stages);
  void declare_ahead();
  void write(const schedule::CudaStage& stage);
  // When the serial loop has ended: the block as one team combines what its teams carried.
  void write_after(const schedule::CudaStage& stage);

 private:
  // Where a thread is in a sweep: the positions of its outer and inner walk as expressions, when they are valid ("":
  // always), and the loops that they make up.
  struct Point {
    std::string outer, inner, outer_valid, inner_valid;
    // The names of the steps of the outer and inner walk, and of the joint position in the outer one.
    const char *outer_step = "k0", *inner_step = "k1";
    std::string outer_position = "q0";
    size_t outer_first = 0, outer_last = 0, inner_first = 0, inner_last = 0;
    int team = 32;
  };

  std::string index_type() const { return body_.wide_index ? "int64_t" : "int"; }
  const schedule::GridDim* blocked(schedule::VarId v) const;
  std::string value_type(const schedule::CudaReduction& r) const;
  std::string combiner(const schedule::CudaReduction& r) const;
  std::string accumulator_type(const schedule::CudaReduction& r, int width) const;
  std::string result_type(const schedule::CudaReduction& r, int width) const;
  static std::string result_name(const schedule::CudaReduction& r);
  std::string slot(size_t number) const;
  std::string kept(const schedule::CachedValue& keep) const;
  void declare_together(const std::vector<std::pair<std::string, std::string>>& variables);
  void sync(int team);
  void begin_lanes(const schedule::ThreadLayout& layout);
  void end_lanes();
  void decode(const schedule::ThreadLayout& layout, size_t first, size_t last, const std::string& position);
  void forget(const schedule::ThreadLayout& layout, size_t first, size_t last);
  std::string bounds_of(const schedule::ThreadLayout& layout, size_t first, size_t last) const;
  void hoist(const schedule::CudaStage& stage, uint64_t known);
  void transpose(const schedule::CudaStage& stage);
  void declare_results(const schedule::CudaStage& stage);
  void write_walks(const schedule::CudaStage& stage, int team);
  void write_inner(const schedule::CudaStage& stage, const Point& point);
  enum class Pass : uint8_t { kAll, kCopy, kUse };  // kCopy: only what goes to shared memory by itself
  void write_steps(const schedule::CudaStage& stage, const Point& point, int64_t from, int64_t to, Pass pass);
  const schedule::CachedValue* copied(const schedule::CudaStage& stage);
  void write_copies(const schedule::CudaStage& stage, const Point& point);
  std::string place_of(const schedule::CudaStage& stage, const schedule::CachedValue& keep) const;
  void write_body(const schedule::CudaStage& stage, Pass pass);
  void write_tail(const schedule::CudaStage& stage);
  void write_stores(const schedule::CudaStage& stage);
  void begin_cta_group();
  std::string next_cta_group_barrier();
  void finish_team(const schedule::CudaStage& stage, const schedule::CudaReduction& r);
  void finish_group(const schedule::CudaStage& stage, const schedule::CudaReduction& r, const Point& point);
  void finish_column(const schedule::CudaStage& stage, const schedule::CudaReduction& r, const Point& point);
  void store_column(const schedule::CudaStage& stage, const Point& point, const schedule::Index& at, uint32_t scratch,
                    const std::string& value, const std::string& which);
  void write_scan(const schedule::CudaStage& stage);
  void name_keeps(const schedule::CudaStage& stage);
  std::string number(schedule::ExprId e, DType dtype);
  int64_t steps(const schedule::ThreadLayout& layout) const {
    return body_.outer_steps(layout) * body_.inner_steps(layout);
  }
  const schedule::ThreadLayout& carried_spread() const;

  const schedule::CudaStitchDesc& body_;
  Writer& out_;
  ScalarEmitter emitter_;
  size_t next_slot_ = 0;
  int64_t cta_group_used_ = 0, next_cta_group_barrier_ = 0;
  bool cta_group_began_ = false;
  bool columns_dirty_ = false;  // a block's columns were combined since the last barrier
};

}  // namespace heddle::codegen
