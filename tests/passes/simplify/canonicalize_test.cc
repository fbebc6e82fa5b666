#include <fmt/format.h>

#include "tests/passes/pass_test_util.h"

namespace heddle::passes {
namespace {

void canonical(std::string_view in, std::string_view out) {
  expect_ir(in, {"canonicalize"}, out);
}

TEST(Canonicalize, ArithmeticIdentitiesDisappear) {
  canonical(R"(graph(%x: f32[4]) {
      %zero = constant {value = f32[]{0}}
      %one = constant {value = f32[4]{1}}
      %z = broadcast(%zero) {shape = [4], dims = []}
      %a = add(%z, %x)
      %b = mul(%a, %one)
      %c = neg(%b)
      %d = neg(%c)
      %e = sub(%d, %z)
      return "y" = %e
    })",
            R"(graph(%x: f32[4]) {
      return "y" = %x
    })");
}

TEST(Canonicalize, PowersBecomeProductsAndRoots) {
  canonical(R"(graph(%x: f32[4]) {
      %two = constant {value = f32[4]{2}}
      %half = constant {value = f32[4]{0.5}}
      %a = pow(%x, %two)
      %b = pow(%a, %half)
      return "y" = %b
    })",
            R"(graph(%x: f32[4]) {
      %a = mul(%x, %x)
      %b = sqrt(%a)
      return "y" = %b
    })");
}

TEST(Canonicalize, DivisionsBecomeProducts) {
  canonical(R"(graph(%x: f32[2,8], %v: f32[2]) {
      %eight = constant {value = f32[]{8}}
      %e = broadcast(%eight) {shape = [2,8], dims = []}
      %a = div(%x, %e)
      %s = sqrt(%v)
      %b = broadcast(%s) {shape = [2,8], dims = [0]}
      %c = div(%a, %b)
      return "y" = %c
    })",
            R"(graph(%x: f32[2,8], %v: f32[2]) {
      %e = constant {value = f32[]{0.125}}
      %f = broadcast(%e) {shape = [2,8], dims = []}
      %a = mul(%x, %f)
      %s = rsqrt(%v)
      %b = broadcast(%s) {shape = [2,8], dims = [0]}
      %c = mul(%a, %b)
      return "y" = %c
    })");
}

// By a reciprocal that f32 may have no normal number for, nothing is multiplied.
TEST(Canonicalize, DivisionsByWhatMayBeTinyStay) {
  const auto quotient = [](const std::string& divisor) {
    return "graph(%x: f32[4,8], %v: f32[4]) {" + divisor +
           "%b = broadcast(%d) {shape = [4,8], dims = [0]} %y = div(%x, %b) return \"y\" = %y }";
  };
  const auto divides = [&](const std::string& divisor) {
    const std::string text = ir::print(run(quotient(divisor), {"canonicalize"}), {.origins = false});
    return text.find("div(%x") != std::string::npos;
  };
  const std::string norm = "%q = mul(%v, %v) %s = sqrt(%q) ";
  const auto with = [](const char* op, const char* number) {
    return fmt::format(
        "%c = constant {{value = f32[]{{{}}}}} %w = broadcast(%c) {{shape = [4], dims = []}} %d = {}(%s, %w) ", number,
        op);
  };
  EXPECT_TRUE(divides("%d = exp(%v) "));
  EXPECT_TRUE(divides("%d = add(%v, %v) "));
  EXPECT_TRUE(divides("%d = constant {value = f32[4]{1, 1e-40, 2, 3}} "));
  EXPECT_TRUE(divides(norm + with("max", "1e-40")));
  EXPECT_TRUE(divides("%e = cast(%v) {to = f64} %f = mul(%e, %e) %g = sqrt(%f) %d = cast(%g) {to = f32} "));
  EXPECT_FALSE(divides("%e = cast(%v) {to = f16} %g = sqrt(%e) %d = cast(%g) {to = f32} "));
  EXPECT_FALSE(divides("%d = sqrt(%v) "));
  EXPECT_FALSE(divides("%d = constant {value = f32[4]{1, -5, 2, 3}} "));
  EXPECT_FALSE(divides(norm + with("max", "1e-12")));
  EXPECT_FALSE(divides(norm + with("add", "1e-6")));
  const auto softmax = [](const char* shift) {
    return std::string(
               "graph(%x: f32[4,8], %z: f32[4]) { %m = reduce(%x) {dims = [1], kind = \"max\"} %b = broadcast(%") +
           shift +
           ") {shape = [4,8], dims = [0]} %d = sub(%x, %b) %e = exp(%d) "
           "%s = reduce(%e) {dims = [1], kind = \"sum\"} %t = broadcast(%s) {shape = [4,8], dims = [0]} "
           "%y = div(%e, %t) return \"y\" = %y }";
  };
  const auto products = [&](const char* shift) {
    return ir::print(run(softmax(shift), {"canonicalize"}), {.origins = false}).find(" = mul(") != std::string::npos;
  };
  EXPECT_TRUE(products("m"));
  EXPECT_FALSE(products("z"));
}

