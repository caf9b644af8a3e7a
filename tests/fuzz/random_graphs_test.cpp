// Differential test: random graphs, lowered and run through the kernel evaluator, against the
// interpreter. TENON_FUZZ_GRAPHS: how many (2,000); TENON_FUZZ_SEED: where to begin (1).
#include <gtest/gtest.h>

#include <cstdlib>

#include "module_runner.h"
#include "random_graph.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ir/text.h"
#include "tenon/passes/pipeline.h"

namespace tenon {
namespace {

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::vector<Literal> interpret(const fuzz::RandomGraph& random) {
  return interp::run(*random.graph, random.arguments,
                     [&](const std::string& name) { return random.externals.at(name); });
}

void compare(uint64_t seed, const passes::Options& options) {
  if (std::getenv("TENON_FUZZ_TRACE") != nullptr) fmt::print(stderr, "seed {}\n", seed);
  const fuzz::RandomGraph random = fuzz::random_graph(seed);
  SCOPED_TRACE(fmt::format("seed {}\n{}", seed, ir::print(random.graph)));
  try {
    const std::vector<Literal> wanted = interpret(random);
    const passes::Lowered lowered = passes::lower(random.graph, options);
    for (const kir::Kernel& kernel : lowered.kernels) kir::verify(kernel);
    const std::vector<Literal> got =
        passes_test::run_module(lowered, *random.graph, random.arguments, random.externals);
    ASSERT_EQ(wanted.size(), got.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(fuzz::difference(wanted[i], got[i], random.outputs[i]), "")
          << "output " << i << "\n"
          << lowered.explanation.groups;
    }
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

TEST(RandomGraphs, KernelsAgreeWithTheInterpreter) {
  const uint64_t first = number_of("TENON_FUZZ_SEED", 1);
  const uint64_t count = number_of("TENON_FUZZ_GRAPHS", 2000);
  passes::Options options;
  options.explain = true;
  options.verify = true;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    compare(seed, options);
    if (testing::Test::HasFailure()) break;
  }
}

TEST(RandomGraphs, AgreeWithoutGraphPasses) {
  const uint64_t first = number_of("TENON_FUZZ_SEED", 1) + 1000000;
  const uint64_t count = number_of("TENON_FUZZ_GRAPHS", 2000) / 10;
  passes::Options options;
  options.explain = true;
  options.skip = {"canonicalize", "simplify",    "fold_constants", "propagate_shapes",
                  "cse",          "tidy",        "inline_bodies",  "split_reductions",
                  "split_sorts",  "pack_matmul", "split_attention"};
  for (uint64_t seed = first; seed < first + count; ++seed) {
    compare(seed, options);
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace tenon
