#include "tenon/base/mmap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tenon/base/error.h"

namespace tenon {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  throw IoError(fmt::format("{}: {}: {}", path, what, std::strerror(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

// A new file `target`.tmp.…, whose name is given back. The umask takes its part of `mode`.
// Negative, with errno set, when there can be none.
int create_beside(const std::string& target, mode_t mode, std::string& name) {
  static std::atomic<unsigned> next{0};
  for (int attempt = 0; attempt < 1000; ++attempt) {
    name = fmt::format("{}.tmp.{}.{}", target, ::getpid(), next.fetch_add(1));
    const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  // Without waiting: a pipe would wait for its writer, and is refused below.
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) fail(path, "cannot open", errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail(path, "cannot stat", errno);
  if (!S_ISREG(info.st_mode)) throw IoError(path + ": not a regular file");
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  file->size_ = static_cast<size_t>(info.st_size);
  file->identity_ = fmt::format("{}:{}:{}:{}.{:09}", info.st_dev, info.st_ino, info.st_size,
                                info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  if (file->size_ == 0) return file;
  void* data = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) {
    file->size_ = 0;
    fail(path, "cannot map", errno);
  }
  file->data_ = static_cast<const std::byte*>(data);
  return file;
}

void release_pages(std::span<const std::byte> file, std::span<const std::byte> part) {
  // A page cache with huge pages maps one of them, whole, at the first access to any of it.
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(file.data());  // of a page
  const uintptr_t end = (begin + file.size() + page - 1) / page * page;
  const auto at = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = std::max(at / kHugePage * kHugePage, begin);
  const uintptr_t last = std::min((at + part.size() + kHugePage - 1) / kHugePage * kHugePage, end);
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void write_file_atomic(const std::string& path, std::span<const std::byte> bytes) {
  write_pieces_atomic(path, std::span(&bytes, 1));
}

void write_pieces_atomic(const std::string& path,
                         std::span<const std::span<const std::byte>> pieces) {
  namespace fs = std::filesystem;
  std::error_code ec;
  fs::path target(path);
  for (int hops = 0; fs::is_symlink(fs::symlink_status(target, ec)); ++hops) {
    if (hops == 40) fail(path, "cannot follow the link", ELOOP);
    fs::path link = fs::read_symlink(target, ec);
    if (ec) fail(path, "cannot read the link", ec.value());
    target = link.is_absolute() ? link : target.parent_path() / link;
  }
  struct stat old {};
  bool existed = ::stat(target.c_str(), &old) == 0;
  if (existed && !S_ISREG(old.st_mode)) throw IoError(path + ": exists and is not a regular file");

  std::string temporary;
  int raw = create_beside(target.string(), existed ? 0600 : 0666, temporary);
  if (raw < 0) fail(path, "cannot create a temporary file beside it", errno);
  auto give_up = [&](const char* what) {
    int error = errno;
    ::unlink(temporary.c_str());
    fail(path, what, error);
  };
  {
    Descriptor fd(raw);
    if (existed) ::fchmod(fd.get(), old.st_mode & 07777);
    for (std::span<const std::byte> piece : pieces) {
      if (!write_all(fd.get(), piece)) give_up("cannot write");
    }
    if (::fsync(fd.get()) != 0) give_up("cannot sync");
  }
  if (::rename(temporary.c_str(), target.c_str()) != 0) give_up("cannot rename into place");
  fs::path folder = target.parent_path().empty() ? fs::path(".") : target.parent_path();
  Descriptor dir(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir.get() >= 0) ::fsync(dir.get());
}

}  // namespace tenon
