// Reductions, running sums and products: NaN, nothing to reduce, narrow formats, long sums,
// layouts.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "paths.h"

namespace tenon::anchors {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor floats(DType dtype, const std::vector<double>& values) {
  return cast(tensor(values), dtype).eval();
}

// B052 and B138: NaN wins max and min wherever it stands; argmax and argmin give the first one.
TEST(Nan, WinsAtEveryPosition) {
  for (const DType dtype : {f32, f64, f16, bf16}) {
    SCOPED_TRACE(name(dtype));
    const auto program = compile([](const Tensor& x) {
      return Tensors{max(x, 1), min(x, 1), argmax(x, 1),         argmin(x, 1),
                     max(x),    argmax(x), max(transpose(x), 0), argmin(transpose(x), 0)};
    })(TensorLayout(dtype, {"rows", "n"}));
    for (const int64_t n : {1, 2, 7, 16, 17, 40}) {
      std::vector<double> values(static_cast<size_t>(n * n), 42);
      std::vector<double> first;
      for (int64_t i = 0; i < n; ++i) {
        values[static_cast<size_t>(i * n + i)] = kNan;  // row i has it at position i
        if (i % 3 == 0) values[static_cast<size_t>(i * n + n - 1)] = -kNan;
        first.push_back(static_cast<double>(i));
      }
      const Tensors got = program(floats(dtype, values).reshape({n, n}).eval());
      const std::vector<double> nans(static_cast<size_t>(n), kNan);
      for (const size_t i : {0, 1, 6}) expect_values(got[i], nans);
      for (const size_t i : {2, 3, 7}) expect_values(got[i], first);
      expect_values(got[4], {kNan});
      expect_values(got[5], {0});
    }
  }
  on_every_path(
      [](const Tensors& x) {
        return Tensors{argmax(x[0], 1), argmin(x[0], 1), max(x[0], 1), min(x[0], 1)};
      },
      {floats(f32, {3, kNan, 1, 5, kNan, kNan, 1, 2, kInf, -kInf, 0, kNan, -0.0, 0, 0, -0.0})
           .reshape({4, 4})
           .eval()},
      [](const Tensors& got) {
        expect_values(got[0], {1, 0, 3, 0});
        expect_values(got[1], {1, 0, 3, 0});
        expect_values(got[2], {kNan, kNan, kNan, 0});
        expect_values(got[3], {kNan, kNan, kNan, -0.0});
      });
}

// The shift of a sum of exponentials may pass a NaN over; the sum does not.
TEST(Nan, WinsInSoftmax) {
  constexpr int64_t kColumns = 40;
  std::vector<double> values(kColumns * kColumns, 1.5);
  for (size_t i = 0; i < kColumns; ++i) values[i * kColumns + i] = kNan;
  on_every_path(
      [](const Tensors& x) {
        return Tensors{softmax(x[0], 1), log_softmax(x[0], 1), logsumexp(x[0], 1)};
      },
      {floats(f32, values).reshape({kColumns, kColumns}).eval()},
      [](const Tensors& got) {
        const std::vector<double> all(kColumns * kColumns, kNan);
        expect_values(got[0], all);
        expect_values(got[1], all);
        expect_values(got[2], std::vector<double>(kColumns, kNan));
      });
}

// B138: a one-element operand is no different from a long one.
TEST(Nan, DoesNotDependOnTheShapeOfTheOther) {
  const Tensor column = floats(f32, {kNan, 1, 20}).reshape({3, 1}).eval();
  on_every_path(
      [](const Tensors& x) {
        return Tensors{minimum(x[0], x[1]), maximum(x[1], x[0]), clip(x[0], -10, 10)};
      },
      {column, tensor({10.0f})},
      [](const Tensors& got) {
        expect_values(got[0], {kNan, 1, 10});
        expect_values(got[1], {kNan, 10, 20});
        expect_values(got[2], {kNan, 1, 10});
      });
}

// MAX 16: what has no answer is refused; what has one is given.
TEST(Empty, Reductions) {
  on_every_path(
      [](const Tensors& x) {
        return Tensors{sum(x[0], 1),     prod(x[0], 1),    mean(x[0], 1),   logsumexp(x[0], 1),
                       any(x[0] > 0, 1), all(x[0] > 0, 1), sum(x[0], 0),    var(x[0], 1),
                       max(x[0], 0),     softmax(x[0], 1), cumsum(x[0], 1), argmax(x[0], 0)};
      },
      {zeros({2, 0, 3})},
      [](const Tensors& got) {
        expect_values(got[0], std::vector<double>(6, 0));
        expect_values(got[1], std::vector<double>(6, 1));
        expect_values(got[2], std::vector<double>(6, kNan));
        expect_values(got[3], std::vector<double>(6, -kInf));
        expect_values(got[4], std::vector<double>(6, 0));
        expect_values(got[5], std::vector<double>(6, 1));
        expect_dims(got[6], {0, 3});
        expect_values(got[7], std::vector<double>(6, kNan));
        expect_dims(got[8], {0, 3});
        expect_dims(got[9], {2, 0, 3});
        expect_dims(got[10], {2, 0, 3});
        expect_dims(got[11], {0, 3});
      });
  const Layouts named = {TensorLayout(f32, {2, "n"})};
  for (const One& fn :
       std::vector<One>{[](const Tensors& x) { return max(x[0], 1); },
                        [](const Tensors& x) { return argmin(x[0], 1); },
                        [](const Tensors& x) { return min(x[0]); },
                        // Behind loops that do not run.
                        [](const Tensors& x) { return sum(x[0] - max(x[0], 1, true), 1); },
                        [](const Tensors& x) { return argmax(x[0]); }}) {
    expect_refusal_on_every_path([&](const Tensors& x) { return Tensors{fn(x)}; }, {zeros({2, 0})},
                                 {"ValueError: ", "no elements", "_empty]", "reductions_test.cpp:"},
                                 named);
  }
  expect_on_every_path([](const Tensors& x) { return max(x[0], 1); }, {full({2, 3}, -INFINITY)},
                       {-kInf, -kInf}, named);
}

// B104: 0-d tensors reduce over no axes; an axis that is not there is an error, not a crash.
TEST(Scalars, Reduce) {
  on_every_path(
      [](const Tensors& x) {
        return Tensors{sum(x[0]),     mean(x[0]),
                       max(x[0]),     argmax(x[0]),
                       flip(x[0]),    transpose(x[0]),
                       x[0][NewAxis], reshape(x[0], {1, 1}),
                       any(x[0] > 0), broadcast_to(x[0], {2, 0}),
                       tile(x[0], {})};
      },
      {tensor(5.0f)},
      [](const Tensors& got) {
        for (const size_t i : {0, 1, 2, 4, 5, 6, 7}) expect_values(got[i], {5});
        expect_values(got[3], {0});
        expect_dims(got[6], {1});
        expect_dims(got[9], {2, 0});
        expect_dims(got[10], {});
      });
  for (const One& fn : std::vector<One>{[](const Tensors& x) { return cumsum(x[0], 0); },
                                        [](const Tensors& x) { return sum(x[0], -1); },
                                        [](const Tensors& x) { return softmax(x[0]); },
                                        [](const Tensors& x) { return argmax(x[0], 0); }}) {
    expect_refusal_on_every_path([&](const Tensors& x) { return Tensors{fn(x)}; }, {tensor(5.0f)},
                                 {"ValueError: ", "axis", "reductions_test.cpp:"});
  }
}

// B078: infinities in log-sum-exp and its kin; rows that are masked whole.
TEST(Infinities, SoftmaxAndLogsumexp) {
  const Tensor rows = floats(f32, {-kInf, -kInf, kInf, 1, kNan, kInf, -kInf, 0}).reshape({4, 2});
  on_every_path(
      [](const Tensors& x) {
        return Tensors{logsumexp(x[0], 1), log_softmax(x[0], 1), softmax(x[0], 1),
                       logsumexp(x[0] * 1, 1, true)};
      },
      {rows},
      [](const Tensors& got) {
        expect_values(got[0], {-kInf, kInf, kNan, 0});
        expect_values(got[1], {kNan, kNan, kNan, kNan, kNan, kNan, -kInf, 0});
        expect_values(got[2], {kNan, kNan, kNan, kNan, kNan, kNan, 0, 1});
        expect_dims(got[3], {4, 1});
      });
  on_every_path(
      [](const Tensors& x) {
        return Tensors{softmax(x[0]), logsumexp(x[0])};
      },
      {floats(f32, {1e30, 1e30, -1e30})},
      [](const Tensors& got) {
        expect_values(got[0], {0.5, 0.5, 0});
        expect_values(got[1], {double(1e30f)});
      });
}

// MAX 13 and B019: narrow integers sum exactly; their mean and deviation are floats.
TEST(NarrowIntegers, SumsAndMeans) {
  on_every_path(
      [](const Tensors& x) {
        return Tensors{sum(x[0]),    mean(x[0]),     var(x[0]),
                       stddev(x[0]), prod(x[0] + 1), cumsum(x[0], 0)};
      },
      {tensor(std::vector<uint8_t>{0, 100, 200, 123})},
      [](const Tensors& got) {
        expect_values(got[0], {423});
        expect_values(got[1], {105.75});
        expect_values(got[2], {5099.1875}, 1e-6);
        expect_values(got[3], {71.40860}, 1e-6);
        expect_values(got[4], {1.0 * 101 * 201 * 124});
        expect_values(got[5], {0, 100, 300, 423});
      });
  on_every_path(
      [](const Tensors& x) {
        return Tensors{mean(x[0]), sum(x[0])};
      },
      {tensor(std::vector<int64_t>{(1ll << 53) + 1, (1ll << 53) + 1, 1, 1})},
      [](const Tensors& got) {
        EXPECT_EQ(got[1].item<int64_t>(), (1ll << 54) + 4);
        EXPECT_TRUE(is_float(got[0].dtype()));
        expect_values(got[0], {4503599627370497.0}, 1e-15);
      });
  on_every_path(
      [](const Tensors& x) {
        return Tensors{sum(x[0]), mean(x[0]), max(x[0]), prod(x[0])};
      },
      {tensor(std::vector<uint64_t>{1ull << 63, 5})},
      [](const Tensors& got) {
        EXPECT_EQ(got[0].dtype(), u64);
        expect_values(got[0], {9223372036854775808.0});
        expect_values(got[1], {4611686018427387904.0});
        expect_values(got[2], {9223372036854775808.0});
        expect_values(got[3], {9223372036854775808.0});
      });
}

// MAX 15, B043, B057, B120: long sums keep their digits, in every format and along every axis.
TEST(LongSums, KeepTheirDigits) {
  const auto program = compile([](const Tensor& ones16, const Tensor& ones_bf, const Tensor& x) {
    return Tensors{sum(ones16),
                   sum(ones_bf),
                   mean(ones_bf),
                   sum(ones16.reshape({-1, 5}), 0),
                   cumsum(ones16["0:5000"], 0)[-1],
                   cumsum(ones_bf["0:5000"], 0)[-1],
                   mean(ones16 * 20),
                   sum(x),
                   mean(x),
                   sum(x * 1.0f),
                   sum(x.reshape({-1, 2}), 0)};
  })(TensorLayout(f16, {Dim("a") * 5}), TensorLayout(bf16, {"b"}),
     TensorLayout(f32, {Dim("n") * 2}));
  const Tensors got = program(ones({20000}, f16), ones({70000}, bf16), full({2000000}, 0.1f));
  const double tenth = 0.1f;
  expect_values(got[0], {20000});
  expect_values(got[1], {70144});  // the nearest to 70000
  expect_values(got[2], {1});
  expect_values(got[3], std::vector<double>(5, 4000));
  expect_values(got[4], {5000});
  expect_values(got[5], {4992});
  expect_values(got[6], {20});
  expect_values(got[7], {2e6 * tenth}, 2e-7);
  expect_values(got[8], {tenth}, 2e-7);
  expect_values(got[9], {2e6 * tenth}, 2e-7);
  expect_values(got[10], {1e6 * tenth, 1e6 * tenth}, 1e-6);
  on_every_path(
      [](const Tensors& x) {
        return Tensors{sum(x[0]),           mean(x[0]),
                       cumsum(x[0], 0)[-1], sum(x[1]),
                       cumsum(x[1], 0)[-1], matmul(x[1].reshape({1, -1}), x[1].reshape({-1, 1}))};
      },
      {ones({3000}, bf16), ones({4096}, f16)},
      [](const Tensors& results) {
        expect_values(results[0], {3008});  // the nearest to 3000
        expect_values(results[1], {1});
        expect_values(results[2], {3008});
        expect_values(results[3], {4096});
        expect_values(results[4], {4096});
        expect_values(results[5], {4096});
      });
}

// MAX 15: what cancels is computed so that it does not.
TEST(Accuracy, LayerNormOfLargeValues) {
  on_every_path(
      [](const Tensors& x) {
        return Tensors{layer_norm(x[0]), var(x[1]), stddev(x[1])};
      },
      {floats(f32, {1e8, 1e8 + 8, 1e8 + 16, 1e8 + 24}), floats(f32, {10000, 10001, 10002})},
      [](const Tensors& got) {
        expect_values(got[0], {-1.3416407, -0.4472136, 0.4472136, 1.3416407}, 1e-6);
        expect_values(got[1], {2.0 / 3}, 1e-6);
        expect_values(got[2], {std::sqrt(2.0 / 3)}, 1e-6);
      });
}

// PyTorch 1.5: reductions and elementwise work at sizes that are no multiple of a vector.
TEST(Vectors, SizesThatFillNoVector) {
  on_every_path(
      [](const Tensors& x) {
        return Tensors{max(x[0]), tanh(x[0]["0:40"]) * 2 + 1, argmax(x[0]), min(-x[0])};
      },
      {(arange(1000, f32) * -1 - 5).eval()},
      [](const Tensors& got) {
        expect_values(got[0], {-5});
        std::vector<double> wanted;
        for (int i = 0; i < 40; ++i) wanted.push_back(std::tanh(-5.0 - i) * 2 + 1);
        expect_values(got[1], wanted, 1e-6);
        expect_values(got[2], {0});
        expect_values(got[3], {5});
      },
      {TensorLayout(f32, {"n"})});
}

// B115: what follows a reduction happens once a result, also in a square matrix.
TEST(Fusion, AMapAfterAReduction) {
  for (const int64_t rows : {5, 4}) {
    expect_on_every_path([](const Tensors& x) { return sum(x[0] + x[1], 0) + 2; },
                         {zeros({rows, 5}), zeros({5})}, std::vector<double>(5, 2),
                         {TensorLayout(f32, {"n", 5}), TensorLayout(f32, {5})});
  }
}

// B061: an operand whose inner sizes are 1 under a select after a reduction.
TEST(Fusion, BroadcastInsideASelect) {
  const Tensor x = (sin(arange(5 * 4 * 3 * 3, f32)) * 3).reshape({5, 4, 3, 3}).eval();
  on_every_path(
      [](const Tensors& in) {
        const Tensor n =
            (in[0] - mean(in[0], {2, 3}, true)) / sqrt(var(in[0], {2, 3}, true) + 1e-5f);
        const Tensor p = mean(n, {2, 3}, true) + cast(arange(4).reshape({1, 4, 1, 1}), f32) - 1.5f;
        const Tensor y = where(p > 0, p, n);
        return Tensors{max(abs(y[{Slice(), Slice(2, 4)}] - p[{Slice(), Slice(2, 4)}])),
                       max(abs(y[{Slice(), Slice(0, 2)}] - n[{Slice(), Slice(0, 2)}]))};
      },
      {x},
      [](const Tensors& got) {
        expect_values(got[0], {0});
        expect_values(got[1], {0});
      });
}

// B109, B133, B152: positions and orders are those of the logical tensor, whatever its memory.
TEST(Layouts, TransposedOperands) {
  const Tensor small = floats(f32, {0, 1, 2, 3, -5, 4}).reshape({2, 3}).eval();
  const Tensor grid = cast((arange(64) * 37) % 64, f32).reshape({8, 8}).eval();
  const Tensor other = cast((arange(64) * 11) % 17, f32).reshape({8, 8}).eval();
  on_every_path(
      [](const Tensors& x) {
        const Tensor s = transpose(x[1]) + x[2];
        const Tensor i = argmax(s, 1);
        const Tensor picked = take_along_axis(s, i.expand_dims(1), 1).squeeze(1);
        return Tensors{
            argmin(transpose(x[0] + 0.0f)),      argmin(x[0]),
            sum(cast(picked == max(s, 1), i64)), take(transpose(x[0]), tensor({0, 2}), 0),
            cumsum(transpose(x[0]), 1),          argmax(transpose(x[0]), 0)};
      },
      {small, grid, other},
      [](const Tensors& got) {
        expect_values(got[0], {3});
        expect_values(got[1], {4});
        expect_values(got[2], {8});
        expect_values(got[3], {0, 3, 2, 4});
        expect_values(got[4], {0, 3, 1, -4, 2, 6});
        expect_values(got[5], {2, 2});
      });
}

// B004: running sums over an axis of one element with strides that are not the row's.
TEST(Scans, OverOneElement) {
  on_every_path(
      [](const Tensors& x) {
        const Tensor a = x[0][{Slice(), Slice(3, 10)}];
        return Tensors{cumsum(a, 0), sum(a, 0), max(a, 0), cumsum(flip(a, 1), 0)};
      },
      {(arange(10, f32) + 1).reshape({1, 10}).eval()},
      [](const Tensors& got) {
        for (const size_t i : {0, 1, 2}) expect_values(got[i], {4, 5, 6, 7, 8, 9, 10});
        expect_values(got[3], {10, 9, 8, 7, 6, 5, 4});
      });
}

// B015: products of integers are integers and wrap in their own width.
TEST(Products, Integers) {
  on_every_path(
      [](const Tensors& x) {
        return Tensors{matmul(x[0], x[1]), matmul(x[2], x[3]), matmul(x[4], x[5])};
      },
      {tensor({12}), tensor({4}), tensor(std::vector<int64_t>{1ll << 40, 1}, {1, 2}),
       tensor(std::vector<int64_t>{1 << 20, 5}, {2, 1}), tensor(std::vector<uint8_t>{200}, {1, 1}),
       tensor(std::vector<uint8_t>{2}, {1, 1})},
      [](const Tensors& got) {
        expect_values(got[0], {48});
        EXPECT_EQ(got[1].to_vector<int64_t>(), std::vector<int64_t>{1152921504606846981});
        expect_values(got[2], {144});
        EXPECT_EQ(got[2].dtype(), u8);
      });
}

// B050 and B132: a product over nothing is 0, and what surrounds it still happens.
TEST(Products, OverNothing) {
  on_every_path(
      [](const Tensors& x) {
        return Tensors{2 * x[2] + 0 * matmul(x[0], x[1]), maximum(x[2] + matmul(x[0], x[1]), 5),
                       matmul(x[0], x[1])};
      },
      {ones({2, 0}), ones({0, 2}), ones({2, 2})},
      [](const Tensors& got) {
        expect_values(got[0], {2, 2, 2, 2});
        expect_values(got[1], {5, 5, 5, 5});
        expect_values(got[2], {0, 0, 0, 0});
      },
      {TensorLayout(f32, {2, "k"}), TensorLayout(f32, {"k", 2}), TensorLayout(f32, {2, 2})});
  on_every_path(
      [](const Tensors& x) {
        return Tensors{matmul(x[0], x[1]), matmul(x[2], x[1].reshape({4, 0})),
                       matmul(zeros({5, 0, 2}), zeros({5, 2, 3})), matmul(zeros({0}), zeros({0}))};
      },
      {zeros({0, 4}), ones({4, 0}), ones({3, 4})},
      [](const Tensors& got) {
        expect_dims(got[0], {0, 0});
        expect_dims(got[1], {3, 0});
        expect_dims(got[2], {5, 0, 3});
        expect_values(got[3], {0});
      });
}

// Rows are summed up first: a spread that is small beside the mean stays, also between rows.
TEST(Variance, OfManyRowsFarFromZero) {
  for (const double step : {0.0, 64.0}) {
    std::vector<double> values;
    for (int64_t i = 0; i < 70 * 33; ++i) {
      const int64_t row = i / 33;
      values.push_back(1e6 + static_cast<double>(i * 31 % 13) + step * static_cast<double>(row));
    }
    double mean = 0;
    for (const double v : values) mean += v / static_cast<double>(values.size());
    double squares = 0;
    for (const double v : values) squares += (v - mean) * (v - mean);
    const double n = static_cast<double>(values.size());
    const Tensor x = floats(f32, values).reshape({70, 33}).eval();
    for (const One& fn : std::vector<One>{[](const Tensors& t) { return var(t[0]); },
                                          [](const Tensors& t) {
                                            return var(t[0].reshape({7, 10, 33}), {0, 1, 2});
                                          },
                                          [](const Tensors& t) {
                                            return var(t[0].reshape({70, 3, 11}), {0, -1, 1}, true);
                                          }}) {
      expect_near_on_every_path(fn, {x}, {squares / n}, 1e-6);
    }
    expect_near_on_every_path([](const Tensors& t) { return var(t[0], {}, false, 1); }, {x},
                              {squares / (n - 1)}, 1e-6);
  }
}

// Long enough to be searched in parts: the first of equals in and between parts, NaN, the padding.
TEST(Positions, OfMany) {
  for (const int64_t n : {65536, 70001}) {
    std::vector<double> values(static_cast<size_t>(n), -kInf);
    const auto put = [&](std::vector<int64_t> at, double value) {
      std::vector<double> changed = values;
      for (const int64_t i : at) changed[static_cast<size_t>(i)] = value;
      return floats(f32, changed).eval();
    };
    const One both = [](const Tensors& t) {
      return stack({argmax(t[0]), argmin(-t[0]), argmax(t[0].reshape({1, -1}), 1)[0]});
    };
    const auto expect = [&](const Tensor& x, double wanted) {
      expect_on_every_path(both, {x}, {wanted, wanted, wanted});
    };
    expect(put({}, 0), 0);
    expect(put({n - 1}, 5), static_cast<double>(n - 1));
    const int64_t third = n / 3;
    const int64_t half = n / 2;
    expect(put({half, third, n - 2}, 5), static_cast<double>(third));
    expect(put({half + 1, half}, kNan), static_cast<double>(half));
    const Tensor bytes = cast(put({40000, 50000}, 200), u8).eval();
    expect_on_every_path([](const Tensors& t) { return argmax(t[0]); }, {bytes}, {40000});
    const Tensor shorts = cast(put({n - 3}, 0), i16).eval();
    expect_on_every_path([](const Tensors& t) { return argmax(t[0]); }, {shorts},
                         {static_cast<double>(n - 3)});
  }
}

}  // namespace
}  // namespace tenon::anchors
