#include <map>

#include "tenon/base/error.h"
#include "tenon/program/decode.h"

namespace tenon::program {
namespace {

thread_local CopyBudget* budget = nullptr;

}  // namespace

CopyBudget::CopyBudget(uint64_t table_bytes)
    : outer_(budget), left_(64 * table_bytes + (uint64_t{64} << 10)) {
  budget = this;
}

CopyBudget::~CopyBudget() { budget = outer_; }

void CopyBudget::pay(uint64_t bytes) {
  if (budget == nullptr) return;
  expect(bytes <= budget->left_, "it holds more than its bytes can say");
  budget->left_ -= bytes;
}

void expect(bool condition, std::string_view what) {
  if (!condition) throw ValueError(std::string(what));
}

std::string decode(const flatbuffers::String* text) {
  if (text == nullptr) return {};
  CopyBudget::pay(sizeof(std::string) + text->size());
  return text->str();
}

std::vector<std::string> decode(const Offsets<flatbuffers::String>* strings) {
  std::vector<std::string> out;
  if (strings == nullptr) return out;
  for (const flatbuffers::String* string : *strings) out.push_back(decode(string));
  return out;
}

DType decode_dtype(uint8_t dtype) {
  expect(dtype < kDTypeCount, "no such dtype");
  return static_cast<DType>(dtype);
}

Dim::Ranges decode_ranges(const Offsets<fb::Range>* ranges) {
  auto map = std::make_shared<std::map<std::string, DimRange, std::less<>>>();
  if (ranges != nullptr) {
    for (const fb::Range* range : *ranges) {
      expect(range->divisor() >= 1, "a range with a divisor below 1");
      (*map)[decode(range->name())] = {range->min(), range->max(), range->divisor()};
    }
  }
  return [map](std::string_view name) {
    auto it = map->find(name);
    return it == map->end() ? DimRange{} : it->second;
  };
}

Shape decode_shape(const Offsets<flatbuffers::String>* shape, const Dim::Ranges& ranges) {
  Shape out;
  if (shape == nullptr) return out;
  expect(shape->size() <= 64, "a shape of over 64 dimensions");
  for (const flatbuffers::String* dim : *shape) {
    CopyBudget::pay(sizeof(Dim) + dim->size());
    out.push_back(Dim::parse({dim->data(), dim->size()}, ranges));
    expect(!out.back().is_static() || out.back().value() >= 0, "a negative dimension");
  }
  return out;
}

Literal decode_constant(const fb::Constant* constant, const OpenSection& open) {
  expect(constant != nullptr, "a constant is missing");
  DType dtype = decode_dtype(constant->dtype());
  std::vector<int64_t> dims = decode(constant->dims());
  int64_t count = element_count(dims);
  expect(count <= (int64_t{1} << 58), "a constant is too large");
  size_t bytes = static_cast<size_t>(count) * size_of(dtype);
  if (constant->inside() != nullptr || bytes == 0) {
    size_t have = constant->inside() == nullptr ? 0 : constant->inside()->size();
    expect(have == bytes, "a constant has another size than its shape");
    CopyBudget::pay(have);
    Literal literal(dtype, dims);
    if (bytes != 0) std::memcpy(literal.mutable_data(), constant->inside()->data(), bytes);
    return literal;
  }
  SectionBytes section = open(constant->section());
  expect(constant->offset() % 64 == 0 && constant->offset() <= section.bytes.size() &&
             section.bytes.size() - constant->offset() >= bytes,
         "a constant stands outside its section");
  return Literal::borrow(dtype, dims, section.bytes.data() + constant->offset(),
                         std::move(section.owner));
}

namespace {

Structure decode_structure(const Offsets<fb::Token>* tokens) {
  expect(tokens != nullptr, "a structure is missing");
  std::vector<Token> out;
  for (const fb::Token* token : *tokens) {
    std::string_view text;
    if (token->text() != nullptr) CopyBudget::pay(token->text()->size());
    if (token->text() != nullptr) text = {token->text()->data(), token->text()->size()};
    out.push_back({static_cast<TokenKind>(token->kind()), token->count(), text});
  }
  return Structure::checked(out);
}

std::vector<TensorGuard> decode_tensors(const Offsets<fb::Tensor>* tensors,
                                        const Dim::Ranges& ranges) {
  std::vector<TensorGuard> out;
  if (tensors == nullptr) return out;
  for (const fb::Tensor* t : *tensors) {
    expect(t->type() != nullptr, "a type is missing");
    out.push_back({decode_dtype(t->type()->dtype()), decode_shape(t->type()->shape(), ranges),
                   t->writable(), decode(t->location())});
  }
  return out;
}

std::vector<StaticValue> decode_statics(const Offsets<fb::Static>* statics) {
  std::vector<StaticValue> out;
  if (statics == nullptr) return out;
  for (const fb::Static* s : *statics) {
    expect(s->kind() <= static_cast<uint8_t>(StaticKind::kEnum), "no such kind of static value");
    StaticValue value;
    value.kind = static_cast<StaticKind>(s->kind());
    value.bits = s->bits();
    value.text = decode(s->text());
    out.push_back(std::move(value));
  }
  return out;
}

}  // namespace

Signature decode_signature(const fb::Signature* s) {
  expect(s != nullptr, "a signature is missing");
  Dim::Ranges ranges = decode_ranges(s->ranges());
  Signature out;
  out.function = decode(s->function());
  out.names = decode(s->names());
  out.arguments = decode_structure(s->arguments());
  out.tensors = decode_tensors(s->tensors(), ranges);
  out.statics = decode_statics(s->statics());
  out.results = decode_structure(s->results());
  out.result_tensors = decode_tensors(s->result_tensors(), ranges);
  out.result_statics = decode_statics(s->result_statics());
  out.validate();
  return out;
}

std::vector<Weight> decode_weights(const Offsets<fb::Weight>* weights) {
  std::vector<Weight> out;
  if (weights == nullptr) return out;
  for (const fb::Weight* w : *weights) {
    expect(w->type() != nullptr, "a type is missing");
    out.push_back({decode(w->name()), decode_dtype(w->type()->dtype()),
                   decode_shape(w->type()->shape(), {})});
  }
  return out;
}

}  // namespace tenon::program
