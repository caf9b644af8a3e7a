#include "tenon/formats/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "tenon/base/error.h"
#include "tenon/base/mmap.h"
#include "tenon/base/utf8.h"

namespace tenon::formats {
namespace {

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr size_t kMaxKey = 65535;
constexpr size_t kMaxName = 64;
constexpr uint32_t kMaxDims = 4;
// The least that an entry or a tensor's description takes in the file.
constexpr uint64_t kMinEntry = 8 + 1 + 4 + 1;
constexpr uint64_t kMinInfo = 8 + 1 + 4 + 8 + 4 + 8;

// 98362432 as 98 362 432.
std::string spaced(uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, " ");
  return digits;
}

// Names of type ids that stand in files and are not read here.
std::string_view unsupported_type(uint32_t id) {
  switch (id) {
    case 9: return "Q8_1";
    case 10: return "Q2_K";
    case 11: return "Q3_K";
    case 15: return "Q8_K";
    case 24: return "I8";
    case 25: return "I16";
    case 26: return "I32";
    case 27: return "I64";
    case 28: return "F64";
    case 34: return "TQ1_0";
    case 35: return "TQ2_0";
    case 39: return "MXFP4";
    case 40: return "NVFP4";
    default: break;
  }
  return (id >= 16 && id <= 23) || id == 29 ? "an IQ type" : "";
}

}  // namespace

