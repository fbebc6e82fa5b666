#pragma once

#include "schedule/product/contraction.h"
#include "schedule/product/cuda/desc.h"
#include "schedule/region/cuda/stitch.h"

namespace heddle::codegen {

// Names of the schedule namespace that most files of codegen use.
using schedule::Atom;
using schedule::AttentionDesc;
using schedule::CachedValue;
using schedule::Combine;
using schedule::Config;
using schedule::ContractionDesc;
using schedule::CudaReduction;
using schedule::CudaStage;
using schedule::CudaStitchDesc;
using schedule::Epilogue;
using schedule::Expr;
using schedule::ExprId;
using schedule::ExprPool;
using schedule::GridDim;
using schedule::Index;
using schedule::KernelDesc;
using schedule::OperandView;
using schedule::Piece;
using schedule::Reduction;
using schedule::Stage;
using schedule::Store;
using schedule::ThreadLayout;
using schedule::VarId;
using schedule::WindowDesc;

}  // namespace heddle::codegen
