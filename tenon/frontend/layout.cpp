#include "tenon/frontend/layout.h"

#include <algorithm>
#include <ostream>

#include "tenon/frontend/layer.h"

namespace tenon {

Device::Device(std::string_view kind, int index) {
  if (kind == "gpu" || kind == "cuda") {
    throw UnsupportedError("Device: no GPU found: this build runs on the CPU",
                           {.label = "device_c1", .hint = "use tenon::cpu()"});
  }
  if (kind != "cpu") {
    throw ValueError(fmt::format("Device: unknown kind \"{}\": the kinds are cpu and gpu", kind),
                     {.label = "device_c2"});
  }
  if (index != 0) {
    throw ValueError(fmt::format("Device: cpu({}) does not exist: there is one CPU, cpu(0)", index),
                     {.label = "device_c3"});
  }
}

Device cpu(int index) { return Device("cpu", index); }

namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 62;

DType dtype_named(std::string_view text) {
  const auto found = dtype_from_name(text);
  if (found) return *found;
  throw ValueError(fmt::format("TensorLayout: unknown dtype \"{}\"", text),
                   {.label = "layout_c2",
                    .hint = "the dtypes are bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, c64"});
}

}  // namespace

TensorLayout::TensorLayout(DType dtype, Shape shape, Device device, Here at)
    : dtype_(dtype), shape_(std::move(shape)), device_(device), place_(place_text(at)) {
  for (size_t i = 0; i < shape_.size(); ++i) {
    if (!shape_[i].is_static() || shape_[i].value() >= 0) continue;
    throw ValueError(
        fmt::format("TensorLayout: dimension {} is {}, sizes are not negative", i,
                    shape_[i].value()),
        {.label = "layout_c1", .location = place_, .hint = "a size that varies has a name: \"n\""});
  }
  const bool empty = std::any_of(shape_.begin(), shape_.end(), [](const Dim& dim) {
    return dim.is_static() && dim.value() == 0;
  });
  if (empty) return;
  uint64_t bytes = size_of(dtype);
  for (const Dim& dim : shape_) {
    const uint64_t size = dim.is_static() ? static_cast<uint64_t>(dim.value()) : 1;
    if (bytes > kMaxBytes / size) {
      throw ValueError(fmt::format("TensorLayout: {}{} has more than 2^62 bytes",
                                   tenon::name(dtype), tenon::str(shape_)),
                       {.label = "layout_c3", .location = place_});
    }
    bytes *= size;
  }
}

TensorLayout::TensorLayout(std::string_view dtype, Shape shape, Device device, Here at)
    : TensorLayout(dtype_named(dtype), std::move(shape), device, at) {}

TensorLayout TensorLayout::as_tensor() const {
  TensorLayout copy = *this;
  copy.writable_ = false;
  return copy;
}

TensorLayout TensorLayout::as_buffer() const {
  TensorLayout copy = *this;
  copy.writable_ = true;
  return copy;
}

std::string TensorLayout::str() const {
  return fmt::format("{}({}, {}, {})", writable_ ? "BufferLayout" : "TensorLayout", name(dtype_),
                     tenon::str(shape_), device_.str());
}

bool TensorLayout::operator==(const TensorLayout& other) const {
  return writable_ == other.writable_ && dtype_ == other.dtype_ && shape_ == other.shape_ &&
         device_ == other.device_;
}

size_t TensorLayout::hash() const {
  size_t h = static_cast<size_t>(dtype_) * 2 + (writable_ ? 1 : 0);
  for (const Dim& dim : shape_) h = h * 31 + dim.hash();
  return h;
}

std::ostream& operator<<(std::ostream& out, const TensorLayout& layout) {
  return out << layout.str();
}

void refuse_layout(std::string_view type, const std::string& value) {
  throw TypeError(fmt::format("as_layout: expected a layout, got {}{}{}", type,
                              value.empty() ? "" : ": ", value),
                  {.label = "as_layout_c1"});
}

}  // namespace tenon
