#include "tenon/kir/evaluate.h"

#include <cstring>

#include "tenon/base/error.h"

namespace tenon::kir {

namespace {

class Evaluator {
 public:
  Evaluator(const Kernel& kernel, const EvalArgs& args, int64_t begin, int64_t end,
            const ScalarOptions& options)
      : kernel_(kernel),
        args_(args),
        begin_(begin),
        end_(end),
        options_(options),
        values_(kernel.id_count()) {
    size_t count = 0;
    for (const Buffer& b : kernel.buffers) memory_.push_back(address(b, count++));
  }

  void block(const Block& body) {
    for (const Inst* inst : body.insts) run(*inst);
  }

 private:
  // Scratch offsets are in terms of the kernel's dims.
  char* address(const Buffer& buffer, size_t index) {
    if (buffer.kind == Buffer::Kind::kArg) return static_cast<char*>(args_.buffers[index]);
    int64_t offset = buffer.offset.eval([&](std::string_view name) -> std::optional<int64_t> {
      for (size_t k = 0; k < kernel_.dims.size(); ++k)
        if (kernel_.dims[k].symbol() == name) return args_.dims[k];
      return std::nullopt;
    });
    return static_cast<char*>(args_.scratch) + offset;
  }

  Bits& at(Val value) { return values_[value->id]; }
  int64_t int_at(Val value) { return static_cast<int64_t>(at(value)); }

  char* element(const Inst& inst) {
    size_t size = size_of(kernel_.buffers[inst.buffer].dtype);
    return memory_[inst.buffer] + int_at(inst.args[0]) * static_cast<int64_t>(size);
  }

  void run(const Inst& inst) {
    switch (inst.op) {
      case Op::kConst: values_[inst.id] = bits_of_const(inst); return;
      case Op::kDimArg:
        values_[inst.id] = static_cast<Bits>(args_.dims[static_cast<size_t>(inst.imm_int)]);
        return;
      case Op::kBegin: values_[inst.id] = static_cast<Bits>(begin_); return;
      case Op::kEnd: values_[inst.id] = static_cast<Bits>(end_); return;
      case Op::kLoopResult: return;
      case Op::kLoad: return load(inst);
      case Op::kStore: return store(inst);
      case Op::kCheck:
        if (at(inst.args[0]) == 0) *args_.status = inst.imm_int;
        return;
      case Op::kPrefetch: return;
      case Op::kPanelDot: return panel_dot(inst);
      case Op::kTranspose: return transpose(inst);
      case Op::kFor: return loop(inst);
      case Op::kIf:
        if (at(inst.args[0]) != 0) block(inst.loop->body);
        return;
      case Op::kAny: values_[inst.id] = at(inst.args[0]); return;
      case Op::kTable: {
        const Table& table = kernel_.tables[static_cast<size_t>(inst.imm_int)];
        check_internal(at(inst.args[0]) < table.bits.size(), "a table index within the table");
        values_[inst.id] = table.bits[at(inst.args[0])];
        return;
      }
      default: return pure(inst);
    }
  }

  void pure(const Inst& inst) {
    Bits in[3] = {};
    for (size_t k = 0; k < inst.args.size(); ++k) in[k] = at(inst.args[k]);
    Type operand = inst.args[inst.op == Op::kSelect ? 1 : 0]->type;
    values_[inst.id] =
        eval_scalar(inst.op, inst.type, operand, inst.pred, {in, inst.args.size()}, options_);
  }

  void load(const Inst& inst) {
    if (inst.args.size() == 3 && at(inst.args[1]) == 0) {
      values_[inst.id] = at(inst.args[2]);
      return;
    }
    Bits value = 0;
    const size_t size = inst.type == Type::kI1 ? 1 : static_cast<size_t>(bits(inst.type)) / 8;
    std::memcpy(&value, element(inst), size);
    values_[inst.id] = inst.type == Type::kI1 ? (value != 0) : value;
  }

