// Sizes and positions: named sizes of every value, nothing at all, beyond 32 bits; indices that are
// negative or outside; slices by Python's rule.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <limits>

#include "paths.h"

namespace tenon::anchors {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// PyTorch 1.5 and check 7: one program serves the declared range, 0 and 1 included; no threshold of
// code generation narrows it.
TEST(NamedSizes, EverySizeOfTheRange) {
  const auto program = compile([](const Tensor& x, const Tensor& w) {
    return Tensors{x * 2 + 1,
                   sum(x),
                   sum(x, 0),
                   softmax(x, 0),
                   mean(x, 0),
                   matmul(x, w),
                   cumsum(x, 0),
                   max(concatenate({x, w["0:1"]})),
                   x[Slice(1, std::nullopt)],
                   x["::-1"],
                   cumprod(x, 0),
                   cummax(x, 0),
                   cummin(x, 0)};
  })(TensorLayout(f32, {"n", 3}), TensorLayout(f32, {3, 3}));
  const Tensor w = eye(3).eval();
  for (const int64_t n : {0, 1, 2, 3, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097, 100000}) {
    SCOPED_TRACE(n);
    const Tensor x = (iota({n, 3}, 0, f32) % 7).eval();
    const Tensors got = program(x, w);
    std::vector<double> column, ends;
    double total = 0, largest = 0, exps = 0;
    for (int64_t i = 0; i < n; ++i) {
      total += i % 7;
      largest = std::max(largest, double(i % 7));
    }
    for (int64_t i = 0; i < n; ++i) exps += std::exp(i % 7 - largest);
    expect_values(got[1], {3 * total}, 1e-6);
    expect_values(got[2], {total, total, total}, 1e-6);
    const double m = n == 0 ? kNan : total / n;
    expect_values(got[4], {m, m, m}, 1e-6);
    EXPECT_EQ(got[5].to_vector<float>(), x.to_vector<float>());
    expect_values(got[7], {n < 2 ? 1 : largest});
    expect_dims(got[8], {n == 0 ? 0 : n - 1, 3});
    expect_dims(got[9], {n, 3});
    if (n == 0) continue;
    expect_values(Tensor(got[0][-1]).eval(), std::vector<double>(3, (n - 1) % 7 * 2 + 1));
    expect_values(Tensor(got[3][-1]).eval(),
                  std::vector<double>(3, std::exp((n - 1) % 7 - largest) / exps), 1e-5);
    expect_values(Tensor(got[6][-1]).eval(), {total, total, total}, 1e-6);
    expect_values(Tensor(got[9][0]).eval(), std::vector<double>(3, (n - 1) % 7));
  }
}

// B077 and B151: sizes that are multiples of a name; what does not fit is refused by name.
TEST(NamedSizes, Multiples) {
  const Dim n("n");
  const Layouts layouts = {TensorLayout(f32, {n * 3})};
  const Function all = [](const Tensors& x) {
    return Tensors{sum(x[0]), prod(x[0]), concatenate({x[0], tensor({7.0f})}),
                   reshape(x[0], {-1, 3})};
  };
  for (const int64_t count : {0, 3, 9}) {
    on_every_path(
        all, {ones({count})},
        [count](const Tensors& got) {
          expect_values(got[0], {double(count)});
          expect_values(got[1], {1});
          expect_dims(got[2], {count + 1});
          expect_dims(got[3], {count / 3, 3});
        },
        layouts);
  }
  const auto program = compile([](const Tensor& x, const Tensor& y) { return x + y; })(
      TensorLayout(f32, {n * 2}), TensorLayout(f32, {n * 2}));
  expect_values(program(ones({4}), ones({4})), {2, 2, 2, 2});
  expect_refused([&] { program(ones({4}), ones({6})); }, {"ShapeError", "argument 1", "n"});
  expect_refused(
      [&] { program(ones({5}), ones({5})); },
      {"ShapeError: ", "argument 0: dim 0 is 5, expected 2*n for a whole n [argument_dim]"});
}

// MAX 29: a name that has two sizes names both arguments and both sizes.
TEST(NamedSizes, OneSizePerName) {
  const auto program =
      compile([](const Tensor& x, const Tensor& y) { return x + y; },
              {.argument_names = {"x", "y"}})(TensorLayout(f32, {"n"}), TensorLayout(f32, {"n"}));
  expect_refused([&] { program(ones({3}), ones({4})); },
                 {"argument y: dim n is 4, but argument x has n = 3 [argument_dim]"});
  expect_refused([&] { program(ones({3}), ones({1})); }, {"argument y: dim n is 1"});
  expect_values(program(ones({0}), ones({0})), {});
  const auto square =
      compile([](const Tensor& x) { return sum(x); })(TensorLayout(f32, {"n", "n"}));
  expect_refused([&] { square(ones({2, 3})); }, {"argument 0", "n"});
}

// PyTorch 1.5: one tensor for two arguments is served, with the values at hand or named sizes.
TEST(NamedSizes, OneTensorTwice) {
  const auto f = compile([](const Tensor& x, const Tensor& y) { return x * y; });
  const Tensor a = tensor({2.0f, 3.0f}), b = tensor({5.0f, 7.0f});
  expect_values(f(a, b), {10, 21});
  expect_values(f(a, a), {4, 9});
  EXPECT_EQ(f.cached(), 1u);
}

// B010 and PyTorch 1.5 (an empty tensor, another dtype): refused before anything runs, by name.
TEST(Calls, WrongArgumentsAreRefused) {
  const auto program = compile(
      [](const Tensor& x) {
        return matmul(x, ones({2, 3}));
      },
      {.argument_names = {"x"}})(TensorLayout(f32, {1, 2}));
  expect_refused([&] { program(ones({3, 1})); }, {"ShapeError", "argument x", "[1, 2]", "[3, 1]"});
  expect_refused([&] { program(ones({2})); }, {"argument x", "f32[1, 2]", "f32[2]"});
  expect_refused([&] { program(ones({1, 2}, f64)); }, {"argument x", "f32", "f64"});
  expect_refused([&] { program(ones({1, 2}, i8)); }, {"argument x", "f32", "i8"});
  expect_refused([&] { program(ones({1, 2, 1})); }, {"argument x"});
  expect_refused([&] { program(ones({0, 2})); }, {"argument x"});
  expect_refused([&] { program(Tensor()); }, {"argument x"});
  expect_refused([&] { program(); }, {"expected 1 positional"});
  expect_refused([&] { program.execute_raw({runtime::Array()}); }, {"argument x"});
  expect_refused([&] { program.execute_raw({}); }, {"expected 1"});
  expect_values(program(transpose(ones({2, 1}))), {2, 2, 2});
}

// MAX 12 and 21, B054 and B102: negative indices count from the end; others outside are errors that
// name op, index and size, and no memory outside is read.
TEST(Indices, NegativeOnesAndThoseOutside) {
  const Tensor x = reshape(arange(12, f32), {3, 4}).eval();
  on_every_path(
      [](const Tensors& in) {
        return Tensors{take(in[0], in[1], 0), take_along_axis(in[0], in[2], 1), in[0][in[1]],
                       one_hot(in[1], 3), take(in[0], in[1], -1)};
      },
      {x, tensor({-1}), full({3, 1}, -1).eval()},
      [](const Tensors& got) {
        expect_values(got[0], {8, 9, 10, 11});
        expect_values(got[1], {3, 7, 11});
        expect_values(got[2], {8, 9, 10, 11});
        expect_values(got[3], {0, 0, 0});
        expect_values(got[4], {3, 7, 11});
      },
      {TensorLayout(f32, {"n", "m"}), TensorLayout(i32, {"k"}), TensorLayout(i64, {"n", 1})});
  for (const int64_t index : {3ll, 7ll, -4ll, 100000ll, 100000000ll, 1ll << 31, 1ll << 32,
                              1000000000000ll, -(1ll << 40)}) {
    expect_refusal_on_every_path(
        [](const Tensors& in) { return Tensors{take(in[0], in[1], 0) + 1}; },
        {x, tensor({int64_t{0}, index})},
        {"IndexError: take: index " + std::to_string(index), "3", "[take_index]",
         "shapes_test.cpp:"},
        {TensorLayout(f32, {"n", "m"}), TensorLayout(i64, {"k"})});
  }
  expect_refusal_on_every_path(
      [](const Tensors& in) { return Tensors{take_along_axis(in[0], in[1], 1)}; },
      {x, full({3, 1}, 4).eval()}, {"IndexError: take_along_axis: index 4", "4"});
  for (const DType narrow : {u8, i8, u32, u64, i16}) {
    expect_on_every_path([](const Tensors& in) { return take(in[0], in[1], 0); },
                         {tensor({1.0f, 2.0f, 3.0f}), cast(tensor({2, 0}), narrow).eval()}, {3, 1});
  }
  expect_refusal_on_every_path([](const Tensors& in) { return Tensors{take(in[0], in[1], 0)}; },
                               {x, tensor(std::vector<uint64_t>{~0ull})},
                               {"IndexError: take", "3"});
  expect_refusal_on_every_path([](const Tensors& in) { return Tensors{take(in[0], in[1])}; },
                               {zeros({0}), tensor({0})}, {"IndexError: take", "0"},
                               {TensorLayout(f32, {"n"}), TensorLayout(i32, {"k"})});
  // Nothing is taken from nothing.
  expect_on_every_path([](const Tensors& in) { return take(in[0], in[1]); },
                       {zeros({0}), zeros({0}, i32)}, {},
                       {TensorLayout(f32, {"n"}), TensorLayout(i32, {"k"})});
  expect_refused([&] { Tensor(x[3]).eval(); }, {"IndexError", "3", "shapes_test.cpp:"});
  expect_refused([&] { Tensor(x[-4]).eval(); }, {"IndexError", "-4"});
  expect_refused([&] { Tensor(x[{0, 4}]).eval(); }, {"IndexError", "4"});
  expect_refused([&] { take(x, tensor({0.5f})); }, {"TypeError", "f32"});
  expect_refused([&] { one_hot(tensor({0.5f}), 3); }, {"TypeError", "f32"});
}

// B054 and B102 for writes: the same positions; what is outside is an error, and nothing is written
// beside the tensor.
TEST(Indices, WrittenOnes) {
  const Tensor x = reshape(arange(12, f32), {3, 4}).eval();
  on_every_path(
      [](const Tensors& in) {
        Tensor rows = in[0] + 0;
        rows[in[1]] = 0;
        Tensor part = in[0] + 0;
        part[{Slice(0, 2), in[1]}] = tensor({7.0f, 8.0f});
        Tensor one = in[0] + 0;
        one[in[1].sum()] += 100;
        return Tensors{rows, part, one, put_along_axis(in[0], full({3, 1}, -1), 50, 1, "max")};
      },
      {x, tensor({-1, 1})},
      [](const Tensors& got) {
        expect_values(got[0], {0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0});
        expect_values(got[1], {0, 8, 2, 7, 4, 8, 6, 7, 8, 9, 10, 11});
        expect_values(got[2], {100, 101, 102, 103, 4, 5, 6, 7, 8, 9, 10, 11});
        expect_values(got[3], {0, 1, 2, 50, 4, 5, 6, 50, 8, 9, 10, 50});
      });
  for (const int64_t index : {3ll, -4ll, 100000000ll, 1ll << 32, 1ll << 40, -(1ll << 40)}) {
    expect_refusal_on_every_path(
        [](const Tensors& in) { return Tensors{scatter(in[0], in[1], 1, 0, "add")}; },
        {x, tensor({int64_t{0}, index})},
        {"IndexError: scatter: index " + std::to_string(index), "3", "[scatter_index]",
         "shapes_test.cpp:"},
        {TensorLayout(f32, {"n", "m"}), TensorLayout(i64, {"k"})});
  }
  expect_refused([&] { scatter(x, tensor({0}), 1, 0, "sum"); },
                 {"ValueError: scatter", "sum", "set, add, mul, min or max"});
  expect_refused([&] { scatter(x, tensor({0.5f}), 1); }, {"TypeError", "f32"});
  Tensor y = x;
  expect_refused([&] { y[{tensor({0}), tensor({1})}] = 1; }, {"UnsupportedError", "scatter"});
}

// B101: with equal positions the sum is formed before it is stored; only "add" adds each.
TEST(Indices, RepeatedOnes) {
  on_every_path(
      [](const Tensors& in) {
        Tensor y = in[0] + 0;
        y[in[1] + 10] += in[0][in[1] + 10];
        const Tensor last = scatter(in[0], in[1] + 10, tensor({5.0f, 6.0f}));
        return Tensors{y, last, scatter(in[0], in[1] + 10, in[0][in[1] + 10], 0, "add")};
      },
      {tensor({1.5f, 7.0f}), tensor({-10, -10})},
      [](const Tensors& got) {
        expect_values(got[0], {3, 7});
        expect_values(got[1], {6, 7});
        expect_values(got[2], {4.5, 7});
      },
      {TensorLayout(f32, {"n"}), TensorLayout(i32, {2})});
  // Sums of 16 bits are rounded once: 2048 + 1 is not a f16, and 1 + … + 1 is.
  expect_on_every_path(
      [](const Tensors& in) { return scatter(in[0], in[1], cast(1, f16), 0, "add"); },
      {full({1}, 2048, f16).eval(), zeros({512}, i64).eval()}, {2560});
}

// B116: some sizes named, others numbers.
TEST(Indices, MixtureOfExperts) {
  on_every_path(
      [](const Tensors& in) {
        const Extent n = in[0].shape()[0];
        const Tensor gates = put_along_axis(zeros({n.dim(), 4}), in[0], in[1], 1);
        return Tensors{gates, sum(one_hot(in[0], 4) * expand_dims(in[1], {{-1}}), 1)};
      },
      {reshape(tensor({0, 3, 2, 1, 3, 0}), {3, 2}).eval(),
       reshape(tensor({.5f, .25f, 1.f, 2.f, 4.f, 8.f}), {3, 2}).eval()},
      [](const Tensors& got) {
        for (const Tensor& gates : got) {
          expect_values(gates, {.5, 0, 0, .25, 0, 2, 1, 0, 8, 0, 0, 4});
        }
      },
      {TensorLayout(i32, {"n", 2}), TensorLayout(f32, {"n", 2})});
}

// B139: each window is clamped into its own operand.
TEST(Indices, NestedWindows) {
  on_every_path(
      [](const Tensors& x) {
        Tensors results;
        for (int k = 0; k < 3; ++k) {
          const Tensor inner = dynamic_slice(x[0], {x[1][k]}, {4});
          results.push_back(dynamic_slice(inner, {x[2][k]}, {1}));
        }
        results.push_back(dynamic_slice_update(x[0], tensor({-1.0f, -2.0f}), {x[1][0] * 100}));
        results.push_back(dynamic_slice_update(x[0], tensor({-1.0f, -2.0f}), {x[1][0] * -100}));
        return results;
      },
      {arange(10, f32), tensor(std::vector<int64_t>{9, 3, 6}),
       tensor(std::vector<int64_t>{0, 5, 0})},
      [](const Tensors& got) {
        for (int k = 0; k < 3; ++k) expect_values(got[static_cast<size_t>(k)], {6});
        expect_values(got[3], {0, 1, 2, 3, 4, 5, 6, 7, -1, -2});
        expect_values(got[4], {-1, -2, 2, 3, 4, 5, 6, 7, 8, 9});
      });
}

// MAX 19 and 23: Python's slices, of static and of named sizes; a step of 0 is an error.
TEST(Slices, PythonsRule) {
  for (const int64_t n : {0, 1, 2, 3, 6}) {
    SCOPED_TRACE(n);
    std::vector<double> all;
    for (int64_t i = 0; i < n; ++i) all.push_back(static_cast<double>(i));
    const auto python = [&](std::optional<int64_t> a, std::optional<int64_t> b, int64_t step) {
      std::vector<double> out;
      const auto clamp = [&](int64_t v, int64_t lo, int64_t hi) {
        return std::min(std::max(v < 0 ? v + n : v, lo), hi);
      };
      if (step > 0) {
        const int64_t stop = b ? clamp(*b, 0, n) : n;
        for (int64_t i = a ? clamp(*a, 0, n) : 0; i < stop; i += step) out.push_back(double(i));
      } else {
        const int64_t stop = b ? clamp(*b, -1, n - 1) : -1;
        for (int64_t i = a ? clamp(*a, -1, n - 1) : n - 1; i > stop; i += step) {
          out.push_back(double(i));
        }
      }
      return out;
    };
    on_every_path(
        [](const Tensors& x) {
          return Tensors{x[0]["1:"],     x[0]["2:5"],  x[0]["2:10"],    x[0]["2:1"],    x[0]["-2:"],
                         x[0]["::-1"],   x[0]["::-2"], x[0]["3:0:-1"],  x[0]["10::-3"], x[0]["::2"],
                         x[0]["-100:2"], x[0]["1:-1"], x[0]["-1:-4:-1"]};
        },
        {arange(n, f32)},
        [&](const Tensors& got) {
          const auto none = std::nullopt;
          const std::vector<std::vector<double>> wanted = {
              python(1, none, 1),     python(2, 5, 1),     python(2, 10, 1),
              python(2, 1, 1),        python(-2, none, 1), python(none, none, -1),
              python(none, none, -2), python(3, 0, -1),    python(10, none, -3),
              python(none, none, 2),  python(-100, 2, 1),  python(1, -1, 1),
              python(-1, -4, -1)};
          for (size_t i = 0; i < wanted.size(); ++i) {
            SCOPED_TRACE(i);
            expect_values(got[i], wanted[i]);
          }
        },
        {TensorLayout(f32, {"n"})});
  }
  expect_refused([] { Tensor(arange(5)["::0"]).eval(); }, {"ValueError", "step", "[slice_c1]"});
  expect_refused([] { arange(0, 5, 0); }, {"ValueError", "step", "[arange_c1]"});
}

// The edges of arange: no overflow, empty where Python's is empty.
TEST(Slices, Ranges) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  const auto expect_range = [](const Tensor& range, const std::vector<int64_t>& wanted) {
    EXPECT_EQ(range.to_vector<int64_t>(), wanted);
  };
  expect_range(arange(5, 0), {});
  expect_range(arange(0, 5, -1), {});
  expect_range(arange(-3), {});
  expect_range(arange(5, 0, -2), {5, 3, 1});
  expect_range(arange(kMax - 2, kMax), {kMax - 2, kMax - 1});
  expect_range(arange(kMin, kMax, kMax), {kMin, -1, kMax - 1});
  expect_range(arange(kMax, kMin, kMin), {kMax, -1});
  expect_range(arange(0, kMin, kMin), {0});
  expect_range(arange(254, 258, 1, u8).cast(i64), {254, 255, 0, 1});
}

