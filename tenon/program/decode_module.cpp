#include "tenon/base/error.h"
#include "tenon/program/decode.h"

namespace tenon::program {
namespace {

abi::Slot decode_slot(const fb::Slot& s) {
  expect(s.kind() <= static_cast<uint8_t>(abi::Slot::Kind::kAlias), "no such kind of slot");
  return {static_cast<abi::Slot::Kind>(s.kind()),
          decode_dtype(s.dtype()),
          decode(s.dims()),
          s.bytes(),
          s.ref(),
          s.first(),
          s.last()};
}

abi::Step decode_step(const fb::Step& s) {
  switch (s.kind()) {
    case fb::StepKind::Launch:
      return abi::LaunchStep{s.index(),         decode(s.inputs()),  decode(s.dims()), s.grid(),
                             s.scratch_bytes(), s.bytes_per_index(), s.ops_per_index()};
    case fb::StepKind::Call:
      return abi::CallStep{s.index(), decode(s.inputs()), decode(s.outputs())};
    case fb::StepKind::Copy: return abi::CopyStep{s.index(), s.second()};
    case fb::StepKind::Eval:
      return abi::EvalStep{s.index(), s.second(), decode(s.inputs()), decode(s.outputs())};
  }
  throw ValueError("no such kind of step");
}

abi::Program decode_plan(const fb::Plan& p) {
  abi::Program out;
  out.name = decode(p.name());
  if (p.slots() != nullptr) {
    for (const fb::Slot* slot : *p.slots()) out.slots.push_back(decode_slot(*slot));
  }
  if (p.steps() != nullptr) {
    for (const fb::Step* step : *p.steps()) out.steps.push_back(decode_step(*step));
  }
  out.arguments = p.arguments();
  out.results = p.results();
  return out;
}

}  // namespace

abi::Module decode_module(const fb::Module& m, const OpenSection& open) {
  abi::Module out;
  for (const std::string& dim : decode(m.dims())) out.dims.push_back(Dim::parse(dim));
  if (m.plans() != nullptr) {
    for (const fb::Plan* plan : *m.plans()) out.programs.push_back(decode_plan(*plan));
  }
  out.entry = m.entry();
  out.setup = m.setup();
  out.setup_keys = decode(m.setup_keys());
  if (m.externals() != nullptr) {
    for (const fb::External* e : *m.externals()) {
      out.externals.push_back({decode(e->name()), decode_dtype(e->dtype()), decode(e->dims())});
    }
  }
  if (m.constants() != nullptr) {
    for (const fb::Constant* constant : *m.constants()) {
      out.constants.push_back(decode_constant(constant, open));
    }
  }
  if (m.kernels() != nullptr) {
    for (const fb::Kernel* kernel : *m.kernels()) {
      out.kernels.push_back(
          {decode(kernel->name()), decode(kernel->origins()), decode(kernel->text())});
    }
  }
  return out;
}

}  // namespace tenon::program
