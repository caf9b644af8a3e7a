#include "tenon/compiler/compile.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "tenon/base/error.h"
#include "tenon/codegen/codegen.h"
#include "tenon/compiler/kernel_cache.h"
#include "tenon/compiler/source_digest.h"
#include "tenon/kir/expand_math.h"
#include "tenon/ops/registry.h"
#include "tenon/runtime/cpu.h"

namespace tenon::compiler {
namespace {

constexpr size_t kCodeAlignment = 64;

// What a kernel's code depends on, but for the level.
std::string key_text(const kir::Kernel& kernel) {
  std::string text = kir::print(kernel, /*canonical=*/true);
  if (kernel.narrow != nullptr) {
    text += "\nnarrow\n" + kir::print(*kernel.narrow, /*canonical=*/true);
  }
  return text;
}

Digest kernel_key(const std::string& text, std::string_view level) {
  Hasher hasher;
  return hasher.update(kSourceDigest).update("\n").update(level).update("\n").update(text).finish();
}

// A kernel on its way to code. Its mathematics is expanded when it is first compiled.
struct Pending {
  kir::Kernel* kernel;
  std::string text;
  bool expanded = false;
};

void expand(Pending& pending) {
  if (pending.expanded) return;
  kir::expand_math(*pending.kernel);
  if (pending.kernel->narrow != nullptr) kir::expand_math(*pending.kernel->narrow);
  pending.expanded = true;
}

// Runs `work(i)` for 0 ≤ i < count on as many threads as there are cores; the first exception is
// thrown when all are done.
template <class Work>
void for_each_parallel(size_t count, const Work& work) {
  size_t threads = std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  if (threads <= 1) {
    for (size_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  auto run = [&] {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      try {
        work(i);
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < threads; ++t) others.emplace_back(run);
  run();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

// The code of every kernel for one level, each from a cache or compiled.
std::vector<KernelCodePtr> kernel_code(std::vector<Pending>& kernels, const std::string& level,
                                       bool disk, int* from_cache) {
  const codegen::Isa wanted = codegen::isa_of_level(level);
  std::vector<codegen::Isa> isas(kernels.size());
  std::vector<Digest> keys(kernels.size());
  std::vector<KernelCodePtr> code(kernels.size());
  std::vector<size_t> missing;
  for (size_t i = 0; i < kernels.size(); ++i) {
    isas[i] = codegen::plainest(*kernels[i].kernel, wanted);
    keys[i] = kernel_key(kernels[i].text, codegen::triple_level(isas[i]));
    code[i] = find_kernel(keys[i], disk);
    if (code[i] == nullptr) missing.push_back(i);
  }
  *from_cache += static_cast<int>(kernels.size() - missing.size());
  for_each_parallel(missing.size(), [&](size_t m) {
    size_t i = missing[m];
    expand(kernels[i]);
    const kir::Kernel* kernel = kernels[i].kernel;
    codegen::Image image = codegen::compile({&kernel, 1}, {.isa = isas[i]});
    code[i] =
        std::make_shared<const KernelCode>(KernelCode{std::move(image.bytes), image.offsets.at(0)});
    store_kernel(keys[i], code[i], disk);
  });
  return code;
}

// Kernels are position-independent, so an image is their code end to end.
abi::Image link(const std::string& level, const std::vector<KernelCodePtr>& code) {
  abi::Image image;
  image.level = level;
  for (const KernelCodePtr& kernel : code) {
    size_t at = (image.bytes.size() + kCodeAlignment - 1) / kCodeAlignment * kCodeAlignment;
    image.bytes.resize(at + kernel->bytes.size());
    std::copy(kernel->bytes.begin(), kernel->bytes.end(),
              image.bytes.begin() + static_cast<ptrdiff_t>(at));
    image.offsets.push_back(at + kernel->entry);
  }
  return image;
}

// The levels that these kernels' code differs for, in the order of `levels`.
std::vector<std::string> needed_levels(const std::vector<kir::Kernel>& kernels,
                                       const std::vector<std::string>& levels) {
  std::vector<std::string> needed;
  for (const std::string& level : levels) {
    const codegen::Isa isa = codegen::isa_of_level(level);
    // The level of the kernel that gains most.
    codegen::Isa most = kernels.empty() ? isa : codegen::plainest(kernels.front(), isa);
    for (const kir::Kernel& kernel : kernels) {
      most = std::max(most, codegen::plainest(kernel, isa));
    }
    std::string kept(most == isa ? level : codegen::triple_level(most));
    if (std::find(needed.begin(), needed.end(), kept) == needed.end()) needed.push_back(kept);
  }
  return needed;
}

}  // namespace

Compiled compile(const ir::GraphPtr& graph, const Options& options) {
  ops::register_all();
  std::vector<std::string> levels = options.levels;
  if (levels.empty()) levels.push_back(runtime::cpu_level());
  for (const std::string& level : levels) codegen::isa_of_level(level);  // refuses unknown ones
  passes::Options wanted = options.passes;
  const auto few = std::count_if(levels.begin(), levels.end(), [](const std::string& level) {
    return codegen::has_few_registers(codegen::isa_of_level(level));
  });
  if (few > 0) {
    const bool all = few == static_cast<int64_t>(levels.size());
    wanted.registers = all ? passes::Registers::kFew : passes::Registers::kBoth;
  }
  passes::Lowered lowered = passes::lower(graph, wanted);

  Compiled result;
  if (options.keep_kernel_text) {
    for (size_t i = 0; i < lowered.kernels.size(); ++i) {
      lowered.module.kernels[i].text = kir::print(lowered.kernels[i]);
    }
  }
  auto start = std::chrono::steady_clock::now();
  std::vector<Pending> pending;
  for (kir::Kernel& kernel : lowered.kernels) pending.push_back({&kernel, key_text(kernel)});
  for (const std::string& level : needed_levels(lowered.kernels, levels)) {
    if (pending.empty()) break;
    lowered.module.images.push_back(
        link(level, kernel_code(pending, level, options.disk_cache, &result.kernels_from_cache)));
  }
  std::chrono::duration<double, std::milli> emit = std::chrono::steady_clock::now() - start;
  result.module = std::make_shared<const abi::Module>(std::move(lowered.module));
  result.graph = graph;
  result.graphs = std::move(lowered.graphs);
  result.times = std::move(lowered.times);
  result.times.push_back({"emit", emit.count()});
  result.passes = options.passes;
  return result;
}

}  // namespace tenon::compiler