// Reads from a cursor whose every step is checked against the bytes that are left.
class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string name, std::shared_ptr<const void> owner,
             std::string identity = "")
      : file_(new GgufFile), rest_(bytes) {
    file_->identity_ = std::move(identity);
    file_->name_ = std::move(name);
    file_->bytes_ = bytes;
    file_->owner_ = std::move(owner);
  }

  std::shared_ptr<const GgufFile> parse() {
    auto [tensors, entries] = header();
    for (uint64_t i = 0; i < entries; ++i) entry();
    for (size_t i = 0; i < file_->metadata_.size(); ++i) {
      file_->keys_.emplace(file_->metadata_[i].key, i);
    }
    alignment();
    std::vector<uint64_t> offsets;
    for (uint64_t i = 0; i < tensors; ++i) offsets.push_back(tensor_info());
    place_tensors(offsets);
    return file_;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw FormatError(file_->name_ + ": " + fmt::format(text, std::forward<Args>(args)...));
  }

  uint64_t position() const { return file_->bytes_.size() - rest_.size(); }

  std::span<const std::byte> take(uint64_t size, std::string_view what) {
    if (size > rest_.size()) {
      refuse("{} needs {} bytes at {} of a file of {} bytes (truncated or damaged)", what,
             spaced(size), spaced(position()), spaced(file_->bytes_.size()));
    }
    auto out = rest_.first(size);
    rest_ = rest_.subspan(size);
    return out;
  }

  template <class T>
  T number(std::string_view what) {
    T out;
    std::memcpy(&out, take(sizeof out, what).data(), sizeof out);
    return out;
  }

  std::string_view text(std::string_view what) {
    auto bytes = take(number<uint64_t>(what), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::string_view name(std::string_view what, size_t longest) {
    std::string_view out = text(what);
    if (out.empty()) refuse("{} is empty", what);
    if (out.size() > longest)
      refuse("{} of {} bytes, at most {} allowed", what, out.size(), longest);
    if (out.find('\0') != out.npos) refuse("{} contains a NUL", what);
    if (!is_utf8(out)) refuse("{} is not UTF-8", what);
    return out;
  }

  struct Counts {
    uint64_t tensors, entries;
  };

  Counts header() {
    if (rest_.size() < 4 || std::memcmp(rest_.data(), "GGUF", 4) != 0) refuse("not a GGUF file");
    if (rest_.size() < 24) refuse("a file of {} bytes has no GGUF header", rest_.size());
    take(4, "magic");
    file_->version_ = number<uint32_t>("version");
    if (file_->version_ == 0x02000000 || file_->version_ == 0x03000000) {
      refuse("a big-endian GGUF file, only little-endian ones are read");
    }
    if (file_->version_ != 2 && file_->version_ != 3) {
      refuse("GGUF version {}, only 2 and 3 are read", file_->version_);
    }
    auto tensors = number<uint64_t>("number of tensors");
    auto entries = number<uint64_t>("number of metadata entries");
    if (entries > rest_.size() / kMinEntry) {
      refuse("{} metadata entries do not fit in {} bytes", entries, rest_.size());
    }
    if (tensors > rest_.size() / kMinInfo) {
      refuse("{} tensors do not fit in {} bytes", tensors, rest_.size());
    }
    return {tensors, entries};
  }

  void entry() {
    std::string key(name("a metadata key", kMaxKey));
    if (!seen_.insert(key).second) refuse("key {} occurs twice", key);
    std::string what = "key " + key;
    auto type = static_cast<GgufType>(number<uint32_t>(what));
    GgufValue read = type == GgufType::kArray ? array(what) : scalar(type, what);
    file_->metadata_.push_back({std::move(key), std::move(read)});
  }

  GgufValue scalar(GgufType type, const std::string& what) {
    GgufValue out;
    out.type = type;
    if (type == GgufType::kString) {
      std::string_view string = text(what);
      out.bytes = std::as_bytes(std::span(string.data(), string.size()));
      return out;
    }
    size_t size = gguf_type_size(type);
    if (size == 0) refuse("{} has the unknown {}", what, gguf_type_name(type));
    out.bytes = take(size, what);
    if (type == GgufType::kBool) check_bools(out.bytes, what);
    return out;
  }

  GgufValue array(const std::string& what) {
    GgufValue out;
    out.type = GgufType::kArray;
    out.element = static_cast<GgufType>(number<uint32_t>(what));
    out.count = number<uint64_t>(what);
    if (out.element == GgufType::kArray)
      refuse("{} is an array of arrays, which is not read", what);
    size_t size = out.element == GgufType::kString ? 8 : gguf_type_size(out.element);
    if (size == 0) refuse("{} is an array of the unknown {}", what, gguf_type_name(out.element));
    if (out.count > rest_.size() / size) {
      refuse("{} is an array of {} {}, which do not fit in {} bytes", what, out.count,
             gguf_type_name(out.element), rest_.size());
    }
    if (out.element == GgufType::kString) {
      out.strings.reserve(out.count);
      for (uint64_t i = 0; i < out.count; ++i) out.strings.push_back(text(what));
      return out;
    }
    out.bytes = take(out.count * size, what);
    if (out.element == GgufType::kBool) check_bools(out.bytes, what);
    return out;
  }

  void check_bools(std::span<const std::byte> bytes, const std::string& what) {
    for (std::byte b : bytes) {
      if (b > std::byte{1})
        refuse("{} holds the boolean {}, only 0 and 1 are", what, static_cast<int>(b));
    }
  }

  void alignment() {
    file_->alignment_ = kDefaultAlignment;
    const GgufValue* value = file_->find("general.alignment");
    if (value == nullptr) return;
    if (value->type != GgufType::kU32) {
      refuse("general.alignment is {}, expected u32", value->type_text());
    }
    uint32_t alignment;
    std::memcpy(&alignment, value->bytes.data(), 4);
    if (!std::has_single_bit(alignment) || alignment < 8 || alignment > kMaxAlignment) {
      refuse("general.alignment is {}, expected a power of two from 8 to {}", alignment,
             kMaxAlignment);
    }
    file_->alignment_ = alignment;
  }

  uint64_t tensor_info() {
    GgufTensor tensor;
    tensor.name = name("a tensor's name", kMaxName);
    std::string what = "tensor " + tensor.name;
    auto dims = number<uint32_t>(what);
    if (dims == 0 || dims > kMaxDims)
      refuse("{} has {} dimensions, 1 to {} are read", what, dims, kMaxDims);
    int64_t elements = 1;
    for (uint32_t i = 0; i < dims; ++i) {
      auto dim = number<uint64_t>(what);
      if (dim == 0) refuse("{} has a dimension of 0", what);
      if (dim > INT64_MAX ||
          __builtin_mul_overflow(elements, static_cast<int64_t>(dim), &elements)) {
        refuse("{} has more than 2^63 elements", what);
      }
      tensor.shape.push_back(static_cast<int64_t>(dim));
    }
    tensor.elements = elements;
    auto type = number<uint32_t>(what);
    auto offset = number<uint64_t>(what);
    tensor.format = quant::find_gguf_type(type);
    if (tensor.format == nullptr) refuse_type(what, type);
    if (tensor.shape[0] % tensor.format->block_elements != 0) {
      refuse("{} has rows of {} elements, which are not whole {} blocks of {}", what,
             tensor.shape[0], tensor.format->name, tensor.format->block_elements);
    }
    std::reverse(tensor.shape.begin(), tensor.shape.end());
    file_->tensors_.push_back(std::move(tensor));
    return offset;
  }

  [[noreturn]] void refuse_type(const std::string& what, uint32_t type) {
    std::string_view known = unsupported_type(type);
    if (known.empty()) refuse("{} has the unknown encoding {}", what, static_cast<int32_t>(type));
    refuse("{} is encoded as {}, which is not supported", what, known);
  }

  void place_tensors(const std::vector<uint64_t>& offsets) {
    const uint64_t size = file_->bytes_.size();
    // No overflow: positions are at most the size of memory, the alignment at most 2^20.
    const uint64_t start =
        (position() + file_->alignment_ - 1) / file_->alignment_ * file_->alignment_;
    for (size_t i = 0; i < offsets.size(); ++i) {
      GgufTensor& tensor = file_->tensors_[i];
      if (!file_->tensor_names_.emplace(tensor.name, i).second) {
        refuse("tensor {} occurs twice", tensor.name);
      }
      if (offsets[i] % file_->alignment_ != 0) {
        refuse("tensor {} is at offset {}, which is not a multiple of {}", tensor.name, offsets[i],
               file_->alignment_);
      }
      uint64_t bytes;
      uint64_t begin;
      uint64_t end;
      uint64_t blocks = static_cast<uint64_t>(tensor.elements / tensor.format->block_elements);
      if (__builtin_mul_overflow(blocks, static_cast<uint64_t>(tensor.format->block_bytes),
                                 &bytes) ||
          __builtin_add_overflow(start, offsets[i], &begin) ||
          __builtin_add_overflow(begin, bytes, &end)) {
        refuse("tensor {} ends beyond 2^64 bytes", tensor.name);
      }
      if (end > size) {
        refuse("tensor {} ends at {} of a file of {} bytes (truncated)", tensor.name, spaced(end),
               spaced(size));
      }
      tensor.data = file_->bytes_.subspan(begin, bytes);
    }
    refuse_overlaps();
  }

  void refuse_overlaps() {
    std::vector<const GgufTensor*> order;
    for (const GgufTensor& tensor : file_->tensors_) order.push_back(&tensor);
    std::sort(order.begin(), order.end(), [](const GgufTensor* a, const GgufTensor* b) {
      return a->data.data() < b->data.data();
    });
    for (size_t i = 1; i < order.size(); ++i) {
      const GgufTensor& before = *order[i - 1];
      if (before.data.data() + before.data.size() > order[i]->data.data()) {
        refuse("tensors {} and {} overlap", before.name, order[i]->name);
      }
    }
  }

  std::shared_ptr<GgufFile> file_;
  std::span<const std::byte> rest_;
  std::unordered_set<std::string> seen_;
};

std::shared_ptr<const GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string name,
                                                std::shared_ptr<const void> owner) {
  return GgufParser(bytes, std::move(name), std::move(owner)).parse();
}

std::shared_ptr<const GgufFile> GgufFile::open(const std::string& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return GgufParser(file->bytes(), path, file, file->identity()).parse();
}

void GgufFile::release(const GgufTensor& tensor) const {
  if (!identity_.empty()) release_pages(bytes_, tensor.data);
}

std::shared_ptr<const void> GgufFile::hold(const GgufTensor& tensor) const {
  if (identity_.empty()) return owner_;
  auto release = [owner = owner_, file = bytes_, part = tensor.data](const void*) {
    release_pages(file, part);
  };
  return {tensor.data.data(), std::move(release)};
}

}  // namespace tenon::formats
