#include "codegen/text/writer.h"

#include <gtest/gtest.h>

namespace heddle::codegen {
namespace {

TEST(Writer, AValueThatTheNextStatementAloneUsesIsAPartOfIt) {
  Writer out;
  out.value("t0", "a + b", "add");
  out.value("t1", "t0 * c", "mul");
  out.line("put(t1);");
  EXPECT_EQ(out.text(), "put((a + b) * c);  // add, mul\n");
}

TEST(Writer, AValueThatIsUsedAgainOrLaterStays) {
  Writer twice;
  twice.value("t0", "a + b", "add");
  twice.line("put(t0, t0);");
  EXPECT_EQ(twice.text(), "const auto t0 = a + b;  // add\nput(t0, t0);\n");

  Writer again;
  again.value("t0", "a + b", "");
  again.line("put(t0);");
  again.open("if (x) {");
  again.line("put(t0);");
  again.close();
  EXPECT_EQ(again.text(), "const auto t0 = a + b;\nput(t0);\nif (x) {\n  put(t0);\n}\n");

  Writer later;
  later.value("t0", "load(p)", "");
  later.line("store(p, x);");
  later.line("put(t0);");
  EXPECT_EQ(later.text(), "const auto t0 = load(p);\nstore(p, x);\nput(t0);\n");

  Writer within;
  within.value("t0", "a + b", "");
  within.open("for (int i = 0; i < n; ++i) {");
  within.line("put(t0);");
  within.close();
  EXPECT_EQ(within.text(), "const auto t0 = a + b;\nfor (int i = 0; i < n; ++i) {\n  put(t0);\n}\n");
}

TEST(Writer, OperandsKeepTheirParentheses) {
  const auto folded = [](const char* value, const char* statement) {
    Writer out;
    out.value("t0", value, "");
    out.line("{}", statement);
    return out.text();
  };
  EXPECT_EQ(folded("select(p > q, a, b) + c", "y = x / t0;"), "y = x / (select(p > q, a, b) + c);\n");
  EXPECT_EQ(folded("vec<4>(a) < b", "put(t0.v);"), "put((vec<4>(a) < b).v);\n");
  EXPECT_EQ(folded("a * splat<4>(b.v)", "put(t0 + c);"), "put(a * splat<4>(b.v) + c);\n");
  EXPECT_EQ(folded("a * b", "y = x - t0;"), "y = x - a * b;\n");
  EXPECT_EQ(folded("a * b", "y = t0 * x;"), "y = a * b * x;\n");
  EXPECT_EQ(folded("a * b", "y = x * t0;"), "y = x * (a * b);\n");
  EXPECT_EQ(folded("a * b", "y = x / t0;"), "y = x / (a * b);\n");
  EXPECT_EQ(folded("a - b", "y = x - t0;"), "y = x - (a - b);\n");
  EXPECT_EQ(folded("a == b", "y = x <= t0;"), "y = x <= (a == b);\n");
  EXPECT_EQ(folded("-a", "y = x - t0;"), "y = x - (-a);\n");
  EXPECT_EQ(folded("a + b", "y = t0;"), "y = a + b;\n");
}

TEST(Writer, LongStatementsStayApart) {
  Writer out;
  out.value("t0", "f(a, b, c, d, e, g, h, i, j, k)", "");
  out.line("put(t0, a, b, c, d, e, g, h, i, j, k);");
  EXPECT_TRUE(out.text().starts_with("const auto t0 = "));
}

}  // namespace
}  // namespace heddle::codegen
