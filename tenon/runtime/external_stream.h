// The externals of a setup program, fetched when a step is about to read them and released after
// the last one that does: what is decoded for packing reuses the memory of what was packed before.
#pragma once

#include <functional>
#include <vector>

#include "tenon/runtime/runner.h"

namespace tenon::runtime {

class ExternalStream : public StepHook {
 public:
  // `fetch(i)` gives argument i of `program`, checked.
  ExternalStream(const abi::Program& program, const ProgramPlan& plan,
                 std::function<Array(size_t)> fetch);

  void before(size_t step, void** slots) override;
  void after(size_t step) override;
  // Fetches what results are the memory of and no step has read.
  void finish(void** slots);
  // Argument i: valid when a result is its memory, after finish().
  const Array& argument(size_t i) const { return arrays_[i]; }

 private:
  void fetch(size_t argument, void** slots);

  const abi::Program& program_;
  const ProgramPlan& plan_;
  std::function<Array(size_t)> fetch_;
  std::vector<Array> arrays_;
  std::vector<bool> kept_;                   // a result is its memory
  std::vector<std::vector<size_t>> reads_;   // arguments by step, each once
  std::vector<std::vector<size_t>> leaves_;  // arguments that the step is the last to read
};

}  // namespace tenon::runtime
