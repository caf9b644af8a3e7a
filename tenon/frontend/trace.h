// Tracing: while a function runs under a trace, its tensors are values of a graph.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tenon/frontend/operand.h"
#include "tenon/frontend/tensor.h"
#include "tenon/ir/rewrite.h"

namespace tenon {

class Trace;
using TracePtr = std::shared_ptr<Trace>;

// A writable argument: every handle to it is the same memory, whose value changes with each store.
struct BufferCell {
  ir::Value value;  // now
  uint32_t param = 0;
  bool written = false;
};

// What is left of a tensor whose memory a program has taken.
struct Donated {
  std::shared_ptr<const std::string> to;
  DType dtype;
  Dims dims;

  ir::TensorType type() const { return {dtype, Shape(dims.begin(), dims.end())}; }
};

struct TensorState {
  ir::Value value;                             // empty while only the array is needed
  TracePtr trace;                              // null: eager
  std::shared_ptr<BufferCell> cell;            // a writable argument
  std::shared_ptr<const TensorLayout> layout;  // a declaration
  runtime::Array array;                        // once `ready`
  std::atomic<bool> ready{false};
  bool borrowed = false;              // memory that others may change
  std::atomic<bool> captured{false};  // the memory is a constant of a graph, too
  std::shared_ptr<const Donated> donated;
  std::string argument;  // the route of a traced argument

  ir::TensorType type() const;
  // The value in graphs; an eager one over evaluated memory is a constant.
  ir::Value now();
};

// One run of a function that makes a graph. Traces nest on a thread: a subgraph's body takes
// tensors of the traces around it as further parameters; any other trace refuses them.
class Trace : public std::enable_shared_from_this<Trace> {
 public:
  enum class Kind : uint8_t { kProgram, kBody };

  // Opens a trace on this thread, inside the one that is open; closes it when it goes.
  class Scope {
   public:
    Scope(std::string name, Kind kind);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    const TracePtr& trace() const { return trace_; }

   private:
    TracePtr trace_;
  };
  static const TracePtr& current();  // null outside any

  Trace(std::string name, Kind kind, TracePtr outer)
      : name_(std::move(name)), kind_(kind), outer_(std::move(outer)) {}

  const std::string& name() const { return name_; }
  Kind kind() const { return kind_; }
  bool open() const { return open_; }
  const TracePtr& outer() const { return outer_; }

  // A new parameter as a tensor.
  Tensor parameter(const ir::TensorType& type, const std::string& name, bool writable);
  // The value of a tensor in this trace, which is the current one: captures, or raises TraceError
  // telling which misuse it is. `op` begins the error.
  ir::Value use(const Tensor& tensor, std::string_view op, Here at);
  // Ends the trace: the graph of these results and of the buffers' new values.
  ir::GraphPtr finish(std::vector<ir::Value> results, std::vector<std::string> result_names = {});

  // What a body took from around it: the outer value of each captured parameter, in order; they
  // stand behind the parameters made by parameter().
  const std::vector<Tensor>& captured() const { return captured_; }
  const std::vector<std::string>& param_names() const { return names_; }

  // The program that this trace is a part of: itself, or the trace around the bodies.
  Trace& program();

  // --- of a program: its subgraphs; see subgraph.h ---
  struct Body {
    ir::GraphPtr graph;
    std::vector<Tensor> captured;        // of the trace that made the body
    std::shared_ptr<const void> result;  // the function's traced result
  };
  bool allow_subgraphs = true;
  std::unordered_map<std::string, Body> keyed_bodies;         // by given key
  std::unordered_map<std::string, ir::GraphPtr> bodies;       // by canonical text
  std::unordered_map<std::string, ir::TensorType> externals;  // absolute names
  std::set<std::string> body_names;
  // Prefix of relative external names where bodies are traced into their callers.
  std::string inline_prefix;

 private:
  ir::Value capture_outer(const Tensor& tensor, std::string_view op, Here at);
  ir::Value embed(const Tensor& tensor);

  std::string name_;
  Kind kind_;
  TracePtr outer_;
  bool open_ = true;
  std::vector<ir::Value> params_;
  std::vector<std::string> names_;
  std::vector<bool> writable_;
  std::vector<std::shared_ptr<BufferCell>> cells_;
  std::vector<Tensor> captured_;
  std::unordered_map<ir::Value, ir::Value, ir::ValueHash> captures_;
  std::unordered_map<const TensorState*, std::pair<Tensor, ir::Value>>
      copies_;  // of borrowed memory
};

// The name of the function being traced on this thread; empty outside any trace.
std::string current_trace_name();

// --- for the functions of the front end ---

// The operands of one op: resolved in the current trace, numbers promoted beside the tensors.
class Call {
 public:
  // Numbers take the dtype that the tensors promote to, `beside` among them.
  Call(std::string_view op, std::initializer_list<const Operand*> operands,
       std::optional<DType> beside = std::nullopt);
  Call(std::string_view op, const std::vector<Tensor>& tensors, Here at);
  const ir::Value& operator[](size_t i) const { return values_[i]; }
  const std::vector<ir::Value>& values() const { return values_; }
  const ir::LocationPtr& location() const { return location_; }
  Tensor result(ir::Value value) const;
  std::vector<Tensor> results(const std::vector<ir::Value>& values) const;

 private:
  TracePtr trace_;
  ir::LocationPtr location_;
  std::vector<ir::Value> values_;
};

// A tensor of the current trace (eager outside one).
Tensor wrap(ir::Value value);
ir::Value resolve(const Tensor& tensor, std::string_view op, Here at);
// TraceError for reading a value of a traced tensor; nothing for others.
void refuse_traced(const Tensor& tensor, std::string_view op);
// Evaluates eager tensors; results stay in their states.
void evaluate(const std::vector<TensorState*>& states);
// ValueError [donate_c4] for a tensor whose memory a program has taken; nothing for others.
void refuse_donated(const TensorState& state, std::string_view op, Here at);
// Memory of the tensor that a program may write: lazy values made from it, and programs that hold
// it as a constant, keep the old contents.
runtime::Array& writable_array(const Tensor& tensor);
// Memory for the program `to` to write and to keep: the tensor's own, which has no value any more;
// a copy of memory that is borrowed or read-only.
runtime::Array donate(const Tensor& tensor, const std::shared_ptr<const std::string>& to);

}  // namespace tenon
