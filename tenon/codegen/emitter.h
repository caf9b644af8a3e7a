// One kernel as one LLVM function. Loops marked `vector` are widened: a value that differs between
// lanes is held as `interleave` vectors of `lanes` elements, every other value as a scalar.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "tenon/codegen/arithmetic.h"
#include "tenon/codegen/divergence.h"
#include "tenon/codegen/vector_plan.h"
#include "tenon/kir/kernel.h"

namespace tenon::codegen {

class Emitter {
 public:
  Emitter(llvm::Module& module, const Target& target, const kir::Kernel& kernel);

  // Adds the kernel to the module as a function of type abi::KernelFn.
  void emit(const std::string& function_name);

 private:
  using Value = llvm::Value;
  using Values = llvm::SmallVector<Value*, 4>;

  // How a kir value is held where it is used.
  struct Held {
    Spread spread = Spread::kUniform;
    Values parts;             // kVarying: vectors; else one scalar, for kAffine that of lane 0
    Value* stride = nullptr;  // kAffine
  };

  // The shape of the code being emitted: scalar outside vector loops and in scalar remainders.
  struct Mode {
    int lanes = 0;  // 0: scalar
    int parts = 1;
    Value* mask = nullptr;                   // active lanes; null: all. Only with one part
    const Divergence* divergence = nullptr;  // of the vector loop around
    bool inside_vector_loop = false;
    kir::Val var = nullptr;  // of the vector loop around
    VectorPlan::Ahead ahead = {};
  };
  // Restores the mode at the end of a scope.
  class ModeScope;

  // emitter.cpp
  void begin_function(const std::string& name);
  void emit_block(const kir::Block& block);
  void emit_inst(const kir::Inst& inst);
  void emit_pure(const kir::Inst& inst);
  bool emit_affine(const kir::Inst& inst);
  void emit_check(const kir::Inst& inst);
  void emit_any(const kir::Inst& inst);
  void emit_if(const kir::Inst& inst);
  llvm::Constant* index(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }

  const Held& held(kir::Val value) const;
  void set_uniform(kir::Val value, Value* scalar);
  void set_varying(kir::Val value, Values parts);
  Value* uniform(kir::Val value, const char* what) const;
  // The value as vectors, one a part: uniform ones repeated, affine ones computed.
  Values vectors(kir::Val value);
  Values vectors(const Held& held);
  Value* splat(Value* scalar);
  // 0, 1, … lanes-1, plus `first`, each times `stride`.
  llvm::Constant* iota(llvm::Type* element, int64_t first, int64_t stride);
  Value* any_active(const Values& conditions);

  // emit_memory.cpp, emit_load.cpp, emit_store.cpp
  struct Address {
    Held index;              // without its constant part
    int64_t offset = 0;      // the constant part, in elements
    Value* moved = nullptr;  // of a varying index: what is the same in all lanes, not in `index`
    uint32_t buffer = 0;
    llvm::Type* value = nullptr;  // what is read or written there
    int64_t step = 1;             // elements from one value to the next
  };
  void emit_load(const kir::Inst& inst);
  void emit_load_if_uniform(const kir::Inst& inst);
  void emit_store(const kir::Inst& inst);
  void emit_prefetch(const kir::Inst& inst);
  Held load(const Address& address, const Values* predicate, const Values* other);
  Held load_uniform(const Address& address, const Values* predicate, const Values* other);
  Values load_contiguous(const Address& address, bool reversed, const Values* predicate,
                         const Values* other);
  Values gather(const Address& address, const Values* predicate, const Values* other);
  void prefetch_ahead(const kir::Inst& load, const Address& address);
  // LLVM's names for the caches.
  static constexpr uint32_t kIntoFirstCache = 3, kIntoSecondCache = 2;
  void prefetch_line(Value* pointer, uint32_t locality = kIntoFirstCache);
  void store(const Address& address, kir::Val value, const Values* predicate, bool streaming);
  void store_contiguous(const Address& address, bool reversed, Values values,
                        const Values* predicate, bool streaming);
  void either_way(Value* condition, const std::function<void(bool)>& emit);
  void store_streaming(const Address& address, const Values& values);
  void set_streaming(llvm::Instruction* store);
  void scatter(const Address& address, const Values& values, const Values* predicate);
  Address address_of(const kir::Inst& inst);
  // Constant element stride of consecutive lanes; nullopt when not known.
  std::optional<int64_t> stride_of(const Address& address) const;
  Value* scalar_pointer(const Address& address, int64_t more);
  Value* lane_pointers(const Address& address, int part);
  Value* lane_mask(const Values* predicate, int part, bool reversed);
  Value* reverse(Value* vector);
  llvm::Type* memory_type(uint32_t buffer) const;  // one element
  llvm::Align alignment(uint32_t buffer) const;
  llvm::Instruction* tag(llvm::Instruction* access, uint32_t buffer) const;
  Value* from_memory(Value* loaded, uint32_t buffer);
  Value* to_memory(Value* value, uint32_t buffer);

