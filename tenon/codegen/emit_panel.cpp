#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "tenon/codegen/emitter.h"

namespace tenon::codegen {

using kir::Inst;
using kir::PanelDot;
namespace ids = llvm::Intrinsic;

namespace {

constexpr int64_t kColumns = kir::kPanelDotColumns;
constexpr int64_t kWordBytes = 4;
constexpr int64_t kLineWords = 16;
// Words of a panel called into the first cache before their turn.
constexpr int64_t kFewRows = 4;
constexpr int64_t kAheadFewRows = 64;
constexpr int64_t kAhead = 16;
constexpr int64_t kWordsTogether = 2;
constexpr int kTileRows = 16;
// Of what PanelDot calls in next, the part that one instruction takes.
constexpr int64_t kNextShare = 4;
// Registers of the tile unit: sums in two rows and two columns, then the operands.
constexpr int kTileSums = 0, kTileLeft = 4, kTileRight = 6;

}  // namespace

// What the instruction works on: addresses in bytes, one lane group after another.
struct Emitter::Panel {
  const PanelDot& spec;
  Value* sums;
  Value* left;
  Value* right;
  Value* words;
  Value* add;   // i1
  Value* next;  // right words to be called into the second cache, or null
};

void Emitter::emit_panel_dot(const Inst& inst) {
  auto place = [&](uint32_t buffer, size_t arg) {
    return b_.CreateGEP(b_.getInt32Ty(), buffers_[buffer], uniform(inst.args[arg], "an index"));
  };
  Panel panel{*inst.panel,
              place(inst.buffer, 0),
              place(inst.panel->left, 1),
              place(inst.panel->right, 2),
              uniform(inst.args[3], "the count of words"),
              uniform(inst.args[4], "the condition"),
              inst.args.size() == 6 ? place(inst.panel->right, 5) : nullptr};
  if (target_.has_tiles && panel.spec.rows > 1) return emit_panel_tiles(panel);
  for (int64_t term = 0; term < panel.spec.terms; ++term) {
    emit_panel_groups(panel);
    panel.right = b_.CreateConstGEP1_64(b_.getInt32Ty(), panel.right,
                                        static_cast<uint64_t>(panel.spec.term_step));
    panel.add = b_.getTrue();
  }
}

// Groups of rows and columns whose sums fit the registers.
void Emitter::emit_panel_groups(const Panel& panel) {
  // Sums that fit the registers beside the operands.
  const int columns = target_.vector_bits / 32 * (target_.vector_regs >= 32 ? 2 : 1);
  const int vectors = columns / (target_.vector_bits / 32);
  const int most = target_.vector_regs >= 32 ? (vectors == 2 ? 12 : 24) : 8;
  const int64_t groups = (panel.spec.rows + most - 1) / most;
  for (int64_t column = 0; column < kColumns; column += columns) {
    int64_t first = 0;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t rows = (panel.spec.rows - first + groups - group - 1) / (groups - group);
      emit_panel_vectors(panel, first, rows, column, vectors);
      first += rows;
    }
  }
}

// Where word `w` of a row of the left operand stands in it.
llvm::Value* Emitter::left_word(const PanelDot& spec, Value* w) {
  constexpr int64_t kWords = kir::kPanelDotWords;
  if (spec.left_step == kWords) return w;
  Value* steps = b_.CreateMul(b_.CreateLShr(w, index(std::countr_zero(uint64_t{kWords}))),
                              index(spec.left_step - kWords));
  return b_.CreateAdd(w, steps);
}

