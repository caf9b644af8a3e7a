// The README's first screen: its program is examples/gelu.cpp on more data, and what it shows is
// what the compiler prints.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "../test_data.h"
#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/kir/kernel.h"
#include "tenon/passes/pipeline.h"

namespace tenon {

Tensor gelu_of_the_readme(const Tensor& x) {
  return x * (1.0f + erf(x * static_cast<float>(M_SQRT1_2))) * 0.5f;
}

namespace {

std::string read(const std::string& path) {
  std::ifstream file(source_path(path), std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The code blocks of a page, without their fences.
std::vector<std::string> blocks(const std::string& page) {
  std::vector<std::string> found;
  for (size_t at = page.find("```"); at != std::string::npos; at = page.find("```", at)) {
    const size_t begin = page.find('\n', at) + 1;
    const size_t end = page.find("```", begin);
    if (end == std::string::npos) break;
    found.push_back(page.substr(begin, end - begin));
    at = end + 3;
  }
  return found;
}

auto compiled() {
  return compile(gelu_of_the_readme, {.name = "gelu"})(TensorLayout(f32, {32, 1000, 4096}));
}

// Every label that these layers raise stands in docs/errors.md.
TEST(Docs, LabelsAreDocumented) {
  const std::string page = read("docs/errors.md");
  const std::regex label("label = \"([a-z_0-9]+)\"");
  size_t found = 0;
  for (const char* folder : {"tenon/frontend", "tenon/program", "tenon/runtime"}) {
    for (const auto& entry : std::filesystem::directory_iterator(source_path(folder))) {
      const std::string text = read(std::string(folder) + "/" + entry.path().filename().string());
      for (std::sregex_iterator it(text.begin(), text.end(), label), end; it != end; ++it) {
        ++found;
        const std::string name = (*it)[1];
        EXPECT_TRUE(page.find("`" + name + "`") != std::string::npos)
            << entry.path().filename() << ": " << name;
      }
    }
  }
  EXPECT_GT(found, 60u);
}

TEST(Readme, ItsProgramIsTheExample) {
  std::string program = blocks(read("README.md")).at(0);
  program = std::regex_replace(program, std::regex("4096"), "16");
  EXPECT_EQ(program, read("examples/gelu.cpp"));
}

TEST(Readme, ExplainSaysWhatItShows) {
  const auto masked = [](const std::string& text) {
    return std::regex_replace(
        text, std::regex("compiled in [^)]*\\)|, 1 from the cache|by [0-9]+ \\([a-z0-9]+\\), .*"),
        "");
  };
  const std::string shown = blocks(read("README.md")).at(1);
  const std::string printed = masked(compiled().explain());
  EXPECT_EQ(printed.substr(0, masked(shown).size()), masked(shown));
}

TEST(Readme, ItsKernelIsTheKernel) {
  const passes::Lowered lowered = passes::lower(compiled().graph());
  ASSERT_EQ(lowered.kernels.size(), 1u);
  EXPECT_EQ(blocks(read("README.md")).at(2), kir::print(lowered.kernels[0]));
}

}  // namespace
}  // namespace tenon
