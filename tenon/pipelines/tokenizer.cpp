#include "tenon/pipelines/tokenizer.h"

#include <algorithm>
#include <queue>

#include "tenon/base/error.h"
#include "tenon/base/utf8.h"
#include "tenon/pipelines/bpe_tables.h"

namespace tenon::pipelines {
namespace {

// A piece of a word while it is merged: a list in an array, so a merge moves nothing.
struct Piece {
  int32_t id;
  int32_t previous;
  int32_t next;
};

struct Candidate {
  Merge merge;
  int32_t left;  // places in the array
  int32_t right;
  int32_t left_id;
  int32_t right_id;
  // The queue gives the largest: lowest rank, then leftmost.
  bool operator<(const Candidate& other) const {
    return merge.rank != other.merge.rank ? merge.rank > other.merge.rank : left > other.left;
  }
};

struct Occurrence {
  size_t begin;
  size_t end;
  int32_t id;
};

}  // namespace

Tokenizer::Tokenizer() : tables_(std::make_unique<Tables>()) {}
Tokenizer::~Tokenizer() = default;

void Tokenizer::check_id(int32_t id) const {
  if (id < 0 || id >= size()) {
    throw IndexError(
        fmt::format("tokenizer: id {} is outside the vocabulary of {} tokens", id, size()));
  }
}

std::string_view Tokenizer::bytes(int32_t id) const {
  check_id(id);
  return tables_->bytes(id);
}

TokenType Tokenizer::type(int32_t id) const {
  check_id(id);
  return types_[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::find(std::string_view text) const { return tables_->find(text); }

bool Tokenizer::is_end_of_generation(int32_t id) const {
  return std::binary_search(end_of_generation_.begin(), end_of_generation_.end(), id);
}

void Tokenizer::encode_word(std::string_view word, std::vector<int32_t>& out) const {
  if (whole_words_) {
    auto id = tables_->find(word);
    if (id && type(*id) == TokenType::kNormal) return out.push_back(*id);
  }
  std::vector<Piece> pieces(word.size());
  std::priority_queue<Candidate> queue;
  auto offer = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return;
    const Piece& a = pieces[static_cast<size_t>(left)];
    const Piece& b = pieces[static_cast<size_t>(right)];
    if (const Merge* merge = tables_->find_merge(a.id, b.id)) {
      queue.push({*merge, left, right, a.id, b.id});
    }
  };
  const auto count = static_cast<int32_t>(word.size());
  for (int32_t i = 0; i < count; ++i) {
    pieces[static_cast<size_t>(i)] = {
        tables_->byte_ids[static_cast<uint8_t>(word[static_cast<size_t>(i)])], i - 1,
        i + 1 < count ? i + 1 : -1};
    offer(i - 1, i);
  }
  while (!queue.empty()) {
    Candidate best = queue.top();
    queue.pop();
    Piece& left = pieces[static_cast<size_t>(best.left)];
    Piece& right = pieces[static_cast<size_t>(best.right)];
    // An earlier merge may have taken one of the two.
    if (left.next != best.right || left.id != best.left_id || right.id != best.right_id) continue;
    left.id = best.merge.merged;
    left.next = right.next;
    right.id = -1;
    right.next = -1;
    if (left.next >= 0) pieces[static_cast<size_t>(left.next)].previous = best.left;
    offer(left.previous, best.left);
    offer(best.left, left.next);
  }
  for (int32_t i = count > 0 ? 0 : -1; i >= 0; i = pieces[static_cast<size_t>(i)].next) {
    if (pieces[static_cast<size_t>(i)].id >= 0) out.push_back(pieces[static_cast<size_t>(i)].id);
  }
}

void Tokenizer::encode_plain(std::string_view text, std::vector<int32_t>& out) const {
  pretokenize(pretokenizer_, text, [&](std::string_view word) { encode_word(word, out); });
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > INT32_MAX / 4) {
    throw ValueError(fmt::format("tokenizer: a text of {} bytes is too long", text.size()));
  }
  std::string replaced;
  if (!is_utf8(text)) {
    replaced = replace_invalid_utf8(text);
    text = replaced;
  }
  // Longer special tokens win over shorter ones wherever they overlap, then the leftmost.
  const Tables::Specials& specials =
      options.parse_special ? tables_->with_control : tables_->user_defined;
  std::vector<Occurrence> found;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!specials.begins[static_cast<uint8_t>(text[at])]) continue;
    for (size_t length : specials.lengths) {
      if (length > text.size() - at) continue;
      std::optional<int32_t> id = tables_->find(text.substr(at, length));
      if (!id) continue;
      TokenType kind = types_[static_cast<size_t>(*id)];
      bool control = kind == TokenType::kControl || kind == TokenType::kUnknown;
      if (kind == TokenType::kUserDefined || (control && options.parse_special)) {
        found.push_back({at, at + length, *id});
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const Occurrence& a, const Occurrence& b) {
    size_t la = a.end - a.begin;
    size_t lb = b.end - b.begin;
    if (la != lb) return la > lb;
    return a.id != b.id ? a.id < b.id : a.begin < b.begin;
  });
  std::vector<bool> taken(found.empty() ? 0 : text.size());
  std::erase_if(found, [&](const Occurrence& o) {
    auto first = taken.begin() + static_cast<std::ptrdiff_t>(o.begin);
    auto last = taken.begin() + static_cast<std::ptrdiff_t>(o.end);
    if (std::find(first, last, true) != last) return true;
    std::fill(first, last, true);
    return false;
  });
  std::sort(found.begin(), found.end(),
            [](const Occurrence& a, const Occurrence& b) { return a.begin < b.begin; });

  std::vector<int32_t> out;
  if (options.add_special && add_bos_) out.push_back(*bos_);
  size_t from = 0;
  for (const Occurrence& special : found) {
    encode_plain(text.substr(from, special.begin - from), out);
    out.push_back(special.id);
    from = special.end;
  }
  encode_plain(text.substr(from), out);
  if (options.add_special && add_eos_) out.push_back(*eos_);
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool show_special) const {
  std::string out;
  for (int32_t id : ids) {
    std::string_view text = bytes(id);
    switch (types_[static_cast<size_t>(id)]) {
      case TokenType::kUnknown:
      case TokenType::kControl:
        if (show_special) out += text;
        break;
      case TokenType::kUnused: break;
      default: out += text; break;
    }
  }
  return out;
}

std::string TextStream::push(int32_t id) {
  pending_ += tokenizer_->decode(std::span(&id, 1), show_special_);
  size_t ready = pending_.size() - incomplete_utf8_tail(pending_);
  std::string out = replace_invalid_utf8(std::string_view(pending_).substr(0, ready));
  pending_.erase(0, ready);
  return out;
}

std::string TextStream::finish() {
  std::string out = replace_invalid_utf8(pending_);
  pending_.clear();
  return out;
}

}  // namespace tenon::pipelines