// Rows × vectors of sums in registers over all words.
void Emitter::emit_panel_vectors(const Panel& panel, int64_t first, int64_t rows, int64_t column,
                                 int vectors) {
  const int lanes = target_.vector_bits / 32;
  const bool is_bf16 = panel.spec.kind == PanelDot::Kind::kBF16;
  llvm::Type* word = llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(lanes));
  llvm::Type* sum_type =
      is_bf16 ? llvm::FixedVectorType::get(b_.getFloatTy(), static_cast<unsigned>(lanes)) : word;
  auto at = [&](Value* base, int64_t words) {
    return b_.CreateConstGEP1_64(b_.getInt32Ty(), base, static_cast<uint64_t>(words));
  };
  auto sum_place = [&](int64_t r, int v) {
    return at(panel.sums, (first + r) * panel.spec.sums_stride + column + int64_t{v} * lanes);
  };
  // Few sums are split over words, so that the units need not wait for them.
  const int64_t count = rows * vectors;
  const int64_t split = count <= 2 ? 4 : count <= 6 ? 2 : 1;
  // Words of one round: counting takes instructions from the units.
  const int64_t together = std::max<int64_t>(split, kWordsTogether);
  const int64_t ahead = rows <= kFewRows ? kAheadFewRows : kAhead;
  auto multiply = [&](Value* sum, Value* left, Value* right) {
    return is_bf16 ? arithmetic_.dot_bf16({sum, left, right})
                   : arithmetic_.dot_bytes({sum, left, right});
  };

  Values zeros(static_cast<size_t>(count * split), llvm::Constant::getNullValue(sum_type));
  Values sums =
      counted_loop(index(0), panel.words, together, zeros, [&](Value* w, const Values& carried) {
        Values next = carried;
        Value* first_line = b_.CreateGEP(b_.getInt32Ty(), panel.right,
                                         b_.CreateMul(w, index(panel.spec.right_stride)));
        Value* first_left = b_.CreateGEP(b_.getInt32Ty(), panel.left, left_word(panel.spec, w));
        for (int64_t t = 0; t < together; ++t) {
          const int64_t s = t % split;
          Value* line = at(first_line, t * panel.spec.right_stride);
          for (int64_t word = 0; word < int64_t{vectors} * lanes; word += kLineWords) {
            prefetch_line(at(line, column + ahead * panel.spec.right_stride + word));
          }
          Values right;
          for (int v = 0; v < vectors; ++v) {
            right.push_back(b_.CreateAlignedLoad(word, at(line, column + int64_t{v} * lanes),
                                                 llvm::Align(kWordBytes)));
          }
          for (int64_t r = 0; r < rows; ++r) {
            Value* left = b_.CreateAlignedLoad(
                b_.getInt32Ty(), at(first_left, (first + r) * panel.spec.left_stride + t),
                llvm::Align(kWordBytes));
            Value* all = b_.CreateVectorSplat(static_cast<unsigned>(lanes), left);
            for (int v = 0; v < vectors; ++v) {
              auto k = static_cast<size_t>((s * rows + r) * vectors + v);
              next[k] = multiply(next[k], all, right[static_cast<size_t>(v)]);
            }
          }
        }
        return next;
      });
  auto plus = [&](Value* a, Value* b) {
    return is_bf16 ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
  };
  for (int64_t r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      Value* sum = sums[static_cast<size_t>(r * vectors + v)];
      for (int64_t s = 1; s < split; ++s) {
        sum = plus(sum, sums[static_cast<size_t>((s * rows + r) * vectors + v)]);
      }
      store_panel_sum(sum, sum_place(r, v), panel.add);
    }
  }
}

// Adds to the sum that is there or replaces it.
void Emitter::store_panel_sum(Value* sum, Value* place, Value* add) {
  Value* old = b_.CreateAlignedLoad(sum->getType(), place, llvm::Align(kWordBytes));
  Value* both =
      sum->getType()->isFPOrFPVectorTy() ? b_.CreateFAdd(sum, old) : b_.CreateAdd(sum, old);
  b_.CreateAlignedStore(b_.CreateSelect(add, both, sum), place, llvm::Align(kWordBytes));
}

