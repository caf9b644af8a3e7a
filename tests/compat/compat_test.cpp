// Artifacts of earlier releases load and give what they gave.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "../cross/calls_text.h"
#include "../test_data.h"
#include "tenon/base/error.h"
#include "tenon/program/inspect.h"
#include "tenon/program/version.h"
#include "tenon/runtime/cpu.h"

namespace tenon::program {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> releases() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(source_path("tests/compat"))) {
    if (entry.is_directory()) out.push_back(entry.path());
  }
  return out;
}

std::string results_of(const std::shared_ptr<const Artifact>& artifact, bool data_only) {
  std::string text;
  for (const ProgramInfo& info : artifact->programs()) {
    const std::string& name = info.signature.function;
    // Code of the baseline fits every x86-64 CPU.
    const bool native = !data_only && runtime::usable_levels().back() == "x86-64";
    const auto program =
        Program::load(artifact, {.program = name, .data_only = data_only, .require_code = native});
    text += name + "\n" + calls_text(program);
  }
  return text;
}

TEST(Compat, ArtifactsOfEveryReleaseGiveWhatTheyGave) {
  ASSERT_FALSE(releases().empty());
  for (const fs::path& folder : releases()) {
    SCOPED_TRACE(folder.filename().string());
    std::ifstream in(folder / "results.txt");
    const std::string recorded{std::istreambuf_iterator<char>(in), {}};
    EXPECT_FALSE(recorded.empty());
    const auto artifact = Artifact::open((folder / "programs.tenon").string());
    artifact->check_all();
    EXPECT_EQ(artifact->tenon_version(), folder.filename().string());
    EXPECT_EQ(results_of(artifact, false), recorded);
    EXPECT_EQ(results_of(artifact, true), recorded);
  }
}

// So that none is forgotten: the folder of the version in the source is there.
TEST(Compat, ThisReleaseIsThere) {
  EXPECT_TRUE(fs::exists(source_path(std::string("tests/compat/") + kVersion + "/programs.tenon")));
}

}  // namespace
}  // namespace tenon::program
