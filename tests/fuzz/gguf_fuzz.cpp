// Any bytes are read as GGUF or refused with a FormatError; what was read can be looked at whole
// and written again.
#include <cstdint>
#include <cstdlib>

#include "tenon/base/error.h"
#include "tenon/formats/gguf_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  std::shared_ptr<const formats::GgufFile> file;
  try {
    file = formats::GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
  } catch (const FormatError&) {
    return 0;
  }
  formats::GgufWriter writer;
  for (const formats::GgufEntry& entry : file->metadata()) {
    writer.copy(entry);
    try {
      if (entry.value.type == formats::GgufType::kArray) {
        file->get_ints(entry.key);
      } else {
        file->get_int(entry.key);
      }
    } catch (const FormatError&) {
    }
  }
  for (const formats::GgufTensor& tensor : file->tensors()) {
    if (tensor.elements <= 1 << 20) {
      std::vector<float> values(static_cast<size_t>(tensor.elements));
      tensor.decode(values);
    }
    writer.add_tensor(tensor.name, *tensor.format, tensor.shape, tensor.data);
  }
  std::vector<std::byte> again = writer.bytes();
  auto back = formats::GgufFile::parse(again, "again");
  if (back->tensors().size() != file->tensors().size()) std::abort();
  if (back->metadata().size() != file->metadata().size()) std::abort();
  return 0;
}
