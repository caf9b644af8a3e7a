// kTranspose: squares of a matrix turned in registers.
#include <llvm/IR/Constants.h>

#include <algorithm>
#include <functional>

#include "tenon/codegen/emitter.h"

namespace tenon::codegen {

using kir::Inst;

namespace {

constexpr int kUnitBytes = 16;  // shuffles of two registers work within units of this size
constexpr int kLongestSide = 16;
constexpr int kLineBytes = 64;

using Mask = llvm::SmallVector<int, 64>;

}  // namespace

// Both matrices and the shape of a square: `units` of `unit` elements are a vector, a square has as
// many rows as that has elements.
struct Emitter::Turn {
  Value* target;
  Value* source;
  Value* target_stride;
  Value* source_stride;
  uint32_t target_buffer;
  uint32_t source_buffer;
  llvm::Type* element;
  int unit;
  int units;
  bool streaming = false;
  int side() const { return unit * units; }
  llvm::FixedVectorType* vector() const {
    return llvm::FixedVectorType::get(element, static_cast<unsigned>(side()));
  }
};

void Emitter::emit_transpose(const Inst& inst) {
  const auto source = static_cast<uint32_t>(inst.imm_int);
  const auto size = static_cast<int>(size_of(kernel_.buffers[inst.buffer].dtype));
  llvm::Type* element = b_.getIntNTy(static_cast<unsigned>(8 * size));
  auto place = [&](uint32_t buffer, size_t arg) {
    return b_.CreateGEP(element, buffers_[buffer], uniform(inst.args[arg], "an index"));
  };
  Turn turn{place(inst.buffer, 0),
            place(source, 2),
            uniform(inst.args[1], "a stride"),
            uniform(inst.args[3], "a stride"),
            inst.buffer,
            source,
            element,
            kUnitBytes / size,
            std::min(target_.vector_bits / (8 * kUnitBytes),
                     std::max(1, kLongestSide * size / kUnitBytes))};
  Value* rows = uniform(inst.args[4], "the number of rows");
  Value* columns = uniform(inst.args[5], "the number of columns");
  Value* whole_rows = b_.CreateAnd(rows, index(-turn.side()));
  Value* whole_columns = b_.CreateAnd(columns, index(-turn.side()));
  auto whole_squares = [&](bool streaming) {
    turn.streaming = streaming;
    // Lines of the target are written one after another, the source is read along its rows.
    counted_loop(index(0), whole_columns, turn.side(), {}, [&](Value* column, const Values&) {
      counted_loop(index(0), whole_rows, turn.side(), {}, [&](Value* row, const Values&) {
        turn_square(turn, row, column, nullptr, nullptr);
        return Values{};
      });
      return Values{};
    });
  };
  if (inst.streaming && !target_.is_arm && turn.side() * size == kLineBytes) {
    Value* bytes = b_.CreateMul(turn.target_stride, index(size));
    Value* together = b_.CreateOr(b_.CreatePtrToInt(turn.target, b_.getInt64Ty()), bytes);
    Value* aligned = b_.CreateICmpEQ(b_.CreateAnd(together, index(kLineBytes - 1)), index(0));
    either_way(aligned, [&](bool holds) { whole_squares(holds); });
    wrote_past_caches_ = true;
  } else {
    whole_squares(false);
  }
  // What is left of each band of rows.
  counted_loop(index(0), rows, turn.side(), {}, [&](Value* row, const Values&) {
    Value* first = b_.CreateSelect(b_.CreateICmpSLT(row, whole_rows), whole_columns, index(0));
    Value* band = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(rows, row),
                                           index(turn.side()));
    if (target_.has_masks) {
      counted_loop(first, columns, turn.side(), {}, [&](Value* column, const Values&) {
        turn_square(turn, row, column, band, b_.CreateSub(columns, column));
        return Values{};
      });
    } else {
      turn_by_element(turn, row, b_.CreateAdd(row, band), first, columns);
    }
    return Values{};
  });
}

void Emitter::turn_by_element(const Turn& turn, Value* first_row, Value* last_row,
                              Value* first_column, Value* last_column) {
  counted_loop(first_row, last_row, 1, {}, [&](Value* row, const Values&) {
    counted_loop(first_column, last_column, 1, {}, [&](Value* column, const Values&) {
      Value* from = b_.CreateAdd(b_.CreateMul(row, turn.source_stride), column);
      Value* to = b_.CreateAdd(b_.CreateMul(column, turn.target_stride), row);
      auto* loaded =
          b_.CreateAlignedLoad(turn.element, b_.CreateGEP(turn.element, turn.source, from),
                               alignment(turn.source_buffer));
      tag(loaded, turn.source_buffer);
      tag(b_.CreateAlignedStore(loaded, b_.CreateGEP(turn.element, turn.target, to),
                                alignment(turn.target_buffer)),
          turn.target_buffer);
      return Values{};
    });
    return Values{};
  });
}