  void store(const Inst& inst) {
    if (inst.args.size() == 3 && at(inst.args[2]) == 0) return;
    std::memcpy(element(inst), &at(inst.args[1]), size_of(kernel_.buffers[inst.buffer].dtype));
  }

  void transpose(const Inst& inst) {
    const auto size = static_cast<int64_t>(size_of(kernel_.buffers[inst.buffer].dtype));
    char* target = memory_[inst.buffer];
    const char* source = memory_[static_cast<size_t>(inst.imm_int)];
    auto arg = [&](size_t k) { return int_at(inst.args[k]); };
    for (int64_t r = 0; r < arg(4); ++r) {
      for (int64_t c = 0; c < arg(5); ++c) {
        std::memcpy(target + size * (arg(0) + c * arg(1) + r),
                    source + size * (arg(2) + r * arg(3) + c), static_cast<size_t>(size));
      }
    }
  }

  void panel_dot(const Inst& inst) {
    const PanelDot& panel = *inst.panel;
    const int64_t words = int_at(inst.args[3]);
    auto word = [&](uint32_t buffer, size_t arg, int64_t more) {
      return memory_[buffer] + 4 * (int_at(inst.args[arg]) + more);
    };
    for (int64_t r = 0; r < panel.rows; ++r) {
      for (int64_t j = 0; j < kPanelDotColumns; ++j) {
        char* place = word(inst.buffer, 0, r * panel.sums_stride + j);
        uint32_t sum = 0, left = 0, right = 0;
        if (at(inst.args[4]) != 0) std::memcpy(&sum, place, 4);
        for (int64_t w = 0; w < words; ++w) {
          std::memcpy(&left, word(panel.left, 1, r * panel.left_stride + place_in_row(panel, w)),
                      4);
          for (int64_t k = 0; k < panel.terms; ++k) {
            const int64_t line = k * panel.term_step + w * panel.right_stride;
            std::memcpy(&right, word(panel.right, 2, line + j), 4);
            sum = multiply_words(panel.kind, sum, left, right);
          }
        }
        std::memcpy(place, &sum, 4);
      }
    }
  }

  static int64_t place_in_row(const PanelDot& panel, int64_t w) {
    return w / kPanelDotWords * panel.left_step + w % kPanelDotWords;
  }

  uint32_t multiply_words(PanelDot::Kind kind, uint32_t sum, uint32_t left, uint32_t right) const {
    const Bits in[] = {sum, left, right};
    const bool is_bf16 = kind == PanelDot::Kind::kBF16;
    return static_cast<uint32_t>(eval_scalar(is_bf16 ? Op::kDot2 : Op::kDot4,
                                             is_bf16 ? Type::kF32 : Type::kI32, Type::kI32,
                                             Pred::kEq, in, options_));
  }

  void loop(const Inst& inst) {
    const Loop& loop = *inst.loop;
    std::vector<Bits> current;
    for (const CarriedVar& c : loop.carried) current.push_back(at(c.init));
    int64_t high = int_at(inst.args[1]);
    for (int64_t i = int_at(inst.args[0]); i < high; i += loop.spec.step) {
      at(loop.var) = static_cast<Bits>(i);
      for (size_t k = 0; k < current.size(); ++k) at(loop.carried[k].param) = current[k];
      block(loop.body);
      for (size_t k = 0; k < current.size(); ++k) current[k] = at(loop.carried[k].next);
    }
    for (size_t k = 0; k < current.size(); ++k)
      if (loop.carried[k].result != nullptr) at(loop.carried[k].result) = current[k];
  }

  const Kernel& kernel_;
  const EvalArgs& args_;
  int64_t begin_;
  int64_t end_;
  ScalarOptions options_;
  std::vector<Bits> values_;
  std::vector<char*> memory_;
};

}  // namespace

void evaluate(const Kernel& kernel, const EvalArgs& args, int64_t begin, int64_t end,
              const ScalarOptions& options) {
  Evaluator(kernel, args, begin, end, options).block(kernel.body);
}

}  // namespace tenon::kir
