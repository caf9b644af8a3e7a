// Inside of the tokeniser: token bytes, and hash tables from bytes to ids and from pairs of ids to
// merges. Only tokenizer*.cpp include this.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/pipelines/tokenizer.h"

namespace tenon::pipelines {

struct Merge {
  int32_t rank;
  int32_t merged;
};

// Open addressing over a table at most half full.
template <class Entry>
class FlatTable {
 public:
  void reserve(size_t entries) {
    size_t slots = 16;
    while (slots < 2 * entries) slots *= 2;
    slots_.assign(slots, Entry{});
  }
  // The slot that holds the key or would.
  template <class Same>
  Entry& slot(uint64_t hash, const Same& same) {
    return const_cast<Entry&>(std::as_const(*this).slot(hash, same));
  }
  template <class Same>
  const Entry& slot(uint64_t hash, const Same& same) const {
    size_t at = (hash ^ hash >> 32) & (slots_.size() - 1);
    while (slots_[at].used() && !same(slots_[at])) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }

 private:
  std::vector<Entry> slots_ = std::vector<Entry>(16);
};

struct Tokenizer::Tables {
  // Bytes of token i: arena[starts[i], starts[i + 1]).
  std::string arena;
  std::vector<size_t> starts = {0};

  struct IdEntry {
    int32_t id = -1;
    bool used() const { return id >= 0; }
  };
  struct MergeEntry {
    uint64_t pair = ~uint64_t{0};
    Merge merge = {0, 0};
    bool used() const { return pair != ~uint64_t{0}; }
  };
  FlatTable<IdEntry> ids;
  FlatTable<MergeEntry> merges;
  std::array<int32_t, 256> byte_ids;

  // Tokens that are cut out of the text: their first bytes and, longest first, their lengths.
  struct Specials {
    std::array<bool, 256> begins{};
    std::vector<size_t> lengths;
  };
  Specials user_defined;
  Specials with_control;

  std::string_view bytes(int32_t id) const {
    auto i = static_cast<size_t>(id);
    return std::string_view(arena).substr(starts[i], starts[i + 1] - starts[i]);
  }
  std::optional<int32_t> find(std::string_view text) const {
    const IdEntry& entry =
        ids.slot(hash(text), [&](const IdEntry& e) { return bytes(e.id) == text; });
    return entry.used() ? std::optional<int32_t>(entry.id) : std::nullopt;
  }
  // False when the text has an id already.
  bool insert(int32_t id) {
    std::string_view text = bytes(id);
    IdEntry& entry = ids.slot(hash(text), [&](const IdEntry& e) { return bytes(e.id) == text; });
    if (entry.used()) return false;
    entry.id = id;
    return true;
  }
  static uint64_t pair_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }
  const Merge* find_merge(int32_t left, int32_t right) const {
    if (left < 0 || right < 0) return nullptr;
    uint64_t pair = pair_of(left, right);
    const MergeEntry& entry =
        merges.slot(pair * kMix, [&](const MergeEntry& e) { return e.pair == pair; });
    return entry.used() ? &entry.merge : nullptr;
  }
  // The first merge of a pair stays.
  void insert_merge(int32_t left, int32_t right, Merge merge) {
    uint64_t pair = pair_of(left, right);
    MergeEntry& entry =
        merges.slot(pair * kMix, [&](const MergeEntry& e) { return e.pair == pair; });
    if (!entry.used()) entry = {pair, merge};
  }

 private:
  static constexpr uint64_t kMix = 0x9e3779b97f4a7c15ull;
  static uint64_t hash(std::string_view text) {
    uint64_t h = text.size();
    for (char c : text) h = (h ^ static_cast<uint8_t>(c)) * kMix;
    return h;
  }
};

}  // namespace tenon::pipelines
