// The cache of kernels on disk: what another process wrote is taken when it is whole, ours and
// under its own name, and nothing else is.
#include "tenon/compiler/kernel_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

namespace tenon::compiler {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCodeBytes = 80;

Digest key_of(const std::string& text) { return hash_bytes(std::as_bytes(std::span(text))); }

KernelCode code_of(unsigned seed) {
  KernelCode code;
  code.entry = 64;
  for (size_t i = 0; i < kCodeBytes; ++i) {
    code.bytes.push_back(static_cast<std::byte>((i * 7 + seed) % 256));
  }
  return code;
}

// Runs `work` in a process of its own, whose memory this one does not see.
void in_child(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

void store_in_child(const Digest& key, unsigned seed) {
  in_child([&] { store_kernel(key, std::make_shared<const KernelCode>(code_of(seed)), true); });
}

// True when the entry is found on disk, with the right code. The memory of this process stays
// without it.
bool is_found(const Digest& key, unsigned seed) {
  bool found = false;
  int pipes[2];
  if (::pipe(pipes) != 0) throw std::runtime_error("no pipe");
  in_child([&] {
    const KernelCodePtr code = find_kernel(key, true);
    const KernelCode right = code_of(seed);
    const char answer = code == nullptr                                            ? '0'
                        : code->bytes == right.bytes && code->entry == right.entry ? '1'
                                                                                   : 'x';
    if (::write(pipes[1], &answer, 1) != 1) ::_exit(1);
  });
  char answer = 'x';
  EXPECT_EQ(::read(pipes[0], &answer, 1), 1);
  EXPECT_NE(answer, 'x') << "wrong code was taken";
  found = answer == '1';
  ::close(pipes[0]);
  ::close(pipes[1]);
  return found;
}

class KernelCache : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("tenon_kernel_cache_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directory(root_);
    folder_ = root_ / "deep" / "cache";
    ::setenv("TENON_CACHE_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("TENON_CACHE_DIR");
    fs::remove_all(root_);
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    if (!fs::exists(folder_)) return out;
    for (const auto& entry : fs::directory_iterator(folder_)) out.push_back(entry.path());
    return out;
  }
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  static mode_t mode_of(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }

  fs::path root_, folder_;
};

TEST_F(KernelCache, KeepsCodeBetweenProcesses) {
  const Digest key = key_of("a");
  EXPECT_FALSE(is_found(key, 1));
  EXPECT_FALSE(fs::exists(folder_)) << "looking makes no folder";
  store_in_child(key, 1);
  EXPECT_TRUE(is_found(key, 1));
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(mode_of(folder_), 0700u);
  EXPECT_EQ(mode_of(files()[0]), 0600u);
  in_child([&] {
    if (find_kernel(key, false) != nullptr) ::_exit(1);  // disk not permitted
  });
}

TEST_F(KernelCache, EveryFlippedBitIsRefused) {
  const Digest key = key_of("flip");
  store_in_child(key, 2);
  const fs::path path = files().at(0);
  const std::string right = read(path);
  const int fd = ::open(path.c_str(), O_RDWR);
  ASSERT_GE(fd, 0);
  const auto put = [&](size_t at, char byte) {
    if (::pwrite(fd, &byte, 1, static_cast<off_t>(at)) != 1) ::_exit(5);
  };
  // One process tries them all: what is refused does not enter its memory.
  in_child([&] {
    for (size_t i = 0; i < right.size() * 8; ++i) {
      put(i / 8, static_cast<char>(right[i / 8] ^ (1 << i % 8)));
      if (find_kernel(key, true) != nullptr) ::_exit(1);
      put(i / 8, right[i / 8]);
    }
    for (size_t size = right.size(); size-- > 0;) {
      if (::ftruncate(fd, static_cast<off_t>(size)) != 0) ::_exit(5);
      if (find_kernel(key, true) != nullptr) ::_exit(2);
    }
    write(path, right + '\0');
    if (find_kernel(key, true) != nullptr) ::_exit(3);
    write(path, right);
    if (find_kernel(key, true) == nullptr) ::_exit(4);
  });
  ::close(fd);
}

TEST_F(KernelCache, AnotherKernelsEntryIsRefused) {
  store_in_child(key_of("one"), 1);
  const fs::path one = files().at(0);
  store_in_child(key_of("two"), 2);
  for (const fs::path& path : files()) {
    if (path != one) fs::copy_file(one, path, fs::copy_options::overwrite_existing);
  }
  EXPECT_TRUE(is_found(key_of("one"), 1));
  EXPECT_FALSE(is_found(key_of("two"), 2));
}

TEST_F(KernelCache, WhatIsNoFileIsRefused) {
  const Digest key = key_of("strange");
  store_in_child(key, 3);
  const fs::path path = files().at(0);
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_FALSE(is_found(key, 3));
  store_in_child(key, 3);  // cannot be renamed over a folder: no error, and nothing is left behind
  EXPECT_EQ(files().size(), 1u);
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(is_found(key, 3));
  fs::remove(path);
  fs::create_symlink("/dev/zero", path);
  EXPECT_FALSE(is_found(key, 3));
}

TEST_F(KernelCache, AFolderOfOthersIsNotUsed) {
  const Digest key = key_of("shared");
  store_in_child(key, 4);
  ASSERT_TRUE(is_found(key, 4));
  for (mode_t mode : {0770u, 0707u, 0777u, 01777u}) {
    ASSERT_EQ(::chmod(folder_.c_str(), mode), 0);
    EXPECT_FALSE(is_found(key, 4)) << mode;
    store_in_child(key_of("more"), 5);
    EXPECT_EQ(files().size(), 1u) << mode;
  }
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  EXPECT_TRUE(is_found(key, 4));
  // A link may lead anywhere.
  const fs::path link = root_ / "link";
  fs::create_directory_symlink(folder_, link);
  ::setenv("TENON_CACHE_DIR", link.c_str(), 1);
  EXPECT_FALSE(is_found(key, 4));
}

TEST_F(KernelCache, APlaceThatCannotBeWrittenIsNoError) {
  for (const char* place : {"/proc/tenon-cache", "/dev/null/cache", ""}) {
    ::setenv("TENON_CACHE_DIR", place, 1);
    store_in_child(key_of("nowhere"), 6);
    EXPECT_FALSE(is_found(key_of("nowhere"), 6)) << place;
  }
}

TEST_F(KernelCache, AKilledWriterLeavesWholeEntriesOnly) {
  std::vector<Digest> keys;
  for (int i = 0; i < 400; ++i) keys.push_back(key_of("killed " + std::to_string(i)));
  for (int round = 0; round < 8; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (const Digest& key : keys) {
        store_kernel(key, std::make_shared<const KernelCode>(code_of(7)), true);
      }
      ::_exit(0);
    }
    ::usleep(500 + 900 * static_cast<useconds_t>(round));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  }
  size_t entries = 0;
  for (const fs::path& path : files()) entries += path.extension() == ".kernel" ? 1 : 0;
  size_t found = 0;
  for (const Digest& key : keys) found += find_kernel(key, true) != nullptr ? 1 : 0;
  EXPECT_GT(entries, 0u);
  EXPECT_EQ(found, entries) << "every entry under its last name is whole";
}

}  // namespace
}  // namespace tenon::compiler
