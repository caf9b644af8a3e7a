#include <bit>
#include <numeric>
#include <unordered_map>

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"
#include "tenon/program/encode.h"

namespace tenon::program {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::String;
using flatbuffers::Vector;

void Ranges::add(const Dim& dim) {
  if (dim.is_static()) return;
  for (const auto& [name, range] : dim.symbols()) {
    auto [it, added] = ranges_.try_emplace(name, range);
    if (added) continue;
    DimRange& r = it->second;
    r.min = std::max(r.min, range.min);
    r.max = std::min(r.max, range.max);
    r.divisor = std::lcm(r.divisor, range.divisor);
  }
}

void Ranges::add(const Shape& shape) {
  for (const Dim& dim : shape) add(dim);
}

Offset<Vector<Offset<fb::Range>>> encode_ranges(FlatBufferBuilder& b, const Ranges& ranges) {
  std::vector<Offset<fb::Range>> out;
  for (const auto& [name, range] : ranges.all()) {
    if (range == DimRange{}) continue;
    out.push_back(
        fb::CreateRange(b, b.CreateSharedString(name), range.min, range.max, range.divisor));
  }
  return b.CreateVector(out);
}

Offset<Vector<Offset<String>>> encode_shape(FlatBufferBuilder& b, const Shape& shape,
                                            Ranges& ranges) {
  ranges.add(shape);
  std::vector<Offset<String>> out;
  for (const Dim& dim : shape) out.push_back(b.CreateSharedString(dim.str()));
  return b.CreateVector(out);
}

Offset<Vector<Offset<String>>> encode_strings(FlatBufferBuilder& b,
                                              const std::vector<std::string>& strings) {
  std::vector<Offset<String>> out;
  for (const std::string& string : strings) out.push_back(b.CreateSharedString(string));
  return b.CreateVector(out);
}

Offset<fb::Type> encode_type(FlatBufferBuilder& b, DType dtype, const Shape& shape,
                             Ranges& ranges) {
  return fb::CreateType(b, static_cast<uint8_t>(dtype), encode_shape(b, shape, ranges));
}

Offset<fb::Constant> encode_constant(FlatBufferBuilder& b, const Literal& literal,
                                     ConstantPool& pool) {
  auto dims = b.CreateVector(literal.dims());
  auto dtype = static_cast<uint8_t>(literal.dtype());
  if (literal.bytes() <= kInsideBytes) {
    auto bytes = b.CreateVector(reinterpret_cast<const uint8_t*>(literal.data()), literal.bytes());
    return fb::CreateConstant(b, dtype, dims, bytes);
  }
  ConstantPlace place = pool.place(literal);
  return fb::CreateConstant(b, dtype, dims, 0, place.section, place.offset);
}

namespace {

class GraphEncoder {
 public:
  GraphEncoder(bool locations, ConstantPool& pool) : with_locations_(locations), pool_(pool) {}

  std::vector<std::byte> run(const std::vector<ir::GraphPtr>& graphs) {
    std::vector<Offset<fb::Graph>> out;
    for (const ir::GraphPtr& graph : graphs) {
      out.push_back(encode(*graph));
      graph_index_.emplace(graph.get(), static_cast<int64_t>(graph_index_.size()));
    }
    auto ops = encode_strings(b_, op_names_);
    auto locations = b_.CreateVector(locations_);
    auto ranges = encode_ranges(b_, ranges_);
    b_.Finish(fb::CreateGraphModule(b_, ops, locations, ranges, b_.CreateVector(out)));
    const auto* begin = reinterpret_cast<const std::byte*>(b_.GetBufferPointer());
    return {begin, begin + b_.GetSize()};
  }

 private:
  using NodeIndex = std::unordered_map<const ir::Node*, uint32_t>;

  Offset<fb::Graph> encode(const ir::Graph& graph) {
    NodeIndex index;
    std::vector<Offset<fb::Node>> nodes;
    for (const ir::NodePtr& node : graph.nodes()) {
      nodes.push_back(encode(*node, index));
      index.emplace(node.get(), static_cast<uint32_t>(index.size()));
    }
    auto ref = [&](const ir::Value& v) { return fb::Ref(index.at(v.node.get()), v.index); };
    std::vector<uint32_t> params;
    for (const ir::Value& param : graph.params) params.push_back(index.at(param.node.get()));
    std::vector<fb::Ref> results;
    for (const ir::Value& result : graph.results) results.push_back(ref(result));
    std::vector<Offset<fb::Update>> updates;
    for (const ir::Update& update : graph.updates) {
      fb::Ref value = ref(update.value);
      updates.push_back(fb::CreateUpdate(b_, update.param, &value));
    }
    std::vector<uint8_t> writable(graph.writable.begin(), graph.writable.end());
    auto name = b_.CreateString(graph.name);
    auto node_vector = b_.CreateVector(nodes);
    auto param_vector = b_.CreateVector(params);
    auto names = encode_strings(b_, graph.param_names);
    auto writable_vector = b_.CreateVector(writable);
    auto result_vector = b_.CreateVectorOfStructs(results);
    auto update_vector = b_.CreateVector(updates);
    auto result_names = encode_strings(b_, graph.result_names);
    return fb::CreateGraph(b_, name, node_vector, param_vector, names, writable_vector,
                           result_vector, update_vector, result_names);
  }

