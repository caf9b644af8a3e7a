#include <charconv>

#include "tenon/kir/parser.h"

namespace tenon::kir {

Kernel Parser::run() {
  lex_.expect("kernel");
  lex_.expect("@");
  kernel_.name = lex_.take();
  buffers();
  lex_.expect("{");
  header();
  Block body;
  block(body, nullptr);
  if (!lex_.at_end()) lex_.fail("text after the kernel");
  kernel_.body.insts = std::move(leaves_);
  kernel_.body.insts.insert(kernel_.body.insts.end(), body.insts.begin(), body.insts.end());
  verify(kernel_);
  return std::move(kernel_);
}

Dim Parser::dim() {
  std::string token = lex_.take();
  if (token.size() < 2 || token[0] != '"') lex_.fail(token + " is not a quoted dimension");
  return Dim::parse(std::string_view(token).substr(1, token.size() - 2));
}

void Parser::buffers() {
  lex_.expect("(");
  while (!lex_.accept(")")) {
    Buffer buffer;
    buffer.name = lex_.take();
    lex_.expect(":");
    std::string dtype = lex_.take();
    auto known = dtype_from_name(dtype);
    if (!known) lex_.fail(dtype + " is not a dtype");
    buffer.dtype = *known;
    lex_.expect("[");
    if (!lex_.accept("]")) {
      buffer.count = dim();
      lex_.expect("]");
      lex_.expect("scratch");
      buffer.kind = Buffer::Kind::kScratch;
      buffer.offset = dim();
      buffer.written = true;
    }
    if (lex_.accept("out")) buffer.written = true;
    buffer_names_[buffer.name] = static_cast<uint32_t>(kernel_.buffers.size());
    kernel_.buffers.push_back(std::move(buffer));
    if (lex_.peek() != ")") lex_.expect(",");
  }
}

void Parser::header() {
  if (lex_.accept("grid")) kernel_.grid = dim();
  if (lex_.accept("cost")) {
    kernel_.bytes_per_index = dim();
    lex_.expect(",");
    kernel_.ops_per_index = dim();
  }
  if (lex_.accept("scratch")) kernel_.scratch_bytes = dim();
  if (lex_.accept("origins"))
    while (!lex_.fresh_line()) kernel_.origins.push_back(lex_.take());
  if (lex_.accept("dims")) {
    do kernel_.dims.push_back(dim());
    while (lex_.accept(","));
  }
  while (lex_.peek() == "table") table();
}

void Parser::table() {
  lex_.expect("table");
  lex_.take();
  lex_.expect(":");
  Table table;
  table.type = type();
  lex_.expect("=");
  while (lex_.peek().starts_with("0x")) {
    std::string token = lex_.take();
    uint64_t bits = 0;
    std::from_chars(token.data() + 2, token.data() + token.size(), bits, 16);
    table.bits.push_back(bits);
  }
  kernel_.tables.push_back(std::move(table));
}

void Parser::define(const std::string& name, Val value) {
  if (!values_.emplace(name, value).second) lex_.fail(name + " is defined twice");
}

void Parser::block(Block& into, Loop* loop) {
  while (!lex_.accept("}")) {
    if (lex_.accept("next")) {
      if (loop == nullptr) lex_.fail("next outside a loop");
      for (size_t k = 0; k < loop->carried.size(); ++k) {
        if (k > 0) lex_.expect(",");
        loop->carried[k].next = operand(loop->carried[k].param->type);
      }
      continue;
    }
    statement(into);
  }
  if (loop != nullptr)
    for (const CarriedVar& c : loop->carried)
      if (c.next == nullptr) lex_.fail("a loop with carried values has no next");
}

void Parser::statement(Block& into) {
  std::vector<std::string> results;
  while (lex_.peek()[0] == '%') {
    results.push_back(lex_.take());
    if (!lex_.accept(",")) lex_.expect("=");
  }
  std::string word = lex_.take();
  if (word == "for") return for_loop(into, results);
  if (word == "if") return conditional(into);
  if (word == "store") return store(into);
  if (word == "paneldot") return panel_dot(into);
  if (word == "transpose") return transpose(into);
  if (word == "check" || word == "prefetch") return effect(into, word);
  if (results.size() != 1) lex_.fail(fmt::format("{} defines one value", word));
  Op op = one_of(ops_, word, "an instruction");
  Inst* inst = value(op);
  into.insts.push_back(inst);
  define(results[0], inst);
}

void Parser::for_loop(Block& into, const std::vector<std::string>& results) {
  Inst* inst = kernel_.make(Op::kFor, Type::kVoid);
  inst->loop = std::make_unique<Loop>();
  Loop& loop = *inst->loop;
  auto outer = values_;
  std::string var = lex_.take();
  lex_.expect("in");
  loop.spec.parallel = lex_.accept("parallel");
  loop.spec.vector = lex_.accept("vector");
  loop.spec.rare = lex_.accept("rare");
  inst->args.push_back(operand(Type::kI64));
  lex_.expect("..");
  inst->args.push_back(operand(Type::kI64));
  if (lex_.accept("step")) loop.spec.step = integer();
  if (lex_.accept("interleave")) loop.spec.interleave = static_cast<int>(integer());
  if (lex_.accept("multiple")) loop.spec.multiple = integer();
  if (lex_.accept("ahead")) loop.spec.ahead = integer();
  if (lex_.accept("quarters")) {
    loop.spec.first_quarter = static_cast<int>(integer());
    lex_.expect("..");
    loop.spec.quarters = static_cast<int>(integer()) - loop.spec.first_quarter;
  }
  if (lex_.accept("carry")) carried(loop);
  if (loop.carried.size() != results.size())
    lex_.fail("a loop defines one value for each carried value");
  loop.var = kernel_.make(Op::kLoopVar, Type::kI64);
  define(var, loop.var);
  lex_.expect("{");
  block(loop.body, &loop);
  values_ = std::move(outer);
  into.insts.push_back(inst);
  for (size_t k = 0; k < results.size(); ++k) {
    Inst* result = kernel_.make(Op::kLoopResult, loop.carried[k].param->type);
    result->args = {inst};
    result->imm_int = static_cast<int64_t>(k);
    loop.carried[k].result = result;
    into.insts.push_back(result);
    define(results[k], result);
  }
}

void Parser::carried(Loop& loop) {
  lex_.expect("(");
  std::vector<std::pair<std::string, Val>> params;
  do {
    std::string name = lex_.take();
    lex_.expect("=");
    std::string init = lex_.peek();
    bool known = values_.count(init) > 0 || init == "true" || init == "false" || init[0] == '"' ||
                 init == "begin" || init == "end";
    CarriedVar c;
    if (known)
      c.init = operand(Type::kVoid);
    else
      lex_.take();
    lex_.expect(":");
    Type t = type();
    if (!known) c.init = constant(init, t);
    if (combines_.count(lex_.peek()) > 0) c.combine = combines_.at(lex_.take());
    c.param = kernel_.make(Op::kCarried, t);
    params.emplace_back(name, c.param);
    loop.carried.push_back(c);
  } while (lex_.accept(","));
  lex_.expect(")");
  for (auto& [name, param] : params) define(name, param);
}

void Parser::conditional(Block& into) {
  Inst* inst = kernel_.make(Op::kIf, Type::kVoid);
  inst->loop = std::make_unique<Loop>();
  inst->args.push_back(operand(Type::kI1));
  lex_.expect("{");
  auto outer = values_;
  block(inst->loop->body, nullptr);
  values_ = std::move(outer);
  into.insts.push_back(inst);
}

Kernel parse(std::string_view text) { return Parser(text).run(); }

}  // namespace tenon::kir
