#include "tenon/base/error.h"
#include "tenon/runtime/array.h"
#include "tenon/runtime/dlpack.h"

namespace tenon::runtime {
namespace {

DLDataType to_dl(DType dtype) {
  auto bits = static_cast<uint8_t>(size_of(dtype) * 8);
  if (dtype == DType::kBool) return {kDlBool, bits, 1};
  if (dtype == DType::kBF16) return {kDlBfloat, bits, 1};
  if (is_complex(dtype)) return {kDlComplex, bits, 1};
  if (is_float(dtype)) return {kDlFloat, bits, 1};
  return {is_unsigned(dtype) ? kDlUInt : kDlInt, bits, 1};
}

DType from_dl(DLDataType type) {
  for (int i = 0; i < kDTypeCount; ++i) {
    auto dtype = static_cast<DType>(i);
    DLDataType mine = to_dl(dtype);
    if (mine.code == type.code && mine.bits == type.bits && type.lanes == 1) return dtype;
  }
  throw ValueError(fmt::format("from_dlpack: no dtype for type code {} with {} bits and {} lanes",
                               type.code, type.bits, type.lanes),
                   {.label = "dlpack_dtype"});
}

bool is_dense(const DLTensor& tensor, const std::vector<int64_t>& dims, int64_t count) {
  if (tensor.strides == nullptr || count == 0) return true;
  int64_t expected = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= dims[i];
  }
  return true;
}

// Calls the producer's deleter with the last owner.
std::shared_ptr<DLManagedTensor> own(DLManagedTensor* tensor) {
  return {tensor, [](DLManagedTensor* t) {
            if (t->deleter != nullptr) t->deleter(t);
          }};
}

struct Exported {
  DLManagedTensor managed;
  Array array;
  std::vector<int64_t> shape;
};

}  // namespace

Array Array::from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) throw ValueError("from_dlpack: the tensor is null");
  std::shared_ptr<DLManagedTensor> owner = own(managed);
  const DLTensor& tensor = managed->dl_tensor;
  if (tensor.device.device_type != kDlCpu) {
    throw ValueError(fmt::format("from_dlpack: expected a tensor in CPU memory (device type 1), "
                                 "got device type {}",
                                 tensor.device.device_type),
                     {.label = "dlpack_device", .hint = "copy it to the CPU first"});
  }
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) {
    throw ValueError("from_dlpack: the tensor has no shape", {.label = "dlpack_shape"});
  }
  DType dtype = from_dl(tensor.dtype);
  std::vector<int64_t> dims(tensor.shape, tensor.shape + tensor.ndim);
  int64_t count = element_count(dims);
  if (!is_dense(tensor, dims, count)) {
    throw ValueError(
        fmt::format("from_dlpack: {} is not dense and row-major", tenon::describe(dtype, dims)),
        {.label = "dlpack_strides", .hint = "make it contiguous first"});
  }
  char* data = static_cast<char*>(tensor.data);
  if (data != nullptr) data += tensor.byte_offset;
  size_t unit = is_complex(dtype) ? size_of(dtype) / 2 : size_of(dtype);
  if (reinterpret_cast<uintptr_t>(data) % unit != 0) {
    throw ValueError(fmt::format("from_dlpack: the memory of {} is not aligned to its elements",
                                 tenon::describe(dtype, dims)),
                     {.label = "dlpack_alignment", .hint = "copy it first"});
  }
  return borrow(dtype, dims, data, std::move(owner), true);
}

DLManagedTensor* Array::to_dlpack() const {
  check_internal(valid(), "an array without memory cannot be exported");
  auto exported = std::make_unique<Exported>();
  exported->array = *this;
  exported->shape = dims_;
  DLManagedTensor& managed = exported->managed;
  managed.dl_tensor = {data_,
                       {kDlCpu, 0},
                       static_cast<int32_t>(dims_.size()),
                       to_dl(dtype_),
                       exported->shape.data(),
                       nullptr,
                       0};
  managed.manager_ctx = exported.get();
  managed.deleter = [](DLManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); };
  return &exported.release()->managed;
}

}  // namespace tenon::runtime