TEST(Canonicalize, DivisionKeepsItsRoundingInF64AndF16) {
  for (std::string dtype : {"f64", "f16"}) {
    const std::string text = "graph(%x: " + dtype + "[4]) { %c = constant {value = " + dtype +
                             "[4]{3}} %y = div(%x, %c) return \"y\" = %y }";
    canonical(text, text);
  }
}

TEST(Canonicalize, BroadcastsComeLast) {
  canonical(R"(graph(%x: f32[8], %y: f32[4,8]) {
      %a = broadcast(%x) {shape = [4,8], dims = [1]}
      %b = exp(%a)
      %c = mul(%b, %a)
      %d = add(%c, %y)
      return "y" = %d
    })",
            R"(graph(%x: f32[8], %y: f32[4,8]) {
      %b = exp(%x)
      %c = mul(%b, %x)
      %w = broadcast(%c) {shape = [4,8], dims = [1]}
      %d = add(%w, %y)
      return "y" = %d
    })");
}

TEST(Canonicalize, BroadcastOperandsHaveNoOnes) {
  canonical(R"(graph(%x: f32[8]) {
      %a = reshape(%x) {shape = [1,8,1,1]}
      %b = broadcast(%a) {shape = [2,8,3,3], dims = [0,1,2,3]}
      return "y" = %b
    })",
            R"(graph(%x: f32[8]) {
      %b = broadcast(%x) {shape = [2,8,3,3], dims = [1]}
      return "y" = %b
    })");
}

TEST(Canonicalize, KeptDimensionsOfReductionsDisappear) {
  canonical(R"(graph(%x: f32[2,8]) {
      %a = reduce(%x) {kind = "sum", dims = [1]}
      %b = reshape(%a) {shape = [2,1]}
      %c = constant {value = f32[]{0.125}}
      %d = broadcast(%c) {shape = [2,1], dims = []}
      %e = mul(%b, %d)
      %f = broadcast(%e) {shape = [2,8], dims = [0,1]}
      %y = sub(%x, %f)
      return "y" = %y
    })",
            R"(graph(%x: f32[2,8]) {
      %a = reduce(%x) {kind = "sum", dims = [1]}
      %c = constant {value = f32[]{0.125}}
      %d = broadcast(%c) {shape = [2], dims = []}
      %e = mul(%a, %d)
      %f = broadcast(%e) {shape = [2,8], dims = [0]}
      %y = sub(%x, %f)
      return "y" = %y
    })");
}

TEST(Canonicalize, LayoutChainsMerge) {
  canonical(R"(graph(%x: f32[2,3,4]) {
      %a = transpose(%x) {perm = [2,0,1]}
      %b = transpose(%a) {perm = [1,2,0]}
      %c = reshape(%b) {shape = [6,4]}
      %d = reshape(%c) {shape = [24]}
      %e = slice(%d) {starts = [2], limits = [20], strides = [3]}
      %f = slice(%e) {starts = [1], limits = [5], strides = [2]}
      return "y" = %f
    })",
            R"(graph(%x: f32[2,3,4]) {
      %d = reshape(%x) {shape = [24]}
      %f = slice(%d) {starts = [5], limits = [17], strides = [6]}
      return "y" = %f
    })");
}

