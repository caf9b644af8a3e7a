// From programs to the tables of artifact.fbs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "artifact_generated.h"
#include "tenon/abi/module.h"
#include "tenon/ir/graph.h"
#include "tenon/program/constant_pool.h"

namespace tenon::program {

// Names and what is known of them, met while encoding. Ranges of one name are intersected: every
// use of a name has to satisfy all of them.
class Ranges {
 public:
  void add(const Shape& shape);
  void add(const Dim& dim);
  const std::map<std::string, DimRange>& all() const { return ranges_; }

 private:
  std::map<std::string, DimRange> ranges_;
};

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Range>>> encode_ranges(
    flatbuffers::FlatBufferBuilder& b, const Ranges& ranges);
flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>> encode_shape(
    flatbuffers::FlatBufferBuilder& b, const Shape& shape, Ranges& ranges);
flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>> encode_strings(
    flatbuffers::FlatBufferBuilder& b, const std::vector<std::string>& strings);
flatbuffers::Offset<fb::Type> encode_type(flatbuffers::FlatBufferBuilder& b, DType dtype,
                                          const Shape& shape, Ranges& ranges);
flatbuffers::Offset<fb::Constant> encode_constant(flatbuffers::FlatBufferBuilder& b,
                                                  const Literal& literal, ConstantPool& pool);

// A GraphModule: `graphs` callees before callers.
std::vector<std::byte> encode_graphs(const std::vector<ir::GraphPtr>& graphs, bool locations,
                                     ConstantPool& pool);
// A Module, without its images.
std::vector<std::byte> encode_module(const abi::Module& module, ConstantPool& pool);

}  // namespace tenon::program