// B095: axes far outside are errors with axis and rank.
TEST(Axes, OutsideTheRank) {
  const Tensor x = zeros({2, 3, 4});
  for (const int64_t axis : {-4ll, -100ll, 3ll, 100ll, 1ll << 31, -(1ll << 31), 1ll << 62}) {
    const std::vector<std::string> parts = {"ValueError", std::to_string(axis), "rank 3",
                                            "shapes_test.cpp:"};
    expect_refused([&] { sum(x, axis); }, parts);
    expect_refused([&] { argmax(x, axis); }, parts);
    expect_refused([&] { softmax(x, axis); }, parts);
    expect_refused([&] { layer_norm(x, std::nullopt, std::nullopt, 1e-5, axis); }, parts);
    expect_refused([&] { cumsum(x, axis); }, parts);
    expect_refused([&] { sort(x, axis); }, parts);
    expect_refused([&] { argsort(x, axis); }, parts);
    expect_refused([&] { top_k(x, 1, axis); }, parts);
    expect_refused([&] { concatenate({x, x}, axis); }, parts);
    expect_refused([&] { take(x, tensor({0}), axis); }, parts);
    expect_refused([&] { take_along_axis(x, zeros({2, 3, 4}, i64), axis); }, parts);
    expect_refused([&] { put_along_axis(x, zeros({2, 3, 4}, i64), 0, axis); }, parts);
    expect_refused([&] { scatter(x, tensor({0}), 0, axis); }, parts);
    expect_refused([&] { flip(x, axis); }, parts);
    expect_refused([&] { squeeze(x, axis); }, parts);
    expect_refused([&] { swap_axes(x, 0, axis); }, parts);
    expect_refused([&] { split(x, 1, axis); }, parts);
    expect_refused([&] { transpose(x, {0, 1, axis}); }, {"ValueError", std::to_string(axis)});
    expect_refused([&] { concatenate({x}, axis); }, parts);
    expect_refused([&] { iota({2, 3, 4}, axis); }, parts);
    expect_refused([&] { mean(x, axis); }, parts);
    expect_refused([&] { logsumexp(x, axis); }, parts);
  }
  expect_refused([&] { sum(x, {0, 0}); }, {"ValueError", "twice"});
  expect_refused([&] { sum(x, {0, -3}); }, {"ValueError", "twice"});
  expect_refused([&] { transpose(x, {0, 0, 1}); }, {"ValueError"});
  expect_refused([&] { transpose(x, {0, 1}); }, {"ValueError"});
  expect_refused([&] { stack({}); }, {"Error"});
  expect_refused([&] { concatenate({}); }, {"Error"});
  expect_refused([&] { split(x, 0); }, {"Error"});
  expect_refused([&] { split(x, 3); }, {"Error"});
  expect_refused([&] { tile(x, {-1, 1, 1}); }, {"Error"});
  expect_refused([&] { Tensor(x[{0, 0, 0, 0}]).eval(); }, {"IndexError", "4", "rank 3"});
  expect_refused([&] { pad(x, {-1, 0, 0}, {0, 0, 0}); }, {"ValueError"});
}

