// The families of ops, and the table that all of them form.
#pragma once

#include <vector>

#include "tenon/ir/op_def.h"

namespace tenon::ops {

// Fills ir's table of ops. Idempotent and thread-safe; call it before parsing a graph, evaluating
// one, or asking ir::find_op for an op of these families.
void register_all();

std::vector<const ir::OpDef*> elementwise_ops();
std::vector<const ir::OpDef*> choice_ops();
std::vector<const ir::OpDef*> leaf_ops();
std::vector<const ir::OpDef*> reduce_ops();
std::vector<const ir::OpDef*> argreduce_ops();
std::vector<const ir::OpDef*> matmul_ops();
std::vector<const ir::OpDef*> movement_ops();
std::vector<const ir::OpDef*> reshape_ops();
std::vector<const ir::OpDef*> slicing_ops();
std::vector<const ir::OpDef*> slice_update_ops();
std::vector<const ir::OpDef*> joining_ops();
std::vector<const ir::OpDef*> indexing_ops();
std::vector<const ir::OpDef*> scatter_ops();
std::vector<const ir::OpDef*> scan_ops();
std::vector<const ir::OpDef*> sort_ops();
std::vector<const ir::OpDef*> random_ops();
std::vector<const ir::OpDef*> quantized_ops();

}  // namespace tenon::ops
