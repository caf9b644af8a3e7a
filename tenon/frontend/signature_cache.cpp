#include "tenon/frontend/signature_cache.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>

#include "tenon/base/error.h"
#include "tenon/base/of_thread.h"

namespace tenon {
namespace {

uint64_t mix(uint64_t h, uint64_t value) {
  h = (h ^ value) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}

// Texts enter by length and first and last bytes: equality decides, and a call hashes no strings.
uint64_t mix_text(uint64_t h, std::string_view text) {
  h = mix(h, text.size());
  if (text.empty()) return h;
  return mix(h, static_cast<uint64_t>(static_cast<unsigned char>(text.front())) << 8 |
                    static_cast<unsigned char>(text.back()));
}

uint64_t hash_call(const program::Leaves& call) {
  uint64_t h = call.tokens.size();
  for (const program::Token& token : call.tokens) {
    h = mix(h, static_cast<uint64_t>(token.kind) << 32 | token.count);
    if (!token.text.empty()) h = mix_text(h, token.text);
  }
  for (const program::Leaf& leaf : call.leaves) {
    if (leaf.array != nullptr) {
      h = mix(h, static_cast<uint64_t>(leaf.array->dtype()));
      for (int64_t dim : leaf.array->dims()) h = mix(h, static_cast<uint64_t>(dim));
    } else {
      h = mix(h, static_cast<uint64_t>(leaf.value.bits));
      if (!leaf.value.text.empty()) h = mix_text(h, leaf.value.text);
    }
  }
  return h;
}

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

SignatureCache::SignatureCache(size_t limit) : id_(next_id()), limit_(limit == 0 ? 1 : limit) {}

SignatureCache::Entry::Entry(const program::Leaves& call, std::type_index type,
                             std::shared_ptr<const void> kept,
                             std::shared_ptr<const program::Signature> guards)
    : structure(call.tokens), result(type), program(std::move(kept)), signature(std::move(guards)) {
  for (const program::Leaf& leaf : call.leaves) {
    if (leaf.array != nullptr) {
      types.push_back({leaf.array->dtype(), leaf.array->dims()});
    } else {
      statics.emplace_back(leaf.value);
    }
  }
}

bool SignatureCache::Entry::matches(const program::Leaves& call, std::type_index type) const {
  if (result != type || !structure.matches(call.tokens)) return false;
  size_t next_static = 0;
  size_t next_type = 0;
  for (const program::Leaf& leaf : call.leaves) {
    if (leaf.array != nullptr) {
      const Type& wanted = types[next_type++];
      if (wanted.dtype != leaf.array->dtype() || wanted.dims != leaf.array->dims()) return false;
    } else if (!(statics[next_static++].view() == leaf.value)) {
      return false;
    }
  }
  return true;
}

size_t SignatureCache::Entry::agreement(const program::Leaves& call) const {
  if (!structure.matches(call.tokens)) return 0;
  size_t holds = 1;
  size_t next_static = 0;
  for (const program::Leaf& leaf : call.leaves) {
    if (leaf.array != nullptr) continue;
    if (!(statics[next_static++].view() == leaf.value)) return holds;
    ++holds;
  }
  size_t next_type = 0;
  for (const program::Leaf& leaf : call.leaves) {
    if (leaf.array == nullptr) continue;
    const Type& wanted = types[next_type++];
    if (wanted.dtype != leaf.array->dtype() || wanted.dims.size() != leaf.array->rank()) break;
    ++holds;
    if (wanted.dims != leaf.array->dims()) break;
    ++holds;
  }
  return holds;
}

std::string SignatureCache::why_missed(const program::Leaves& call) const {
  std::shared_ptr<const program::Signature> nearest;
  {
    std::shared_lock lock(mutex_);
    size_t best = 0;
    uint64_t newest = 0;
    for (const auto& item : entries_) {
      const size_t agreement = item.second->agreement(call);
      const uint64_t used = item.second->used;
      const bool nearer = agreement > best || (agreement == best && used >= newest);
      if (nearest != nullptr && !nearer) continue;
      nearest = item.second->signature;
      best = agreement;
      newest = used;
    }
  }
  if (nearest == nullptr) return "";
  try {
    std::vector<runtime::Array> arrays;
    nearest->check(call, arrays);
  } catch (const Error& error) {
    return fmt::format("{} [{}]", error.message(), error.parts().label);
  }
  return fmt::format("{}: called with other C++ types, and so with another type of result",
                     nearest->function);
}

SignatureCache::EntryPtr SignatureCache::find_entry(uint64_t hash, const program::Leaves& call,
                                                    std::type_index type) const {
  auto [begin, end] = entries_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second->matches(call, type)) return it->second;
  }
  return nullptr;
}

SignatureCache::EntryPtr SignatureCache::used_now(EntryPtr entry) const {
  entry->used.store(clock_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  return entry;
}

SignatureCache::Recent* SignatureCache::recent() const {
  using Recents = std::array<Recent, 8>;  // of as many functions that a thread calls in turn
  Recents* recents = of_thread<Recents>();
  return recents == nullptr ? nullptr : &(*recents)[id_ % recents->size()];
}

SignatureCache::EntryPtr SignatureCache::find_recent(Recent& recent, const program::Leaves& call,
                                                     std::type_index type) const {
  if (recent.cache != id_) return nullptr;
  for (auto at = recent.entries.begin(); at != recent.entries.end(); ++at) {
    EntryPtr entry = at->lock();
    if (entry == nullptr || !entry->matches(call, type)) continue;
    std::rotate(recent.entries.begin(), at, at + 1);
    return entry;
  }
  return nullptr;
}

std::shared_ptr<const void> SignatureCache::find(const program::Leaves& call,
                                                 std::type_index type) const {
  Recent* last = recent();
  EntryPtr entry = last == nullptr ? nullptr : find_recent(*last, call, type);
  if (entry == nullptr) {
    const uint64_t hash = hash_call(call);
    std::shared_lock lock(mutex_);
    entry = find_entry(hash, call, type);
    if (entry == nullptr) return nullptr;
    if (last != nullptr) {
      if (last->cache != id_) *last = {id_, {}};
      std::rotate(last->entries.begin(), last->entries.end() - 1, last->entries.end());
      last->entries[0] = entry;
    }
  }
  return used_now(std::move(entry))->program;
}

std::shared_ptr<const void> SignatureCache::insert(
    const program::Leaves& call, std::type_index type, std::shared_ptr<const void> program,
    std::shared_ptr<const program::Signature> signature) {
  const uint64_t hash = hash_call(call);
  std::unique_lock lock(mutex_);
  if (EntryPtr entry = find_entry(hash, call, type)) return used_now(std::move(entry))->program;
  if (entries_.size() >= limit_) evict();
  auto entry = std::make_shared<const Entry>(call, type, program, std::move(signature));
  entries_.emplace(hash, used_now(std::move(entry)));
  return program;
}

void SignatureCache::evict() {
  auto oldest = entries_.begin();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->second->used < oldest->second->used) oldest = it;
  }
  entries_.erase(oldest);
}

size_t SignatureCache::size() const {
  std::shared_lock lock(mutex_);
  return entries_.size();
}

}  // namespace tenon