// Two by two tiles of 16 × 16 sums (one by two up to 16 rows).
void Emitter::emit_panel_tiles(const Panel& panel) {
  const int row_tiles = panel.spec.rows > kTileRows ? 2 : 1;
  uses_tiles_ = true;
  auto tile = [&](int number) { return b_.getInt8(static_cast<uint8_t>(number)); };
  auto bytes = [&](Value* base, int64_t offset) {
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), base, static_cast<uint64_t>(offset));
  };
  auto each_sum = [&](auto&& visit) {
    for (int r = 0; r < row_tiles; ++r) {
      for (int c = 0; c < 2; ++c) {
        const int64_t words = r * kTileRows * panel.spec.sums_stride + int64_t{c} * kTileRows;
        visit(kTileSums + 2 * r + c, bytes(panel.sums, words * kWordBytes));
      }
    }
  };
  Value* sums_stride = index(panel.spec.sums_stride * kWordBytes);
  Value* left_stride = index(panel.spec.left_stride * kWordBytes);
  Value* right_stride = index(panel.spec.right_stride * kWordBytes);
  llvm::LLVMContext& context = module_.getContext();
  auto* keep = llvm::BasicBlock::Create(context, "tiles.keep", function_);
  auto* zero = llvm::BasicBlock::Create(context, "tiles.zero", function_);
  auto* begin = llvm::BasicBlock::Create(context, "tiles", function_);
  b_.CreateCondBr(panel.add, keep, zero);
  b_.SetInsertPoint(keep);
  each_sum([&](int number, Value* place) {
    b_.CreateIntrinsic(ids::x86_tileloadd64, {}, {tile(number), place, sums_stride});
  });
  b_.CreateBr(begin);
  b_.SetInsertPoint(zero);
  each_sum([&](int number, Value*) { b_.CreateIntrinsic(ids::x86_tilezero, {}, {tile(number)}); });
  b_.CreateBr(begin);
  b_.SetInsertPoint(begin);
  const auto id = panel.spec.kind == PanelDot::Kind::kBF16 ? ids::x86_tdpbf16ps : ids::x86_tdpbusd;
  counted_loop(index(0), panel.words, kir::kPanelDotWords, {}, [&](Value* var, const Values&) {
    Value* line = b_.CreateGEP(b_.getInt32Ty(), panel.right,
                               b_.CreateMul(var, index(panel.spec.right_stride)));
    Value* left = b_.CreateGEP(b_.getInt32Ty(), panel.left, left_word(panel.spec, var));
    for (int64_t term = 0; term < panel.spec.terms; ++term) {
      for (int c = 0; c < 2; ++c) {
        const int64_t words = term * panel.spec.term_step + int64_t{c} * kTileRows;
        b_.CreateIntrinsic(ids::x86_tileloadd64, {},
                           {tile(kTileRight + c), bytes(line, words * kWordBytes), right_stride});
      }
      for (int r = 0; r < row_tiles; ++r) {
        const int64_t offset = r * kTileRows * panel.spec.left_stride * kWordBytes;
        const auto load = panel.next != nullptr ? ids::x86_tileloaddt164 : ids::x86_tileloadd64;
        if (term == 0) {
          b_.CreateIntrinsic(load, {}, {tile(kTileLeft + r), bytes(left, offset), left_stride});
        }
        for (int c = 0; c < 2; ++c) {
          b_.CreateIntrinsic(
              id, {}, {tile(kTileSums + 2 * r + c), tile(kTileLeft + r), tile(kTileRight + c)});
        }
      }
    }
    if (panel.next == nullptr) return Values{};
    constexpr int64_t kWords = kir::kPanelDotWords * kColumns / kNextShare;
    Value* next =
        b_.CreateGEP(b_.getInt32Ty(), panel.next, b_.CreateMul(var, index(kColumns / kNextShare)));
    for (int64_t word = 0; word < kWords; word += kLineWords) {
      prefetch_line(bytes(next, word * kWordBytes), kIntoSecondCache);
    }
    return Values{};
  });
  each_sum([&](int number, Value* place) {
    b_.CreateIntrinsic(ids::x86_tilestored64, {}, {tile(number), place, sums_stride});
  });
}

// Palette 1, eight tiles of 16 rows of 64 bytes.
void Emitter::configure_tiles(llvm::Instruction* before) {
  constexpr size_t kTiles = 8, kColumnBytes = 16, kRowCounts = 48;
  std::array<uint8_t, 64> bytes{};
  bytes[0] = 1;
  for (size_t t = 0; t < kTiles; ++t) {
    bytes[kColumnBytes + 2 * t] = 64;
    bytes[kRowCounts + t] = kTileRows;
  }
  llvm::Constant* data = llvm::ConstantDataArray::get(module_.getContext(), bytes);
  auto* global = new llvm::GlobalVariable(module_, data->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, data, "tiles");
  global->setAlignment(llvm::Align(64));
  llvm::IRBuilder<> start(before);
  start.CreateIntrinsic(ids::x86_ldtilecfg, {}, {global});
}

}  // namespace tenon::codegen
