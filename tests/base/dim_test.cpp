#include "tenon/base/dim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tenon/base/error.h"

namespace tenon {
namespace {

Dim ranged(const char* name, int64_t min, int64_t max = DimRange::kInf, int64_t divisor = 1) {
  return Dim(name, DimRange{min, max, divisor});
}

const Dim n("n"), m("m"), batch("batch");

TEST(Dim, PrintsOneCanonicalForm) {
  struct Case {
    Dim dim;
    const char* text;
  } cases[] = {
      {Dim(4), "4"},
      {Dim(-4), "-4"},
      {batch, "batch"},
      {2 * batch + 1, "2*batch + 1"},
      {1 + batch + batch, "2*batch + 1"},
      {batch - batch, "0"},
      {3 - n, "-n + 3"},
      {-2 * n - 5, "-2*n - 5"},
      {n * m - m * n + m, "m"},
      {n * n * 2 + n, "2*n*n + n"},
      {(n + 1) * (n - 1), "n*n - 1"},
      {n / 4, "n//4"},
      {(2 * n + 1) / 4, "n//2"},
      {(n + m) / 4, "(m + n)//4"},
      {2 * (n / 4), "2*(n//4)"},
      {-1 * (n / 4), "-(n//4)"},
      {m - n / 4, "m - n//4"},
      {n % 4, "n%4"},
      {(n / 3) % 4, "(n//3)%4"},
      {n / m, "n//m"},
      {n / (m + 1), "n//(m + 1)"},
      {dim_max(n, 3), "max(n, 3)"},
      {dim_max(3, dim_max(m, n)), "max(m, n, 3)"},
      {dim_min(n, m) * 2, "2*min(m, n)"},
  };
  for (const Case& c : cases) EXPECT_EQ(c.dim.str(), c.text);
}

TEST(Dim, DividesExactlyWhereItCan) {
  EXPECT_EQ((4 * n) / 2, 2 * n);
  EXPECT_EQ((4 * n + 3) / 4, n);
  EXPECT_EQ((4 * n) % 2, Dim(0));
  EXPECT_EQ((4 * n + 3) % 4, Dim(3));
  EXPECT_EQ((5 * n) / 4, n + n / 4);
  EXPECT_EQ((n / 2) / 3, n / 6);
  EXPECT_EQ((n / 2 + 1) / 3, (n + 2) / 6);
  EXPECT_EQ((m * n) / n, m);
  EXPECT_EQ(((n + 1) * (m + 2)) / (n + 1), m + 2);
  EXPECT_EQ(((n + 1) * m) % (n + 1), Dim(0));
  EXPECT_EQ(n / n, Dim(1));
  EXPECT_EQ(n / -1, -1 * n);
  Dim small = ranged("small", 0, 3);
  EXPECT_EQ(small / 4, Dim(0));
  EXPECT_EQ(small % 4, small);
  Dim even = ranged("even", 0, DimRange::kInf, 8);
  EXPECT_EQ(4 * (even / 4), even);
  EXPECT_EQ(even % 4, Dim(0));
  EXPECT_EQ((even / 4).known_divisor(), 2);
  EXPECT_THROW(n / 0, ValueError);
  EXPECT_THROW(n % 0, ValueError);
  EXPECT_THROW(Dim(5) / 0, ValueError);
  EXPECT_EQ(Dim(-7) / 2, Dim(-4));
  EXPECT_EQ(Dim(-7) % 2, Dim(1));
  EXPECT_EQ(Dim(7) % -2, Dim(-1));
}

TEST(Dim, DecidesByRanges) {
  Dim r = ranged("r", 1, 10);
  EXPECT_EQ(Dim::less(0, r), true);
  EXPECT_EQ(Dim::less(r, 11), true);
  EXPECT_EQ(Dim::less(r, 1), false);
  EXPECT_EQ(Dim::less(r, 5), std::nullopt);
  EXPECT_EQ(Dim::equal(r, 11), false);
  EXPECT_EQ(Dim::equal(2 * n, 3), false);
  EXPECT_EQ(Dim::equal(n, m), std::nullopt);
  EXPECT_EQ(Dim::equal(n + m, m + n), true);
  EXPECT_EQ(Dim::equal(ranged("k", 3, 3), 3), true);
  Dim p = ranged("p", 1), q = ranged("q", 1);
  EXPECT_EQ((p * q - p).lower_bound(), 0);
  EXPECT_EQ(Dim::less(p * q, p), false);
  EXPECT_EQ(dim_max(r, 1), r);
  EXPECT_EQ(dim_min(r, 20), r);
  EXPECT_EQ((2 * r + 1).lower_bound(), 3);
  EXPECT_EQ((2 * r + 1).upper_bound(), 21);
  EXPECT_EQ(n.upper_bound(), DimRange::kInf);
  EXPECT_EQ((3 - n).lower_bound(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ((6 * n + 9).known_divisor(), 3);
  EXPECT_EQ(Dim(0).known_divisor(), 0);
}

TEST(Dim, RangesStayThroughArithmetic) {
  Dim a("a", {.min = 2, .max = 100, .divisor = 2});
  Dim expr = dim_max((a * n + 3) / 7, 5) - a % 5;
  auto symbols = expr.symbols();
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols[0].first, "a");
  EXPECT_EQ(symbols[0].second, (DimRange{2, 100, 2}));
  EXPECT_EQ(symbols[1].first, "n");
  // A name with two ranges has both.
  Dim merged = Dim("a", {.min = 5}) + Dim("a", {.max = 50, .divisor = 3});
  EXPECT_EQ(merged.str(), "2*a");
  EXPECT_EQ(merged.symbols()[0].second, (DimRange{5, 50, 3}));
  EXPECT_EQ(Dim("a"), a);
  EXPECT_EQ(Dim("a").hash(), a.hash());
}

TEST(Dim, RefusesBadNamesRangesAndTexts) {
  for (const char* name : {"", "2a", "a-b", "a b", "é", "2*batch"}) {
    EXPECT_THROW(Dim{std::string(name)}, ValueError) << name;
  }
  EXPECT_THROW(ranged("n", 3, 2), ValueError);
  EXPECT_THROW(ranged("n", 0, 1, 0), ValueError);
  for (const char* text : {"", "n +", "n n", "(n", "n)", "max(n)", "max n", "n/2", "n//0", "2n",
                           "*", "99999999999999999999", "n@", "max(n,)"}) {
    EXPECT_THROW(Dim::parse(text), ValueError) << text;
  }
  EXPECT_THROW(Dim::parse(std::string(100000, '(')), ValueError);
  EXPECT_THROW(Dim::parse(std::string(100000, '-') + "n"), ValueError);
  EXPECT_EQ(Dim::parse("-9223372036854775808").value(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Dim::parse(" 2 * ( n + m ) // 2 "), n + m);
  EXPECT_THROW(Dim(std::numeric_limits<int64_t>::max()) + 1, ValueError);
  EXPECT_THROW(n * std::numeric_limits<int64_t>::max() * 3, ValueError);
  EXPECT_THROW(n.value(), InternalError);
}

TEST(Dim, EvaluatesAndSubstitutes) {
  Dim expr = 2 * n + dim_max(m, 3) / 2 + n % 5;
  auto lookup = [](std::string_view name) -> std::optional<int64_t> {
    if (name == "n") return 7;
    if (name == "m") return 9;
    return std::nullopt;
  };
  EXPECT_EQ(expr.eval(lookup), 14 + 4 + 2);
  EXPECT_THROW((expr + batch).eval(lookup), KeyError);
  EXPECT_THROW((n / (m - 9)).eval(lookup), ValueError);
  Dim replaced = expr.substitute([](std::string_view name) -> std::optional<Dim> {
    if (name == "m") return Dim(9);
    return std::nullopt;
  });
  EXPECT_EQ(replaced, 2 * n + 4 + n % 5);
  EXPECT_EQ(Dim(5).substitute([](std::string_view) { return std::optional<Dim>(1); }), Dim(5));
}

TEST(Dim, Shapes) {
  Shape shape = {4, "batch", 2 * batch + n / 4};
  EXPECT_EQ(str(shape), "[4, \"batch\", \"2*batch + n//4\"]");
  EXPECT_EQ(str(Shape{}), "[]");
  EXPECT_EQ(product({}), Dim(1));
  EXPECT_EQ(product({2, "n", 3}), 6 * n);
  EXPECT_FALSE(is_static(shape));
  EXPECT_EQ(static_dims({2, 0}), (std::vector<int64_t>{2, 0}));
  EXPECT_THROW(static_dims(shape), InternalError);
}

// Random expressions: every rewriting keeps the value, text reads back to an equal dimension, and
// bounds and divisors hold.
class RandomDims {
 public:
  explicit RandomDims(uint32_t seed) : random_(seed) {}

  struct Pair {
    Dim dim;
    std::optional<int64_t> value;  // nullopt: divides by zero
  };

  void draw_values() {
    values_[0] = below(8);
    values_[1] = 1 + below(9);
    values_[2] = 8 * (below(6) - 2);
  }
  static DimRange range(std::string_view name) { return kRanges[name[0] - 'a']; }
  std::optional<int64_t> lookup(std::string_view name) const {
    for (size_t i = 0; i < 3; ++i) {
      if (kNames[i] == name) return values_[i];
    }
    return std::nullopt;
  }

  Pair draw(int depth) {
    if (depth == 0 || below(5) == 0) {
      size_t pick = static_cast<size_t>(below(5));
      if (pick >= 3) {
        int64_t number = below(13) - 4;
        return {Dim(number), number};
      }
      return {Dim(kNames[pick], kRanges[pick]), values_[pick]};
    }
    Pair a = draw(depth - 1);
    Pair b = draw(depth - 1);
    int64_t op = below(7);
    bool both = a.value && b.value;
    int64_t x = a.value.value_or(0), y = b.value.value_or(0);
    if (op == 0) return {a.dim + b.dim, both ? std::optional(x + y) : std::nullopt};
    if (op == 1) return {a.dim - b.dim, both ? std::optional(x - y) : std::nullopt};
    if (op == 2) return {a.dim * b.dim, both ? std::optional(x * y) : std::nullopt};
    if (op == 3)
      return {dim_max(a.dim, b.dim), both ? std::optional(std::max(x, y)) : std::nullopt};
    if (op == 4)
      return {dim_min(a.dim, b.dim), both ? std::optional(std::min(x, y)) : std::nullopt};
    if (b.dim == Dim(0)) return a;
    both = both && y != 0;
    int64_t quotient =
        both ? static_cast<int64_t>(std::floor(static_cast<double>(x) / static_cast<double>(y)))
             : 0;
    if (op == 5) return {a.dim / b.dim, both ? std::optional(quotient) : std::nullopt};
    return {a.dim % b.dim, both ? std::optional(x - quotient * y) : std::nullopt};
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  static constexpr std::string_view kNames[] = {"a", "b", "c"};
  static constexpr DimRange kRanges[] = {
      {0, 7, 1}, {1, DimRange::kInf, 1}, {-16, DimRange::kInf, 8}};
  int64_t values_[3] = {0, 0, 0};
  std::mt19937 random_;
};

TEST(Dim, RandomExpressionsKeepTheirValue) {
  int checked = 0;
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    RandomDims random(seed);
    random.draw_values();
    auto [dim, value] = random.draw(4);
    ASSERT_EQ(Dim::parse(dim.str(), RandomDims::range), dim) << dim.str();
    if (!value) continue;
    int64_t got = dim.eval([&](std::string_view name) { return random.lookup(name); });
    ASSERT_EQ(got, *value) << dim.str();
    ASSERT_LE(dim.lower_bound(), *value) << dim.str();
    ASSERT_GE(dim.upper_bound(), *value) << dim.str();
    int64_t divisor = dim.known_divisor();
    ASSERT_EQ(divisor == 0 ? *value : *value % divisor, 0) << dim.str();
    ++checked;
  }
  EXPECT_GT(checked, 10000);
}

}  // namespace
}  // namespace tenon
