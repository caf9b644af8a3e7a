#include "tenon/base/mmap.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

#include "tenon/base/error.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tenon_mmap_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  size_t count() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

// Pages of what the parts of a mapping touched, in memory.
int64_t resident_pages() {
  int64_t all = 0;
  int64_t resident = 0;
  int64_t shared = 0;
  std::ifstream("/proc/self/statm") >> all >> resident >> shared;
  return shared;
}

TEST_F(Files, ReleasedPartsAreReadAgain) {
  constexpr size_t kSize = (size_t{7} << 20) + 123;
  std::string text(kSize, 'a');
  for (size_t i = 0; i < kSize; i += 997) text[i] = static_cast<char>('b' + i % 20);
  write_file_atomic(path("big"), bytes_of(text));
  const auto file = MappedFile::open(path("big"));
  const auto bytes = file->bytes();
  for (const auto& [at, count] : std::vector<std::pair<size_t, size_t>>{
           {0, 0}, {0, 1}, {kSize - 1, 1}, {kSize, 0}, {3'000'001, 4}, {0, kSize}}) {
    EXPECT_TRUE(text_of(*file) == text);  // all of it is in memory
    const int64_t before = resident_pages();
    release_pages(bytes, bytes.subspan(at, count));
    const auto part = static_cast<int64_t>(count) / sysconf(_SC_PAGESIZE);
    EXPECT_LE(resident_pages(), before - part) << at << " " << count;
  }
  EXPECT_TRUE(text_of(*file) == text);
}

TEST_F(Files, WritesAndMaps) {
  write_file_atomic(path("a"), bytes_of("hello"));
  auto file = MappedFile::open(path("a"));
  EXPECT_EQ(text_of(*file), "hello");
  EXPECT_EQ(file->path(), path("a"));
  write_file_atomic(path("a"), bytes_of(""));
  EXPECT_EQ(text_of(*file), "hello");  // the old file stays mapped
  EXPECT_EQ(MappedFile::open(path("a"))->bytes().size(), 0u);
  EXPECT_EQ(count(), 1u);
}

TEST_F(Files, RefusalsNameThePath) {
  auto refused = [](auto&& call, const std::string& path) {
    try {
      call();
      ADD_FAILURE() << "accepted " << path;
    } catch (const IoError& e) {
      EXPECT_TRUE(std::string(e.what()).starts_with(path + ": ")) << e.what();
    }
  };
  refused([&] { MappedFile::open(path("none")); }, path("none"));
  refused([&] { MappedFile::open(folder_.string()); }, folder_.string());
  refused([&] { write_file_atomic(path("no/such"), {}); }, path("no/such"));
  refused([&] { write_file_atomic(folder_.string(), {}); }, folder_.string());
  EXPECT_EQ(count(), 0u);
}

TEST_F(Files, KeepsModeAndFollowsLinks) {
  write_file_atomic(path("a"), bytes_of("one"));
  ASSERT_EQ(chmod(path("a").c_str(), 0640), 0);
  fs::create_symlink("a", path("link"));
  write_file_atomic(path("link"), bytes_of("two"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(text_of(*MappedFile::open(path("a"))), "two");
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms(0640));
  fs::create_symlink(path("loop2"), path("loop1"));
  fs::create_symlink(path("loop1"), path("loop2"));
  EXPECT_THROW(write_file_atomic(path("loop1"), {}), IoError);
}

// A process killed at any time while it rewrites a file leaves one whole content.
TEST_F(Files, AKilledWriterLeavesOldOrNew) {
  constexpr size_t kSize = 1 << 20;
  const std::string target = path("target");
  write_file_atomic(target, bytes_of(std::string(kSize, 'a')));
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 30; ++round) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (char c = 'b';; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
        write_file_atomic(target, bytes_of(std::string(kSize + static_cast<size_t>(c), c)));
      }
    }
    usleep(500 + random() % 15000);
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    std::string text = text_of(*MappedFile::open(target));
    ASSERT_GE(text.size(), kSize);
    ASSERT_TRUE(text.size() == kSize || text.size() == kSize + static_cast<size_t>(text[0]));
    ASSERT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), text[0])), text.size());
  }
}

}  // namespace
}  // namespace tenon
