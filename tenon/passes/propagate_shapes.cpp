#include "tenon/passes/propagate_shapes.h"

#include "tenon/ir/op_def.h"
#include "tenon/ir/rewrite.h"
#include "tenon/ops/ops.h"

namespace tenon::passes {

ir::GraphPtr propagate_shapes(const ir::GraphPtr& graph) {
  return ir::rewrite(graph,
                     [](const ir::Node& node,
                        std::span<const ir::Value>) -> std::optional<std::vector<ir::Value>> {
                       if (node.op != &ops::op::size) return std::nullopt;
                       const Shape& dims = node.attrs.shape("dims");
                       if (!product(dims).is_static()) return std::nullopt;
                       return {{ops::size({product(dims)}, node.types[0].dtype, node.location)}};
                     });
}

}  // namespace tenon::passes
