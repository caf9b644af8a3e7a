// Pass tests as text: a `.ir` file holds cases of the form
//
//   // what the case shows
//   // pass: simplify
//   tn.module { … }
//   // expect
//   tn.module { … }
//
// separated by lines `// -----`. A case that must be refused has `// expect error` and the whole
// error text instead. Several passes, applied in turn, are separated by commas.
//
// With TENON_UPDATE_GOLDEN=1 in the environment the expected parts are rewritten from what came
// out; review the difference.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "tenon/ir/graph.h"

namespace tenon::ir_test {

// A pass takes the graph on; a printer ends the chain with a text of its own (kernels, a plan).
struct Pass {
  std::function<ir::GraphPtr(const ir::GraphPtr&)> graph = nullptr;
  std::function<std::string(const ir::GraphPtr&)> text = nullptr;
};
using PassTable = std::map<std::string, Pass>;

struct CaseResult {
  std::string passes;    // the case's `pass:` line
  std::string expected;  // after `// expect`, with `error` first for an error
  std::string actual;
};

// Runs every case of a file's text. Returns the text with the expected parts replaced by what came
// out. Raises std::runtime_error for a file that is not of the form above.
std::string run_cases(const std::string& text, const PassTable& passes,
                      const std::function<void(const CaseResult&)>& report);

// Runs every `.ir` file below `folder` (relative to the source tree); each difference is a
// GoogleTest failure naming file and case.
void run_ir_files(const std::string& folder, const PassTable& passes);

}  // namespace tenon::ir_test
