// Saving compiled functions: what is loaded gives the answers of what was saved.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tenon/base/error.h"
#include "tenon/base/mmap.h"
#include "tenon/compiler/compile.h"
#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/frontend/subgraph.h"
#include "tenon/ir/text.h"
#include "tenon/program/inspect.h"
#include "tenon/program/program.h"
#include "tests/refusal.h"

namespace save_test {

struct Params {
  tenon::Tensor b, w;
};
TENON_STRUCT(Params, b, w)

}  // namespace save_test

namespace tenon {
namespace {

using program::Artifact;
using program::Program;
using runtime::Array;
using save_test::Params;

std::string path_of(const std::string& name) {
  return (std::filesystem::path(::testing::TempDir()) / name).string();
}

std::vector<std::byte> read(const std::string& path) {
  auto file = MappedFile::open(path);
  return {file->bytes().begin(), file->bytes().end()};
}

void write_plain(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

auto step_program() {
  auto fn = [](const Tensor& x, const Params& p, float gain) {
    return matmul(x, p.w) * gain + p.b;
  };
  CompileOptions options;
  options.name = "step";
  options.argument_names = {"x", "p", "gain"};
  return compile(fn, options)(TensorLayout(f32, {"batch", 8}),
                              Params{TensorLayout(f32, {4}), TensorLayout(f32, {8, 4})}, 2.0f);
}

std::string saved_step(const std::string& name = "step.tenon") {
  const std::string path = path_of(name);
  step_program().save(path);
  return path;
}

Array ramp(std::vector<int64_t> dims, float scale) {
  Literal values(DType::kF32, std::move(dims));
  for (int64_t i = 0; i < values.count(); ++i) {
    values.set_double(i, scale * static_cast<float>(i % 17 - 8));
  }
  return Array::from_literal(values);
}

void expect_same(const std::vector<Array>& a, const std::vector<Array>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].to_literal().same(b[i].to_literal())) << i;
}

void expect_close(const Array& a, const Array& b) {
  const Literal x = a.to_literal(), y = b.to_literal();
  ASSERT_EQ(x.dims(), y.dims());
  for (int64_t i = 0; i < x.count(); ++i) {
    EXPECT_NEAR(x.get_double(i), y.get_double(i), 1e-5) << i;
  }
}

TEST(Save, RoundTrip) {
  const auto compiled = step_program();
  const std::string path = path_of("round.tenon");
  compiled.save(path);
  const Program loaded = Program::load(path);
  EXPECT_NE(loaded.level(), "interpreter");
  EXPECT_EQ(loaded.signature().str(), compiled.signature().str());
  const ir::PrintOptions all{.generic = false, .locations = true, .full_constants = true};
  EXPECT_EQ(ir::print(loaded.artifact().graph(0), all), ir::print(compiled.graph(), all));
  for (int64_t batch : {0, 1, 3, 40}) {
    const std::vector<Array> arguments = {ramp({batch, 8}, 0.5f), ramp({4}, 1.f),
                                          ramp({8, 4}, 0.25f)};
    expect_same(loaded.execute_raw(arguments), compiled.execute_raw(arguments));
  }
}

TEST(Save, EqualProgramsGiveEqualFiles) {
  EXPECT_EQ(read(saved_step("a.tenon")), read(saved_step("b.tenon")));
}

TEST(Save, LoadedCallsAreChecked) {
  const Program loaded = Program::load(saved_step());
  const std::vector<Array> turned = {ramp({3, 8}, 1), ramp({4}, 1), ramp({4, 8}, 1)};
  EXPECT_NE(refusal([&] {
              loaded.execute_raw(turned);
            }).find("ShapeError: step: argument p.w: expected f32[8, 4], got f32[4, 8]"),
            std::string::npos);
}

TEST(Save, DataOnlyGivesTheSame) {
  const std::string path = saved_step();
  const Program code = Program::load(path);
  const Program data = Program::load(path, {.data_only = true});
  EXPECT_EQ(data.level(), "interpreter");
  for (int64_t batch : {0, 1, 5}) {
    const std::vector<Array> arguments = {ramp({batch, 8}, 0.5f), ramp({4}, 1),
                                          ramp({8, 4}, 0.25f)};
    expect_close(data.execute_raw(arguments)[0], code.execute_raw(arguments)[0]);
  }
}

TEST(Save, WithoutFittingCodeTheGraphRuns) {
  const std::string path = path_of("foreign.tenon");
  step_program().save(path, {"aarch64"});
  const bool arm = runtime::Executor::fits(*Artifact::open(path)->module(0));
  const Program loaded = Program::load(path);
  EXPECT_EQ(loaded.level(), arm ? "aarch64" : "interpreter");
  const std::vector<Array> arguments = {ramp({5, 8}, 0.5f), ramp({4}, 1), ramp({8, 4}, 0.25f)};
  expect_close(loaded.execute_raw(arguments)[0],
               Program::load(saved_step()).execute_raw(arguments)[0]);
  if (!arm) {
    EXPECT_NE(refusal([&] { Program::load(path, {.require_code = true}); }).find("cpu_level"),
              std::string::npos);
  }
}

TEST(Save, InspectTells) {
  const auto artifact = Artifact::open(saved_step());
  const std::string text = program::inspect_text(*artifact);
  EXPECT_TRUE(
      text.starts_with("step.tenon            Tenon artifact, format 1, written by tenon "));
  EXPECT_NE(
      text.find("\nsignature             (x: f32[\"batch\", 8], p: {b: f32[4], w: f32[8, 4]}, "
                "gain = 2.0) → f32[\"batch\", 4]\n"
                "guards                8: structure 1, static 1, dtype 3, shape 3        "
                "(--guards lists them)\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("\ncode                  x86-64-v4 (avx512)"), std::string::npos) << text;
  EXPECT_NE(text.find("sections right (blake3)\n"), std::string::npos) << text;
  EXPECT_NE(program::inspect_text(*artifact, true).find("  p.w                 shape       [8, 4]"),
            std::string::npos);
}

// True when the address lies in a mapping of that file.
bool is_mapped_from(const void* address, const std::string& path) {
  const std::string whole = std::filesystem::canonical(path).string();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    size_t at = 0;
    const uint64_t begin = std::stoull(line, &at, 16);
    const uint64_t end = std::stoull(line.substr(at + 1), nullptr, 16);
    const auto value = reinterpret_cast<uint64_t>(address);
    if (begin <= value && value < end) return line.ends_with(whole);
  }
  return false;
}

// Large constants stay in the file's pages, on a boundary that streaming kernels like; weights are
// the caller's memory.
TEST(Save, ConstantsAndWeightsAreNotCopied) {
  const std::string path = path_of("large.tenon");
  std::vector<float> table(300000);
  for (size_t i = 0; i < table.size(); ++i) table[i] = 0.25f * static_cast<float>(i % 5 + 1);
  const auto compiled = compile(
      [&](const Tensor& x) {
        return x * tensor(table) + constant_external("shift", TensorLayout(f32, {300000}));
      },
      {.name = "large"})(TensorLayout(f32, {300000}));
  compiled.save(path);
  EXPECT_LT(std::filesystem::file_size(path), 4 * 300000 + 40000u) << "one copy for all levels";

  const auto module = Artifact::open(path)->module(0);
  size_t large = 0;
  for (const Literal& constant : module->constants) {
    if (constant.bytes() < 1000000) continue;
    ++large;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(constant.data()) % 64, 0u);
    EXPECT_TRUE(is_mapped_from(constant.data(), path));
  }
  EXPECT_EQ(large, 1u);

  for (bool data_only : {false, true}) {
    Array shift = Array::empty(DType::kF32, {300000});
    auto* weights = static_cast<float*>(shift.mutable_data());
    std::fill_n(weights, 300000, 1.0f);
    const Program loaded =
        Program::load(path, {.data_only = data_only, .externals = {{"shift", shift}}});
    const std::vector<Array> x = {ramp({300000}, 4)};
    EXPECT_EQ(loaded.execute_raw(x)[0].as<float>()[0], -7.0f);
    weights[0] = 2.0f;
    EXPECT_EQ(loaded.execute_raw(x)[0].as<float>()[0], -6.0f);
  }
}

// A small file: one level of code.
std::vector<std::byte> small_file() {
  const std::string path = path_of("small.tenon");
  step_program().save(path, {"x86-64"});
  return read(path);
}

// Every byte of the file is covered by a digest or an explicit check.
TEST(SavedFile, EveryFlippedByteIsRefused) {
  const std::vector<std::byte> file = small_file();
  const std::string path = path_of("damaged.tenon");
  write_plain(path, file);
  const int fd = open(path.c_str(), O_WRONLY);
  ASSERT_GE(fd, 0);
  for (size_t i = 0; i < file.size(); ++i) {
    const std::byte damaged = file[i] ^ std::byte{static_cast<uint8_t>(1u << (i % 8))};
    ASSERT_EQ(pwrite(fd, &damaged, 1, static_cast<off_t>(i)), 1);
    const std::string text = refusal([&] { Artifact::open(path); });
    ASSERT_TRUE(text.starts_with("FormatError: " + path + ": ")) << "byte " << i << ": " << text;
    ASSERT_EQ(pwrite(fd, &file[i], 1, static_cast<off_t>(i)), 1);
  }
  close(fd);
  EXPECT_EQ(refusal([&] { Program::load(path); }), "ran");
}

TEST(SavedFile, EveryTruncationIsRefused) {
  const std::vector<std::byte> file = small_file();
  const std::string path = path_of("short.tenon");
  std::vector<std::byte> longer = file;
  longer.push_back(std::byte{0});
  write_plain(path, longer);
  EXPECT_TRUE(refusal([&] { Artifact::open(path); }).starts_with("FormatError: "));
  for (size_t n = file.size(); n-- > 0;) {
    ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(n)), 0);
    const std::string text = refusal([&] { Artifact::open(path); });
    ASSERT_TRUE(text.starts_with("FormatError: " + path + ": ")) << n << ": " << text;
  }
}

