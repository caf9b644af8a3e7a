#include <gtest/gtest.h>

#include <filesystem>

#include "refusal.h"
#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/program/program.h"

namespace tenon {
namespace {

TEST(SaveMany, SeveralProgramsInOneFile) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / "many.tenon").string();
  const auto a =
      compile([](const Tensor& x) { return x + 1; }, {.name = "a"})(TensorLayout(f32, {2}));
  const auto b =
      compile([](const Tensor& x) { return x * 3; }, {.name = "b"})(TensorLayout(f32, {2}));
  save(path, {a.executable(), b.executable()});
  const std::vector<runtime::Array> arguments{tensor({1.0f, 2.0f}).array()};
  const auto loaded = program::Program::load(path, {.program = "b"});
  EXPECT_EQ(Tensor(loaded.execute_raw(arguments)[0]).to_vector<float>(),
            (std::vector<float>{3, 6}));
  EXPECT_NE(refusal([&] {
              save(path, {a.executable(), a.executable()});
            }).find("ValueError"),
            std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tenon
