// What a run-time does with files that are not what they were.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

#include "artifact_fixture.h"
#include "tenon/base/error.h"
#include "tenon/ir/text.h"
#include "tenon/runtime.h"
#include "tests/refusal.h"

namespace tenon::program {
namespace {

using runtime::Array;

const Array kW = Array::copy_of<float>(DType::kF32, {4}, {1, 2, 3, 4});
const Array kX = Array::copy_of<float>(DType::kF32, {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});

// Each column of the constant sums to 0.5 · (100 · c + 4 · 4950).
std::vector<float> expected() {
  std::vector<float> out;
  for (int i = 0; i < 8; ++i) {
    int column = i % 4;
    out.push_back(2.0f * static_cast<float>(i) + static_cast<float>(column + 1) +
                  0.5f * static_cast<float>(100 * column + 4 * 4950));
  }
  return out;
}

std::vector<float> run(const std::string& path, const LoadOptions& given = {}) {
  LoadOptions options = given;
  options.externals = {{"layer.w", kW}};
  auto step = tenon::load(path, options);
  Array y = step(kX, 2.0);
  return {y.as<float>(), y.as<float>() + y.count()};
}

TEST(Artifact, RoundTrip) {
  std::string path = temporary_path("step.tenon");
  std::vector<ProgramData> data = {make_step()};
  save_artifact(path, data);
  EXPECT_EQ(run(path), expected());
  EXPECT_EQ(run(path, {.data_only = true}), expected());
  auto artifact = Artifact::open(path);
  artifact->check_all();
  ir::PrintOptions full{.full_constants = true};
  EXPECT_EQ(ir::print(artifact->graph(0), full), ir::print(data[0].graph, full));
  EXPECT_EQ(artifact->programs()[0].signature.str(), data[0].signature.str());
  EXPECT_EQ(artifact->programs()[0].signature.tensors[0].shape[0].upper_bound(), 1000);
  ASSERT_EQ(artifact->programs()[0].weights.size(), 1u);
  EXPECT_EQ(artifact->programs()[0].weights[0].name, "layer.w");
  EXPECT_EQ(Program::load(path, {.data_only = true}).level(), "interpreter");

  // Equal programs give equal files.
  std::string again = temporary_path("again.tenon");
  save_artifact(again, std::vector<ProgramData>{make_step()});
  EXPECT_EQ(read_file(again), read_file(path));
}

TEST(Artifact, TwoProgramsShareConstants) {
  std::string one = temporary_path("one.tenon"), two = temporary_path("two.tenon");
  save_artifact(one, std::vector<ProgramData>{make_step("prompt")});
  save_artifact(two, std::vector<ProgramData>{make_step("prompt"), make_step("decode", false)});
  EXPECT_LT(read_file(two).size(), read_file(one).size() + 1600 + 2000);
  EXPECT_EQ(run(two, {.program = "prompt"}), expected());
  EXPECT_EQ(run(two, {.program = "decode"}), expected());
  EXPECT_EQ(tenon::refusal([&] { Program::load(two); }),
            "KeyError: " + two +
                ": which program is not said, it holds prompt, decode [artifact_program]");
  EXPECT_EQ(tenon::refusal([&] {
              save_artifact(one, std::vector<ProgramData>{make_step("a"), make_step("a")});
            }),
            "ValueError: save: two programs are named a [artifact_name]");
}

TEST(Artifact, Weights) {
  std::string path = temporary_path("weights.tenon");
  save_artifact(path, std::vector<ProgramData>{make_step()});
  Program step = Program::load(path);
  std::vector<Array> x = {kX};
  EXPECT_EQ(tenon::refusal([&] { step.execute_raw(x); }),
            "KeyError: step: its weights are not bound: layer.w [weight_missing]\n"
            "  hint: call bind() first");
  EXPECT_EQ(tenon::refusal([&] {
              step.bind({{"layer.v", kW}});
            }),
            "KeyError: step: missing weights: layer.w [weight_missing]");
  EXPECT_EQ(tenon::refusal([&] {
              step.bind({{"layer.w", kX}});
            }),
            "ValueError: step: weight layer.w: expected f32[4], got f32[2, 4] [weight_type]");
  EXPECT_EQ(tenon::refusal([&] {
              step.bind({{"layer.w", kW}, {"layr.w", kW}});
            }),
            "KeyError: step: nothing reads the weight layr.w [weight_unused]\n"
            "  hint: did you mean layer.w?");
  step.bind({{"layer.w", kW}});
  EXPECT_EQ(step.execute_raw(x)[0].count(), 8);
}

// A file that is changed in place, byte by byte, without writing the rest again.
class Damaged {
 public:
  explicit Damaged(const std::string& path)
      : path_(path), right_(read_file(path)), fd_(::open(path.c_str(), O_RDWR)) {}
  ~Damaged() { ::close(fd_); }
  Damaged(const Damaged&) = delete;
  Damaged& operator=(const Damaged&) = delete;