TEST(Canonicalize, TransposeOfOnesIsAReshape) {
  canonical(R"(graph(%x: f32[1,7,1,5]) {
      %a = transpose(%x) {perm = [1,0,3,2]}
      return "y" = %a
    })",
            R"(graph(%x: f32[1,7,1,5]) {
      %a = reshape(%x) {shape = [7,1,5,1]}
      return "y" = %a
    })");
}

TEST(Canonicalize, ConstantIndicesAreASlice) {
  canonical(R"(graph(%x: f32[3,8]) {
      %i = constant {value = i64[]{-1}}
      %j = constant {value = i64[3]{1, 3, 5}}
      %a = gather(%x, %i) {dim = 0}
      %b = gather(%a, %j) {dim = 0}
      return "y" = %b
    })",
            R"(graph(%x: f32[3,8]) {
      %a = slice(%x) {starts = [2,0], limits = [3,8], strides = [1,1]}
      %b = reshape(%a) {shape = [8]}
      %c = slice(%b) {starts = [1], limits = [6], strides = [2]}
      return "y" = %c
    })");
}

TEST(Canonicalize, AnIndexOutsideItsAxisStaysAnError) {
  const std::string_view text = R"(graph(%x: f32[3]) {
      %i = constant {value = i64[]{3}}
      %a = gather(%x, %i) {dim = 0}
      return "y" = %a
    })";
  canonical(text, text);
}

TEST(Canonicalize, ReductionsMerge) {
  canonical(R"(graph(%x: f32[2,1,4,5]) {
      %a = reduce(%x) {kind = "sum", dims = [1,3]}
      %b = reduce(%a) {kind = "sum", dims = [1]}
      return "y" = %b
    })",
            R"(graph(%x: f32[2,1,4,5]) {
      %a = reshape(%x) {shape = [2,4,5]}
      %b = reduce(%a) {kind = "sum", dims = [1,2]}
      return "y" = %b
    })");
}

TEST(Canonicalize, GlobalPoolingIsAReduction) {
  canonical(R"(graph(%x: f32[1,8,7,7]) {
      %a = window_reduce(%x) {kind = "sum", window = [1,1,7,7], strides = [1,1,1,1], low = [0,0,0,0], high = [0,0,0,0], dilations = [1,1,1,1]}
      return "y" = %a
    })",
            R"(graph(%x: f32[1,8,7,7]) {
      %a = reduce(%x) {kind = "sum", dims = [2,3]}
      %b = reshape(%a) {shape = [1,8,1,1]}
      return "y" = %b
    })");
}

TEST(Canonicalize, DimensionsThatEveryWindowSpansAreReducedOnce) {
  canonical(R"(graph(%x: f32[2,8,6,6]) {
      %a = window_reduce(%x) {kind = "max", window = [1,1,13,11], strides = [1,1,1,1], low = [0,0,6,5], high = [0,0,6,5], dilations = [1,1,1,1]}
      return "y" = %a
    })",
            R"(graph(%x: f32[2,8,6,6]) {
      %a = reduce(%x) {kind = "max", dims = [2,3]}
      %b = broadcast(%a) {shape = [2,8,6,6], dims = [0,1]}
      return "y" = %b
    })");
  // Columns are spanned, rows are not.
  canonical(R"(graph(%x: f32[2,8,6,40]) {
      %a = window_reduce(%x) {kind = "max", window = [1,1,10,13], strides = [1,1,2,1], low = [0,0,4,6], high = [0,0,4,6], dilations = [1,1,1,1]}
      return "y" = %a
    })",
            R"(graph(%x: f32[2,8,6,40]) {
      %a = reduce(%x) {kind = "max", dims = [2]}
      %b = reshape(%a) {shape = [2,8,1,40]}
      %c = window_reduce(%b) {kind = "max", window = [1,1,1,13], strides = [1,1,1,1], low = [0,0,0,6], high = [0,0,0,6], dilations = [1,1,1,1]}
      %d = reshape(%c) {shape = [2,8,40]}
      %e = broadcast(%d) {shape = [2,8,3,40], dims = [0,1,3]}
      return "y" = %e
    })");
  const std::string_view kept = R"(graph(%x: f32[2,8,6,6]) {
      %a = window_reduce(%x) {kind = "max", window = [1,1,9,6], strides = [1,1,1,1], low = [0,0,4,3], high = [0,0,4,2], dilations = [1,1,1,1]}
      return "y" = %a
    })";
  canonical(kept, kept);
}

