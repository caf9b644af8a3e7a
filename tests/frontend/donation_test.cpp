#include "tenon/frontend/donation.h"

#include <gtest/gtest.h>

#include <numeric>
#include <regex>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tests/refusal.h"

namespace donation_test {
struct Params {
  tenon::Tensor w, b;
};
TENON_STRUCT(Params, w, b)
}  // namespace donation_test

namespace tenon {
namespace {

using donation_test::Params;
using Floats = std::vector<float>;

auto step(std::vector<std::string> donate) {
  return compile([](const Tensor& x, const Tensor& g) { return x - g * 0.5f; },
                 {.name = "step", .argument_names = {"x", "g"}, .donate = std::move(donate)})(
      TensorLayout(f32, {"n"}), TensorLayout(f32, {"n"}));
}

TEST(Donation, AResultTakesTheMemory) {
  const auto program = step({"x"});
  Tensor x = tensor({1.0f, 2.0f, 3.0f}) + 0;
  const Tensor g = tensor({2.0f, 2.0f, 2.0f});
  const void* memory = x.array().data();
  for (int i = 0; i < 3; ++i) {
    const Tensor old = x;
    x = program(x, g);
    EXPECT_EQ(x.array().data(), memory);
    EXPECT_THROW(old.array(), ValueError);
    EXPECT_EQ(old.dims(), std::vector<int64_t>{3});
  }
  EXPECT_EQ(x.to_vector<float>(), (Floats{-2, -1, 0}));
  EXPECT_EQ(g.to_vector<float>(), Floats(3, 2.0f));
}

TEST(Donation, ADonatedTensorIsRefused) {
  const auto program = step({"x"});
  const Tensor x = tensor({1.0f}) + 0;
  program(x, tensor({2.0f}));
  const auto text = [&](const std::function<void()>& work) {
    return std::regex_replace(refusal(work), std::regex("[a-z_]+\\.cpp:[0-9]+"), "FILE:N");
  };
  EXPECT_EQ(text([&] { x * 2; }),
            "ValueError: mul: the tensor f32[1] was donated to step, a result has its memory "
            "[donate_c4]\n"
            "  at FILE:N\n"
            "  hint: use the result, or compile without donate");
  for (const auto& work : std::vector<std::function<void()>>{
           [&] { x.item<float>(); }, [&] { program(x, x); },
           [&] { compile([&](const Tensor& y) { return x + y; })(TensorLayout(f32, {1})); }}) {
    EXPECT_NE(text(work).find("was donated to step"), std::string::npos) << text(work);
  }
}

// Values made from it before, programs that hold it as a constant, and borrowed memory stay.
TEST(Donation, WhatWasTakenBeforeStays) {
  const auto program = step({"x"});
  const Tensor g = tensor({2.0f, 2.0f});
  const Tensor x = (arange(2, f32) + 1).eval();
  const Tensor lazy = x * 10;
  const auto captured = compile([&x](const Tensor& y) { return x + y; })(TensorLayout(f32, {2}));
  EXPECT_EQ(program(x, g).to_vector<float>(), (Floats{0, 1}));
  EXPECT_EQ(lazy.to_vector<float>(), (Floats{10, 20}));
  EXPECT_EQ(captured(zeros({2})).to_vector<float>(), (Floats{1, 2}));
  std::vector<float> memory{1, 2};
  EXPECT_EQ(program(Tensor::borrow(memory.data(), f32, {2}), g).to_vector<float>(), (Floats{0, 1}));
  EXPECT_EQ(memory, (Floats{1, 2}));
}

// A result that reads its own argument at other places than it writes.
TEST(Donation, ValuesAreThoseWithoutIt) {
  const auto fn = [](const Params& p, const Tensor& x) {
    return std::tuple(x + p.b, flip(p.w, 0) + p.w * 2, cumsum(p.b, 0) + p.w[0]);
  };
  const Params specs{TensorLayout(f32, {3, 3}), TensorLayout(f32, {3})};
  const auto run = [&](std::vector<std::string> donate) {
    const auto program =
        compile(fn, {.name = "f", .argument_names = {"p", "x"}, .donate = std::move(donate)})(
            specs, TensorLayout(f32, {3}));
    const Params params{reshape(arange(9, f32), {3, 3}).eval(), (arange(3, f32) + 5).eval()};
    const auto [a, b, c] = program.operator()(params, (arange(3, f32) * 100).eval());
    Floats all = a.template to_vector<float>();
    for (const Tensor& t : {b, c}) {
      const Floats more = t.to_vector<float>();
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  };
  const Floats wanted = run({});
  EXPECT_EQ(run({"p.w"}), wanted);
  EXPECT_EQ(run({"p.b"}), wanted);
  EXPECT_EQ(run({"x", "p.b"}), wanted);
  EXPECT_EQ(run({"p.b", "p.w", "x"}), wanted);
}

TEST(Donation, OneMemoryTwice) {
  const auto program = step({"x"});
  const Tensor x = tensor({1.0f, 4.0f}) + 0;
  EXPECT_EQ(program(x, x).to_vector<float>(), (Floats{0.5f, 2}));

  const auto both = compile(
      [](const Tensor& a, const Tensor& b) { return std::pair(a + b, a - b); },
      {.name = "both", .donate = {"0", "1"}})(TensorLayout(f32, {1}), TensorLayout(f32, {1}));
  const Tensor y = tensor({3.0f}) + 0;
  EXPECT_EQ(refusal([&] { both(y, y); }),
            "ValueError: both: donated argument 1 is the tensor of argument 0 too, which is "
            "written [argument_overlap]");
  EXPECT_EQ(y.item<float>(), 3);
}

TEST(Donation, BareArraysAreKept) {
  const auto program = step({"x"});
  const Tensor x = tensor({1.0f}) + 0;
  const auto out = program.execute_raw({x.array(), x.array()});
  EXPECT_EQ(out.at(0).as<float>()[0], 0.5f);
  EXPECT_EQ(x.item<float>(), 1);
}

TEST(Donation, WhatCannotBeDonated) {
  EXPECT_EQ(refusal([] { step({"y"}); }),
            "ValueError: step: donate: y is no tensor argument, they are x, g [donate_c1]");
  EXPECT_EQ(refusal([] {
              step({"x", "g"});
            }),
            "ValueError: step: donate: argument g: no result is f32[\"n\"], to take its memory "
            "[donate_c3]");
  EXPECT_EQ(refusal([] {
              compile([](Tensor x) { x += 1; },
                      {.name = "f", .donate = {"0"}})(BufferLayout(f32, {1}));
            }),
            "ValueError: f: donate: argument 0 is a buffer [donate_c2]\n"
            "  hint: a buffer is written in place without being donated");
}

}  // namespace
}  // namespace tenon
