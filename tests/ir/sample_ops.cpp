#include "sample_ops.h"

#include <cstring>
#include <limits>

namespace tenon::ir_test {
namespace {

using ir::Attr;
using ir::GraphPtr;
using ir::InferArgs;
using ir::TensorType;
using ir::Value;

std::vector<TensorType> plus_infer(const InferArgs& args) {
  if (args.in[0] != args.in[1]) {
    throw ShapeError(
        fmt::format("{}: {} and {} differ", args.op, brief(args.in[0]), brief(args.in[1])),
        {.label = "t_plus_c1"});
  }
  return {args.in[0]};
}

std::vector<TensorType> turn_infer(const InferArgs& args) { return {args.in[0]}; }
std::vector<TensorType> split_infer(const InferArgs& args) { return {args.in[0], args.in[0]}; }

std::vector<TensorType> sum_infer(const InferArgs& args) {
  if (args.in[0].rank() == 0) throw ShapeError("t_sum: the operand has no dimension");
  const Shape& shape = args.in[0].shape;
  return {{DType::kF32, Shape(shape.begin() + 1, shape.end())}};
}

// The type that a reader would not guess of t_plus: none, so random graphs print few types.
const std::vector<Shape> kShapes{{}, {0}, {3}, {2, 3}, {"batch", 2}, {Dim("n") * 2 + 1, 1}};

}  // namespace

const ir::OpDef kPlus{
    .name = "t_plus", .doc = "Sum.", .min_operands = 2, .max_operands = 2, .infer = plus_infer};
const ir::OpDef kTurn{.name = "t_turn",
                      .doc = "Any attribute.",
                      .min_operands = 1,
                      .max_operands = 1,
                      .attrs = {{"flag", false},
                                {"number", int64_t{1}},
                                {"real", 1.0},
                                {"text", std::string("plain")},
                                {"dtype", DType::kF32},
                                {"axes", std::vector<int64_t>{}},
                                {"shape", Shape{}},
                                {"value", Literal(DType::kF32, {})}},
                      .infer = turn_infer};
const ir::OpDef kSplit{
    .name = "t_split", .doc = "Twice.", .min_operands = 1, .max_operands = 1, .infer = split_infer};
const ir::OpDef kSum{.name = "t_sum",
                     .doc = "One dimension less.",
                     .min_operands = 1,
                     .max_operands = 1,
                     .infer = sum_infer};

void register_sample_ops() {
  for (const ir::OpDef* op : {&kPlus, &kTurn, &kSplit, &kSum}) ir::register_op(op);
}

TensorType tensor(DType dtype, Shape shape) { return {dtype, std::move(shape)}; }

GraphPtr graph_of(std::string name, std::vector<Value> params, std::vector<Value> results) {
  ir::Graph graph;
  graph.name = std::move(name);
  for (size_t i = 0; i < params.size(); ++i) graph.param_names.push_back(fmt::format("arg{}", i));
  graph.writable.assign(params.size(), false);
  graph.params = std::move(params);
  graph.results = std::move(results);
  return std::make_shared<const ir::Graph>(std::move(graph));
}

namespace {

class Maker {
 public:
  explicit Maker(std::mt19937_64& random) : random_(random) {}

