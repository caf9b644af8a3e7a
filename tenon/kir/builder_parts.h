// What the files of Builder share: the block that it stands in, and an instruction to come.
#pragma once

#include <bit>
#include <map>
#include <vector>

#include "tenon/kir/builder.h"

namespace tenon::kir {

struct Builder::Scope {
  Block* block = nullptr;
  uint64_t serial = 0;
  bool conditional = false;  // the body of an if
  bool vector = false;       // the body of a vector loop
  bool rare = false;         // the body of a rare loop
  std::map<std::vector<uint64_t>, Val> known;
};

struct Builder::Proto {
  Op op;
  Type type;
  std::vector<Val> args = {};
  Pred pred = Pred::kEq;
  uint32_t buffer = 0;
  int64_t imm_int = 0;
  double imm_float = 0;
  bool streaming = false;

  std::vector<uint64_t> key() const {
    std::vector<uint64_t> k = {static_cast<uint64_t>(op),      static_cast<uint64_t>(type),
                               static_cast<uint64_t>(pred),    buffer,
                               static_cast<uint64_t>(imm_int), std::bit_cast<uint64_t>(imm_float)};
    for (Val arg : args) k.push_back(arg->id);
    return k;
  }
};

}  // namespace tenon::kir