// B068: sizes are 64 bits, and their products are checked.
TEST(Sizes, ProductsThatOverflow) {
  expect_refused([] { zeros({int64_t{1} << 40, int64_t{1} << 40}).eval(); }, {"Error"});
  expect_refused([] { zeros({-1}).eval(); }, {"ValueError"});
  expect_refused(
      [] {
        reshape(arange(6), {int64_t{1} << 32, int64_t{1} << 32});
      },
      {"Error", "shapes_test.cpp:"});
  const auto program = compile([](const Tensor& x) {
    return broadcast_to(sum(x), {Dim("n") * Dim("n"), Dim("n")});
  })(TensorLayout(i8, {"n"}));
  expect_refused([&] { program(zeros({3000000}, i8)); }, {"Error"});
}

// Memory that costs nothing until it is touched.
class SparseMemory {
 public:
  explicit SparseMemory(size_t bytes)
      : bytes_(bytes),
        data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~SparseMemory() {
    if (good()) ::munmap(data_, bytes_);
  }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  bool good() const { return data_ != MAP_FAILED; }
  int8_t* data() const { return static_cast<int8_t*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

// B114 and B068: offsets beyond 2^31 and 2^32 elements, fused slices, gathers and updates.
TEST(Sizes, OffsetsBeyond32Bits) {
  constexpr int64_t kRows = 300000, kColumns = 20000;  // 6e9 elements
  const SparseMemory memory(static_cast<size_t>(kRows * kColumns));
  if (!memory.good()) GTEST_SKIP() << "no address space of 6 GB";
  memory.data()[(kRows - 1) * kColumns] = 3;
  memory.data()[139999 * kColumns + 1] = 5;
  const Tensor a = Tensor::borrow(memory.data(), i8, {kRows, kColumns});
  const auto program = compile([](const Tensor& x, const Tensor& i) {
    const Tensor tail = x[Slice(-10, std::nullopt)];
    return Tensors{
        sum(cast(concatenate({tail, tail}, 1), i32), 1), x[{i, Slice(0, 3)}], x[{-1, 0}],
        dynamic_slice(x, {i[1], i[0] * 0}, {1, 2}),
        reshape(x, {-1})[Slice(kRows * kColumns - kColumns, kRows * kColumns - kColumns + 2)]};
  });
  const Tensors got = program(a, tensor(std::vector<int64_t>{139999, kRows - 1}));
  expect_values(got[0], {0, 0, 0, 0, 0, 0, 0, 0, 0, 6});
  expect_values(got[1], {0, 5, 0, 3, 0, 0});
  expect_values(got[2], {3});
  expect_values(got[3], {3, 0});
  expect_values(got[4], {3, 0});
}

// B090: loops over more than 2^31 elements that no memory holds.
TEST(Sizes, ReductionsBeyond32Bits) {
  const auto program = compile([](const Tensor& x) {
    const Tensor big = broadcast_to(x, {Dim(1 << 21), Dim("n")});
    return Tensors{sum(cast(big, i64))};
  })(TensorLayout(i8, {"n"}));
  expect_values(program(ones({1025}, i8))[0], {1025.0 * (1 << 21)});
}

// B073: no elements, no turns; a named size cannot be walked (MAX 22).
TEST(Loops, OverAnAxis) {
  const auto scan = compile([](const Tensor& x) {
    Tensor s = x[0];
    Tensors out{s};
    for (const Tensor& v : Tensor(x["1:"])) out.push_back(s = s + v);
    return stack(out);
  });
  expect_values(scan(tensor({1.0f, 2.0f, 3.0f, 4.0f})), {1, 3, 6, 10});
  expect_values(scan(tensor({1.0f})), {1});
  expect_refused([&] { scan(zeros({0})); }, {"IndexError"});
  expect_refused([&] { scan(TensorLayout(f32, {"n"})); }, {"TraceError", "shapes_test.cpp:"});
}

// B125, B131 and B145: only what is declared static is constant.
TEST(NamedSizes, OpsThatAskForSizes) {
  const auto program = compile([](const Tensor& x) {
    const Extent n = x.shape(0);
    return Tensors{matmul(x, transpose(x)),
                   pad(x, {1, 0}, {n, 0}, 7),
                   tile(x, {2, 1}),
                   eye(n.dim()),
                   concatenate({x, x["::-1"]}),
                   x[Slice(std::nullopt, 4)],
                   argmax(x, 0),
                   take(x, arange(n.dim()), 0),
                   reshape(x, {n * 2, 2}),
                   tri(n.dim()),
                   mean(cast(arange(n.dim()), f32))};
  })(TensorLayout(f32, {"n", 4}));
  for (const int64_t n : {1, 2, 5, 8, 17, 40}) {
    SCOPED_TRACE(n);
    const Tensor x = (iota({n, 4}, 0, f32) + iota({n, 4}, 1, f32)).eval();
    const Tensors got = program(x);
    expect_dims(got[0], {n, n});
    expect_values(Tensor(got[0][{-1, 0}]).eval(), {6.0 * (n - 1) + 14});
    expect_dims(got[1], {2 * n + 1, 4});
    expect_values(Tensor(got[1][{-1, 0}]).eval(), {7});
    expect_dims(got[2], {2 * n, 4});
    expect_values(sum(got[3]).eval(), {double(n)});
    expect_values(Tensor(got[4][{-1, 0}]).eval(), {0});
    expect_dims(got[5], {std::min<int64_t>(n, 4), 4});
    expect_values(got[6], std::vector<double>(4, n - 1));
    EXPECT_EQ(got[7].to_vector<float>(), x.to_vector<float>());
    expect_dims(got[8], {2 * n, 2});
    expect_values(sum(got[9]).eval(), {n * (n + 1) / 2.0});
    expect_values(got[10], {(n - 1) / 2.0}, 1e-6);
  }
}

}  // namespace
}  // namespace tenon::anchors
