#include "tenon/runtime/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tenon/base/error.h"
#include "tenon/runtime/cpu_count.h"

namespace tenon::runtime {
namespace {

TEST(Cpu, LevelsAreOrderedAndForced) {
  ::unsetenv("TENON_ISA");
  std::vector<std::string> all = usable_levels();
  ASSERT_FALSE(all.empty());
#if defined(__x86_64__)
  EXPECT_EQ(all.back(), "x86-64");
  ::setenv("TENON_ISA", "baseline", 1);
  EXPECT_EQ(usable_levels(), std::vector<std::string>{"x86-64"});
  EXPECT_EQ(cpu_level(), "x86-64");
  if (std::count(all.begin(), all.end(), "x86-64-v4-dot") != 0) {
    ::setenv("TENON_ISA", "avx512dot", 1);
    EXPECT_EQ(usable_levels(), (std::vector<std::string>{"x86-64-v4-dot", "x86-64-v4"}));
  }
  ::setenv("TENON_ISA", "aarch64", 1);
  EXPECT_THROW(usable_levels(), UnsupportedError);
  EXPECT_EQ(cpu_info().avx2, __builtin_cpu_supports("x86-64-v3") != 0);
  EXPECT_EQ(cpu_info().avx512, __builtin_cpu_supports("x86-64-v4") != 0);
#endif
  ::setenv("TENON_ISA", "avx3", 1);
  try {
    usable_levels();
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(),
                 "TENON_ISA=avx3: not a level [cpu_level]\n  hint: one of baseline, avx2, avx512, "
                 "avx512dot, amx");
  }
  ::unsetenv("TENON_ISA");
}

TEST(Cpu, CachesAndCount) {
  const CpuInfo& info = cpu_info();
  EXPECT_GE(info.l1_bytes, 8 << 10);
  EXPECT_GE(info.l2_bytes, info.l1_bytes);
  EXPECT_GE(available_cpus(), 1);
}

}  // namespace
}  // namespace tenon::runtime
