#include "tenon/program/encode.h"

namespace tenon::program {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<fb::Step> encode(FlatBufferBuilder& b, const abi::Step& step) {
  if (const auto* launch = std::get_if<abi::LaunchStep>(&step)) {
    auto buffers = b.CreateVector(launch->buffers);
    auto dims = b.CreateVector(launch->dims);
    return fb::CreateStep(b, fb::StepKind::Launch, launch->kernel, 0, buffers, 0, dims,
                          launch->grid, launch->scratch_bytes, launch->bytes_per_index,
                          launch->ops_per_index);
  }
  if (const auto* call = std::get_if<abi::CallStep>(&step)) {
    auto arguments = b.CreateVector(call->arguments);
    auto results = b.CreateVector(call->results);
    return fb::CreateStep(b, fb::StepKind::Call, call->program, 0, arguments, results);
  }
  if (const auto* copy = std::get_if<abi::CopyStep>(&step)) {
    return fb::CreateStep(b, fb::StepKind::Copy, copy->from, copy->to);
  }
  const auto& eval = std::get<abi::EvalStep>(step);
  auto operands = b.CreateVector(eval.operands);
  auto results = b.CreateVector(eval.results);
  return fb::CreateStep(b, fb::StepKind::Eval, eval.graph, eval.node, operands, results);
}

Offset<fb::Plan> encode(FlatBufferBuilder& b, const abi::Program& program) {
  std::vector<Offset<fb::Slot>> slots;
  for (const abi::Slot& s : program.slots) {
    slots.push_back(fb::CreateSlot(b, static_cast<uint8_t>(s.kind), static_cast<uint8_t>(s.dtype),
                                   b.CreateVector(s.dims), s.bytes, s.ref, s.first, s.last));
  }
  std::vector<Offset<fb::Step>> steps;
  for (const abi::Step& step : program.steps) steps.push_back(encode(b, step));
  auto name = b.CreateString(program.name);
  auto slot_vector = b.CreateVector(slots);
  auto step_vector = b.CreateVector(steps);
  return fb::CreatePlan(b, name, slot_vector, step_vector, program.arguments, program.results);
}

}  // namespace

std::vector<std::byte> encode_module(const abi::Module& module, ConstantPool& pool) {
  FlatBufferBuilder b;
  std::vector<std::string> dims;
  for (const Dim& dim : module.dims) dims.push_back(dim.str());
  std::vector<Offset<fb::Plan>> plans;
  for (const abi::Program& program : module.programs) plans.push_back(encode(b, program));
  std::vector<Offset<fb::External>> externals;
  for (const abi::External& e : module.externals) {
    auto name = b.CreateString(e.name);
    externals.push_back(
        fb::CreateExternal(b, name, static_cast<uint8_t>(e.dtype), b.CreateVector(e.dims)));
  }
  std::vector<Offset<fb::Constant>> constants;
  for (const Literal& literal : module.constants) {
    constants.push_back(encode_constant(b, literal, pool));
  }
  std::vector<Offset<fb::Kernel>> kernels;
  for (const abi::KernelInfo& kernel : module.kernels) {
    auto name = b.CreateString(kernel.name);
    auto origins = encode_strings(b, kernel.origins);
    auto text = b.CreateString(kernel.text);
    kernels.push_back(fb::CreateKernel(b, name, origins, text));
  }
  auto dim_vector = encode_strings(b, dims);
  auto plan_vector = b.CreateVector(plans);
  auto external_vector = b.CreateVector(externals);
  auto constant_vector = b.CreateVector(constants);
  auto kernel_vector = b.CreateVector(kernels);
  auto key_vector = encode_strings(b, module.setup_keys);
  b.Finish(fb::CreateModule(b, dim_vector, plan_vector, module.entry, module.setup, external_vector,
                            constant_vector, kernel_vector, key_vector));
  const auto* begin = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  return {begin, begin + b.GetSize()};
}

}  // namespace tenon::program
