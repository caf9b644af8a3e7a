// What this machine can do, the yardsticks of the benchmark table: copying into reused memory,
// reading, and multiply-adds, on every CPU that the process may use. Prints one JSON array; names
// of limits as arguments choose.
#include <fmt/format.h>
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Timing {
  double min = 0;
  double median = 0;
};

// Runs work(thread) on `threads` threads that start together; milliseconds of `repeats` runs.
Timing time_together(int threads, int repeats, const std::function<void(int)>& work) {
  std::atomic<int> round = 0;
  std::atomic<int> done = 0;
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) {
    others.emplace_back([&, t] {
      for (int r = 1; r <= repeats; ++r) {
        while (round.load(std::memory_order_acquire) < r) _mm_pause();
        work(t);
        done.fetch_add(1, std::memory_order_release);
      }
    });
  }
  std::vector<double> times;
  for (int r = 1; r <= repeats; ++r) {
    done.store(0, std::memory_order_relaxed);
    const auto begin = Clock::now();
    round.store(r, std::memory_order_release);
    work(0);
    while (done.load(std::memory_order_acquire) < threads - 1) _mm_pause();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  for (std::thread& other : others) other.join();
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

struct Range {
  size_t begin;
  size_t size;
};

Range part_of(size_t bytes, int thread, int threads) {
  const size_t step = bytes / threads / 64 * 64;
  const size_t begin = step * thread;
  return {begin, thread == threads - 1 ? bytes - begin : step};
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<char, Free>;

Buffer touched(size_t bytes) {
  const size_t size = (bytes + 63) / 64 * 64;
  Buffer buffer(static_cast<char*>(std::aligned_alloc(64, size)));
  std::memset(buffer.get(), 1, size);
  return buffer;
}

void copy_streaming(char* to, const char* from, size_t bytes) {
  for (size_t i = 0; i + 16 <= bytes; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
  _mm_sfence();
}

int64_t read_all(const char* from, size_t bytes) {
  const auto* words = reinterpret_cast<const int64_t*>(from);
  int64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= bytes / 8; i += 8) {
    for (int k = 0; k < 8; ++k) sums[k] += words[i + k];
  }
  int64_t sum = 0;
  for (int64_t s : sums) sum += s;
  return sum;
}

constexpr int kFmaSteps = 4'000'000;
constexpr int kAccumulators = 12;

__attribute__((target("avx512f"))) float fma_avx512() {
  __m512 sums[kAccumulators];
  const __m512 a = _mm512_set1_ps(0.999f);
  const __m512 b = _mm512_set1_ps(0.001f);
  for (__m512& s : sums) s = _mm512_setzero_ps();
  for (int i = 0; i < kFmaSteps; ++i) {
    for (__m512& s : sums) s = _mm512_fmadd_ps(s, a, b);
  }
  for (int k = 1; k < kAccumulators; ++k) sums[0] = _mm512_add_ps(sums[0], sums[k]);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"))) float fma_avx2() {
  __m256 sums[kAccumulators];
  const __m256 a = _mm256_set1_ps(0.999f);
  const __m256 b = _mm256_set1_ps(0.001f);
  for (__m256& s : sums) s = _mm256_setzero_ps();
  for (int i = 0; i < kFmaSteps; ++i) {
    for (__m256& s : sums) s = _mm256_fmadd_ps(s, a, b);
  }
  for (int k = 1; k < kAccumulators; ++k) sums[0] = _mm256_add_ps(sums[0], sums[k]);
  return _mm256_cvtss_f32(sums[0]);
}

std::atomic<double> sink = 0;  // keeps results alive

class Report {
 public:
  void add(const std::string& name, const std::string& unit, double best, double median,
           const std::string& notes) {
    text_ += fmt::format(
        R"({}{{"name": "{}", "unit": "{}", "min": {:.6g}, "median": {:.6g}, "notes": "{}"}})",
        text_.empty() ? "" : ",\n ", name, unit, best, median, notes);
  }
  void print() const { fmt::print("[{}]\n", text_); }

 private:
  std::string text_;
};

void report_copies(Report& report, const std::string& name, size_t bytes, int threads) {
  const Buffer from = touched(bytes);
  const Buffer to = touched(bytes);
  const int repeats = bytes > 200'000'000 ? 9 : 25;
  const auto run = [&](auto copy) {
    return time_together(threads, repeats, [&](int thread) {
      const Range part = part_of(bytes, thread, threads);
      copy(to.get() + part.begin, from.get() + part.begin, part.size);
    });
  };
  const Timing plain = run([](char* t, const char* f, size_t n) { std::memcpy(t, f, n); });
  const Timing streaming = run(copy_streaming);
  report.add(name, "ms", plain.min, plain.median,
             fmt::format("memcpy of {} B, {} threads", bytes, threads));
  report.add(name + "_streaming", "ms", streaming.min, streaming.median, "non-temporal stores");
}

// Into memory that was never touched, in huge pages where the kernel gives them: what the machine
// takes for a page that it has not handed out yet.
void report_fresh_copy(Report& report, const std::string& name, size_t bytes, int threads) {
  const Buffer from = touched(bytes);
  std::vector<double> times;
  std::vector<void*> kept;  // memory that is given back may be fresh no more
  for (int i = 0; i < 3; ++i) {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) break;
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    kept.push_back(memory);
    const Timing time = time_together(threads, 1, [&](int thread) {
      const Range part = part_of(bytes, thread, threads);
      std::memcpy(static_cast<char*>(memory) + part.begin, from.get() + part.begin, part.size);
    });
    times.push_back(time.min);
  }
  for (void* memory : kept) ::munmap(memory, bytes);
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  report.add(name, "ms", times.front(), times[times.size() / 2],
             fmt::format("memcpy of {} B into untouched memory, {} threads", bytes, threads));
}

void report_read(Report& report, const std::string& name, size_t bytes, int threads) {
  const Buffer from = touched(bytes);
  const Timing time = time_together(threads, 9, [&](int thread) {
    const Range part = part_of(bytes, thread, threads);
    sink = sink + static_cast<double>(read_all(from.get() + part.begin, part.size));
  });
  const double giga = static_cast<double>(bytes) / 1e6;
  report.add(name, "GB/s", giga / time.min, giga / time.median,
             fmt::format("plain loop, {} threads", threads));
}

void report_fma(Report& report, const std::string& name, int threads) {
  const bool wide = __builtin_cpu_supports("avx512f") != 0;
  const Timing time = time_together(threads, 9, [&](int) {
    sink = sink + static_cast<double>(wide ? fma_avx512() : fma_avx2());
  });
  const double flops = 2.0 * (wide ? 16 : 8) * kAccumulators * kFmaSteps * threads / 1e6;
  report.add(name, "GFLOP/s", flops / time.min, flops / time.median,
             fmt::format("{}, {} threads", wide ? "avx512" : "avx2", threads));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> names(argv + 1, argv + argc);
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const size_t gelu = size_t{32} * 1000 * 4096 * 4;
  const size_t square = size_t{4096} * 4096 * 4;
  Report report;
  const std::pair<std::string, std::function<void(const std::string&)>> limits[] = {
      {"copy_524", [&](auto& name) { report_copies(report, name, gelu, threads); }},
      {"copy_524_fresh", [&](auto& name) { report_fresh_copy(report, name, gelu, threads); }},
      {"copy_64", [&](auto& name) { report_copies(report, name, square, threads); }},
      {"read", [&](auto& name) { report_read(report, name, gelu, threads); }},
      {"fma_f32", [&](auto& name) { report_fma(report, name, threads); }}};
  for (const auto& [name, measure] : limits) {
    if (names.empty() || std::count(names.begin(), names.end(), name) > 0) measure(name);
  }
  report.print();
  return 0;
}
