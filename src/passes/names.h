#pragma once

#include "ir/graph.h"

namespace heddle::passes {

// Names from ir that most passes use.
using ir::Attrs;
using ir::Ints;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::OpClass;
using ir::ValueId;

}  // namespace heddle::passes
