#include <unordered_map>

#include "tenon/base/error.h"
#include "tenon/kir/kernel.h"

namespace tenon::kir {

namespace {

std::string quoted(const Dim& dim) { return fmt::format("\"{}\"", dim.str()); }

std::string float_text(double value) {
  std::string text = fmt::format("{}", value);
  bool plain = text.find_first_not_of("-0123456789") == std::string::npos;
  return plain ? text + ".0" : text;
}

class Printer {
 public:
  Printer(const Kernel& kernel, bool canonical) : kernel_(kernel), canonical_(canonical) {}

  std::string run() {
    line(fmt::format("kernel @{} ({}) {{", canonical_ ? "k" : kernel_.name, buffers()));
    ++indent_;
    header();
    block(kernel_.body, nullptr);
    --indent_;
    line("}");
    return std::move(out_);
  }

 private:
  void line(std::string_view text) {
    out_.append(static_cast<size_t>(indent_) * 2, ' ');
    out_.append(text);
    out_.push_back('\n');
  }

  // Symbols by order of appearance, so that equal layouts of scratch have equal text.
  std::string dim_text(const Dim& dim) {
    if (!canonical_) return quoted(dim);
    return quoted(dim.substitute([&](std::string_view symbol) -> std::optional<Dim> {
      auto [it, fresh] = symbols_.emplace(symbol, symbols_.size());
      return Dim(fmt::format("s{}", it->second));
    }));
  }

  std::string buffer_name(uint32_t index) {
    return canonical_ ? fmt::format("b{}", index) : kernel_.buffers[index].name;
  }

  std::string buffers() {
    std::string text;
    for (uint32_t k = 0; k < kernel_.buffers.size(); ++k) {
      const Buffer& b = kernel_.buffers[k];
      if (k > 0) text += ", ";
      text += fmt::format("{}: {}[", buffer_name(k), tenon::name(b.dtype));
      if (b.kind == Buffer::Kind::kScratch) {
        text += fmt::format("{}] scratch {}", dim_text(b.count), dim_text(b.offset));
        symbolic_scratch_ = symbolic_scratch_ || !b.offset.is_static();
      } else {
        text += b.written ? "] out" : "]";
      }
    }
    return text;
  }

  void list(std::string_view word, const std::vector<Dim>& dims) {
    if (dims.empty()) return;
    std::string text(word);
    for (size_t k = 0; k < dims.size(); ++k) text += (k ? ", " : " ") + dim_text(dims[k]);
    line(text);
  }

  void header() {
    if (!canonical_) {
      line("grid " + dim_text(kernel_.grid));
      line(fmt::format("cost {}, {}", dim_text(kernel_.bytes_per_index),
                       dim_text(kernel_.ops_per_index)));
      if (!(kernel_.scratch_bytes == Dim(0))) line("scratch " + dim_text(kernel_.scratch_bytes));
      std::string origins = "origins";
      for (const std::string& origin : kernel_.origins) origins += " " + origin;
      if (!kernel_.origins.empty()) line(origins);
    }
    if (!canonical_ || symbolic_scratch_) list("dims", kernel_.dims);
    for (size_t k = 0; k < kernel_.tables.size(); ++k) {
      const Table& table = kernel_.tables[k];
      std::string text = fmt::format("table t{} : {} =", k, kir::name(table.type));
      for (uint64_t bits : table.bits) text += fmt::format(" {:#x}", bits);
      line(text);
    }
  }

  std::string define(const Inst* value) {
    std::string text = fmt::format("%{}", next_value_++);
    names_[value] = text;
    return text;
  }

  std::string define_var(Val var) {
    static constexpr std::string_view kNames = "ijklmn";
    std::string text = next_var_ < kNames.size() ? std::string(1, kNames[next_var_])
                                                 : fmt::format("i{}", next_var_);
    ++next_var_;
    names_[var] = text;
    return text;
  }

  std::string use(Val value, bool typed = false) {
    switch (value->op) {
      case Op::kConst: {
        if (value->type == Type::kI1) return value->imm_int ? "true" : "false";
        std::string text = is_float(value->type) ? float_text(value->imm_float)
                                                 : fmt::format("{}", value->imm_int);
        return typed ? fmt::format("{}:{}", text, kir::name(value->type)) : text;
      }
      case Op::kDimArg:
        return canonical_ ? fmt::format("d{}", value->imm_int)
                          : quoted(kernel_.dims[static_cast<size_t>(value->imm_int)]);
      case Op::kBegin: return "begin";
      case Op::kEnd: return "end";
      default: break;
    }
    auto it = names_.find(value);
    return it != names_.end() ? it->second : fmt::format("%undefined{}", value->id);
  }

  std::string uses(const Inst& inst, size_t from = 0, bool typed = false) {
    std::string text;
    for (size_t k = from; k < inst.args.size(); ++k)
      text += (k > from ? ", " : " ") + use(inst.args[k], typed);
    return text;
  }

  std::string access(const Inst& inst) {
    return fmt::format("{}[{}]", buffer_name(inst.buffer), use(inst.args[0]));
  }

  void block(const Block& body, const Loop* loop) {
    for (const Inst* inst : body.insts) instruction(*inst);
    if (loop == nullptr || loop->carried.empty()) return;
    std::string text = "next";
    for (size_t k = 0; k < loop->carried.size(); ++k)
      text += (k ? ", " : " ") + use(loop->carried[k].next);
    line(text);
  }

