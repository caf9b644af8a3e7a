// From the tables of artifact.fbs back to programs. Tables have passed FlatBuffers' verifier; here
// every number in them is checked. All raise tenon::Error of some kind, which the reader turns into
// FormatErrors naming the file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "artifact_generated.h"
#include "tenon/abi/module.h"
#include "tenon/ir/graph.h"
#include "tenon/program/artifact.h"

namespace tenon::program {

template <class T>
using Offsets = flatbuffers::Vector<flatbuffers::Offset<T>>;

// Throws ValueError(what) when the condition does not hold.
void expect(bool condition, std::string_view what);
// The bytes of a section of constants, digest checked, and what keeps them alive.
struct SectionBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};
using OpenSection = std::function<SectionBytes(uint32_t section)>;

// What may be copied out of one table. Writers share equal texts, so a hostile table of a few bytes
// could name one long text or list again and again; while a budget stands, every decode() on this
// thread pays for what it copies, and raises ValueError when nothing is left.
class CopyBudget {
 public:
  // For a table of so many bytes: 64 times as much, and 64 KiB.
  explicit CopyBudget(uint64_t table_bytes);
  ~CopyBudget();
  CopyBudget(const CopyBudget&) = delete;
  CopyBudget& operator=(const CopyBudget&) = delete;
  static void pay(uint64_t bytes);

 private:
  CopyBudget* outer_;
  uint64_t left_;
};

std::string decode(const flatbuffers::String* text);
std::vector<std::string> decode(const Offsets<flatbuffers::String>* strings);
DType decode_dtype(uint8_t dtype);
Dim::Ranges decode_ranges(const Offsets<fb::Range>* ranges);
Shape decode_shape(const Offsets<flatbuffers::String>* shape, const Dim::Ranges& ranges);
Literal decode_constant(const fb::Constant* constant, const OpenSection& open);

template <class T>
std::vector<T> decode(const flatbuffers::Vector<T>* values) {
  if (values == nullptr) return {};
  CopyBudget::pay(values->size() * sizeof(T));
  return std::vector<T>(values->begin(), values->end());
}

std::vector<ir::GraphPtr> decode_graphs(const fb::GraphModule& module, const OpenSection& open);
abi::Module decode_module(const fb::Module& module, const OpenSection& open);
Signature decode_signature(const fb::Signature* signature);
std::vector<Weight> decode_weights(const Offsets<fb::Weight>* weights);

}  // namespace tenon::program