  GraphPtr graph(int nodes, std::vector<GraphPtr> bodies) {
    ir::Graph graph;
    graph.name = pick({"step", "a b-c.d", "x\"y", "0"});
    const size_t params = 1 + below(4);
    for (size_t i = 0; i < params; ++i) {
      const std::string name = fmt::format("{}{}", pick({"x", "p.w", "", "odd name "}), i);
      graph.param_names.push_back(name);
      graph.params.push_back(ir::make_parameter(any_type(), name, any_location()));
      graph.writable.push_back(below(3) == 0);
    }
    values_ = graph.params;
    for (int i = 0; i < nodes; ++i) add(bodies);
    for (size_t i = 0, n = below(4); i < n; ++i) graph.results.push_back(any_value());
    if (below(2) == 0) {
      for (size_t i = 0; i < graph.results.size(); ++i) {
        graph.result_names.push_back(fmt::format("{}.out", i));
      }
    }
    for (uint32_t i = 0; i < graph.params.size(); ++i) {
      if (!graph.writable[i]) continue;
      for (const Value& value : values_) {
        if (value.type() != graph.params[i].type() || value == graph.params[i]) continue;
        graph.updates.push_back({i, value});
        break;
      }
    }
    return std::make_shared<const ir::Graph>(std::move(graph));
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  std::string pick(std::initializer_list<const char*> texts) {
    return *(texts.begin() + below(texts.size()));
  }
  const Value& any_value() { return values_[below(values_.size())]; }
  DType any_dtype() { return static_cast<DType>(below(kDTypeCount)); }
  TensorType any_type() { return {any_dtype(), kShapes[below(kShapes.size())]}; }

  ir::LocationPtr any_location() {
    if (below(3) == 0) return nullptr;
    ir::Location location;
    if (below(3) != 0) location = {pick({"a.cpp", "dir/b \"c\".cpp"}), int(below(99)) + 1, 7, ""};
    if (location.file.empty() || below(2) == 0) location.layer = pick({"model", "model.layers.3"});
    return std::make_shared<ir::Location>(std::move(location));
  }

  Literal any_literal() {
    static const std::vector<std::vector<int64_t>> dims{{}, {0}, {3}, {2, 2}, {5, 7}};
    Literal literal(any_dtype(), dims[below(dims.size())]);
    const bool splat = below(4) == 0;
    const size_t size = size_of(literal.dtype());
    for (size_t i = 0; i < literal.bytes(); ++i) {
      auto byte = static_cast<std::byte>(random_());
      if (literal.dtype() == DType::kBool) byte = static_cast<std::byte>(below(2));
      literal.mutable_data()[i] = splat && i >= size ? literal.data()[i - size] : byte;
    }
    return literal;
  }

  ir::Attrs any_attrs() {
    ir::Attrs attrs;
    auto maybe = [&](const char* name, Attr value) {
      if (below(3) == 0) attrs.set(name, std::move(value));
    };
    maybe("flag", below(2) == 0);
    maybe("number", below(2) == 0 ? std::numeric_limits<int64_t>::min() : int64_t(below(100)));
    const double reals[] = {0.1,
                            -0.0,
                            3.0,
                            1e300,
                            -std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN(),
                            5e-324};
    maybe("real", reals[below(std::size(reals))]);
    maybe("text", pick({"", "two words", "quote \" slash \\ line\nend\x01"}));
    maybe("dtype", any_dtype());
    maybe("axes", std::vector<int64_t>{-1, int64_t(below(9))});
    maybe("shape", kShapes[below(kShapes.size())]);
    maybe("value", any_literal());
    return attrs;
  }

  void add(const std::vector<GraphPtr>& bodies) {
    const ir::LocationPtr place = any_location();
    ir::NodePtr node;
    switch (below(7)) {
      case 0: node = ir::make_constant(any_literal(), place).node; break;
      case 1: node = ir::make_node(ir::kConstantExternal, {}, external_attrs(), place); break;
      case 2: node = ir::make_node(kTurn, {any_value()}, any_attrs(), place); break;
      case 3: node = ir::make_node(kSplit, {any_value()}, {}, place); break;
      case 4: node = sum(place); break;
      case 5: node = call(bodies, place); break;
      default: {
        const Value value = any_value();
        node = ir::make_node(kPlus, {value, value}, {}, place);
      }
    }
    if (node == nullptr) return;
    for (uint32_t i = 0; i < node->types.size(); ++i) values_.push_back({node, i});
  }

  ir::Attrs external_attrs() {
    return {{"name", pick({"w", "layers.0.w"})},
            {"relative", below(2) == 0},
            {"dtype", any_dtype()},
            {"shape", kShapes[below(kShapes.size())]}};
  }

  ir::NodePtr sum(const ir::LocationPtr& place) {
    const Value value = any_value();
    return value.shape().empty() ? nullptr : ir::make_node(kSum, {value}, {}, place);
  }

  ir::NodePtr call(const std::vector<GraphPtr>& bodies, const ir::LocationPtr& place) {
    if (bodies.empty()) return nullptr;
    const GraphPtr& body = bodies[below(bodies.size())];
    std::vector<Value> operands;
    for (const Value& param : body->params) {
      for (const Value& value : values_) {
        if (value.type() == param.type()) {
          operands.push_back(value);
          break;
        }
      }
    }
    if (operands.size() != body->params.size()) return nullptr;
    Attr callee = body;
    return ir::make_node(ir::kCall, operands,
                         {{"callee", callee}, {"prefix", pick({"", "layers.0.", "\""})}}, place);
  }

  std::mt19937_64& random_;
  std::vector<Value> values_;
};

}  // namespace

GraphPtr random_graph(std::mt19937_64& random, int nodes) {
  register_sample_ops();
  Maker maker(random);
  std::vector<GraphPtr> bodies;
  for (int i = 0; i < 2; ++i) bodies.push_back(maker.graph(nodes / 2, bodies));
  return maker.graph(nodes, bodies);
}

}  // namespace tenon::ir_test
