#include <cctype>
#include <charconv>

#include "tenon/kir/parser.h"

namespace tenon::kir {

int64_t Parser::to_integer(const std::string& token) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size())
    lex_.fail(fmt::format("{} is not an integer", token));
  return value;
}

double Parser::to_float(const std::string& token) {
  double value = 0;
  auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size())
    lex_.fail(fmt::format("{} is not a number", token));
  return value;
}

Val Parser::leaf(Op op, Type type) {
  Inst* inst = kernel_.make(op, type);
  leaves_.push_back(inst);
  return inst;
}

Val Parser::constant(const std::string& token, Type type) {
  Val value = leaf(Op::kConst, type);
  if (token == "true" || token == "false")
    value->imm_int = token == "true";
  else if (is_float(type))
    value->imm_float = to_float(token);
  else
    value->imm_int = to_integer(token);
  return value;
}

Val Parser::dimension(const Dim& dim) {
  for (size_t k = 0; k < kernel_.dims.size(); ++k) {
    if (!(kernel_.dims[k] == dim)) continue;
    Val value = leaf(Op::kDimArg, Type::kI64);
    value->imm_int = static_cast<int64_t>(k);
    return value;
  }
  lex_.fail(fmt::format("\"{}\" is not among the kernel's dims", dim.str()));
}

Val Parser::operand(Type expected) {
  if (lex_.peek().starts_with("\"")) return dimension(dim());
  std::string token = lex_.take();
  if (auto it = values_.find(token); it != values_.end()) return it->second;
  if (token == "begin" || token == "end")
    return leaf(token == "begin" ? Op::kBegin : Op::kEnd, Type::kI64);
  if (token == "true" || token == "false") return constant(token, Type::kI1);
  if (token[0] == '%' || expected == Type::kVoid)
    lex_.fail(fmt::format("{} is not defined here", token));
  return constant(token, expected);
}

uint32_t Parser::buffer() {
  std::string token = lex_.take();
  auto it = buffer_names_.find(token);
  if (it == buffer_names_.end()) lex_.fail(token + " is not a buffer");
  return it->second;
}

uint32_t Parser::place(Inst& inst) {
  const uint32_t named = buffer();
  lex_.expect("[");
  inst.args.push_back(operand(Type::kI64));
  lex_.expect("]");
  return named;
}

// Constants of an instruction get the type that stands at its end, so that is found first.
Inst* Parser::value(Op op) {
  Inst* inst = kernel_.make(op, Type::kVoid);
  if (op == Op::kLoad) {
    access(*inst);
    inst->type = type_of(kernel_.buffers[inst->buffer].dtype);
    if (lex_.accept("if")) {
      inst->args.push_back(operand(Type::kI1));
      lex_.expect("else");
      inst->args.push_back(operand(inst->type));
    }
    lex_.expect(":");
    inst->type = type();
    return inst;
  }
  if (op == Op::kTable) {
    inst->imm_int = to_integer(lex_.take().substr(1));
    lex_.expect("[");
    inst->args.push_back(operand(Type::kI32));
    lex_.expect("]");
    lex_.expect(":");
    inst->type = type();
    return inst;
  }
  if (op == Op::kAny) {
    inst->type = Type::kI1;
    inst->args.push_back(operand(Type::kI1));
    return inst;
  }
  if (op == Op::kCmp) inst->pred = one_of(preds_, lex_.take(), "a predicate");
  operands(*inst);
  return inst;
}

void Parser::operands(Inst& inst) {
  struct Pending {
    Val value;
    std::string token;
  };
  std::vector<Pending> pending;
  do {
    bool literal = std::isdigit(static_cast<unsigned char>(lex_.peek()[0])) ||
                   lex_.peek()[0] == '-' || lex_.peek() == "inf" || lex_.peek() == "nan";
    if (!literal) {
      pending.push_back({operand(Type::kVoid), ""});
      continue;
    }
    std::string token = lex_.take();
    bool conversion = inst.op >= Op::kSExt && inst.op <= Op::kBitcast;
    if (conversion && lex_.accept(":"))
      pending.push_back({constant(token, type()), ""});
    else
      pending.push_back({nullptr, token});
  } while (lex_.accept(","));
  if (lex_.accept("->") || lex_.accept(":"))
    inst.type = type();
  else
    lex_.fail("expected a type");
  for (Pending& p : pending) inst.args.push_back(p.value ? p.value : constant(p.token, inst.type));
  if (inst.op == Op::kCmp) inst.type = Type::kI1;
}

void Parser::store(Block& into) {
  Inst* inst = kernel_.make(Op::kStore, Type::kVoid);
  inst->streaming = lex_.accept("streaming");
  access(*inst);
  lex_.expect(",");
  inst->args.push_back(operand(type_of(kernel_.buffers[inst->buffer].dtype)));
  if (lex_.accept("if")) inst->args.push_back(operand(Type::kI1));
  into.insts.push_back(inst);
}

void Parser::effect(Block& into, std::string_view word) {
  Inst* inst = kernel_.make(word == "check" ? Op::kCheck : Op::kPrefetch, Type::kVoid);
  if (inst->op == Op::kPrefetch) {
    inst->streaming = lex_.accept("far");
    access(*inst);
  } else {
    inst->args.push_back(operand(Type::kI1));
    lex_.expect(",");
    inst->imm_int = integer();
  }
  into.insts.push_back(inst);
}

void Parser::panel_dot(Block& into) {
  Inst* inst = kernel_.make(Op::kPanelDot, Type::kVoid);
  inst->panel = std::make_unique<PanelDot>();
  PanelDot& panel = *inst->panel;
  panel.kind = one_of(kinds_, lex_.take(), "a kind of operands");
  access(*inst);
  lex_.expect("rows");
  panel.rows = integer();
  lex_.expect("stride");
  panel.sums_stride = integer();
  lex_.expect(",");
  panel.left = place(*inst);
  lex_.expect("stride");
  panel.left_stride = integer();
  lex_.expect("step");
  panel.left_step = integer();
  lex_.expect(",");
  panel.right = place(*inst);
  lex_.expect("stride");
  panel.right_stride = integer();
  if (lex_.accept("terms")) {
    panel.terms = integer();
    lex_.expect("step");
    panel.term_step = integer();
  }
  for (Type type : {Type::kI64, Type::kI1}) {
    lex_.expect(",");
    inst->args.push_back(operand(type));
  }
  if (lex_.accept("next")) inst->args.push_back(operand(Type::kI64));
  into.insts.push_back(inst);
}

void Parser::transpose(Block& into) {
  Inst* inst = kernel_.make(Op::kTranspose, Type::kVoid);
  inst->streaming = lex_.accept("streaming");
  access(*inst);
  lex_.expect("stride");
  inst->args.push_back(operand(Type::kI64));
  lex_.expect(",");
  inst->imm_int = place(*inst);
  lex_.expect("stride");
  inst->args.push_back(operand(Type::kI64));
  for (int k = 0; k < 2; ++k) {
    lex_.expect(",");
    inst->args.push_back(operand(Type::kI64));
  }
  into.insts.push_back(inst);
}

}  // namespace tenon::kir