  // emit_panel.cpp
  struct Panel;
  void emit_panel_dot(const kir::Inst& inst);
  void emit_panel_groups(const Panel& panel);
  Value* left_word(const kir::PanelDot& spec, Value* w);
  void emit_panel_vectors(const Panel& panel, int64_t first, int64_t rows, int64_t column,
                          int vectors);
  void emit_panel_tiles(const Panel& panel);
  void store_panel_sum(Value* sum, Value* place, Value* add);
  void configure_tiles(llvm::Instruction* before);

  // emit_transpose.cpp
  struct Turn;
  void emit_transpose(const kir::Inst& inst);
  void turn_square(const Turn& turn, Value* row, Value* column, Value* rows, Value* columns);
  void turn_by_element(const Turn& turn, Value* first_row, Value* last_row, Value* first_column,
                       Value* last_column);
  Values turned(const Turn& turn, Values lines);

  // emit_table.cpp
  void emit_table(const kir::Inst& inst);
  llvm::GlobalVariable* table_global(size_t table);
  llvm::Constant* table_slice(const kir::Table& table, size_t first, size_t count) const;
  Value* permute_table(const kir::Table& table, Value* index);

  // emit_loops.cpp
  using LoopBody = std::function<Values(Value* var, const Values& carried)>;
  // for (var = lo; var < hi; var += step); returns the carried values at the end.
  Values counted_loop(Value* lo, Value* hi, int64_t step, const Values& init, const LoopBody& body,
                      bool rare = false);
  void emit_for(const kir::Inst& inst);
  void emit_serial_loop(const kir::Inst& inst);
  void emit_vector_loop(const kir::Inst& inst);
  Values vector_body(const kir::Inst& inst, Value* var, const Values& carried);
  Values vector_section(const kir::Inst& inst, Value* lo, Value* hi, const Values& carried,
                        bool masked);
  Values neutral_values(const kir::Loop& loop);
  Values fold_parts(const kir::Loop& loop, const Values& carried, int parts);
  Values fold_lanes(const kir::Loop& loop, const Values& carried);
  Value* remaining_mask(Value* var, Value* hi);

  llvm::Module& module_;
  const Target& target_;
  const kir::Kernel& kernel_;
  llvm::IRBuilder<> b_;
  Arithmetic arithmetic_;
  llvm::Function* function_ = nullptr;
  Value* begin_ = nullptr;
  Value* end_ = nullptr;
  Value* status_ = nullptr;
  Values buffers_;
  Values dims_;
  std::vector<llvm::MDNode*> own_scope_;     // per buffer; the last one: everything else
  std::vector<llvm::MDNode*> other_scopes_;  // all the others
  std::vector<llvm::GlobalVariable*> tables_;
  std::unordered_map<const kir::Inst*, Held> held_;
  Mode mode_;
  bool wrote_past_caches_ = false;
  bool uses_tiles_ = false;
};

class Emitter::ModeScope {
 public:
  ModeScope(Emitter& emitter, Mode mode) : emitter_(emitter), saved_(emitter.mode_) {
    emitter_.mode_ = mode;
  }
  ~ModeScope() { emitter_.mode_ = saved_; }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  Emitter& emitter_;
  Mode saved_;
};

}  // namespace tenon::codegen
