// From LLVM's relocatable ELF object to a position-independent image.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tenon/codegen/codegen.h"

namespace tenon::codegen {

// Lays out the code and read-only data sections of `object` one after another (each at its own
// alignment, at most 64 bytes), applies every relocation between them, and finds the named
// functions. Raises InternalError for writable data, an undefined symbol, an absolute address or a
// relocation kind that is not known: such an image could not be mapped read-and-execute at any
// address.
Image layout_image(std::span<const std::byte> object, std::span<const std::string> entries);

}  // namespace tenon::codegen
