// Tenon's public face: tensors, compiled functions, shared bodies, layouts, saved programs.
#pragma once

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/frontend/index.h"
#include "tenon/frontend/layer.h"
#include "tenon/frontend/layout.h"
#include "tenon/frontend/nn.h"
#include "tenon/frontend/quantized.h"
#include "tenon/frontend/random.h"
#include "tenon/frontend/subgraph.h"
#include "tenon/frontend/tensor.h"
#include "tenon/runtime.h"
