#include "ir_file.h"

#include <gtest/gtest.h>

#include "sample_ops.h"
#include "tenon/base/error.h"

namespace tenon::ir_test {
namespace {

const PassTable kPasses{
    {"same", {.graph = [](const ir::GraphPtr& graph) { return graph; }}},
    {"name", {.text = [](const ir::GraphPtr& graph) { return "name: " + graph->name; }}},
    {"refuse",
     {.graph = [](const ir::GraphPtr&) -> ir::GraphPtr { throw ValueError("refuse: no"); }}},
};

const char* const kFile = R"(// Passes apply in turn.
// pass: same, name
tn.module {
  tn.graph @f() {
    tn.return
  }
}
// expect
name: f
// -----
// pass: refuse
tn.module { tn.graph @f() { tn.return } }
// expect error
ValueError: refuse: no
// -----
// pass: name
tn.module { tn.graph @g() { tn.return } }
// expect
stale
)";

TEST(IrFile, RunsCasesAndShowsWhatCameOut) {
  std::vector<CaseResult> seen;
  const std::string updated =
      run_cases(kFile, kPasses, [&seen](const CaseResult& result) { seen.push_back(result); });
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].actual, seen[0].expected);
  EXPECT_EQ(seen[1].actual, "error ValueError: refuse: no");
  EXPECT_EQ(seen[1].actual, seen[1].expected);
  EXPECT_EQ(seen[2].expected, "stale");
  EXPECT_EQ(seen[2].actual, "name: g");
  std::string wanted = kFile;
  wanted.replace(wanted.find("stale"), 5, "name: g");
  EXPECT_EQ(updated, wanted);
}

TEST(IrFile, UnknownPassAndMissingPassLine) {
  auto ignore = [](const CaseResult&) {};
  const std::string graph = "tn.module { tn.graph @f() { tn.return } }\n// expect\n";
  EXPECT_THROW(run_cases("// pass: other\n" + graph, kPasses, ignore), std::runtime_error);
  EXPECT_THROW(run_cases(graph, kPasses, ignore), std::runtime_error);
}

}  // namespace
}  // namespace tenon::ir_test
