#include "ir_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tenon/base/error.h"
#include "tenon/ir/text.h"

namespace tenon::ir_test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \n");
  const size_t end = text.find_last_not_of(" \n");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

struct Case {
  std::string head;  // up to and without the expect line
  std::string passes;
  std::string input;
  bool error = false;
  std::string expected;
};

Case read_case(const std::vector<std::string>& lines) {
  Case c;
  bool expecting = false;
  for (const std::string& line : lines) {
    if (!expecting && (line == "// expect" || line == "// expect error")) {
      expecting = true;
      c.error = line == "// expect error";
      continue;
    }
    if (expecting) {
      c.expected += line + '\n';
      continue;
    }
    c.head += line + '\n';
    if (line.starts_with("// pass: ")) {
      c.passes = line.substr(9);
    } else {
      c.input += line + '\n';
    }
  }
  if (c.passes.empty()) throw std::runtime_error("a case has no line `// pass: NAME`");
  return c;
}

std::string apply(const Case& c, const PassTable& passes) {
  ir::GraphPtr graph = ir::parse(c.input);
  std::istringstream names(c.passes);
  for (std::string name; std::getline(names, name, ',');) {
    auto it = passes.find(trimmed(name));
    if (it == passes.end()) throw std::runtime_error("no pass is named " + trimmed(name));
    if (it->second.text) return it->second.text(graph);
    graph = it->second.graph(graph);
  }
  return ir::print(graph);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

std::string run_cases(const std::string& text, const PassTable& passes,
                      const std::function<void(const CaseResult&)>& report) {
  std::vector<std::vector<std::string>> parts(1);
  for (const std::string& line : lines_of(text)) {
    if (line == "// -----") {
      parts.emplace_back();
    } else {
      parts.back().push_back(line);
    }
  }
  std::string updated;
  for (const auto& part : parts) {
    const Case c = read_case(part);
    std::string actual;
    bool failed = false;
    try {
      actual = apply(c, passes);
    } catch (const Error& error) {
      failed = true;
      actual = std::string(error_kind_name(error.kind())) + ": " + error.what();
    }
    const std::string mark[] = {"", "error "};
    report({c.passes, mark[c.error] + trimmed(c.expected), mark[failed] + trimmed(actual)});
    if (!updated.empty()) updated += "// -----\n";
    updated += c.head + (failed ? "// expect error\n" : "// expect\n") + trimmed(actual) + '\n';
  }
  return updated;
}

void run_ir_files(const std::string& folder, const PassTable& passes) {
  const char* root = std::getenv("TENON_SOURCE_DIR");
  const char* update = std::getenv("TENON_UPDATE_GOLDEN");
  const std::filesystem::path base = std::filesystem::path(root == nullptr ? "." : root) / folder;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(base)) {
    if (entry.path().extension() == ".ir") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  EXPECT_FALSE(files.empty()) << base << " holds no .ir file";
  for (const auto& path : files) {
    SCOPED_TRACE(path.string());
    int number = 0;
    std::string updated;
    try {
      updated = run_cases(read_file(path), passes, [&](const CaseResult& result) {
        ++number;
        if (update != nullptr) return;
        EXPECT_EQ(result.actual, result.expected) << "case " << number << ", " << result.passes;
      });
    } catch (const std::exception& error) {
      ADD_FAILURE() << "case " << number + 1 << ": " << error.what();
      continue;
    }
    if (update != nullptr) std::ofstream(path) << updated;
  }
}

}  // namespace tenon::ir_test
