#include "tenon/program/signature.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tenon/base/error.h"
#include "tests/refusal.h"

namespace tenon::program {
namespace {

using runtime::Array;

const Array kX = Array::empty(DType::kF32, {3, 64});
const Array kW = Array::empty(DType::kF32, {64, 32});
const Array kB = Array::empty(DType::kF32, {32});

// step(x, Params{b, w}, 2.0)
Leaves right_call() {
  Leaves call;
  call.open(TokenKind::kArguments, 3);
  call.tensor(kX);
  call.open(TokenKind::kRecord, 2, "Params");
  call.key("b");
  call.tensor(kB);
  call.key("w");
  call.tensor(kW);
  call.fixed(StaticView::of(2.0), "double");
  return call;
}

Signature step() {
  Signature s;
  s.function = "step";
  s.names = {"x", "p", "gain"};
  s.arguments = Structure(right_call().tokens);
  s.tensors = {{DType::kF32, {Dim("batch"), Dim(64)}, false, ""},
               {DType::kF32, {Dim(32)}, false, ""},
               {DType::kF32, {Dim(64), Dim(32)}, false, "model.cpp:31"}};
  s.statics = {StaticValue(StaticView::of(2.0))};
  Leaves result;
  result.tensor(kX);
  s.results = Structure(result.tokens);
  s.result_tensors = {{DType::kF32, {Dim("batch"), Dim(32)}, false, ""}};
  s.validate();
  return s;
}

std::string refusal(const Leaves& call, const Signature& s = step()) {
  std::vector<Array> out;
  return tenon::refusal([&] { s.check(call, out); });
}

TEST(Signature, TakesTheRightCall) {
  std::vector<Array> out;
  step().check(right_call(), out);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[2].data(), kW.data());
  EXPECT_EQ(step().str(),
            "(x: f32[\"batch\", 64], p: {b: f32[32], w: f32[64, 32]}, gain = 2.0) → "
            "f32[\"batch\", 32]");
}

TEST(Signature, CountAndKeywords) {
  Leaves call;
  call.open(TokenKind::kArguments, 1);
  call.tensor(kX);
  EXPECT_EQ(refusal(call),
            "ValueError: step: expected 3 positional argument(s), got 1 [argument_count]");
  call = right_call();
  call.key("k");
  call.fixed(StaticView::of(3.0));
  EXPECT_EQ(refusal(call),
            "ValueError: step: expected 3 positional argument(s), got 3, and keywords [], got [k] "
            "[argument_count]");
  EXPECT_EQ(refusal(Leaves()),
            "ValueError: step: expected 3 positional argument(s), got 0 [argument_count]");
}

TEST(Signature, TreeNamesTheFirstDifferenceOnly) {
  Leaves call;
  call.open(TokenKind::kArguments, 3);
  call.tensor(kX);
  call.open(TokenKind::kTuple, 2);
  call.tensor(kB);
  call.tensor(kW);
  call.fixed(StaticView::of(2.0));
  EXPECT_EQ(refusal(call),
            "ValueError: step: argument p: tree structure mismatch: expected Params with 2 fields, "
            "got a tuple of 2 [argument_tree]");
  call = right_call();
  call.tokens[3].text = "bias";
  EXPECT_EQ(refusal(call),
            "ValueError: step: argument p: tree structure mismatch: expected key \"b\", got key "
            "\"bias\" [argument_tree]");
  call = right_call();  // a list is not a tuple
  Signature s = step();
  call.tokens[2] = {TokenKind::kSequence, 2, ""};
  EXPECT_NE(refusal(call), "ran");
}

TEST(Signature, StaticsAreExact) {
  auto with = [](StaticView value) {
    Leaves call = right_call();
    call.leaves[3].value = value;
    return call;
  };
  EXPECT_EQ(
      refusal(with(StaticView::of(int64_t{2}))),
      "ValueError: step: argument gain: compiled for 2.0, got 2 [argument_static]\n"
      "  hint: a value that is not a tensor is part of the program: compile again for another "
      "one");
  EXPECT_NE(refusal(with(StaticView::of(std::string_view("2.0")))), "ran");
  EXPECT_NE(refusal(with(StaticView::of(true))), "ran");
  EXPECT_NE(refusal(with(StaticView::none())), "ran");
  EXPECT_EQ(refusal(with(StaticView::of(2.0))), "ran");
  Signature s = step();
  s.statics[0] = StaticValue(StaticView::of(std::nan("")));
  EXPECT_EQ(refusal(with(StaticView::of(std::nan(""))), s), "ran");
  s.statics[0] = StaticValue(StaticView::of(0.0));
  EXPECT_NE(refusal(with(StaticView::of(-0.0)), s), "ran");
  EXPECT_NE(StaticView::of(int64_t{1}), StaticView::of(true));
  EXPECT_NE(StaticView::of(int64_t{-1}), StaticView::of(~uint64_t{0}));

  Leaves call = right_call();  // a tensor in a static's place
  call.tokens.back() = {TokenKind::kTensor};
  call.leaves[3] = {&kB, {}, {}};
  EXPECT_EQ(refusal(call).substr(0, 91),
            "ValueError: step: argument gain: compiled for 2.0, got a tensor f32[32] "
            "[argument_static]\n ");
}

TEST(Signature, TensorPlaces) {
  Leaves call = right_call();
  call.tokens[1] = {TokenKind::kStatic};
  call.leaves[0] = {nullptr, StaticView::of(1.0), "float"};
  EXPECT_EQ(refusal(call),
            "TypeError: step: argument x: expected a Tensor, got float [argument_type]\n"
            "  hint: bare arrays go to execute_raw()");
  // Statics are compared first.
  call.leaves[3].value = StaticView::of(5.0);
  EXPECT_EQ(refusal(call).substr(0, 10), "ValueError");
}

TEST(Signature, TensorsByDtypeRankAndDims) {
  auto with = [](const Array& w) {
    Leaves call = right_call();
    call.leaves[2].array = &w;
    return refusal(call);
  };
  EXPECT_EQ(with(Array::empty(DType::kF64, {64, 32})),
            "ValueError: step: argument p.w: expected f32[64, 32], got f64[64, 32] "
            "[argument_dtype]\n  at model.cpp:31, where it is declared");
  EXPECT_EQ(
      with(Array::empty(DType::kF32, {64})),
      "ShapeError: step: argument p.w: expected f32[64, 32], got f32[64]: 2 dimensions, got 1 "
      "[argument_rank]\n  at model.cpp:31, where it is declared");
  EXPECT_EQ(with(Array::empty(DType::kF32, {32, 64})),
            "ShapeError: step: argument p.w: expected f32[64, 32], got f32[32, 64]: dimension 0 is "
            "64, got 32 [argument_dim]\n  at model.cpp:31, where it is declared\n"
            "  hint: the tensor may be transposed");
  EXPECT_EQ(with(Array()).substr(0, 9), "TypeError");

  Signature s = step();
  s.tensors[0].writable = true;
  float memory[3 * 64] = {};
  Array fixed = Array::borrow(DType::kF32, {3, 64}, memory, nullptr, false);
  Leaves call = right_call();
  call.leaves[0].array = &fixed;
  EXPECT_EQ(refusal(call, s),
            "ValueError: step: argument x: the program writes it, and its memory is read-only "
            "[argument_writable]\n  hint: pass a copy");
}

TEST(Signature, BareArrays) {
  std::vector<Array> arrays = {kX, kB, kW};
  step().check_raw(arrays);
  std::swap(arrays[1], arrays[2]);
  EXPECT_EQ(
      tenon::refusal([&] { step().check_raw(arrays); }),
      "ShapeError: step: argument p.b: expected f32[32], got f32[64, 32]: 1 dimensions, got 2 "
      "[argument_rank]");
  arrays.pop_back();
  EXPECT_EQ(tenon::refusal([&] { step().check_raw(arrays); }),
            "ValueError: step: expected 3 arrays, got 2 [argument_count]");
}

TEST(Signature, GuardsAreData) {
  std::vector<Guard> guards = step().guards();
  ASSERT_EQ(guards.size(), 8u);
  EXPECT_EQ(guards[0].kind, Guard::Kind::kStructure);
  EXPECT_EQ(guards[4].route, "p.b");
  EXPECT_EQ(guards[4].expected, "[32]");
  EXPECT_EQ(guards[7].route, "gain");
  EXPECT_EQ(guards[7].expected, "2.0");
}

TEST(Structure, RoutesKeepClashingNamesApart) {
  Leaves call;
  call.open(TokenKind::kArguments, 2);
  call.open(TokenKind::kMap, 2);
  call.key("a");
  call.open(TokenKind::kMap, 1);
  call.key("b");
  call.tensor(kX);
  call.key("a.b");
  call.tensor(kX);
  call.open(TokenKind::kSequence, 2);
  call.tensor(kX);
  call.open(TokenKind::kTuple, 0);
  call.key("gain");
  call.tensor(kX);
  EXPECT_EQ(routes(call.tokens), (std::vector<std::string>{"0.a.b", "0[\"a.b\"]", "1.0", "gain"}));
  EXPECT_EQ(routes(call.tokens, {"p"})[0], "p.a.b");
  Structure::checked(call.tokens);
}

TEST(Structure, RefusesWhatIsNoTree) {
  auto refuses = [](std::vector<Token> tokens) {
    EXPECT_THROW(Structure::checked(tokens), ValueError);
  };
  using K = TokenKind;
  refuses({});
  refuses({{K::kArguments, 1}});
  refuses({{K::kArguments, 1}, {K::kTensor}, {K::kTensor}});
  refuses({{K::kArguments, 0}, {K::kKey, 0, "k"}});
  refuses({{K::kArguments, 1}, {K::kKey, 0, "k"}, {K::kTensor}});
  refuses({{K::kMap, 1}, {K::kTensor}});
  refuses({{K::kTensor}, {K::kTensor}});
  refuses({{K::kTuple, 2}, {K::kTensor}});
  refuses({{K::kTuple, 1}, {K::kArguments, 0}});
  refuses({{K::kTuple, 0xffffffffu}, {K::kTensor}});
  refuses({{static_cast<K>(99), 0}});
  refuses(std::vector<Token>(10000, Token{K::kTuple, 1, {}}));
}

}  // namespace
}  // namespace tenon::program