  const std::string& right() const { return right_; }
  void put(size_t at, char byte) { done(::pwrite(fd_, &byte, 1, static_cast<off_t>(at)) == 1); }
  void cut(size_t size) { done(::ftruncate(fd_, static_cast<off_t>(size)) == 0); }
  // What opening raises; "ran" when the file is taken.
  std::string refusal() const {
    return tenon::refusal([&] { Artifact::open(path_); });
  }

 private:
  static void done(bool right) {
    if (!right) throw std::runtime_error("cannot damage the file");
  }
  std::string path_;
  std::string right_;
  int fd_;
};

TEST(Artifact, EveryFlippedBitIsRefused) {
  std::string path = temporary_path("flip.tenon");
  save_artifact(path, std::vector<ProgramData>{make_step()});
  Damaged file(path);
  const std::string refused = "FormatError: " + path + ": ";
  for (size_t bit = 0; bit < file.right().size() * 8; ++bit) {
    file.put(bit / 8, static_cast<char>(file.right()[bit / 8] ^ (1 << bit % 8)));
    const std::string text = file.refusal();
    ASSERT_EQ(text.substr(0, refused.size()), refused) << "bit " << bit << ": " << text;
    if (bit % 8 == 7) file.put(bit / 8, file.right()[bit / 8]);
  }
  EXPECT_EQ(file.refusal(), "ran");
}

TEST(Artifact, EveryTruncationIsRefused) {
  std::string path = temporary_path("short.tenon");
  save_artifact(path, std::vector<ProgramData>{make_step()});
  Damaged file(path);
  file.cut(file.right().size() + 1);
  EXPECT_NE(file.refusal().find("something was appended"), std::string::npos);
  for (size_t size = file.right().size(); size-- > 0;) {
    file.cut(size);
    const std::string text = file.refusal();
    ASSERT_NE(text.find("[artifact_truncated]"), std::string::npos) << size << ": " << text;
  }
}

TEST(Artifact, SaysWhatIsWrong) {
  std::string path = temporary_path("wrong.tenon");
  save_artifact(path, std::vector<ProgramData>{make_step()});
  const std::string right = read_file(path);
  auto refusal = [&](const std::string& bytes) {
    write_file(path, bytes);
    std::string text = tenon::refusal([&] { Artifact::open(path); });
    return text.substr(0, 13) + text.substr(13 + path.size());
  };
  EXPECT_EQ(refusal(""), "FormatError: : the file is empty [artifact_truncated]");
  EXPECT_EQ(refusal("MZ, something else altogether"),
            "FormatError: : not a Tenon artifact [artifact_magic]");
  EXPECT_EQ(refusal(right.substr(0, 100)),
            "FormatError: : 100 bytes are too few for the header of an artifact (truncated) "
            "[artifact_truncated]");
  EXPECT_EQ(refusal(right.substr(0, right.size() - 1)),
            fmt::format("FormatError: : the file has {} bytes, its header says {} (truncated) "
                        "[artifact_truncated]",
                        right.size() - 1, right.size()));
  std::string newer = right;
  newer[8] = 2;
  EXPECT_EQ(refusal(newer),
            "FormatError: : artifact format 2 is newer than this run-time reads (1) "
            "[artifact_version]\n  hint: use a newer Tenon, or save the program again");
  std::string flipped = right;
  flipped[200] = static_cast<char>(flipped[200] ^ 1);
  EXPECT_NE(refusal(flipped).find("section constants has digest"), std::string::npos);
  EXPECT_EQ(tenon::refusal([] { Artifact::open("/nonexistent/x.tenon"); }).substr(0, 8),
            "IoError:");
}

// Damage that keeps every digest right: what the checks behind the digests are for.
TEST(Artifact, WellSignedNonsenseIsRefusedOrHarmless) {
  unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::string path = temporary_path("nonsense.tenon");
  for (int round = 0; round < 60; ++round) {
    ProgramData data = make_step();
    abi::Module module = *data.module;
    abi::Program& program = module.programs[0];
    auto any = [&] { return static_cast<uint32_t>(random() % 40); };
    switch (random() % 6) {
      case 0: program.slots[random() % program.slots.size()].ref = any(); break;
      case 1: program.slots[random() % program.slots.size()].bytes = any(); break;
      case 2:
        program.slots[random() % program.slots.size()].kind =
            static_cast<abi::Slot::Kind>(random() % 5);
        break;
      case 3: std::get<abi::EvalStep>(program.steps[0]).node = any(); break;
      case 4: std::get<abi::EvalStep>(program.steps[1]).operands[0] = any(); break;
      default: program.arguments = any(); break;
    }
    data.module = std::make_shared<abi::Module>(std::move(module));
    save_artifact(path, std::vector<ProgramData>{data});
    tenon::refusal([&] { run(path); });
  }
}

TEST(Artifact, CodeForAnotherCpuGoesToTheInterpreter) {
  ProgramData data = make_step();
  abi::Module module = *data.module;
  module.kernels.push_back({"k0", {"add"}, ""});
  module.images.push_back({"riscv64", std::vector<std::byte>(64), {0}});
  data.module = std::make_shared<abi::Module>(std::move(module));
  std::string path = temporary_path("riscv.tenon");
  save_artifact(path, std::vector<ProgramData>{data});
  EXPECT_EQ(Program::load(path).level(), "interpreter");
  EXPECT_EQ(run(path), expected());
  EXPECT_EQ(tenon::refusal([&] { Program::load(path, {.require_code = true}); }).substr(0, 16),
            "UnsupportedError");
}

// Threads that share one program: each call has memory of its own.
TEST(Artifact, ManyThreadsShareOneProgram) {
  std::string path = temporary_path("shared.tenon");
  save_artifact(path, std::vector<ProgramData>{make_step()});
  for (bool data_only : {false, true}) {
    auto step = tenon::load(path, {.data_only = data_only, .externals = {{"layer.w", kW}}});
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int64_t round = 0; round < 40; ++round) {
          const int64_t rows = (t + round) % 7;
          const std::vector<float> ones(static_cast<size_t>(rows * 4), static_cast<float>(t));
          const Array y = step(Array::copy_of<float>(DType::kF32, {rows, 4}, ones), 2.0);
          for (int64_t i = 0; i < y.count(); ++i) {
            const float column = static_cast<float>(i % 4);
            const float right =
                2 * static_cast<float>(t) + (column + 1) + 0.5f * (100 * column + 4 * 4950);
            if (y.as<float>()[i] != right) ++wrong;
          }
          if (y.count() != rows * 4) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

// Copies of a program, and its results, live on their own.
TEST(Artifact, ResultsOutliveTheProgram) {
  std::string path = temporary_path("alive.tenon");
  save_artifact(path, std::vector<ProgramData>{make_step()});
  Array y, again;
  {
    auto first =
        std::make_unique<LoadedProgram>(tenon::load(path, {.externals = {{"layer.w", kW}}}));
    const LoadedProgram second = *first;
    y = (*first)(kX, 2.0);
    first.reset();
    std::filesystem::remove(path);  // what is mapped stays
    again = second(kX, 2.0);
  }
  EXPECT_EQ(std::vector<float>(y.as<float>(), y.as<float>() + y.count()), expected());
  EXPECT_EQ(std::vector<float>(again.as<float>(), again.as<float>() + again.count()), expected());
}

TEST(Artifact, ProgramsPrint) {
  std::string path = temporary_path("printed.tenon");
  save_artifact(path, std::vector<ProgramData>{make_step()});
  std::ostringstream text;
  text << Program::load(path, {.data_only = true});
  EXPECT_EQ(text.str(),
            "step(x: f32[\"n\", 4], gain = 2.0) → f32[\"n\", 4], interpreter, 1 weights not bound");
}

// One text or table that is named again and again says more than the bytes of the file: refused
// before it fills the memory.
TEST(Artifact, RepetitionIsBounded) {
  std::string path = temporary_path("bomb.tenon");
  ProgramData data = make_step();
  const std::string name(20000, 'x');
  data.signature.names = {"x", name};
  for (int i = 0; i < 2000; ++i) {
    data.signature.statics.push_back(StaticValue(StaticView::of(std::string_view(name))));
  }
  save_artifact(path, std::vector<ProgramData>{data});
  EXPECT_LT(read_file(path).size(), 200000u);
  EXPECT_EQ(
      tenon::refusal([&] { Artifact::open(path); }),
      "FormatError: " + path +
          ": manifest: it holds more than its bytes can say (file damaged) [artifact_content]");
}

TEST(Artifact, KilledWhileSavingLeavesTheOldFile) {
  std::string path = temporary_path("killed.tenon");
  save_artifact(path, std::vector<ProgramData>{make_step()});
  const std::string old = read_file(path);
  for (int i = 0; i < 10; ++i) {
    pid_t child = ::fork();
    if (child == 0) {
      ProgramData other = make_step("other");
      while (true) save_artifact(path, std::vector<ProgramData>{other, make_step("more")});
    }
    ::usleep(static_cast<useconds_t>(2000 + 1700 * i));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    Artifact::open(path)->check_all();
  }
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
}

}  // namespace
}  // namespace tenon::program
