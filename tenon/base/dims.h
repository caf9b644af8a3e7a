// The sizes of an array. Up to six stand in the object, so that arrays are copied and made without
// allocating; more are kept in memory of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace tenon {

class Dims {
 public:
  Dims() = default;
  Dims(std::span<const int64_t> dims) { assign(dims); }     // NOLINT
  Dims(const std::vector<int64_t>& dims) { assign(dims); }  // NOLINT
  Dims(std::initializer_list<int64_t> dims) { assign({dims.begin(), dims.size()}); }
  Dims(const Dims& other) { assign(other); }
  Dims(Dims&& other) noexcept { swap(other); }
  Dims& operator=(const Dims& other) {
    if (this != &other) assign(other);
    return *this;
  }
  Dims& operator=(Dims&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Dims() = default;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const int64_t* data() const { return more_ == nullptr ? few_ : more_.get(); }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  int64_t operator[](size_t i) const { return data()[i]; }
  int64_t back() const { return data()[size_ - 1]; }
  operator std::vector<int64_t>() const { return {begin(), end()}; }  // NOLINT

  friend bool operator==(const Dims& a, const Dims& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator==(const Dims& a, const std::vector<int64_t>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  static constexpr size_t kFew = 6;

  void swap(Dims& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(few_, other.few_);
    std::swap(more_, other.more_);
  }

  void assign(std::span<const int64_t> dims) {
    std::unique_ptr<int64_t[]> more;
    if (dims.size() > kFew) more = std::make_unique_for_overwrite<int64_t[]>(dims.size());
    std::copy(dims.begin(), dims.end(), more == nullptr ? few_ : more.get());
    more_ = std::move(more);
    size_ = dims.size();
  }

  size_t size_ = 0;
  int64_t few_[kFew] = {};
  std::unique_ptr<int64_t[]> more_;
};

}  // namespace tenon
