// The public face alone: what a user saves, loads and calls, with Tensors and with bare arrays.
#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include <filesystem>
#include <unordered_map>

#include "tests/refusal.h"

namespace load_test {

enum class Mode { kPlain, kDoubled };
struct Params {
  tenon::Tensor w, b;
};
TENON_STRUCT(Params, w, b)
// The same structure as a program without the compiler would hold it.
namespace bare {
struct Params {
  tenon::Array w, b;
};
TENON_STRUCT(Params, w, b)
}  // namespace bare

struct Out {
  tenon::Tensor y;
  std::vector<tenon::Tensor> list;
  std::optional<int> none;
  Mode mode;
};
TENON_STRUCT(Out, y, list, none, mode)

}  // namespace load_test

namespace tenon {
namespace {

using load_test::Mode;
using load_test::Out;
using load_test::Params;
using Floats = std::vector<float>;

std::string path_of(const std::string& name) {
  return (std::filesystem::path(::testing::TempDir()) / name).string();
}

auto step_program() {
  return compile(
      [](const Tensor& x, const Params& p, float gain) { return matmul(x, p.w) * gain + p.b; },
      {.name = "step", .argument_names = {"x", "p", "gain"}})(
      TensorLayout(f32, {"batch", 2}),
      Params{.w = TensorLayout(f32, {2, 2}), .b = TensorLayout(f32, {2})}, 2.0f);
}

TEST(Load, TensorsAndBareArrays) {
  const std::string path = path_of("load_step.tenon");
  const auto program = step_program();
  program.save(path);
  const auto step = load(path);
  const Params params{tensor({{1.0f, 2.0f}, {3.0f, 4.0f}}), tensor({0.5f, 0.25f})};
  const Tensor x = tensor({{1.0f, 1.0f}, {2.0f, 0.0f}}) + 0;
  const Tensor y = step(x, params, 2.0f);
  EXPECT_EQ(y.to_vector<float>(), program(x, params, 2.0f).to_vector<float>());
  EXPECT_EQ(y.to_vector<float>(), (Floats{8.5f, 12.25f, 4.5f, 8.25f}));
  const load_test::bare::Params bare{params.w.array(), params.b.array()};
  const Array z = step(array<float>({1, 2}, {1, 1}), bare, 2.0f);
  EXPECT_EQ(to_vector<float>(z), (Floats{8.5f, 12.25f}));
}

// Every refusal of the call is the one of the program in process.
TEST(Load, RefusesAsTheFunctionDoes) {
  const std::string path = path_of("load_refuse.tenon");
  const auto program = step_program();
  program.save(path);
  const auto step = load(path);
  const Params params{zeros({2, 2}), zeros({2})};
  const Tensor x = zeros({3, 2});
  const auto same = [&](const auto&... args) {
    const std::string wanted = refusal([&] { program(args...); });
    EXPECT_NE(wanted, "ran");
    EXPECT_EQ(refusal([&] { step(args...); }), wanted);
  };
  same(x, params);
  same(x, params, 3.0f);
  same(x, params, 2);
  same(x, x, 2.0f);
  same(x, Params{zeros({2, 3}), zeros({2})}, 2.0f);
  same(cast(x, f64), params, 2.0f);
  same(zeros({2}), params, 2.0f);
  same(Tensor(), params, 2.0f);
  same(Tensor(TensorLayout(f32, {3, 2})), params, 2.0f);
  same(1.0f, params, 2.0f);
  compile([&](const Tensor& traced) {
    same(traced, params, 2.0f);
    return traced;
  })(TensorLayout(f32, {3, 2}));
}

TEST(Load, ResultsOfEveryKind) {
  const std::string path = path_of("load_out.tenon");
  compile(
      [](const Tensor& x) {
        return std::tuple(Out{x * 2, {x, x + 1}, std::nullopt, Mode::kDoubled},
                          std::map<int, Tensor>{{-1, x}, {12, x * 3}}, 300, std::string("alpha"));
      },
      {.name = "f"})(TensorLayout(f32, {1}))
      .save(path);
  const auto f = load(path);
  const auto result = f(tensor({5.0f}));
  const auto [out, map, number, text] =
      result.as<std::tuple<Out, std::unordered_map<int64_t, Tensor>, int16_t, std::string>>();
  EXPECT_EQ(out.y.item<float>(), 10);
  EXPECT_EQ(out.list.at(1).item<float>(), 6);
  EXPECT_EQ(out.none, std::nullopt);
  EXPECT_EQ(out.mode, Mode::kDoubled);
  EXPECT_EQ(map.at(12).item<float>(), 15);
  EXPECT_EQ(number, 300);
  EXPECT_EQ(text, "alpha");
  using Map = std::map<int64_t, Tensor>;
  EXPECT_EQ(refusal([&] { result.as<std::tuple<Out, Map, uint8_t, std::string>>(); }),
            "TypeError: f: result 2: is 300, taken as unsigned char [result_type]");
  EXPECT_EQ(refusal([&] { result.as<Tensor>(); }),
            "TypeError: f: result: is a tuple of 4, taken as tenon::Tensor [result_type]");
  EXPECT_NE(refusal([&] {
              result.as<std::tuple<Out, std::map<uint8_t, Tensor>, int, std::string>>();
            }).find("[result_type]"),
            std::string::npos);
}

TEST(Load, WritesReachTheCallersMemory) {
  const std::string path = path_of("load_cache.tenon");
  compile([](Tensor cache, const Tensor& x) { cache.store(x); }, {.name = "store"})(
      BufferLayout(f32, {2}), TensorLayout(f32, {2}))
      .save(path);
  const auto store = load(path);
  std::vector<float> memory{0, 0};
  const Tensor cache = Tensor::borrow(memory.data(), f32, {2});
  const Tensor lazy = cache + 5;
  store(cache, tensor({1.0f, 2.0f}));
  EXPECT_EQ(memory, (Floats{1, 2}));
  EXPECT_EQ(lazy.to_vector<float>(), (Floats{5, 5}));
}

TEST(Load, ArraysAreRead) {
  EXPECT_EQ(to_vector<bool>(array<bool>({2}, {true, false})), (std::vector<bool>{true, false}));
  EXPECT_EQ(to_vector<int64_t>(array<int64_t>({}, {7})), std::vector<int64_t>{7});
  EXPECT_EQ(refusal([] { to_vector<float>(array<double>({1}, {1.0})); }),
            "TypeError: to_vector: f64[1] read as f32 [to_vector_dtype]");
  EXPECT_NE(refusal([] { array<float>({3}, {1.0f}); }).find("[copy_of_count]"), std::string::npos);
}

}  // namespace
}  // namespace tenon
