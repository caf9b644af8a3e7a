// Where the writer puts constants: small ones inside the tables, the others into sections, each
// distinct content once.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tenon/base/hash.h"
#include "tenon/base/literal.h"

namespace tenon::program {

inline constexpr size_t kInsideBytes = 256;                  // stored inside the tables up to here
inline constexpr size_t kOwnSectionBytes = size_t{1} << 16;  // in a section of its own from here

struct ConstantPlace {
  uint32_t section = 0;
  uint64_t offset = 0;
};

// Section 0 is the shared one; the others follow in the order in which they were made.
class ConstantPool {
 public:
  ConstantPlace place(const Literal& literal) {
    Digest digest = hash_bytes(literal.span());
    auto [it, added] = places_.try_emplace(digest);
    if (!added) return it->second;
    if (literal.bytes() >= kOwnSectionBytes) {
      own_.push_back(literal);
      it->second = {static_cast<uint32_t>(own_.size()), 0};
    } else {
      it->second = {0, shared_.size()};
      shared_.insert(shared_.end(), literal.span().begin(), literal.span().end());
      shared_.resize((shared_.size() + 63) / 64 * 64);
    }
    return it->second;
  }

  const std::vector<std::byte>& shared() const { return shared_; }
  const std::vector<Literal>& own() const { return own_; }

 private:
  std::map<Digest, ConstantPlace> places_;
  std::vector<std::byte> shared_;
  std::vector<Literal> own_;
};

}  // namespace tenon::program
