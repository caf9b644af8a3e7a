// One function of tensors on every path that gives answers: op by op, folded into a constant, the
// interpreter, machine code for the shapes at hand, and a saved file on each level of this CPU and
// without machine code.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tenon/program/program.h"
#include "tenon/tenon.h"

namespace tenon::anchors {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;
using Layouts = std::vector<TensorLayout>;

struct Path {
  std::string name;
  std::function<Tensors()> run;  // evaluated tensors
};

// `layouts` are those of the saved file: empty for the layouts of the inputs. The paths that know
// the values of the inputs while they trace ("eager", "folded") come first.
std::vector<Path> paths_of(const Function& fn, const Tensors& inputs, const Layouts& layouts = {});

// Runs every path and hands its tensors to `check`, under the path's name.
void on_every_path(const Function& fn, const Tensors& inputs,
                   const std::function<void(const Tensors&)>& check, const Layouts& layouts = {});

// One result. Wanted values as doubles: NaN equals NaN, zeros by their sign.
using One = std::function<Tensor(const Tensors&)>;
void expect_on_every_path(const One& fn, const Tensors& inputs, const std::vector<double>& wanted,
                          const Layouts& layouts = {});
// Within `relative` of each value; infinities and NaN exactly.
void expect_near_on_every_path(const One& fn, const Tensors& inputs,
                               const std::vector<double>& wanted, double relative,
                               const Layouts& layouts = {});

// A way to load a file.
struct Loading {
  std::string name;
  std::string level;  // of TENON_ISA; empty: any
  program::LoadOptions options;
};
// Each level of this CPU, and without machine code.
std::vector<Loading> loadings();

// A program saved when it is first run; the file goes with the object.
class SavedFile {
 public:
  SavedFile(Function fn, Layouts layouts, std::vector<std::string> levels = kSavedLevels);
  ~SavedFile();
  SavedFile(const SavedFile&) = delete;
  SavedFile& operator=(const SavedFile&) = delete;
  Tensors run(const Tensors& inputs, const Loading& loading);

 private:
  Function fn_;
  Layouts layouts_;
  std::vector<std::string> levels_;
  std::string path_;
  bool saved_ = false;
};

// A row of a table: one function of the inputs that all rows share, and its right answer.
struct Row {
  const char* name;
  One fn;
  std::vector<double> wanted;
};
// All rows as one program on every path; then saved for one axis "n" and called with 0, 1 and 37
// elements too, the values repeated (whole vectors and the rest are different code).
void expect_rows(const std::vector<Row>& rows, const Tensors& inputs, double relative = 0);

// `work` raises an error whose kind and text hold each of `parts`.
void expect_refused(const std::function<void()>& work, const std::vector<std::string>& parts);
// Every path refuses with an error that holds each of `parts`.
void expect_refusal_on_every_path(const Function& fn, const Tensors& inputs,
                                  const std::vector<std::string>& parts,
                                  const Layouts& layouts = {});

void expect_values(const Tensor& got, const std::vector<double>& wanted, double relative = 0);
void expect_dims(const Tensor& got, const std::vector<int64_t>& dims);

// A file name in the folder of temporary files of the test.
std::string temporary(const std::string& name);

// Sets a variable of the environment while it stands.
class Variable {
 public:
  Variable(const char* name, const std::string& value);
  ~Variable();
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace tenon::anchors
