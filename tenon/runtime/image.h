// Machine code mapped for execution: written first, then made executable; never both at once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "tenon/abi/kernel_abi.h"

namespace tenon::runtime {

class LoadedImage {
 public:
  // Copies position-independent code (abi::Image::bytes) into memory that is read and execute only.
  // Raises IoError when the system refuses, ValueError for no bytes.
  static std::shared_ptr<const LoadedImage> load(std::span<const std::byte> bytes);
  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

  // The function at a byte offset. Raises ValueError for one outside the image.
  abi::KernelFn function(uint64_t offset) const;

 private:
  LoadedImage(void* data, size_t size, size_t mapped) : data_(data), size_(size), mapped_(mapped) {}
  void* data_;
  size_t size_;
  size_t mapped_;
};

}  // namespace tenon::runtime
