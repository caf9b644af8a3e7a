// Any text is read as a chat template and rendered, or refused with an error.
#include <cstdint>
#include <string_view>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/pipelines/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::pipelines;
  static const std::vector<ChatMessage> messages = {
      {"system", "a, b"}, {"user", " hi\n"}, {"assistant", "\xc3\xa9"}};
  try {
    ChatTemplate({reinterpret_cast<const char*>(data), size}, "<s>", "</s>").render(messages);
  } catch (const tenon::InternalError&) {
    throw;
  } catch (const tenon::Error&) {
  }
  return 0;
}
