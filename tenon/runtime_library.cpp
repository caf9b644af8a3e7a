// The run-time library is the layers up to program; this file only proves that its header stands
// alone.
#include "tenon/runtime.h"