// One square from (row, column) on; `rows` and `columns` say how much of it there is, null: all.
void Emitter::turn_square(const Turn& turn, Value* row, Value* column, Value* rows,
                          Value* columns) {
  const auto side = static_cast<int64_t>(turn.side());
  auto mask_of = [&](Value* left) -> Value* {
    auto* bits = b_.getIntNTy(static_cast<unsigned>(side));
    Value* idle =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(index(side), left), index(0));
    Value* ones =
        b_.CreateLShr(llvm::ConstantInt::getAllOnesValue(bits), b_.CreateTrunc(idle, bits));
    return b_.CreateBitCast(
        ones, llvm::FixedVectorType::get(b_.getInt1Ty(), static_cast<unsigned>(side)));
  };
  auto line_mask = [&](Value* mask, Value* count, int64_t line) {
    return b_.CreateSelect(b_.CreateICmpSLT(index(line), count), mask,
                           llvm::Constant::getNullValue(mask->getType()));
  };
  auto line_at = [&](Value* base, Value* stride, Value* first, Value* across, int64_t line) {
    Value* offset = b_.CreateAdd(b_.CreateMul(b_.CreateAdd(first, index(line)), stride), across);
    return b_.CreateGEP(turn.element, base, offset);
  };
  Value* of_columns = columns ? mask_of(columns) : nullptr;
  Value* of_rows = rows ? mask_of(rows) : nullptr;
  Values lines;
  for (int64_t k = 0; k < side; ++k) {
    Value* from = line_at(turn.source, turn.source_stride, row, column, k);
    llvm::Instruction* loaded = nullptr;
    if (rows) {
      loaded = b_.CreateMaskedLoad(turn.vector(), from, alignment(turn.source_buffer),
                                   line_mask(of_columns, rows, k),
                                   llvm::Constant::getNullValue(turn.vector()));
    } else {
      loaded = b_.CreateAlignedLoad(turn.vector(), from, alignment(turn.source_buffer));
    }
    lines.push_back(tag(loaded, turn.source_buffer));
  }
  lines = turned(turn, std::move(lines));
  for (int64_t k = 0; k < side; ++k) {
    Value* to = line_at(turn.target, turn.target_stride, column, row, k);
    Value* line = lines[static_cast<size_t>(k)];
    llvm::Instruction* stored = nullptr;
    if (rows) {
      stored = b_.CreateMaskedStore(line, to, alignment(turn.target_buffer),
                                    line_mask(of_rows, columns, k));
    } else {
      const llvm::Align align =
          turn.streaming ? llvm::Align(kLineBytes) : alignment(turn.target_buffer);
      stored = b_.CreateAlignedStore(line, to, align);
      if (turn.streaming) set_streaming(stored);
    }
    tag(stored, turn.target_buffer);
  }
}

// The columns of a square from its rows: within units by interleaving rows log2(unit) times, then
// units change places.
Emitter::Values Emitter::turned(const Turn& turn, Values lines) {
  const int unit = turn.unit;
  const int units = turn.units;
  const int side = turn.side();
  auto interleave = [&](Value* a, Value* c, int from) {
    Mask mask;
    for (int at = 0; at < side; at += unit) {
      for (int k = 0; k < unit / 2; ++k) {
        mask.push_back(at + from + k);
        mask.push_back(side + at + from + k);
      }
    }
    return b_.CreateShuffleVector(a, c, mask);
  };
  auto place = [unit](int group, int k) {
    const int line = group * unit + k;
    return static_cast<size_t>(line);
  };
  for (int step = 1; step < unit; step *= 2) {
    Values next;
    for (int group = 0; group < units; ++group) {
      for (int k = 0; k < unit / 2; ++k) {
        Value* a = lines[place(group, k)];
        Value* c = lines[place(group, k + unit / 2)];
        next.push_back(interleave(a, c, 0));
        next.push_back(interleave(a, c, unit / 2));
      }
    }
    lines = std::move(next);
  }
  // Vectors of chosen units: those of `a` are counted from 0, those of `c` after them.
  auto choose = [&](Value* a, Value* c, std::initializer_list<int> chosen) {
    Mask mask;
    for (int which : chosen) {
      for (int k = 0; k < unit; ++k) mask.push_back(which * unit + k);
    }
    return b_.CreateShuffleVector(a, c, mask);
  };
  Values result(static_cast<size_t>(side));
  for (int k = 0; k < unit; ++k) {
    auto in = [&](int group) { return lines[place(group, k)]; };
    auto out = [&](int group) -> Value*& { return result[place(group, k)]; };
    if (units == 1) {
      out(0) = in(0);
    } else if (units == 2) {
      out(0) = choose(in(0), in(1), {0, 2});
      out(1) = choose(in(0), in(1), {1, 3});
    } else {
      for (int half = 0; half < 2; ++half) {
        Value* low = choose(in(0), in(1), {2 * half, 2 * half + 1, 4 + 2 * half, 5 + 2 * half});
        Value* high = choose(in(2), in(3), {2 * half, 2 * half + 1, 4 + 2 * half, 5 + 2 * half});
        out(2 * half) = choose(low, high, {0, 2, 4, 6});
        out(2 * half + 1) = choose(low, high, {1, 3, 5, 7});
      }
    }
  }
  return result;
}

}  // namespace tenon::codegen
