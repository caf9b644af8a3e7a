#include "tenon/runtime/dim_program.h"

#include <algorithm>
#include <array>

#include "tenon/base/error.h"
#include "tenon/base/machine_dims.h"
#include "tenon/runtime/cpu.h"
#include "tenon/runtime/thread_pool.h"

namespace tenon::runtime {

SymbolTable::SymbolTable() {
  for (const char* name : {kDimThreads, kDimL1, kDimL2, kDimL3}) index(name);
}

uint32_t SymbolTable::index(std::string_view name) {
  auto [it, added] = indices_.try_emplace(std::string(name), size());
  if (added) names_.emplace_back(name);
  return it->second;
}

const uint32_t* SymbolTable::find(std::string_view name) const {
  auto it = indices_.find(name);
  return it == indices_.end() ? nullptr : &it->second;
}

std::vector<int64_t> SymbolTable::machine_values() {
  const CpuInfo& cpu = cpu_info();
  return {thread_count(), cpu.l1_bytes, cpu.l2_bytes, cpu.l3_bytes};
}

// Reads Dim::str(): sums of products, //, %, max(a, …), min(a, …), names, numbers, parentheses.
class DimProgram::Parser {
 public:
  Parser(DimProgram& out, SymbolTable& symbols) : out_(out), symbols_(symbols) {}

  void run() {
    sum();
    check_internal(at_ == out_.text_.size(), "a dimension's text has an unknown form");
  }

 private:
  void emit(Op op, int64_t value = 0) {
    out_.code_.push_back({op, value});
    depth_ = op == Op::kConst || op == Op::kSymbol ? depth_ + 1 : depth_ - 1;
    out_.depth_ = std::max(out_.depth_, depth_);
  }

  bool take(std::string_view word) {
    while (at_ < out_.text_.size() && out_.text_[at_] == ' ') ++at_;
    if (std::string_view(out_.text_).substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void sum() {
    if (take("-")) {
      emit(Op::kConst, 0);
      product();
      emit(Op::kSub);
    } else {
      product();
    }
    while (true) {
      if (take("+")) {
        product();
        emit(Op::kAdd);
      } else if (take("-")) {
        product();
        emit(Op::kSub);
      } else {
        return;
      }
    }
  }

  void product() {
    factor();
    while (true) {
      Op op = Op::kMul;
      if (take("//")) {
        op = Op::kFloorDiv;
      } else if (take("%")) {
        op = Op::kMod;
      } else if (!take("*")) {
        return;
      }
      factor();
      emit(op);
    }
  }

  void factor() {
    if (take("(")) {
      sum();
      expect(")");
    } else if (take("-")) {
      emit(Op::kConst, 0);
      factor();
      emit(Op::kSub);
    } else if (take("max(") || take("min(")) {
      Op op = out_.text_[at_ - 2] == 'x' ? Op::kMax : Op::kMin;
      sum();
      while (take(",")) {
        sum();
        emit(op);
      }
      expect(")");
    } else {
      leaf();
    }
  }

  void leaf() {
    take("");
    size_t begin = at_;
    auto is_word = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    while (at_ < out_.text_.size() && is_word(out_.text_[at_])) ++at_;
    std::string_view word = std::string_view(out_.text_).substr(begin, at_ - begin);
    check_internal(!word.empty(), "a dimension's text has an unknown form");
    if (word[0] < '0' || word[0] > '9') {
      emit(Op::kSymbol, symbols_.index(word));
      return;
    }
    int64_t value = 0;
    for (char c : word) {
      check_internal(!__builtin_mul_overflow(value, 10, &value) &&
                         !__builtin_add_overflow(value, c - '0', &value),
                     "a dimension's number is too large");
    }
    emit(Op::kConst, value);
  }

  void expect(std::string_view word) {
    check_internal(take(word), "a dimension's text has an unknown form");
  }

  DimProgram& out_;
  SymbolTable& symbols_;
  size_t at_ = 0;
  size_t depth_ = 0;
};

DimProgram::DimProgram(const Dim& dim, SymbolTable& symbols) : text_(dim.str()) {
  if (dim.is_static()) {
    code_.push_back({Op::kConst, dim.value()});
    depth_ = 1;
  } else {
    Parser(*this, symbols).run();
  }
}

void DimProgram::fail(std::string_view what) const {
  throw ValueError(fmt::format("dimension {}: {}", text_, what), {.label = "dim_value"});
}

int64_t DimProgram::eval(std::span<const int64_t> values) const {
  if (code_.size() == 1 && code_[0].op == Op::kConst) return code_[0].value;
  std::array<int64_t, 32> small;
  std::vector<int64_t> large;
  int64_t* stack = small.data();
  if (depth_ > small.size()) {
    large.resize(depth_);
    stack = large.data();
  }
  size_t top = 0;
  for (const Inst& inst : code_) {
    if (inst.op == Op::kConst) {
      stack[top++] = inst.value;
      continue;
    }
    if (inst.op == Op::kSymbol) {
      if (static_cast<size_t>(inst.value) >= values.size()) fail("a name in it is not bound");
      stack[top++] = values[static_cast<size_t>(inst.value)];
      continue;
    }
    int64_t b = stack[--top];
    int64_t a = stack[top - 1];
    int64_t r = 0;
    bool bad = false;
    switch (inst.op) {
      case Op::kAdd: bad = __builtin_add_overflow(a, b, &r); break;
      case Op::kSub: bad = __builtin_sub_overflow(a, b, &r); break;
      case Op::kMul: bad = __builtin_mul_overflow(a, b, &r); break;
      case Op::kMax: r = std::max(a, b); break;
      case Op::kMin: r = std::min(a, b); break;
      default:
        if (b == 0) fail("division by zero");
        if (b == -1) {
          bad = __builtin_sub_overflow(int64_t{0}, a, &r);
          if (inst.op == Op::kMod) r = 0;
        } else {
          int64_t rest = a % b;
          bool adjust = rest != 0 && (rest < 0) != (b < 0);
          r = inst.op == Op::kMod ? rest + (adjust ? b : 0) : a / b - (adjust ? 1 : 0);
        }
    }
    if (bad) fail("its value overflows");
    stack[top - 1] = r;
  }
  return stack[0];
}

}  // namespace tenon::runtime
