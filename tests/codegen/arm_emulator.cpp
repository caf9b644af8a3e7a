#include "arm_emulator.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace tenon::codegen::test {
namespace {

#ifdef TENON_ARM_RUNNER

// The emulated process and the pipes to it.
class Process {
 public:
  Process() {
    int to[2];
    int from[2];
    if (pipe(to) != 0 || pipe(from) != 0) throw std::runtime_error("no pipes");
    signal(SIGPIPE, SIG_IGN);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      for (int fd : {to[0], to[1], from[0], from[1]}) close(fd);
      execl(TENON_QEMU_AARCH64, TENON_QEMU_AARCH64, TENON_ARM_RUNNER, nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    in_ = to[1];
    out_ = from[0];
  }
  ~Process() {
    close(in_);
    close(out_);
    waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void put(const void* data, size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
      ssize_t done = write(in_, at, size);
      if (done <= 0) throw std::runtime_error("the emulated process ended: its code crashed");
      at += done;
      size -= static_cast<size_t>(done);
    }
  }
  void put(int64_t number) { put(&number, sizeof number); }
  void get(void* data, size_t size) {
    char* at = static_cast<char*>(data);
    while (size > 0) {
      ssize_t got = read(out_, at, size);
      if (got <= 0) throw std::runtime_error("the emulated process ended: its code crashed");
      at += got;
      size -= static_cast<size_t>(got);
    }
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
};

#endif

}  // namespace

#ifdef TENON_ARM_RUNNER

bool has_arm_emulator() { return true; }

Call run_emulated(const Image& image, size_t k, const Call& call) {
  static std::unique_ptr<Process> process;
  if (!process) process = std::make_unique<Process>();
  try {
    process->put(static_cast<int64_t>(image.bytes.size()));
    process->put(image.bytes.data(), image.bytes.size());
    process->put(static_cast<int64_t>(image.offsets.at(k)));
    process->put(call.begin);
    process->put(call.end);
    process->put(call.scratch_bytes);
    process->put(static_cast<int64_t>(call.dims.size()));
    for (int64_t dim : call.dims) process->put(dim);
    process->put(static_cast<int64_t>(call.buffers.size()));
    for (const auto& buffer : call.buffers) {
      process->put(static_cast<int64_t>(buffer.size()));
      process->put(buffer.data(), buffer.size());
    }
    Call result = call;
    process->get(&result.status, sizeof result.status);
    for (auto& buffer : result.buffers) process->get(buffer.data(), buffer.size());
    return result;
  } catch (const std::runtime_error&) {
    process.reset();
    throw;
  }
}

#else

bool has_arm_emulator() { return false; }

Call run_emulated(const Image&, size_t, const Call&) {
  throw std::runtime_error("this build has no AArch64 emulator");
}

#endif

}  // namespace tenon::codegen::test
