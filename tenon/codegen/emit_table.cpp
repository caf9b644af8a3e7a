// Constant tables: read-only data beside the code, or registers that a permute picks from.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "tenon/base/error.h"
#include "tenon/codegen/emitter.h"

namespace tenon::codegen {

using kir::Inst;
namespace ids = llvm::Intrinsic;

// Entries first … first + count, the last one repeated beyond the table's end.
llvm::Constant* Emitter::table_slice(const kir::Table& table, size_t first, size_t count) const {
  llvm::Type* element = arithmetic_.type(table.type);
  llvm::Type* word =
      llvm::Type::getIntNTy(module_.getContext(), static_cast<unsigned>(kir::bits(table.type)));
  llvm::SmallVector<llvm::Constant*, 64> entries;
  for (size_t k = first; k < first + count; ++k) {
    uint64_t bits = table.bits[std::min(k, table.bits.size() - 1)];
    entries.push_back(llvm::ConstantExpr::getBitCast(llvm::ConstantInt::get(word, bits), element));
  }
  return llvm::ConstantVector::get(entries);
}

llvm::GlobalVariable* Emitter::table_global(size_t position) {
  tables_.resize(kernel_.tables.size());
  if (tables_[position]) return tables_[position];
  const kir::Table& table = kernel_.tables[position];
  llvm::SmallVector<llvm::Constant*, 64> entries;
  llvm::Constant* all = table_slice(table, 0, table.bits.size());
  for (unsigned k = 0; k < table.bits.size(); ++k) entries.push_back(all->getAggregateElement(k));
  auto* array = llvm::ArrayType::get(arithmetic_.type(table.type), entries.size());
  auto* global = new llvm::GlobalVariable(module_, array, true, llvm::GlobalValue::PrivateLinkage,
                                          llvm::ConstantArray::get(array, entries), "table");
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  global->setAlignment(llvm::Align(64));
  return tables_[position] = global;
}

void Emitter::emit_table(const Inst& inst) {
  auto position = static_cast<size_t>(inst.imm_int);
  if (position >= kernel_.tables.size() || kernel_.tables[position].bits.empty()) {
    throw InternalError(
        fmt::format("codegen: kernel {}: table {} does not exist", kernel_.name, inst.imm_int));
  }
  const kir::Table& table = kernel_.tables[position];
  auto* self = const_cast<Inst*>(&inst);
  llvm::Type* element = arithmetic_.type(inst.type);
  llvm::Align align(static_cast<uint64_t>(kir::bits(inst.type)) / 8);
  const Held& where = held(inst.args[0]);
  if (where.spread == Spread::kUniform) {
    Value* place = b_.CreateGEP(element, table_global(position), where.parts[0]);
    return set_uniform(self, b_.CreateAlignedLoad(element, place, align));
  }
  auto* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(mode_.lanes));
  Values result;
  for (Value* index : vectors(where)) {
    Value* value = permute_table(table, index);
    if (!value) {
      Value* places = b_.CreateGEP(element, table_global(position), index);
      value = b_.CreateMaskedGather(vector, places, align, mode_.mask,
                                    llvm::Constant::getNullValue(vector));
    }
    result.push_back(value);
  }
  set_varying(self, std::move(result));
}

// Null when the table does not fit in one or two registers of this loop's lanes.
llvm::Value* Emitter::permute_table(const kir::Table& table, Value* index) {
  int bits = kir::bits(table.type);
  auto lanes = static_cast<size_t>(mode_.lanes);
  bool whole = bits * mode_.lanes == target_.vector_bits;
  if (!whole || (bits != 32 && bits != 64) || table.bits.size() > 2 * lanes) return nullptr;
  bool one = table.bits.size() <= lanes;
  bool is_512 = target_.vector_bits == 512;
  if (!is_512 && !(target_.isa == Isa::kAvx2 && bits == 32 && one)) return nullptr;

  llvm::Type* real = bits == 32 ? b_.getFloatTy() : b_.getDoubleTy();
  auto* reals = llvm::FixedVectorType::get(real, static_cast<unsigned>(lanes));
  Value* low = b_.CreateBitCast(table_slice(table, 0, lanes), reals);
  if (bits == 64) {
    index = b_.CreateZExt(index, index->getType()->getWithNewBitWidth(64));
  }
  Value* result = nullptr;
  if (!is_512) {
    result = b_.CreateIntrinsic(ids::x86_avx2_permps, {}, {low, index});
  } else if (one) {
    auto id = bits == 32 ? ids::x86_avx512_permvar_sf_512 : ids::x86_avx512_permvar_df_512;
    result = b_.CreateIntrinsic(id, {}, {low, index});
  } else {
    Value* high = b_.CreateBitCast(table_slice(table, lanes, lanes), reals);
    auto id = bits == 32 ? ids::x86_avx512_vpermi2var_ps_512 : ids::x86_avx512_vpermi2var_pd_512;
    result = b_.CreateIntrinsic(id, {}, {low, index, high});
  }
  return b_.CreateBitCast(result, llvm::FixedVectorType::get(arithmetic_.type(table.type),
                                                             static_cast<unsigned>(lanes)));
}

}  // namespace tenon::codegen
