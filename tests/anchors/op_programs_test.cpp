// Every op of the table with every dtype that it takes, with static and named sizes, 0-d, empty and
// odd: saved, loaded and run as machine code and without, against the reference evaluation; printed
// and parsed. To stay quick each op's program has code of one level, and of each dtype two shapes,
// in turn; TENON_ALL_SAMPLES=1 takes every level and every shape. (tests/ops runs all samples
// through the evaluator of kernels.)
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "paths.h"
#include "tenon/frontend/trace.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ir/text.h"
#include "tenon/ops/registry.h"
#include "tenon/runtime/cpu.h"
#include "tests/ops/sample_data.h"

namespace tenon::anchors {
namespace {

using ops::Sizes;

constexpr uint32_t kSeed = 20291;

// One sample as a call: which of the program's arguments it takes.
struct Call {
  ir::Sample sample;
  size_t first = 0;
};

class OpProgram {
 public:
  explicit OpProgram(const ir::OpDef& op) : op_(op) {
    // Names that stand in attributes alone need an argument that has them.
    layouts_.emplace_back(i8, Shape{"n", "m", "k"});
  }

  void add(const ir::Sample& sample) {
    calls_.push_back({sample, layouts_.size()});
    for (const ir::TensorType& type : sample.in) layouts_.emplace_back(type.dtype, type.shape);
  }
  bool empty() const { return calls_.empty(); }
  const Layouts& layouts() const { return layouts_; }

  Function function() const {
    return [this](const Tensors& x) {
      Tensors results;
      for (const Call& call : calls_) {
        std::vector<ir::Value> operands;
        for (size_t i = 0; i < call.sample.in.size(); ++i) {
          operands.push_back(resolve(x[call.first + i], op_.name, Here::current()));
        }
        results.push_back(wrap(ir::make(op_, operands, call.sample.attrs)));
      }
      return results;
    };
  }

  Tensors inputs(const Sizes& at) const {
    std::mt19937 rng(kSeed);
    Tensors inputs{from(Literal(i8, ops::numbers(layouts_[0].shape(), at)))};
    for (const Call& call : calls_) {
      for (const ir::TensorType& type : call.sample.in) {
        inputs.push_back(from(ops::random_literal(type.dtype, ops::numbers(type.shape, at),
                                                  call.sample, ops::takes_specials(op_), rng)));
      }
    }
    return inputs;
  }

  // By the op's reference evaluation.
  std::vector<Literal> wanted(const Tensors& inputs, const Sizes& at) const {
    std::vector<Literal> results;
    for (const Call& call : calls_) {
      std::vector<ir::Value> params;
      std::vector<Literal> operands;
      for (size_t i = 0; i < call.sample.in.size(); ++i) {
        params.push_back(ir::make_parameter(call.sample.in[i], "p"));
        operands.push_back(inputs[call.first + i].array().to_literal());
      }
      const ir::NodePtr node = ir::make_node(op_, params, call.sample.attrs);
      results.push_back(interp::evaluate(*node, operands, ops::lookup(at)).at(0));
    }
    return results;
  }

  std::string describe(size_t call) const {
    std::string text = std::string(op_.name) + "(";
    for (const ir::TensorType& type : calls_[call].sample.in) text += ir::brief(type) + " ";
    return text + ")";
  }

 private:
  static Tensor from(const Literal& literal) {
    return Tensor(runtime::Array::from_literal(literal));
  }

  const ir::OpDef& op_;
  std::vector<Call> calls_;
  Layouts layouts_;
};

void expect_right(const ir::OpDef& op, const OpProgram& program, SavedFile& file,
                  const std::vector<Loading>& ways, const Sizes& at) {
  const Tensors inputs = program.inputs(at);
  const std::vector<Literal> wanted = program.wanted(inputs, at);
  for (const Loading& way : ways) {
    SCOPED_TRACE(fmt::format("{}, n = {}", way.name, at.find("n")->second));
    const Tensors got = file.run(inputs, way);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(ops::difference(op, wanted[i], got[i].array().to_literal()), "")
          << program.describe(i);
    }
  }
}

// Samples that refuse their operands at some sizes (max of nothing) stand alone.
bool always_answers(const ir::OpDef& op, const ir::Sample& sample) {
  OpProgram alone(op);
  alone.add(sample);
  for (const Sizes& at : ops::sample_sizes()) {
    try {
      alone.wanted(alone.inputs(at), at);
    } catch (const Error&) {
      return false;
    }
  }
  return true;
}

// Two samples of each combination of operand dtypes: other ones for each.
std::vector<ir::Sample> some_of(const std::vector<ir::Sample>& samples) {
  std::map<std::vector<DType>, std::vector<const ir::Sample*>> groups;
  for (const ir::Sample& sample : samples) {
    std::vector<DType> dtypes;
    for (const ir::TensorType& type : sample.in) dtypes.push_back(type.dtype);
    groups[dtypes].push_back(&sample);
  }
  std::vector<ir::Sample> some;
  size_t turn = 0;
  for (const auto& [dtypes, group] : groups) {
    const size_t count = group.size();
    some.push_back(*group[turn % count]);
    if (count > 1) some.push_back(*group[(turn + count / 2) % count]);
    ++turn;
  }
  return some;
}

class OpPrograms : public testing::TestWithParam<const ir::OpDef*> {};

TEST_P(OpPrograms, AgreeWithTheReference) {
  const ir::OpDef& op = *GetParam();
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  const bool whole = std::getenv("TENON_ALL_SAMPLES") != nullptr;
  OpProgram program(op);
  for (const ir::Sample& sample : whole ? ops::samples_of(op) : some_of(ops::samples_of(op))) {
    if (always_answers(op, sample)) program.add(sample);
  }
  if (program.empty()) return;

  Tensors specs;
  for (const TensorLayout& layout : program.layouts()) specs.emplace_back(layout);
  const auto staged = stage(program.function()).operator()(specs);
  EXPECT_EQ(ir::canonical(ir::parse(staged.str())), ir::canonical(staged.graph()));

  std::vector<Loading> ways = loadings();
  if (!whole && ways.size() > 1) {
    const size_t turn = std::hash<std::string_view>()(op.name) % (ways.size() - 1);
    ways = {ways[turn], ways.back()};
  }
  std::vector<std::string> levels;
  for (const Loading& way : ways) {
    if (!way.level.empty()) levels.push_back(way.level);
  }
  SavedFile file(program.function(), program.layouts(), levels);
  for (const Sizes& at : ops::sample_sizes()) {
    expect_right(op, program, file, ways, at);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpPrograms, testing::ValuesIn(ops::sampled_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

// Every dtype that an elementwise op does not take is refused while tracing, by op, dtype and the
// user's line.
TEST(OpPrograms, RefuseDtypesByName) {
  for (const ir::OpDef* op : ops::elementwise_ops()) {
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      try {
        stage([op](const Tensor& x) {
          const std::vector<ir::Value> operands(static_cast<size_t>(op->min_operands),
                                                resolve(x, op->name, Here::current()));
          return wrap(ir::make(*op, operands, {}, location_of(Here::current())));
        })(TensorLayout(dtype, {"n"}));
      } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_EQ(error.kind(), ErrorKind::kType) << text;
        EXPECT_TRUE(text.starts_with(std::string(op->name) + ": ")) << text;
        EXPECT_NE(text.find(name(dtype)), std::string::npos) << text;
        EXPECT_NE(text.find("op_programs_test.cpp:"), std::string::npos) << text;
      }
    }
  }
}

}  // namespace
}  // namespace tenon::anchors
