// Every arithmetic rewrite at the edges of its domain: what canonicalize makes of a form gives what the form gives,
// step by step in its type. Where a zero's sign is left open (docs/design/ir.md) and where f32 may round elsewhere is
// stated.
#include <fmt/format.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/passes/pass_test_util.h"

namespace heddle::passes {
namespace {

struct Form {
  const char* text;  // statements from %x to %y; # stands for the type, {c} for a splat of c
  const char* types = "f32 f16 bf16 f64";
  int ulps = 0;
  bool any_zero = false;  // either zero will do
};

constexpr const char* kFloats = "f32 f16 bf16 f64";
constexpr const char* kSigned = "i8 i32 i64";
constexpr const char* kInts = "i8 i32 i64 u8 u32 u64";
constexpr const char* kAll = "f32 f16 bf16 f64 i8 i32 i64 u8 u32 u64";

const Form kForms[] = {
    // Sums.
    {"%y = add(%x, {0})", kFloats, 0, true},
    {"%y = add(%x, {-0.0})", kFloats},
    {"%y = add(%x, {0})", kInts},
    {"%n = neg(%z) %y = add(%x, %n)", kAll},
    {"%n = neg(%x) %y = add(%n, %z)", kAll},
    {"%n = neg(%x) %y = add(%n, {3})", kAll},
    {"%y = sub(%x, {0})", kAll},
    {"%y = sub({0}, %x)", kFloats, 0, true},
    {"%y = sub({0}, %x)", kInts},
    {"%y = sub(%x, {3})", kAll},
    {"%n = neg(%z) %y = sub(%x, %n)", kAll},
    {"%y = sub(%x, %x)", kAll},
    // Products.
    {"%y = mul(%x, {1})", kAll},
    {"%y = mul({1}, %x)", kAll},
    {"%y = mul(%x, {-1})", kFloats},
    {"%y = mul(%x, {-1})", kSigned},
    {"%y = mul(%x, {0})", kAll},
    {"%n = neg(%x) %y = mul(%n, {3})", kAll},
    {"%n = neg(%x) %y = mul(%n, {-0.0})", kFloats},
    {"%m = mul(%x, {3}) %y = mul(%m, {5})", kAll, 1},
    {"%m = mul(%x, {0.3}) %y = mul(%m, {0.7})", kFloats, 1},
    {"%m = mul(%x, {1e20}) %y = mul(%m, {1e-20})", "f32 f64"},
    {"%m = mul(%x, {0.25}) %y = mul(%m, {4})", kFloats},
    {"%m = mul(%x, {1e-20}) %y = mul(%m, {1e20})", "f32 f64"},
    {"%m = mul(%x, {1e-30}) %y = mul(%m, {1e-30})", "f32 f64"},
    // Quotients.
    {"%y = div(%x, {1})", kAll},
    {"%y = div(%x, {3})", kAll, 1},
    {"%y = div(%x, {-8})", kFloats},
    {"%y = div(%x, {-1})", kSigned},
    {"%y = div(%x, {0})", kAll},
    {"%y = div(%x, {1e-40})", "f32 f64"},
    {"%y = div(%x, {0x1p127})", "f32 f64"},
    {"%y = div(%x, {6e-8})", "f16"},
    {"%y = div(%x, {32768})", "f16 bf16"},
    {"%y = div(%x, %x)", kAll},
    {"%s = sqrt(%z) %y = div(%x, %s)", kFloats, 2},
    {"%s = sqrt(%x) %y = div({1}, %s)", kFloats, 2},
    {"%s = sqrt(%x) %y = mul(%s, %s)", kFloats},
    {"%e = abs(%x) %s = sqrt(%e) %b = reshape(%s) {shape = [N,1]} %w = broadcast(%b) {shape = [N,4], dims = [0,1]} "
     "%v = broadcast(%x) {shape = [N,4], dims = [0]} %t = abs(%v) %u = add(%t, %w) %y = div(%u, %w)",
     kFloats, 2},
    {"%y = rem(%x, {3})", kAll},
    {"%y = mod(%x, {-3})", "f32 f64 i8 i32 i64"},
    {"%y = rem(%x, {-1})", kSigned},
    // Powers.
    {"%y = pow(%x, {0})", kFloats},
    {"%y = pow(%x, {1})", kFloats},
    {"%y = pow(%x, {2})", kFloats},
    {"%y = pow(%x, {3})", kFloats, 2},
    {"%y = pow(%x, {0.5})", kFloats},
    {"%y = pow(%x, {-0.5})", kFloats, 1},
    {"%y = pow(%x, {-1})", kFloats},
    {"%y = pow(%x, {0.25})", kFloats},
    {"%m = mul(%x, %x) %y = pow(%m, {0.5})", kFloats},
    {"%m = mul(%x, %x) %y = pow(%m, {-0.5})", kFloats, 1},
    {"%m = abs(%x) %y = pow(%m, {-0.5})", kFloats, 1},
    {"%m = exp(%x) %y = pow(%m, {0.5})", kFloats},
    {"%m = max(%x, {0}) %y = pow(%m, {-0.5})", kFloats, 1},
    {"%m = add(%x, {0}) %y = pow(%m, {-0.5})", kFloats, 1},
    {"%y = pow(%x, {2})", kInts},
    {"%y = pow(%x, {3})", kInts},
    // Functions of functions.
    {"%n = neg(%x) %y = neg(%n)", kAll},
    {"%n = not(%x) %y = not(%n)", kInts},
    {"%n = abs(%x) %y = abs(%n)", kAll},
    {"%n = neg(%x) %y = abs(%n)", kAll},
    {"%n = sign(%x) %y = sign(%n)", kAll},
    {"%n = floor(%x) %y = floor(%n)", kFloats},
    {"%n = ceil(%x) %y = ceil(%n)", kFloats},
    {"%n = round(%x) %y = round(%n)", kFloats},
    {"%n = trunc(%x) %y = trunc(%n)", kFloats},
    {"%l = log(%x) %y = exp(%l)", kFloats},
    {"%l = exp(%x) %y = log(%l)", kFloats},
    // The larger and the smaller, logic, choices.
    {"%y = max(%x, %x)", kAll},
    {"%y = min({3}, %x)", kAll},
    {"%m = max(%x, {-2}) %y = min(%m, {2})", "f32 f16 i8 i32"},
    {"%y = and(%x, %x)", kInts},
    {"%y = or(%x, {0})", kInts},
    {"%y = xor(%x, %x)", kInts},
    {"%c = lt(%x, %z) %y = select(%c, %x, %x)", kAll},
    {"%c = lt(%x, %z) %d = not(%c) %y = select(%d, %x, %z)", kAll},
    {"%c = lt(%x, {1}) %n = and(%c, %c) %d = not(%n) %y = select(%d, {1}, %x)", kAll},
    {"%y = shl(%x, {1})", kInts},
    {"%y = shr(%x, {7})", kInts},
};

// To another type and back, or on: every pair of these is tried.
constexpr const char* kTypes[] = {"f64", "f32", "f16", "bf16", "f8e4m3", "i64",
                                  "i32", "i16", "i8",  "u64",  "u8",     "bool"};

std::vector<double> edges(DType type) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const bool f64 = type == DType::kF64, f32 = type == DType::kF32, bf16 = type == DType::kBF16;
  const double most = f64 ? std::numeric_limits<double>::max() : f32 ? FLT_MAX : bf16 ? 0x1.fep127 : 65504;
  const double normal = f64 ? DBL_MIN : f32 || bf16 ? FLT_MIN : 0x1p-14;
  const double tiny = f64 ? 0x1p-1074 : f32 ? 0x1p-149 : bf16 ? 0x1p-133 : 0x1p-24;
  std::vector<double> values = {0.0, kInf,  NAN,  most, most / 2, normal, normal - tiny, tiny,      3 * tiny,
                                1,   2,     3,    0.5,  7,        0.1,    2.5,           1.5,       40,
                                300, 65000, 1e-3, 1e19, 1e-21,    1e30,   1e-30,         1 + 0x1p-7};
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  for (double& v : values) v = round_to(type, v);
  return values;
}

ir::Array values_of(DType type, const std::vector<size_t>& order) {
  const bool whole = is_int(type) || type == DType::kBool;
  std::vector<int64_t> numbers;
  if (whole) {
    for (const int64_t v : {INT64_MIN,
                            INT64_MIN + 1,
                            INT64_MAX,
                            int64_t{INT32_MIN},
                            int64_t{INT32_MAX},
                            int64_t{-1},
                            int64_t{0},
                            int64_t{1},
                            int64_t{2},
                            int64_t{-2},
                            int64_t{3},
                            int64_t{-3},
                            int64_t{127},
                            int64_t{-128},
                            int64_t{128},
                            int64_t{255},
                            int64_t{300},
                            int64_t{-5},
                            int64_t{7},
                            int64_t{1} << 24,
                            (int64_t{1} << 24) + 1,
                            (int64_t{1} << 53) + 1}) {
      numbers.push_back(ir::wrap(type, v));
    }
  }
  const std::vector<double> reals = whole ? std::vector<double>{} : edges(type);
  const size_t count = whole ? numbers.size() : reals.size();
  ir::Array array(type, {static_cast<int64_t>(order.size())});
  for (size_t i = 0; i < order.size(); ++i) {
    whole ? void(array.i()[i] = numbers[order[i] % count]) : void(array.f()[i] = reals[order[i] % count]);
  }
  return array;
}

// One step at `value` of a type of floating point.
double step_at(DType type, double value) {
  const int digits = type == DType::kF64 ? 52 : type == DType::kF32 ? 23 : type == DType::kF16 ? 10 : 7;
  const int lowest = type == DType::kF64 ? -1022 : type == DType::kF16 ? -14 : -126;
  return std::ldexp(1, std::max(value == 0 ? lowest : std::ilogb(value), lowest) - digits);
}

void expect_equal(const ir::Array& want, const ir::Array& got, const std::vector<ir::Array>& inputs, int ulps,
                  bool any_zero, const std::string& text, const ir::Graph& after) {
  ASSERT_EQ(want.dtype, got.dtype);
  const auto per_input = static_cast<size_t>(want.size() / inputs[0].size());
  for (size_t i = 0; i < static_cast<size_t>(want.size()); ++i) {
    const auto shown = [&](const ir::Array& a, size_t at) {
      return a.real() ? fmt::format("{}", a.f()[at]) : fmt::format("{}", a.i()[at]);
    };
    bool same = false;
    if (!want.real()) {
      same = want.i()[i] == got.i()[i];
    } else if (const double a = want.f()[i], b = got.f()[i]; a == b) {
      same = any_zero || std::signbit(a) == std::signbit(b);
    } else {
      same =
          (std::isnan(a) && std::isnan(b)) || (std::isfinite(a) && std::fabs(a - b) <= ulps * step_at(want.dtype, a));
    }
    std::string at;
    for (const ir::Array& input : inputs) at += " " + shown(input, i / per_input);
    ASSERT_TRUE(same) << text << "\nat" << at << ": " << shown(got, i) << " instead of " << shown(want, i) << "\n"
                      << ir::print(after, {.origins = false});
  }
}

void compare(const std::string& text, const std::vector<ir::Array>& inputs, int ulps, bool any_zero) {
  const ir::Graph before = ir::parse(text), after = run(text, {"canonicalize", "fold", "canonicalize"});
  const ir::EvalOptions options{.round = true, .observe = {}};
  expect_equal(ir::evaluate(before, inputs, options)[0], ir::evaluate(after, inputs, options)[0], inputs, ulps,
               any_zero, text, after);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// A graph of a form, whose numbers become constants.
std::string graph_of(const Form& form, const std::string& type, size_t count) {
  const std::string shape = fmt::format("[{}]", count);
  std::string body = form.text, constants;
  for (int n = 0; body.find('{') != std::string::npos && body.find("{shape") != body.find('{'); ++n) {
    const size_t open = body.find('{'), close = body.find('}', open);
    const double value = std::strtod(body.substr(open + 1, close - open - 1).c_str(), nullptr);
    const bool real = type[0] == 'f' || type[0] == 'b';
    constants +=
        fmt::format("%c{0} = constant {{value = {1}[]{{{2}}}}} %k{0} = broadcast(%c{0}) {{shape = {3}, dims = []}} ", n,
                    type, real ? fmt::format("{:.17e}", value) : fmt::format("{}", static_cast<int64_t>(value)), shape);
    body.replace(open, close - open + 1, fmt::format("%k{}", n));
  }
  return fmt::format("graph(%x: {0}{1}, %z: {0}{1}) {{ {2}{3} return \"y\" = %y }}", type, shape, constants,
                     replaced(body, "[N,", fmt::format("[{},", count)));
}

TEST(Edges, RewritesKeepTheResultsOfEveryForm) {
  constexpr size_t kCount = 56;
  std::vector<size_t> forwards, across;  // pairs of all kinds meet
  for (size_t i = 0; i < kCount * 5; ++i) forwards.push_back(i % kCount), across.push_back(i * 11 + i / kCount * 17);
  for (const Form& form : kForms) {
    std::string types = form.types;
    for (size_t at = 0; at < types.size();
         at = types.find(' ', at) == std::string::npos ? types.size() : types.find(' ', at) + 1) {
      const std::string type = types.substr(at, types.find(' ', at) - at);
      const DType dtype = *parse_dtype(type);
      compare(graph_of(form, type, forwards.size()), {values_of(dtype, forwards), values_of(dtype, across)}, form.ulps,
              form.any_zero);
    }
  }
}

TEST(Edges, CastsThroughAnotherType) {
  std::vector<size_t> order(56);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (const std::string from : kTypes) {
    for (const std::string through : kTypes) {
      for (const std::string to : kTypes) {
        const std::string text =
            fmt::format("graph(%x: {}[56]) {{ %m = cast(%x) {{to = {}}} %y = cast(%m) {{to = {}}} return \"y\" = %y }}",
                        from, through, to);
        compare(text, {values_of(*parse_dtype(from), order)}, 0, false);
      }
    }
  }
}

// Quotients in front of a rounding are the nearest ones, whatever pays elsewhere.
TEST(Edges, NothingIsRoundedElsewhereInFrontOfADecision) {
  const Form forms[] = {
      {"%q = div(%x, {0.16}) %y = round(%q)", "f32"},
      {"%q = div(%x, {3}) %y = floor(%q)", "f32"},
      {"%m = mul(%x, {0.3}) %n = mul(%m, {0.7}) %a = add(%n, %z) %y = ceil(%a)", "f32"},
      {"%r = abs(%z) %s = sqrt(%r) %q = div(%x, %s) %y = trunc(%q)", "f32"},
      {"%q = div(%x, {7}) %i = cast(%q) {to = i32} %y = cast(%i) {to = f32}", "f32"},
      {"%q = div(%x, {0.7}) %f = cast(%q) {to = f8e4m3} %y = cast(%f) {to = f32}", "f32"},
      {"%q = div(%x, {5}) %c = lt(%q, %z) %y = select(%c, %z, {1})", "f32"},
  };
  for (const Form& form : forms) {
    std::vector<ir::Array> inputs;
    for (int step : {1, 7}) {
      ir::Array x(DType::kF32, {4000});
      for (int i = 0; i < 4000; ++i)
        x.f()[static_cast<size_t>(i)] = static_cast<float>((i * step % 4000 - 2000) * 0.08F);
      inputs.push_back(std::move(x));
    }
    std::string text = form.text;
    // Attributes are no numbers.
    text = replaced(replaced(text, "{to = ", "<to = "), "}", "}");
    for (size_t at = 0; (at = text.find("<to = ", at)) != std::string::npos; ++at) text[text.find('}', at)] = '>';
    const std::string graph = replaced(replaced(graph_of({text.c_str()}, "f32", 4000), "<to", "{to"), ">", "}");
    compare(graph, inputs, 0, false);
  }
}

}  // namespace
}  // namespace heddle::passes