  void instruction(const Inst& inst) {
    switch (inst.op) {
      case Op::kConst:
      case Op::kDimArg:
      case Op::kBegin:
      case Op::kEnd:
      case Op::kLoopResult: return;
      case Op::kFor: return for_loop(inst);
      case Op::kIf: return conditional(inst);
      case Op::kStore: return store(inst);
      case Op::kCheck: return line(fmt::format("check{}, {}", uses(inst), inst.imm_int));
      case Op::kPrefetch:
        return line((inst.streaming ? "prefetch far " : "prefetch ") + access(inst));
      case Op::kPanelDot: return panel_dot(inst);
      case Op::kTranspose: return transpose(inst);
      default: break;
    }
    std::string text = right_side(inst);
    line(fmt::format("{} = {}", define(&inst), text));
  }

  std::string right_side(const Inst& inst) {
    std::string_view op = kir::name(inst.op);
    std::string_view type = kir::name(inst.type);
    switch (inst.op) {
      case Op::kLoad:
        if (inst.args.size() == 1) return fmt::format("load {} : {}", access(inst), type);
        return fmt::format("load {} if {} else {} : {}", access(inst), use(inst.args[1]),
                           use(inst.args[2]), type);
      case Op::kCmp:
        return fmt::format("cmp {}{} : {}", kir::name(inst.pred), uses(inst),
                           kir::name(inst.args[0]->type));
      case Op::kTable:
        return fmt::format("table t{}[{}] : {}", inst.imm_int, use(inst.args[0]), type);
      case Op::kAny: return fmt::format("any{}", uses(inst));
      default: break;
    }
    if (inst.op >= Op::kSExt && inst.op <= Op::kBitcast)
      return fmt::format("{}{} -> {}", op, uses(inst, 0, true), type);
    return fmt::format("{}{} : {}", op, uses(inst), type);
  }

  void store(const Inst& inst) {
    std::string text = fmt::format("store{} {}, {}", inst.streaming ? " streaming" : "",
                                   access(inst), use(inst.args[1]));
    if (inst.args.size() == 3) text += " if " + use(inst.args[2]);
    line(text);
  }

  void panel_dot(const Inst& inst) {
    const PanelDot& panel = *inst.panel;
    const std::string next = inst.args.size() == 6 ? " next " + use(inst.args[5]) : "";
    const std::string terms =
        panel.terms > 1 ? fmt::format(" terms {} step {}", panel.terms, panel.term_step) : "";
    line(fmt::format(
        "paneldot {} {} rows {} stride {}, {}[{}] stride {} step {}, "
        "{}[{}] stride {}{}, {}, {}{}",
        kir::name(panel.kind), access(inst), panel.rows, panel.sums_stride, buffer_name(panel.left),
        use(inst.args[1]), panel.left_stride, panel.left_step, buffer_name(panel.right),
        use(inst.args[2]), panel.right_stride, terms, use(inst.args[3]), use(inst.args[4]), next));
  }

  void transpose(const Inst& inst) {
    line(fmt::format("transpose{} {} stride {}, {}[{}] stride {}, {}, {}",
                     inst.streaming ? " streaming" : "", access(inst), use(inst.args[1]),
                     buffer_name(static_cast<uint32_t>(inst.imm_int)), use(inst.args[2]),
                     use(inst.args[3]), use(inst.args[4]), use(inst.args[5])));
  }

  void for_loop(const Inst& inst) {
    const Loop& loop = *inst.loop;
    const LoopSpec& spec = loop.spec;
    std::string range = use(inst.args[0]) + ".." + use(inst.args[1]);
    std::string carried;
    for (const CarriedVar& c : loop.carried) {
      std::string init = use(c.init);
      carried += fmt::format("{}{} = {} : {}", carried.empty() ? "" : ", ", define(c.param), init,
                             kir::name(c.param->type));
      if (c.combine != Combine::kNone) carried += fmt::format(" {}", kir::name(c.combine));
    }
    std::string text =
        fmt::format("for {} in {}{}{}{}", define_var(loop.var), spec.parallel ? "parallel " : "",
                    spec.vector ? "vector " : "", spec.rare ? "rare " : "", range);
    if (spec.step != 1) text += fmt::format(" step {}", spec.step);
    if (spec.interleave != 0) text += fmt::format(" interleave {}", spec.interleave);
    if (spec.multiple != 1) text += fmt::format(" multiple {}", spec.multiple);
    if (spec.ahead != 0) text += fmt::format(" ahead {}", spec.ahead);
    if (spec.quarters != 4) {
      text +=
          fmt::format(" quarters {}..{}", spec.first_quarter, spec.first_quarter + spec.quarters);
    }
    if (!carried.empty()) text += fmt::format(" carry ({})", carried);
    std::string results;
    for (const CarriedVar& c : loop.carried)
      results += (results.empty() ? "" : ", ") + define(c.result);
    if (!results.empty()) results += " = ";
    line(results + text + " {");
    ++indent_;
    block(loop.body, &loop);
    --indent_;
    line("}");
  }

  void conditional(const Inst& inst) {
    line(fmt::format("if{} {{", uses(inst)));
    ++indent_;
    block(inst.loop->body, nullptr);
    --indent_;
    line("}");
  }

  const Kernel& kernel_;
  bool canonical_;
  bool symbolic_scratch_ = false;
  int indent_ = 0;
  int next_value_ = 0;
  size_t next_var_ = 0;
  std::string out_;
  std::unordered_map<const Inst*, std::string> names_;
  std::unordered_map<std::string, size_t> symbols_;
};

}  // namespace

std::string print(const Kernel& kernel, bool canonical) { return Printer(kernel, canonical).run(); }

}  // namespace tenon::kir
