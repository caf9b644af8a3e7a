#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "tenon/base/error.h"
#include "tenon/kir/kernel.h"
#include "tenon/kir/lexer.h"

namespace tenon::kir {

namespace {

template <class Enum>
std::map<std::string_view, Enum> names_of(int count) {
  std::map<std::string_view, Enum> names;
  for (int k = 0; k < count; ++k) names.emplace(name(static_cast<Enum>(k)), static_cast<Enum>(k));
  return names;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lex_(text) {}

  Kernel run() {
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

 private:
  template <class Enum>
  Enum one_of(const std::map<std::string_view, Enum>& names, const std::string& token,
              std::string_view what) {
    auto it = names.find(token);
    if (it == names.end()) lex_.fail(fmt::format("{} is not {}", token, what));
    return it->second;
  }
  Type type() { return one_of(types_, lex_.take(), "a type"); }

  int64_t integer() { return to_integer(lex_.take()); }
  int64_t to_integer(const std::string& token) {
    int64_t value = 0;
    auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc() || end != token.data() + token.size())
      lex_.fail(fmt::format("{} is not an integer", token));
    return value;
  }
  double to_float(const std::string& token) {
    double value = 0;
    auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc() || end != token.data() + token.size())
      lex_.fail(fmt::format("{} is not a number", token));
    return value;
  }
  Dim dim() {
    std::string token = lex_.take();
    if (token.size() < 2 || token[0] != '"') lex_.fail(token + " is not a quoted dimension");
    return Dim::parse(std::string_view(token).substr(1, token.size() - 2));
  }

  void buffers() {
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

  void header() {
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

  void table() {
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

  Val leaf(Op op, Type type) {
    Inst* inst = kernel_.make(op, type);
    leaves_.push_back(inst);
    return inst;
  }

  Val constant(const std::string& token, Type type) {
    Val value = leaf(Op::kConst, type);
    if (token == "true" || token == "false")
      value->imm_int = token == "true";
    else if (is_float(type))
      value->imm_float = to_float(token);
    else
      value->imm_int = to_integer(token);
    return value;
  }

  Val dimension(const Dim& dim) {
    for (size_t k = 0; k < kernel_.dims.size(); ++k) {
      if (!(kernel_.dims[k] == dim)) continue;
      Val value = leaf(Op::kDimArg, Type::kI64);
      value->imm_int = static_cast<int64_t>(k);
      return value;
    }
    lex_.fail(fmt::format("\"{}\" is not among the kernel's dims", dim.str()));
  }

  // An operand, which a constant's type is taken from `expected` for.
  Val operand(Type expected) {
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

  void define(const std::string& name, Val value) {
    if (!values_.emplace(name, value).second) lex_.fail(name + " is defined twice");
  }

  void block(Block& into, Loop* loop) {
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

  void statement(Block& into) {
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

  uint32_t buffer() {
    std::string token = lex_.take();
    auto it = buffer_names_.find(token);
    if (it == buffer_names_.end()) lex_.fail(token + " is not a buffer");
    return it->second;
  }

  void access(Inst& inst) { inst.buffer = place(inst); }

  // "name[index]": the index becomes an argument.
  uint32_t place(Inst& inst) {
    const uint32_t named = buffer();
    lex_.expect("[");
    inst.args.push_back(operand(Type::kI64));
    lex_.expect("]");
    return named;
  }

  // Constants of an instruction get the type that stands at its end, so that is found first.
  Inst* value(Op op) {
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
    if (op == Op::kCall) inst->imm_int = integer();
    operands(*inst);
    return inst;
  }

  void operands(Inst& inst) {
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
    if (inst.op == Op::kCall)
      inst.type = Type::kF64;
    else if (lex_.accept("->") || lex_.accept(":"))
      inst.type = type();
    else
      lex_.fail("expected a type");
    for (Pending& p : pending)
      inst.args.push_back(p.value ? p.value : constant(p.token, inst.type));
    if (inst.op == Op::kCmp) inst.type = Type::kI1;
  }

  void store(Block& into) {
    Inst* inst = kernel_.make(Op::kStore, Type::kVoid);
    inst->streaming = lex_.accept("streaming");
    access(*inst);
    lex_.expect(",");
    inst->args.push_back(operand(type_of(kernel_.buffers[inst->buffer].dtype)));
    if (lex_.accept("if")) inst->args.push_back(operand(Type::kI1));
    into.insts.push_back(inst);
  }

  void effect(Block& into, std::string_view word) {
    Inst* inst = kernel_.make(word == "check" ? Op::kCheck : Op::kPrefetch, Type::kVoid);
    if (inst->op == Op::kPrefetch) {
      access(*inst);
    } else {
      inst->args.push_back(operand(Type::kI1));
      lex_.expect(",");
      inst->imm_int = integer();
    }
    into.insts.push_back(inst);
  }

  void panel_dot(Block& into) {
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
    lex_.expect(",");
    panel.right = place(*inst);
    for (Type type : {Type::kI64, Type::kI1}) {
      lex_.expect(",");
      inst->args.push_back(operand(type));
    }
    if (lex_.accept("next")) inst->args.push_back(operand(Type::kI64));
    into.insts.push_back(inst);
  }

  void transpose(Block& into) {
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

  void for_loop(Block& into, const std::vector<std::string>& results) {
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

  void carried(Loop& loop) {
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

  void conditional(Block& into) {
    Inst* inst = kernel_.make(Op::kIf, Type::kVoid);
    inst->loop = std::make_unique<Loop>();
    inst->args.push_back(operand(Type::kI1));
    lex_.expect("{");
    auto outer = values_;
    block(inst->loop->body, nullptr);
    values_ = std::move(outer);
    into.insts.push_back(inst);
  }

  Lexer lex_;
  Kernel kernel_;
  std::vector<Inst*> leaves_;
  std::map<std::string, Val> values_;
  std::map<std::string, uint32_t> buffer_names_;
  std::map<std::string_view, Type> types_ = names_of<Type>(static_cast<int>(Type::kF64) + 1);
  std::map<std::string_view, Op> ops_ = names_of<Op>(static_cast<int>(Op::kIf) + 1);
  std::map<std::string_view, PanelDot::Kind> kinds_ = names_of<PanelDot::Kind>(3);
  std::map<std::string_view, Pred> preds_ = names_of<Pred>(static_cast<int>(Pred::kUno) + 1);
  std::map<std::string_view, Combine> combines_ =
      names_of<Combine>(static_cast<int>(Combine::kXor) + 1);
};

}  // namespace

Kernel parse(std::string_view text) { return Parser(text).run(); }

}  // namespace tenon::kir
