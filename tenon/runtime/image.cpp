#include "tenon/runtime/image.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tenon/base/error.h"

namespace tenon::runtime {

std::shared_ptr<const LoadedImage> LoadedImage::load(std::span<const std::byte> bytes) {
  if (bytes.empty()) throw ValueError("image: no bytes");
  auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t mapped = (bytes.size() + page - 1) / page * page;
  void* data = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw IoError(fmt::format("image: cannot map {} bytes: {}", mapped, std::strerror(errno)));
  }
  std::shared_ptr<LoadedImage> image(new LoadedImage(data, bytes.size(), mapped));
  std::memcpy(data, bytes.data(), bytes.size());
  char* begin = static_cast<char*>(data);
  __builtin___clear_cache(begin, begin + bytes.size());
  if (::mprotect(data, mapped, PROT_READ | PROT_EXEC) != 0) {
    throw IoError(
        fmt::format("image: cannot make {} bytes executable: {}", mapped, std::strerror(errno)));
  }
  return image;
}

LoadedImage::~LoadedImage() { ::munmap(data_, mapped_); }

abi::KernelFn LoadedImage::function(uint64_t offset) const {
  if (offset >= size_) {
    throw ValueError(fmt::format("image: offset {} is outside its {} bytes", offset, size_));
  }
  return reinterpret_cast<abi::KernelFn>(static_cast<char*>(data_) + offset);
}

}  // namespace tenon::runtime
