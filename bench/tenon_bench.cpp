// Tenon's rows of the benchmark table (README.md says what each computes). Prints one JSON array;
// names of rows and families as arguments choose. `tenon_bench --child ROW` is one measurement in a
// fresh process.
#include <cstdio>

#include "harness.h"

namespace tenon::bench {
namespace {

// A name chooses the row of that name. One that no row has chooses the family that it begins
// ("matmul" gives matmul_…), or the function of several rows that it belongs to: llm_Q4_0 measures
// llm_Q4_0_prompt and llm_Q4_0_decode.
bool chosen(const std::string& name, const Rows& rows, const std::vector<std::string>& names) {
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& wanted) {
           const bool is_row = std::any_of(rows.begin(), rows.end(),
                                           [&](const auto& row) { return row.first == wanted; });
           if (is_row) return wanted == name;
           return name.starts_with(wanted + "_") || wanted.starts_with(name + "_");
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
    if (!chosen(name, rows, names)) continue;
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
