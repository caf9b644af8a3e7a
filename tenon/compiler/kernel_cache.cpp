#include "tenon/compiler/kernel_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>

#include "tenon/base/error.h"
#include "tenon/base/mmap.h"

namespace tenon::compiler {
namespace {

// ── memory ─────────────────────────────────────────────────────────────────────────────────────

// Keeps the most recently used kernels, up to a number of bytes.
class MemoryCache {
 public:
  KernelCodePtr find(const Digest& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = entries_.find(key);
    if (it == entries_.end()) return nullptr;
    order_.splice(order_.begin(), order_, it->second);
    return it->second->second;
  }

  void store(const Digest& key, const KernelCodePtr& code) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (entries_.count(key) != 0) return;
    order_.emplace_front(key, code);
    entries_[key] = order_.begin();
    bytes_ += code->bytes.size();
    while (bytes_ > kMaxBytes && order_.size() > 1) {
      bytes_ -= order_.back().second->bytes.size();
      entries_.erase(order_.back().first);
      order_.pop_back();
    }
  }

 private:
  static constexpr size_t kMaxBytes = size_t{64} << 20;
  using Order = std::list<std::pair<Digest, KernelCodePtr>>;
  std::mutex mutex_;
  Order order_;
  std::map<Digest, Order::iterator> entries_;
  size_t bytes_ = 0;
};

MemoryCache& memory_cache() {
  static auto* cache = new MemoryCache;  // outlives threads that still compile at exit
  return *cache;
}

// ── disk ───────────────────────────────────────────────────────────────────────────────────────

constexpr char kMagic[8] = {'T', 'N', 'K', 'E', 'R', 'N', '0', '1'};

struct FileHeader {
  char magic[8];
  uint64_t entry;
  uint64_t size;
  Digest key;     // an entry under another key's name is not taken
  Digest digest;  // of magic, entry, size, key and the code
};

Digest entry_digest(const FileHeader& header, std::span<const std::byte> code) {
  Hasher hasher;
  hasher.update(std::string_view(header.magic, sizeof header.magic));
  hasher.update_value(header.entry).update_value(header.size).update_value(header.key);
  hasher.update(code);
  return hasher.finish();
}

// Creates the folder when it is missing; true when it is ours alone.
bool prepare_folder(const std::string& folder) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) {
    for (size_t at = folder.find('/', 1); at != std::string::npos; at = folder.find('/', at + 1)) {
      ::mkdir(folder.substr(0, at).c_str(), 0700);
    }
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
    if (::lstat(folder.c_str(), &info) != 0) return false;
  }
  return S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 022) == 0;
}

std::string entry_path(const std::string& folder, const Digest& key) {
  return folder + "/" + to_hex(key) + ".kernel";
}

KernelCodePtr read_entry(const Digest& key) {
  std::string folder = cache_folder();
  struct stat info {};
  if (folder.empty() || ::lstat(folder.c_str(), &info) != 0 || !prepare_folder(folder)) {
    return nullptr;
  }
  std::string path = entry_path(folder, key);
  if (::access(path.c_str(), R_OK) != 0) return nullptr;
  try {
    auto file = MappedFile::open(path);
    FileHeader header;
    if (file->bytes().size() < sizeof header) return nullptr;
    std::memcpy(&header, file->bytes().data(), sizeof header);
    auto code = file->bytes().subspan(sizeof header);
    bool whole = std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 && header.key == key &&
                 header.size == code.size() && header.entry < header.size &&
                 header.digest == entry_digest(header, code);
    if (!whole) return nullptr;
    return std::make_shared<const KernelCode>(KernelCode{{code.begin(), code.end()}, header.entry});
  } catch (const Error&) {
    return nullptr;
  }
}

void write_entry(const Digest& key, const KernelCode& code) {
  const std::string folder = own_cache_folder();
  if (folder.empty()) return;
  FileHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.entry = code.entry;
  header.size = code.bytes.size();
  header.key = key;
  header.digest = entry_digest(header, code.bytes);
  std::string path = entry_path(folder, key);
  static std::atomic<uint64_t> serial{0};
  std::string temporary = fmt::format("{}.{}.{}", path, ::getpid(), serial.fetch_add(1));
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return;
  auto write_all = [fd](const void* data, size_t size) {
    return ::write(fd, data, size) == static_cast<ssize_t>(size);
  };
  bool done = write_all(&header, sizeof header) && write_all(code.bytes.data(), code.bytes.size());
  ::close(fd);
  if (!done || ::rename(temporary.c_str(), path.c_str()) != 0) ::unlink(temporary.c_str());
}

}  // namespace

std::string cache_folder() {
  if (const char* set = std::getenv("TENON_CACHE_DIR")) return set;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != 0) {
    return std::string(xdg) + "/tenon";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0) {
    return std::string(home) + "/.cache/tenon";
  }
  return "";
}

std::string own_cache_folder() {
  std::string folder = cache_folder();
  return !folder.empty() && prepare_folder(folder) ? folder : "";
}

KernelCodePtr find_kernel(const Digest& key, bool on_disk) {
  if (KernelCodePtr code = memory_cache().find(key)) return code;
  if (!on_disk) return nullptr;
  KernelCodePtr code = read_entry(key);
  if (code != nullptr) memory_cache().store(key, code);
  return code;
}

void store_kernel(const Digest& key, const KernelCodePtr& code, bool on_disk) {
  memory_cache().store(key, code);
  if (on_disk) write_entry(key, *code);
}

}  // namespace tenon::compiler
