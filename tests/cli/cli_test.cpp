// The program `tenon`: each file of cases/ is a session, commands and all that they print.
//
//   $ tenon COMMAND      run in the source's root with TENON_ISA=baseline and no kernel cache
//   what it prints
//   ! what it prints as errors, line by line
//   exit STATUS          when it is not 0
//
// TENON_UPDATE_GOLDEN=1 rewrites the sessions from what comes.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "../test_data.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Outcome {
  std::string out, err;
  int status = -1;
};

Outcome run(const std::string& arguments, const std::string& environment = "") {
  const fs::path errors =
      fs::path(testing::TempDir()) / ("tenon_cli_errors_" + std::to_string(::getpid()));
  const char* root = std::getenv("TENON_SOURCE_DIR");
  const std::string command = "cd '" + std::string(root == nullptr ? "." : root) +
                              "' && TENON_ISA=baseline TENON_CACHE_DIR= " + environment + " " +
                              TENON_CLI + arguments + " 2>'" + errors.string() + "' </dev/null";
  Outcome outcome;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  char piece[4096];
  for (size_t n; (n = std::fread(piece, 1, sizeof piece, pipe)) > 0;) outcome.out.append(piece, n);
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.err = read(errors);
  fs::remove(errors);
  return outcome;
}

std::string with_line_end(std::string text) {
  if (!text.empty() && text.back() != '\n') text += "\\no line end\n";
  return text;
}

// What a session's command gives, in the session's form.
std::string played(const std::string& command) {
  const Outcome outcome = run(command.substr(std::string("$ tenon").size()));
  std::string text = command + "\n" + with_line_end(outcome.out);
  const std::string errors = with_line_end(outcome.err);
  for (size_t at = 0; at < errors.size();) {
    const size_t end = errors.find('\n', at);
    text += "! " + errors.substr(at, end - at) + "\n";
    at = end + 1;
  }
  if (outcome.status != 0) text += "exit " + std::to_string(outcome.status) + "\n";
  return text;
}

TEST(Cli, Sessions) {
  int sessions = 0;
  for (const auto& entry : fs::directory_iterator(source_path("tests/cli/cases"))) {
    const std::string expected = read(entry.path());
    std::string found;
    std::istringstream lines(expected);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("$ tenon", 0) == 0) found += (found.empty() ? "" : "\n") + played(line);
    }
    if (std::getenv("TENON_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(entry.path(), std::ios::binary) << found;
    } else {
      EXPECT_EQ(found, expected) << entry.path().filename()
                                 << ": TENON_UPDATE_GOLDEN=1 rewrites it";
    }
    ++sessions;
  }
  EXPECT_GE(sessions, 4);
}

// What stands in the answer depends on the machine; its rows do not.
TEST(Cli, DoctorSaysWhatThisMachineOffers) {
  const fs::path folder = fs::path(testing::TempDir()) / "tenon_doctor_cache";
  fs::remove_all(folder);
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::all);
  const Outcome shared = run(" doctor", "TENON_NUM_THREADS=1 TENON_CACHE_DIR=" + folder.string());
  EXPECT_EQ(shared.status, 0) << shared.err;
  EXPECT_EQ(shared.err, "");
  const std::regex rows(
      "tenon            [0-9.]+\n"
      "cpu              [^\n]+\n"
      "features         [^\n]+\n"
      "level            x86-64 \\(baseline\\)\n"
      "caches           [0-9]+ KiB L1, [0-9]+ KiB L2, [0-9]+ KiB L3\n"
      "threads          1\n"
      "                 → one thread: [^\n]+\n"
      "huge pages       [^\n]+\n"
      "(                 → [^\n]+\n)?"
      "kernel cache     [^\n]+ \\(not used\\)\n"
      "                 → others can write there: chmod 700, or set TENON_CACHE_DIR\n");
  EXPECT_TRUE(std::regex_match(shared.out, rows)) << shared.out;
  EXPECT_NE(run(" doctor").out.find("kernel cache     off\n"), std::string::npos);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tenon
