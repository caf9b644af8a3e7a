// Differential test of machine code: random graphs, compiled and run by the executor, against the
// interpreter. TENON_FUZZ_PROGRAMS: how many (120); TENON_FUZZ_SEED: where to begin (1).
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "random_graph.h"
#include "tenon/frontend/engine.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ir/text.h"

namespace tenon {
namespace {

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::vector<Literal> run_compiled(const fuzz::RandomGraph& random) {
  const ir::Graph& graph = *random.graph;
  std::vector<runtime::ArgumentSpec> specs;
  std::vector<runtime::Array> arguments;
  for (size_t i = 0; i < graph.params.size(); ++i) {
    specs.push_back({graph.param_names[i], graph.params[i].dtype(), graph.params[i].shape(),
                     graph.writable[i]});
    arguments.push_back(runtime::Array::copy_of(random.arguments[i]));
  }
  const std::unique_ptr<Engine> engine = make_engine(random.graph, std::move(specs));
  program::ExternalArrays externals;
  for (const auto& [name, literal] : random.externals)
    externals[name] = runtime::Array::copy_of(literal);
  engine->bind(externals);
  std::vector<Literal> outputs;
  std::vector<runtime::Array> results;
  engine->run(arguments, results);
  for (const runtime::Array& array : results) outputs.push_back(array.to_literal());
  for (const ir::Update& update : graph.updates) {
    outputs.push_back(arguments[update.param].to_literal());
  }
  return outputs;
}

void compare(uint64_t seed) {
  if (std::getenv("TENON_FUZZ_TRACE") != nullptr) fmt::print(stderr, "seed {}\n", seed);
  const fuzz::RandomGraph random = fuzz::random_graph(seed);
  SCOPED_TRACE(fmt::format("seed {}\n{}", seed, ir::print(random.graph)));
  try {
    const std::vector<Literal> wanted =
        interp::run(*random.graph, random.arguments,
                    [&](const std::string& name) { return random.externals.at(name); });
    const std::vector<Literal> got = run_compiled(random);
    ASSERT_EQ(wanted.size(), got.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(fuzz::difference(wanted[i], got[i], random.outputs[i]), "") << "output " << i;
    }
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

TEST(RandomPrograms, MachineCodeAgreesWithTheInterpreter) {
  const uint64_t first = number_of("TENON_FUZZ_SEED", 1);
  const uint64_t count = number_of("TENON_FUZZ_PROGRAMS", 120);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    compare(seed);
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace tenon
