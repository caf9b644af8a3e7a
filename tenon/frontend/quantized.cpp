#include "tenon/frontend/quantized.h"

#include "tenon/frontend/trace.h"

namespace tenon {

void register_encoding(const EncodingSpec& spec) {
  quant::register_format({.encoding = quant::Encoding::kRegistered,
                          .name = spec.name,
                          .gguf_type = 0,
                          .block_elements = spec.elements,
                          .block_bytes = spec.bytes,
                          .decode_blocks = spec.decode,
                          .encode_blocks = spec.encode});
}

Tensor quantize(const std::string& encoding, const Operand& x) {
  const Call call("quantize", {&x});
  return call.result(ops::quantize(encoding, call[0], call.location()));
}

Tensor dequantize(const std::string& encoding, const Operand& q) {
  const Call call("dequantize", {&q});
  return call.result(ops::dequantize(encoding, call[0], call.location()));
}

Tensor qmatmul(const std::string& encoding, const Operand& x, const Operand& w,
               Activations activations) {
  const Call call_x("qmatmul", {&x});
  const Call call_w("qmatmul", {&w});
  return call_x.result(
      ops::qmatmul(encoding, call_x[0], call_w[0], activations, call_x.location()));
}

}  // namespace tenon
