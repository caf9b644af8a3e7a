#include "tenon/pipelines/pretokenizer.h"

#include <algorithm>
#include <vector>

#include "tenon/base/utf8.h"
#include "tenon/pipelines/unicode.h"

namespace tenon::pipelines {
namespace {

// Code points as their classes, with the byte where each begins and one end mark.
struct Scan {
  std::string_view text;
  std::vector<CharKind> kinds;
  std::vector<size_t> starts;

  explicit Scan(std::string_view t) : text(t) {
    kinds.reserve(t.size());
    starts.reserve(t.size() + 1);
    for (size_t at = 0; at < t.size();) {
      CodePoint c = decode_utf8(t, at);
      starts.push_back(at);
      kinds.push_back(char_kind(c.value));
      at += std::max<size_t>(c.bytes, 1);
    }
    starts.push_back(t.size());
  }

  size_t size() const { return kinds.size(); }
  // The byte of a one-byte character; something above ASCII for any other.
  char ascii(size_t i) const { return text[starts[i]]; }
  bool is_newline(size_t i) const { return ascii(i) == '\r' || ascii(i) == '\n'; }
  size_t run_end(size_t i, size_t end) const {
    CharKind kind = kinds[i];
    while (i < end && kinds[i] == kind) ++i;
    return i;
  }
};

// Length of the English contraction at `i`, 0 for none.
size_t contraction(const Scan& scan, size_t i, size_t end, bool any_case) {
  if (scan.ascii(i) != '\'' || i + 1 >= end) return 0;
  auto letter = [&](size_t at) {
    char c = at < end ? scan.ascii(at) : '\0';
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  char a = letter(i + 1);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  char b = letter(i + 2);
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
  return 0;
}

// \s+(?!\S)|\s+ : all of a run that ends the text, else all but its last, which may lead the next
// word.
size_t space_end(size_t i, size_t run_end, size_t end) {
  return run_end < end && run_end - i > 1 ? run_end - 1 : run_end;
}

size_t gpt2_word(const Scan& scan, size_t i, size_t end) {
  if (size_t n = contraction(scan, i, end, false)) return i + n;
  size_t body = scan.ascii(i) == ' ' && i + 1 < end ? i + 1 : i;
  if (scan.kinds[body] != CharKind::kSpace) return scan.run_end(body, end);
  return space_end(i, scan.run_end(i, end), end);
}

size_t llama3_space_word(const Scan& scan, size_t i, size_t end) {
  size_t run = scan.run_end(i, end);
  for (size_t last = run; last > i; --last) {
    if (scan.is_newline(last - 1)) return last;
  }
  return space_end(i, run, end);
}

size_t llama3_word(const Scan& scan, size_t i, size_t end) {
  if (size_t n = contraction(scan, i, end, true)) return i + n;
  CharKind kind = scan.kinds[i];
  if (kind == CharKind::kLetter) return scan.run_end(i, end);
  if (kind == CharKind::kNumber) return std::min(scan.run_end(i, std::min(end, i + 3)), i + 3);
  if (!scan.is_newline(i) && i + 1 < end && scan.kinds[i + 1] == CharKind::kLetter) {
    return scan.run_end(i + 1, end);
  }
  size_t body = scan.ascii(i) == ' ' && i + 1 < end ? i + 1 : i;
  if (scan.kinds[body] == CharKind::kOther) {
    size_t stop = scan.run_end(body, end);
    while (stop < end && scan.is_newline(stop)) ++stop;
    return stop;
  }
  return llama3_space_word(scan, i, end);
}

}  // namespace

std::optional<Pretokenizer> pretokenizer_by_name(std::string_view name) {
  static constexpr struct {
    std::string_view name;
    Pretokenizer kind;
  } kNames[] = {
      {"command-r", Pretokenizer::kDigitsGpt2},
      {"falcon3", Pretokenizer::kLlama3},
      {"gpt-2", Pretokenizer::kGpt2},
      {"llama-bpe", Pretokenizer::kLlama3},
      {"llama-v3", Pretokenizer::kLlama3},
      {"llama3", Pretokenizer::kLlama3},
      {"mpt", Pretokenizer::kGpt2},
      {"olmo", Pretokenizer::kGpt2},
      {"phi-2", Pretokenizer::kGpt2},
      {"refact", Pretokenizer::kDigitsGpt2},
      {"smollm", Pretokenizer::kDigitsGpt2},
      {"starcoder", Pretokenizer::kDigitsGpt2},
  };
  for (const auto& entry : kNames) {
    if (entry.name == name) return entry.kind;
  }
  return std::nullopt;
}

void pretokenize(Pretokenizer kind, std::string_view text,
                 const std::function<void(std::string_view)>& word) {
  Scan scan(text);
  auto emit = [&](size_t from, size_t to) {
    word(text.substr(scan.starts[from], scan.starts[to] - scan.starts[from]));
  };
  auto stretch = [&](size_t from, size_t end) {
    while (from < end) {
      size_t to =
          kind == Pretokenizer::kLlama3 ? llama3_word(scan, from, end) : gpt2_word(scan, from, end);
      emit(from, to);
      from = to;
    }
  };
  if (kind != Pretokenizer::kDigitsGpt2) return stretch(0, scan.size());
  size_t from = 0;
  for (size_t i = 0; i < scan.size(); ++i) {
    if (scan.kinds[i] != CharKind::kNumber) continue;
    stretch(from, i);
    emit(i, i + 1);
    from = i + 1;
  }
  stretch(from, scan.size());
}

}  // namespace tenon::pipelines