TEST(Canonicalize, DotNamesTransposedDimensions) {
  canonical(R"(graph(%q: f32[2,5,3,8], %k: f32[2,6,3,8]) {
      %a = transpose(%q) {perm = [0,2,1,3]}
      %b = transpose(%k) {perm = [0,2,3,1]}
      %c = dot(%a, %b) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]}
      return "y" = %c
    })",
            R"(graph(%q: f32[2,5,3,8], %k: f32[2,6,3,8]) {
      %c = dot(%q, %k) {lhs_batch = [0,2], rhs_batch = [0,2], lhs_contract = [3], rhs_contract = [3]}
      return "y" = %c
    })");
}

TEST(Canonicalize, ScalesOfSlicesGoBehindTheDot) {
  canonical(R"(graph(%x: f32[5,2,8]) {
      %a = slice(%x) {starts = [0,0,0], limits = [5,1,8], strides = [1,1,1]}
      %c = constant {value = f32[5,1,8]{0.5}}
      %b = mul(%a, %c)
      %q = reshape(%b) {shape = [5,8]}
      %k1 = slice(%x) {starts = [0,1,0], limits = [5,2,8], strides = [1,1,1]}
      %k2 = mul(%k1, %c)
      %k = reshape(%k2) {shape = [5,8]}
      %d = dot(%q, %k) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}
      return "y" = %d
    })",
            R"(graph(%x: f32[5,2,8]) {
      %a = slice(%x) {starts = [0,0,0], limits = [5,1,8], strides = [1,1,1]}
      %k1 = slice(%x) {starts = [0,1,0], limits = [5,2,8], strides = [1,1,1]}
      %q = reshape(%a) {shape = [5,8]}
      %k = reshape(%k1) {shape = [5,8]}
      %d = dot(%q, %k) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}
      %c = constant {value = f32[]{0.25}}
      %b = broadcast(%c) {shape = [5,5], dims = []}
      %y = mul(%d, %b)
      return "y" = %y
    })");
}

TEST(Canonicalize, ScalesOfNarrowSlicesAreThoseOfWideSums) {
  canonical(R"(graph(%x: f16[5,2,8], %y: f16[6,8]) {
      %a = slice(%x) {starts = [0,0,0], limits = [5,1,8], strides = [1,1,1]}
      %c = constant {value = f16[5,1,8]{0.5}}
      %b = mul(%a, %c)
      %q = reshape(%b) {shape = [5,8]}
      %d = dot(%q, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}
      return "y" = %d
    })",
            R"(graph(%x: f16[5,2,8], %y: f16[6,8]) {
      %a = slice(%x) {starts = [0,0,0], limits = [5,1,8], strides = [1,1,1]}
      %q = reshape(%a) {shape = [5,8]}
      %d = dot(%q, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1], out = f32}
      %c = constant {value = f32[]{0.5}}
      %b = broadcast(%c) {shape = [5,6], dims = []}
      %m = mul(%d, %b)
      %n = cast(%m) {to = f16}
      return "y" = %n
    })");
}

TEST(Canonicalize, BatchesThatBothOperandsMergeStayDimensions) {
  canonical(R"(graph(%x: f32[3,2,5,8], %k: f32[1,3,2,6,8]) {
      %q = reshape(%x) {shape = [6,5,8]}
      %r = reshape(%k) {shape = [6,6,8]}
      %d = dot(%q, %r) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}
      return "y" = %d
    })",
            R"(graph(%x: f32[3,2,5,8], %k: f32[1,3,2,6,8]) {
      %r = reshape(%k) {shape = [3,2,6,8]}
      %d = dot(%x, %r) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [3]}
      %y = reshape(%d) {shape = [6,5,6]}
      return "y" = %y
    })");
  const std::string_view kept = R"(graph(%x: f32[3,2,5,8], %k: f32[2,3,6,8]) {
      %q = reshape(%x) {shape = [6,5,8]}
      %r = reshape(%k) {shape = [6,6,8]}
      %d = dot(%q, %r) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}
      return "y" = %d
    })";
  canonical(kept, kept);
}

