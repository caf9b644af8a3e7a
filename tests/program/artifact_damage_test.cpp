// What a run-time does with files that are not what they were.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "artifact_fixture.h"
#include "tenon/base/error.h"
#include "tenon/ir/text.h"
#include "tenon/runtime.h"

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

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return std::string(error_kind_name(e.kind())) + ": " + e.what();
  }
  return "nothing was raised";
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
  EXPECT_EQ(message_of([&] { Program::load(two); }),
            "KeyError: " + two +
                ": which program is not said, it holds prompt, decode [artifact_program]");
  EXPECT_EQ(message_of([&] {
              save_artifact(one, std::vector<ProgramData>{make_step("a"), make_step("a")});
            }),
            "ValueError: save: two programs are named a [artifact_name]");
}

TEST(Artifact, Weights) {
  std::string path = temporary_path("weights.tenon");
  save_artifact(path, std::vector<ProgramData>{make_step()});
  Program step = Program::load(path);
  std::vector<Array> x = {kX};
  EXPECT_EQ(message_of([&] { step.execute_raw(x); }),
            "KeyError: step: its weights are not bound: layer.w [weight_missing]\n"
            "  hint: call bind() first");
  EXPECT_EQ(message_of([&] {
              step.bind({{"layer.v", kW}});
            }),
            "KeyError: step: missing weights: layer.w [weight_missing]");
  EXPECT_EQ(message_of([&] {
              step.bind({{"layer.w", kX}});
            }),
            "ValueError: step: weight layer.w: expected f32[4], got f32[2, 4] [weight_type]");
  EXPECT_EQ(message_of([&] {
              step.bind({{"layer.w", kW}, {"layr.w", kW}});
            }),
            "KeyError: step: nothing reads the weight layr.w [weight_unused]\n"
            "  hint: did you mean layer.w?");
  step.bind({{"layer.w", kW}});
  EXPECT_EQ(step.execute_raw(x)[0].count(), 8);
}

TEST(Artifact, EveryFlippedBitIsRefused) {
  std::string path = temporary_path("flip.tenon");
  save_artifact(path, std::vector<ProgramData>{make_step()});
  const std::string right = read_file(path);
  for (size_t i = 0; i < right.size(); ++i) {
    std::string wrong = right;
    wrong[i] = static_cast<char>(wrong[i] ^ (1 << (i % 8)));
    write_file(path, wrong);
    ASSERT_THROW(Artifact::open(path), FormatError) << "byte " << i << " of " << right.size();
  }
}

TEST(Artifact, EveryTruncationIsRefused) {
  std::string path = temporary_path("short.tenon");
  save_artifact(path, std::vector<ProgramData>{make_step()});
  const std::string right = read_file(path);
  for (size_t size = 0; size < right.size(); size += size < 300 ? 1 : 7) {
    write_file(path, right.substr(0, size));
    ASSERT_THROW(Artifact::open(path), FormatError) << size;
  }
  write_file(path, right + '\0');
  EXPECT_THROW(Artifact::open(path), FormatError);
}

TEST(Artifact, SaysWhatIsWrong) {
  std::string path = temporary_path("wrong.tenon");
  save_artifact(path, std::vector<ProgramData>{make_step()});
  const std::string right = read_file(path);
  auto refusal = [&](const std::string& bytes) {
    write_file(path, bytes);
    std::string text = message_of([&] { Artifact::open(path); });
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
  EXPECT_EQ(message_of([] { Artifact::open("/nonexistent/x.tenon"); }).substr(0, 8), "IoError:");
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
    message_of([&] { run(path); });
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
  EXPECT_EQ(message_of([&] { Program::load(path, {.require_code = true}); }).substr(0, 16),
            "UnsupportedError");
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
