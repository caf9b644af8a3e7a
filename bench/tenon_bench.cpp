// Tenon's rows of the benchmark table (README.md says what each computes). Prints one JSON array;
// names as arguments choose rows. `tenon_bench --child ROW` is one measurement in a fresh process.
#include <cstdio>

#include "harness.h"

namespace tenon::bench {
namespace {

// A function of several rows is chosen by any of them: "llm_Q4_0" gives llm_Q4_0_prompt and
// llm_Q4_0_decode.
bool chosen(const std::string& name, const std::vector<std::string>& names) {
  if (names.empty()) return true;
  return std::any_of(names.begin(), names.end(), [&](const std::string& wanted) {
    return wanted == name || wanted == name + "_prompt" || wanted == name + "_decode";
  });
}

void print_rows(const std::vector<std::string>& names) {
  Rows rows;
  add_kernel_rows(rows);
  add_matmul_rows(rows);
  add_process_rows(rows);
  add_language_rows(rows);
  Json out = Json::array();
  for (const auto& [name, measure] : rows) {
    if (!chosen(name, names)) continue;
    std::fprintf(stderr, "%s\n", name.c_str());
    try {
      for (Json& line : measure()) out.push_back(std::move(line));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    }
  }
  std::printf("%s\n", out.dump(1).c_str());
}

}  // namespace
}  // namespace tenon::bench

int main(int argc, char** argv) {
  const std::vector<std::string> names(argv + 1, argv + argc);
  if (names.size() == 2 && names[0] == "--child") {
    std::printf("%.6f\n", tenon::bench::measure_here(names[1]));
    return 0;
  }
  tenon::bench::print_rows(names);
}