TEST(Canonicalize, RepeatedWeightsMakeOnePlainProduct) {
  canonical(R"(graph(%x: f32[4,5,8], %w: f32[8,3]) {
      %b = broadcast(%w) {shape = [4,8,3], dims = [1,2]}
      %c = dot(%x, %b) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
      return "y" = %c
    })",
            R"(graph(%x: f32[4,5,8], %w: f32[8,3]) {
      %c = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]}
      return "y" = %c
    })");
}

TEST(Canonicalize, PadsJoinConvolutionsAndPooling) {
  canonical(R"(graph(%x: f32[1,3,8,8], %w: f32[4,3,3,3]) {
      %zero = constant {value = f32[]{0}}
      %low = constant {value = f32[]{-inf}}
      %p = pad(%x, %zero) {low = [0,0,1,2], high = [0,0,3,0], mode = "constant"}
      %c = conv(%p, %w) {strides = [1,1], low = [0,0], high = [0,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"}
      %q = pad(%c, %low) {low = [0,0,1,1], high = [0,0,1,1], mode = "constant"}
      %m = window_reduce(%q) {kind = "max", window = [1,1,2,2], strides = [1,1,2,2], low = [0,0,0,0], high = [0,0,0,0], dilations = [1,1,1,1]}
      return "y" = %m
    })",
            R"(graph(%x: f32[1,3,8,8], %w: f32[4,3,3,3]) {
      %c = conv(%x, %w) {strides = [1,1], low = [1,2], high = [3,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"}
      %m = window_reduce(%c) {kind = "max", window = [1,1,2,2], strides = [1,1,2,2], low = [0,0,1,1], high = [0,0,1,1], dilations = [1,1,1,1]}
      return "y" = %m
    })");
}

TEST(Canonicalize, SumsOfSeparateRangesAreConcatenations) {
  // The gradients of slices may come in any order and may have zeros between them.
  expect_ir(R"(graph(%x: f32[2,3], %y: f32[2,1], %z: f32[2,9]) {
      %zero = constant {value = f32[]{0}}
      %zeros = broadcast(%zero) {shape = [2,9], dims = []}
      %mask = constant {value = bool[9]{0,0,0,0,0,1,1,0,0}}
      %m = broadcast(%mask) {shape = [2,9], dims = [1]}
      %a = pad(%x, %zero) {low = [0,0], high = [0,6], mode = "constant"}
      %b = pad(%y, %zero) {low = [0,8], high = [0,0], mode = "constant"}
      %c = select(%m, %z, %zeros)
      %d = add(%a, %b)
      %e = add(%d, %c)
      return "s" = %e
    })",
            {"canonicalize", "dce"}, R"(graph(%x: f32[2,3], %y: f32[2,1], %z: f32[2,9]) {
      %zero = constant {value = f32[]{0}}
      %two = broadcast(%zero) {shape = [2,2], dims = []}
      %c = slice(%z) {starts = [0,5], limits = [2,7], strides = [1,1]}
      %zero1 = constant {value = f32[]{0}}
      %one = broadcast(%zero1) {shape = [2,1], dims = []}
      %e = concat(%x, %two, %c, %one, %y) {dim = 1}
      return "s" = %e
    })");
  // Ranges that overlap are added.
  const std::string both = R"(graph(%x: f32[2,3], %y: f32[2,4]) {
      %zero = constant {value = f32[]{0}}
      %a = pad(%x, %zero) {low = [0,0], high = [0,3], mode = "constant"}
      %b = pad(%y, %zero) {low = [0,2], high = [0,0], mode = "constant"}
      %s = add(%a, %b)
      return "s" = %s
    })";
  canonical(both, both);
}

