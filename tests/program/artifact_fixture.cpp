#include "artifact_fixture.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"

namespace tenon::program {
namespace {

ir::GraphPtr step_graph() {
  ops::register_all();
  auto graph = std::make_shared<ir::Graph>();
  graph->name = "step";
  Dim n("n", {.min = 0, .max = 1000, .divisor = 1});
  ir::Value x = ir::make_parameter({DType::kF32, {n, Dim(4)}}, "x");
  ir::Value w = ir::make(ir::kConstantExternal, {},
                         {{"name", std::string("layer.w")},
                          {"relative", false},
                          {"dtype", DType::kF32},
                          {"shape", Shape{Dim(4)}}});
  Literal table(DType::kF32, {100, 4});
  for (int64_t i = 0; i < table.count(); ++i) table.set_double(i, 0.5 * static_cast<double>(i));
  ir::Value all = ops::sum(ir::make_constant(table), std::vector<int64_t>{0}, false);
  ir::Value two = ir::make_constant(Literal::scalar(DType::kF32, 2));
  ir::Value y = ops::add(ops::add(ops::mul(x, two), w), all);
  graph->params = {x};
  graph->param_names = {"x"};
  graph->writable = {false};
  graph->results = {y};
  return graph;
}

// A plan that evaluates every node: what lowering makes of ops without kernels.
std::shared_ptr<const abi::Module> plan_of(const ir::GraphPtr& graph) {
  auto module = std::make_shared<abi::Module>();
  abi::Program program;
  program.name = "step";
  auto dim = [&](const Dim& d) {
    module->dims.push_back(d);
    return static_cast<abi::DimId>(module->dims.size() - 1);
  };
  auto slot = [&](const ir::TensorType& type, abi::Slot::Kind kind, uint32_t ref) {
    abi::Slot s;
    s.kind = kind;
    s.dtype = type.dtype;
    for (const Dim& d : type.shape) s.dims.push_back(dim(d));
    s.bytes = dim(product(type.shape) * Dim(static_cast<int64_t>(size_of(type.dtype))));
    s.ref = ref;
    program.slots.push_back(s);
    return static_cast<abi::SlotId>(program.slots.size() - 1);
  };
  std::vector<ir::NodePtr> nodes = graph->nodes();
  std::map<const ir::Node*, abi::SlotId> slots;
  slots[graph->params[0].node.get()] = slot(graph->params[0].type(), abi::Slot::Kind::kArgument, 0);
  for (const ir::NodePtr& node : nodes) {
    if (node->op != &ir::kConstantExternal) continue;
    slots[node.get()] = slot(node->types[0], abi::Slot::Kind::kArgument, 1);
    abi::External external{node->attrs.s("name"), node->types[0].dtype, {}};
    for (const Dim& d : node->types[0].shape) external.dims.push_back(dim(d));
    module->externals.push_back(external);
  }
  program.arguments = 2;
  program.results = 1;
  const ir::Node* result = graph->results[0].node.get();
  slots[result] = slot(result->types[0], abi::Slot::Kind::kResult, 0);
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    const ir::Node* node = nodes[i].get();
    if (node->op == &ir::kParameter || node->op == &ir::kConstantExternal) continue;
    if (node->op == &ir::kConstant) {
      const auto& literal = node->attrs.get<Literal>("value");
      slots[node] = slot(node->types[0], abi::Slot::Kind::kConstant,
                         static_cast<uint32_t>(module->constants.size()));
      module->constants.push_back(literal);
      continue;
    }
    if (node != result) {
      slots[node] = slot(node->types[0], abi::Slot::Kind::kTemp, 0);
      program.slots.back().last = 1000;
    }
    abi::EvalStep step{0, i, {}, {slots[node]}};
    for (const ir::Value& operand : node->operands) {
      step.operands.push_back(slots.at(operand.node.get()));
    }
    program.steps.push_back(step);
  }
  module->programs.push_back(std::move(program));
  return module;
}

}  // namespace

ProgramData make_step(const std::string& name, bool with_module) {
  ProgramData data;
  data.graph = step_graph();
  Signature& s = data.signature;
  s.function = name;
  s.names = {"x", "gain"};
  s.arguments = Structure({{TokenKind::kArguments, 2}, {TokenKind::kTensor}, {TokenKind::kStatic}});
  s.tensors = {{DType::kF32, data.graph->params[0].shape(), false, "model.cpp:12"}};
  s.statics = {StaticValue(StaticView::of(2.0))};
  s.results = Structure({{TokenKind::kTensor}});
  s.result_tensors = {{DType::kF32, data.graph->results[0].shape(), false, ""}};
  if (with_module) {
    data.graphs = {data.graph};
    data.module = plan_of(data.graph);
  }
  return data;
}

std::string temporary_path(const std::string& name) {
  auto folder = std::filesystem::temp_directory_path() /
                ("tenon_artifact_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace tenon::program
