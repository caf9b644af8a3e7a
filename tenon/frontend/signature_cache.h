// Programs of one function by the signature of the calls that they serve: structure, static values,
// dtypes and sizes. Thread-safe and bounded; the program used least recently goes first.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "tenon/program/leaf.h"

namespace tenon {

class SignatureCache {
 public:
  explicit SignatureCache(size_t limit) : limit_(limit == 0 ? 1 : limit) {}

  // The program for calls like this one with results of `type`, or null.
  std::shared_ptr<const void> find(const program::Leaves& call, std::type_index type) const;
  // Keeps `program` unless an equal call's has been kept meanwhile; returns the one that is kept.
  std::shared_ptr<const void> insert(const program::Leaves& call, std::type_index type,
                                     std::shared_ptr<const void> program);
  size_t size() const;

 private:
  struct Entry {
    Entry(const program::Leaves& call, std::type_index type, std::shared_ptr<const void> program);
    bool matches(const program::Leaves& call, std::type_index type) const;
    struct Type {
      DType dtype;
      std::vector<int64_t> dims;
    };
    program::Structure structure;
    std::vector<program::StaticValue> statics;
    std::vector<Type> types;
    std::type_index result;
    std::shared_ptr<const void> program;
    mutable std::atomic<uint64_t> used{0};
  };
  const Entry* find_entry(uint64_t hash, const program::Leaves& call, std::type_index type) const;
  void evict();

  size_t limit_;
  mutable std::atomic<uint64_t> clock_{0};
  mutable std::shared_mutex mutex_;
  std::unordered_multimap<uint64_t, std::unique_ptr<Entry>> entries_;
};

}  // namespace tenon