TEST(Canonicalize, CastsThroughWiderTypesMerge) {
  canonical(R"(graph(%x: f16[4], %y: f32[4]) {
      %a = cast(%x) {to = f32}
      %b = cast(%a) {to = f16}
      %c = cast(%y) {to = f16}
      %d = cast(%c) {to = f32}
      return "same" = %b, "rounded" = %d
    })",
            R"(graph(%x: f16[4], %y: f32[4]) {
      %c = cast(%y) {to = f16}
      %d = cast(%c) {to = f32}
      return "same" = %x, "rounded" = %d
    })");
}

TEST(Canonicalize, AbsOfNegKeepsUnsignedWrapping) {
  canonical(R"(graph(%x: i8[4], %y: u8[4]) {
      %a = neg(%x)
      %b = abs(%a)
      %c = neg(%y)
      %d = abs(%c)
      return "signed" = %b, "unsigned" = %d
    })",
            R"(graph(%x: i8[4], %y: u8[4]) {
      %b = abs(%x)
      %c = neg(%y)
      %d = abs(%c)
      return "signed" = %b, "unsigned" = %d
    })");
}

TEST(Canonicalize, ConstantConditionsSelect) {
  canonical(R"(graph(%x: f32[4], %y: f32[4]) {
      %t = constant {value = bool[4]{1}}
      %a = select(%t, %x, %y)
      return "y" = %a
    })",
            R"(graph(%x: f32[4], %y: f32[4]) {
      return "y" = %x
    })");
}

// The gradient of 1x1 filters: batch and channels have changed places.
TEST(Canonicalize, AConvolutionWithOneOutputPixelIsAProduct) {
  canonical(R"(graph(%x: f32[3,2,9,7], %w: f32[5,2,5,4]) {
      %y = conv(%x, %w) {strides = [1,1], low = [0,0], high = [0,0], dilations = [2,2], lhs_dilations = [1,1], groups = 1, layout = "nchw"}
      return "y" = %y
    })",
            R"(graph(%x: f32[3,2,9,7], %w: f32[5,2,5,4]) {
      %s = slice(%x) {starts = [0,0,0,0], limits = [3,2,9,7], strides = [1,1,2,2]}
      %d = dot(%s, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1,2,3], rhs_contract = [1,2,3]}
      %y = reshape(%d) {shape = [3,5,1,1]}
      return "y" = %y
    })");
  const auto same = [](const std::string& text, bool is_product) {
    const ir::Graph before = ir::parse(text),
                    after = run_passes(before, std::vector<std::string>{"canonicalize"}, {Target::cuda_h200()});
    const bool has = std::any_of(after.nodes().begin(), after.nodes().end(),
                                 [](const ir::Node& node) { return node.op == ir::Op::kDot; });
    EXPECT_EQ(has, is_product) << text;
    expect_same(before, after);
  };
  const auto conv = [](const char* x, const char* w, const char* attributes) {
    return fmt::format("graph(%x: f32{}, %w: f32{}) {{ %y = conv(%x, %w) {{{}}}\n return \"y\" = %y }}", x, w,
                       attributes);
  };
  const char* kPlain =
      R"(strides = [3], low = [0], high = [-1], dilations = [1], lhs_dilations = [1], groups = 1, layout = "nhwc")";
  same(conv("[2,7,3]", "[4,3,5]", kPlain), true);   // the last pixels are in no window
  same(conv("[2,9,3]", "[4,3,5]", kPlain), false);  // two places
  same(
      conv(
          "[2,7,3]", "[4,3,1]",
          R"(strides = [7], low = [0], high = [0], dilations = [1], lhs_dilations = [1], groups = 1, layout = "nhwc")"),
      false);
  same(
      conv(
          "[2,4,9]", "[6,2,9]",
          R"(strides = [1], low = [0], high = [0], dilations = [1], lhs_dilations = [1], groups = 2, layout = "nchw")"),
      false);
  same(
      conv(
          "[2,4,8]", "[6,4,9]",
          R"(strides = [1], low = [1], high = [0], dilations = [1], lhs_dilations = [1], groups = 1, layout = "nchw")"),
      false);
}

}  // namespace
}  // namespace heddle::passes
