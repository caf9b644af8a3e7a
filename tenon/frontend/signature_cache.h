// Programs of one function by the signature of the calls that they serve: structure, static values,
// dtypes and sizes. Thread-safe and bounded; the program used least recently goes first.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "tenon/program/signature.h"

namespace tenon {

class SignatureCache {
 public:
  explicit SignatureCache(size_t limit);

  // The program for calls like this one with results of `type`, or null. A call like one of the
  // thread's last four takes no lock and hashes nothing: it is compared with their signatures.
  std::shared_ptr<const void> find(const program::Leaves& call, std::type_index type) const;
  // Keeps `program` unless an equal call's has been kept meanwhile; returns the one that is kept.
  std::shared_ptr<const void> insert(const program::Leaves& call, std::type_index type,
                                     std::shared_ptr<const void> program,
                                     std::shared_ptr<const program::Signature> signature);
  // Why no program serves this call: the first check of signature.h that it fails against the
  // program that it comes closest to. One line; empty when nothing is kept.
  //   step: argument x: expected f32[4], got f32[5]: dimension 0 is 4, got 5 [argument_dim]
  std::string why_missed(const program::Leaves& call) const;
  size_t size() const;

 private:
  struct Entry {
    Entry(const program::Leaves& call, std::type_index type, std::shared_ptr<const void> program,
          std::shared_ptr<const program::Signature> signature);
    bool matches(const program::Leaves& call, std::type_index type) const;
    // How many of a call's checks hold, one after another.
    size_t agreement(const program::Leaves& call) const;
    struct Type {
      DType dtype;
      Dims dims;
    };
    program::Structure structure;
    std::vector<program::StaticValue> statics;
    std::vector<Type> types;
    std::type_index result;
    std::shared_ptr<const void> program;
    std::shared_ptr<const program::Signature> signature;
    mutable std::atomic<uint64_t> used{0};
  };
  using EntryPtr = std::shared_ptr<const Entry>;
  // What a thread found last in a cache, newest first.
  struct Recent {
    uint64_t cache = 0;
    std::array<std::weak_ptr<const Entry>, 4> entries;
  };
  Recent* recent() const;  // null when the thread's objects are gone
  EntryPtr find_recent(Recent& recent, const program::Leaves& call, std::type_index type) const;
  EntryPtr find_entry(uint64_t hash, const program::Leaves& call, std::type_index type) const;
  EntryPtr used_now(EntryPtr entry) const;
  void evict();

  const uint64_t id_;  // never another cache's
  size_t limit_;
  mutable std::atomic<uint64_t> clock_{0};
  mutable std::shared_mutex mutex_;
  std::unordered_multimap<uint64_t, EntryPtr> entries_;
};

}  // namespace tenon
