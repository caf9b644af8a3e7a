// The parser behind kir::parse: kernels, blocks and loops in parse.cpp, instructions and their
// operands in parse_instructions.cpp.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/kir/kernel.h"
#include "tenon/kir/lexer.h"

namespace tenon::kir {

template <class Enum>
std::map<std::string_view, Enum> names_of(int count) {
  std::map<std::string_view, Enum> names;
  for (int k = 0; k < count; ++k) names.emplace(name(static_cast<Enum>(k)), static_cast<Enum>(k));
  return names;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lex_(text) {}

  Kernel run();

 private:
  template <class Enum>
  Enum one_of(const std::map<std::string_view, Enum>& names, const std::string& token,
              std::string_view what) {
    auto it = names.find(token);
    if (it == names.end()) lex_.fail(fmt::format("{} is not {}", token, what));
    return it->second;
  }
  Type type() { return one_of(types_, lex_.take(), "a type"); }

  // --- parse.cpp ---
  Dim dim();
  void buffers();
  void header();
  void table();
  // Statements up to the closing brace; `loop`: whose body they are, or null.
  void block(Block& into, Loop* loop);
  void statement(Block& into);
  void for_loop(Block& into, const std::vector<std::string>& results);
  void carried(Loop& loop);
  void conditional(Block& into);
  void define(const std::string& name, Val value);

  // --- parse_instructions.cpp ---
  int64_t integer() { return to_integer(lex_.take()); }
  int64_t to_integer(const std::string& token);
  double to_float(const std::string& token);
  Val leaf(Op op, Type type);
  Val constant(const std::string& token, Type type);
  Val dimension(const Dim& dim);
  // An operand, which a constant's type is taken from `expected` for.
  Val operand(Type expected);
  uint32_t buffer();
  void access(Inst& inst) { inst.buffer = place(inst); }
  // "name[index]": the index becomes an argument.
  uint32_t place(Inst& inst);
  Inst* value(Op op);
  void operands(Inst& inst);
  void store(Block& into);
  void effect(Block& into, std::string_view word);
  void panel_dot(Block& into);
  void transpose(Block& into);

  Lexer lex_;
  Kernel kernel_;
  std::vector<Inst*> leaves_;  // stand before the kernel's body
  std::map<std::string, Val> values_;
  std::map<std::string, uint32_t> buffer_names_;
  std::map<std::string_view, Type> types_ = names_of<Type>(static_cast<int>(Type::kF64) + 1);
  std::map<std::string_view, Op> ops_ = names_of<Op>(static_cast<int>(Op::kIf) + 1);
  std::map<std::string_view, PanelDot::Kind> kinds_ = names_of<PanelDot::Kind>(2);
  std::map<std::string_view, Pred> preds_ = names_of<Pred>(static_cast<int>(Pred::kUno) + 1);
  std::map<std::string_view, Combine> combines_ =
      names_of<Combine>(static_cast<int>(Combine::kXor) + 1);
};

}  // namespace tenon::kir
