// A few ops for tests of the graph itself, registered on first use.
#pragma once

#include <random>

#include "tenon/ir/op_def.h"

namespace tenon::ir_test {

extern const ir::OpDef kPlus;   // t_plus: two operands of one type
extern const ir::OpDef kTurn;   // t_turn: every kind of attribute, result as the operand
extern const ir::OpDef kSplit;  // t_split: one operand, two results of its type
extern const ir::OpDef kSum;    // t_sum: drops the first dimension, result f32
void register_sample_ops();

ir::TensorType tensor(DType dtype, Shape shape);
// A graph over these ops, calls, constants of all dtypes and symbolic shapes.
ir::GraphPtr random_graph(std::mt19937_64& random, int nodes);
// A graph with the given parameters and results; names are arg0, arg1, …
ir::GraphPtr graph_of(std::string name, std::vector<ir::Value> params,
                      std::vector<ir::Value> results);

}  // namespace tenon::ir_test