TEST(SavedFile, DamagedSectionsAreNamed) {
  const std::string good = saved_step();
  const std::vector<std::byte> file = read(good);
  const std::string path = path_of("section.tenon");
  const auto artifact = Artifact::open(good);
  for (const program::SectionInfo& section : artifact->sections()) {
    if (section.bytes == 0) continue;
    std::vector<std::byte> damaged = file;
    damaged[section.offset] ^= std::byte{1};
    write_plain(path, damaged);
    const std::string text = refusal([&] { Artifact::open(path); });
    EXPECT_NE(text.find(": section " + section.name + " has digest "), std::string::npos) << text;
    EXPECT_NE(text.find("… (file damaged)"), std::string::npos) << text;
  }
}

// A process of the run-time alone, without tools on its path, loads and runs the program and
// writes no file.
TEST(Save, LoadsWithoutAToolchain) {
  namespace fs = std::filesystem;
  const std::string path = saved_step("probe.tenon");
  const fs::path home = path_of("empty_home");
  fs::remove_all(home);
  fs::create_directory(home);
  const std::string cache = "XDG_CACHE_HOME=" + home.string(), folder = "HOME=" + home.string();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const char* arguments[] = {TENON_LOAD_PROBE, path.c_str(), nullptr};
    const char* environment[] = {"PATH=", folder.c_str(), cache.c_str(), nullptr};
    if (chdir(home.c_str()) != 0) _exit(3);
    execve(TENON_LOAD_PROBE, const_cast<char**>(arguments), const_cast<char**>(environment));
    _exit(4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(fs::is_empty(home));
}

// A process killed while it saves leaves the old file or the new one.
TEST(Save, KilledSavesLeaveAWholeFile) {
  const auto compiled = step_program();
  compiler::Options options;
  options.levels = {"x86-64"};
  compiler::Compiled old_code = compiler::compile(compiled.graph(), options);
  const program::ProgramData with_code{compiled.signature(), compiled.graph(), old_code.module,
                                       old_code.graphs};
  const program::ProgramData graph_only{compiled.signature(), compiled.graph(), nullptr, {}};
  const std::string path = path_of("killed.tenon");
  program::save_artifact(path, {&with_code, 1});
  const std::vector<std::byte> first = read(path);
  program::save_artifact(path, {&graph_only, 1});
  const std::vector<std::byte> second = read(path);
  ASSERT_NE(first, second);
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) {
        program::save_artifact(path, {&with_code, 1});
        program::save_artifact(path, {&graph_only, 1});
      }
    }
    usleep(2000 + 700 * static_cast<useconds_t>(round));
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    const std::vector<std::byte> found = read(path);
    EXPECT_TRUE(found == first || found == second) << round;
  }
  for (const auto& entry : std::filesystem::directory_iterator(::testing::TempDir())) {
    if (entry.path().filename().string().starts_with("killed.tenon.tmp")) {
      std::filesystem::remove(entry.path());
    }
  }
}

}  // namespace
}  // namespace tenon