  Offset<fb::Node> encode(const ir::Node& node, const NodeIndex& index) {
    std::vector<fb::Ref> operands;
    for (const ir::Value& v : node.operands) {
      operands.emplace_back(index.at(v.node.get()), v.index);
    }
    std::vector<Offset<fb::Attr>> attrs;
    for (const auto& [name, value] : node.attrs.items()) attrs.push_back(encode(name, value));
    std::vector<Offset<fb::Type>> types;
    for (const ir::TensorType& type : node.types) {
      types.push_back(encode_type(b_, type.dtype, type.shape, ranges_));
    }
    uint32_t location = encode(node.location);
    auto operand_vector = b_.CreateVectorOfStructs(operands);
    auto attr_vector = b_.CreateVector(attrs);
    auto type_vector = b_.CreateVector(types);
    return fb::CreateNode(b_, op(*node.op), operand_vector, attr_vector, type_vector, location);
  }

  Offset<fb::Attr> encode(const std::string& name, const ir::Attr& attr) {
    auto key = b_.CreateSharedString(name);
    auto number = [&](fb::AttrKind kind, int64_t value) {
      return fb::CreateAttr(b_, key, kind, value);
    };
    switch (attr.index()) {
      case 0: return number(fb::AttrKind::Bool, std::get<bool>(attr));
      case 1: return number(fb::AttrKind::Int, std::get<int64_t>(attr));
      case 2: return number(fb::AttrKind::Float, std::bit_cast<int64_t>(std::get<double>(attr)));
      case 3: {
        auto text = b_.CreateSharedString(std::get<std::string>(attr));
        return fb::CreateAttr(b_, key, fb::AttrKind::String, 0, text);
      }
      case 4: return number(fb::AttrKind::Dtype, static_cast<int64_t>(std::get<DType>(attr)));
      case 5: {
        auto ints = b_.CreateVector(std::get<std::vector<int64_t>>(attr));
        return fb::CreateAttr(b_, key, fb::AttrKind::Ints, 0, 0, ints);
      }
      case 6: {
        auto shape = encode_shape(b_, std::get<Shape>(attr), ranges_);
        return fb::CreateAttr(b_, key, fb::AttrKind::Shape, 0, 0, 0, shape);
      }
      case 7: {
        auto literal = encode_constant(b_, std::get<Literal>(attr), pool_);
        return fb::CreateAttr(b_, key, fb::AttrKind::Literal, 0, 0, 0, 0, literal);
      }
      default:
        return number(fb::AttrKind::Graph, graph_index_.at(std::get<ir::GraphPtr>(attr).get()));
    }
  }

  uint32_t op(const ir::OpDef& def) {
    auto [it, added] = op_index_.try_emplace(&def, static_cast<uint32_t>(op_names_.size()));
    if (added) op_names_.emplace_back(def.name);
    return it->second;
  }

  uint32_t encode(const ir::LocationPtr& location) {
    if (!with_locations_ || location == nullptr) return 0;
    auto [it, added] =
        location_index_.try_emplace(location.get(), static_cast<uint32_t>(locations_.size() + 1));
    if (added) {
      auto file = b_.CreateSharedString(location->file);
      auto layer = b_.CreateSharedString(location->layer);
      locations_.push_back(fb::CreateLocation(b_, file, location->line, location->column, layer));
    }
    return it->second;
  }

  const bool with_locations_;
  ConstantPool& pool_;
  FlatBufferBuilder b_;
  Ranges ranges_;
  std::vector<std::string> op_names_;
  std::unordered_map<const ir::OpDef*, uint32_t> op_index_;
  std::vector<Offset<fb::Location>> locations_;
  std::unordered_map<const ir::Location*, uint32_t> location_index_;
  std::unordered_map<const ir::Graph*, int64_t> graph_index_;
};

}  // namespace

std::vector<std::byte> encode_graphs(const std::vector<ir::GraphPtr>& graphs, bool locations,
                                     ConstantPool& pool) {
  return GraphEncoder(locations, pool).run(graphs);
}

}  // namespace tenon::program
