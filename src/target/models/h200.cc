// NVIDIA H200 SXM: fitted to kernels that were measured on one with CUDA 13.0. bench/gemm_model.py says how good the
// choice of products by wgmma is.
#include "target/cuda_model.h"

namespace heddle {
namespace {

constexpr CudaModel kModel = {
    .chip = {.sms = 132,
             .clock_ghz = 1.7,
             .copy_tbps = 3.94,
             .read_tbps = 4.64,
             .sm_gbps = 75,
             .column_gbps = 45,
             .cluster_barrier_us = 0.25,
             .graph_boundary_us = 0.61,
             .cluster_turn_us = 2,
             .exchange_per_us = 40e3,
             .tensor_per_cycle = 2048,
             .mma_per_cycle = 1250,
             .f64_per_cycle = 64,
             .sustained_tflops = 790,
             .exponentials_per_us = 27.2e3},
    .wgmma = {.shared_per_cycle = 125,
              .l2_per_cycle = 46,
              .l2_alone_share = 0.44,
              .arriving_per_cycle = 98,
              .windows_per_cycle = 57,
              .windows_share = 0.68,
              .first_load_us = 1.95,
              .cluster_us = 0.8,
              .reduce_us = 2.7,
              .part_us = 0.06,
              .split_reduce_us = 6.8,
              .windows_reduce_us = 5.5,
              .stream_us = 3.5,
              .repack_us = 1.7,
              .repack_per_us = 3.9e6,
              .memory_per_us = 4.3e6,
              .wave_per_us = 3.5e6,
              .partial_per_us = 5.5e6,
              .full_load = 0.86},
    .cluster_split = {.clock_ghz = 1.85,
                      .memory_per_us = 3.6e6,
                      .streamed_per_us = 4.1e6,
                      .classed_per_us = 3.2e6,
                      .copied_per_us = 4e6,
                      .l2_per_us = 7.5e6,
                      .partial_per_us = 5.5e6,
                      .first_load_us = 2.35,
                      .first_view_us = 2.0,
                      .pair_us = 0.05,
                      .cluster_us = 0.2,
                      .reduce_us = 2.8,
                      .copies_us = 5.0,
                      .wave_us = 2.5,
                      .odd_columns_us = 0.4},
    .unaligned = {.clock_ghz = 1.75,
                  .memory_per_us = 2.12e6,
                  .l2_per_us = 3.9e6,
                  .arriving_per_us = 46e3,
                  .alone_per_us = 15e3,
                  .latency_us = 1.3,
                  .first_load_us = 1.65,
                  .cluster_us = 0.9,
                  .fetch_us = 1.5e-3,
                  .scattered_us = 1.3e-6},
    .direct = {.memory_per_us = 2.5e6,
               .arriving_per_us = 55e3,
               .first_load_us = 1.15,
               .spread_us = 0.25,
               .second_us = 0.2,
               .piece_us = 0.01,
               .parts_us = 0.1,
               .sum_us = 0.0022},
    .mma = {.memory_per_us = 4.3e6,
            .shared_per_cycle = 128,
            .l2_per_cycle = 48,
            .partial_per_us = 5.5e6,
            .first_load_us = 2.2,
            .tile_us = 1.5,
            .skinny_load_us = 2.2,
            .reduce_us = 2.8,
            .late_weights_us = 1.3},
    .attention = {.l2_per_cycle = 24, .first_load_us = 2, .latency_us = 2.5, .operations_per_us = 500e6},
    .recurrent = {.clock_ghz = 1.98,
                  .cluster_cycles = 550,
                  .barrier_cycles = 40,
                  .load_cycles = 30,
                  .shuffle_cycles = 28,
                  .launch_us = 2,
                  .start_us = 2,
                  .f32_tflops = 30,
                  .f16_tflops = 200},
    .window = {.l2_per_cycle = 21, .latency_cycles = 460, .launch_cycles = 4600}};

// `heddle devices --calibrate`, the middle of three runs.
constexpr CudaRates kRates = {
    .clock_ghz = 1.71, .memory_tbps = 3.85, .l2_tbps = 7.04, .tensor_tflops = 894, .boundary_us = 0.517};

}  // namespace

const KnownChip& h200() {
  static const KnownChip chip = {.name = "NVIDIA H200",
                                 .architecture = 90,
                                 .facts = {.sms = 132, .boost_ghz = 1.98, .memory_tbps = 4.8, .tensor_per_cycle = 2048},
                                 .model = kModel,
                                 .rates = kRates};
  return chip;
}

}  // namespace heddle
