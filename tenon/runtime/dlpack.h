// The structs of DLPack's C interface, version 0.8 (dmlc.github.io/dlpack): how array libraries
// hand memory to each other. Declared here under their public names so that no header is needed.
#pragma once

#include <cstdint>

extern "C" {

struct DLDevice {
  int32_t device_type;  // 1: CPU
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: dense row-major
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

}  // extern "C"

namespace tenon::runtime {

inline constexpr int32_t kDlCpu = 1;

// DLDataType::code.
enum DlCode : uint8_t {
  kDlInt = 0,
  kDlUInt = 1,
  kDlFloat = 2,
  kDlBfloat = 4,
  kDlComplex = 5,
  kDlBool = 6,
};

}  // namespace tenon::runtime
