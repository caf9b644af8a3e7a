#include "paths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "tenon/program/program.h"
#include "tenon/runtime/cpu.h"
#include "tests/refusal.h"

namespace tenon::anchors {
namespace {

std::vector<runtime::Array> arrays_of(const Tensors& tensors) {
  std::vector<runtime::Array> arrays;
  for (const Tensor& tensor : tensors) arrays.push_back(tensor.array());
  return arrays;
}
Tensors tensors_of(const std::vector<runtime::Array>& arrays) {
  Tensors tensors;
  for (const runtime::Array& array : arrays) tensors.emplace_back(array);
  return tensors;
}
Tensors specs_of(const Layouts& layouts) {
  Tensors specs;
  for (const TensorLayout& layout : layouts) specs.emplace_back(layout);
  return specs;
}

Tensors run_eager(const Function& fn, const Tensors& inputs) {
  Tensors results = fn(inputs);
  for (Tensor& result : results) result.eval();
  return results;
}

Tensors run_folded(const Function& fn, const Tensors& inputs) {
  const auto program =
      compile([&](const Tensor&) { return fn(inputs); }, {.name = "folded"})(TensorLayout(f32, {}));
  return tensors_of(program.execute_raw({tensor(0.0f).array()}));
}

Tensors run_compiled(const Function& fn, const Tensors& inputs, const Layouts& layouts) {
  const auto program = compile(fn, {.name = "anchor"}).with(specs_of(layouts));
  return tensors_of(program.execute_raw(arrays_of(inputs)));
}

double relative_error(double got, double wanted) {
  return wanted == 0 ? std::fabs(got) : std::fabs(got - wanted) / std::fabs(wanted);
}

Tensors repeated(const Tensors& inputs, int64_t length) {
  Tensors longer;
  for (const Tensor& input : inputs) {
    const int64_t count = input.dims()[0];
    const int64_t repeats = (length + count - 1) / count;
    Tensor long_one = tile(input, {repeats})[Slice(0, length)];
    longer.push_back(std::move(long_one.eval()));
  }
  return longer;
}

}  // namespace

std::vector<Loading> loadings() {
  std::vector<Loading> all;
  for (const std::string& level : runtime::usable_levels()) {
    all.push_back({"saved, " + level, level, {.require_code = true}});
  }
  all.push_back({"saved, data only", "", {.data_only = true}});
  return all;
}

SavedFile::SavedFile(Function fn, Layouts layouts, std::vector<std::string> levels)
    : fn_(std::move(fn)), layouts_(std::move(layouts)), levels_(std::move(levels)) {
  static int serial = 0;
  path_ = temporary(fmt::format("anchor_{}_{}.tenon", ::getpid(), serial++));
}
SavedFile::~SavedFile() { std::filesystem::remove(path_); }

Tensors SavedFile::run(const Tensors& inputs, const Loading& loading) {
  if (!saved_) {
    compile(fn_, {.name = "anchor"}).with(specs_of(layouts_)).save(path_, levels_);
    saved_ = true;
  }
  const Variable isa("TENON_ISA", loading.level);
  const auto program = program::Program::load(path_, loading.options);
  return tensors_of(program.execute_raw(arrays_of(inputs)));
}

std::vector<Path> paths_of(const Function& fn, const Tensors& inputs, const Layouts& given) {
  Layouts own;
  for (const Tensor& input : inputs) own.push_back(input.layout());
  const Layouts layouts = given.empty() ? own : given;
  std::vector<Path> paths;
  paths.push_back({"eager", [=] { return run_eager(fn, inputs); }});
  paths.push_back({"folded", [=] { return run_folded(fn, inputs); }});
  paths.push_back({"interpreter", [=] {
                     const Variable interpret("TENON_INTERPRET", "1");
                     return run_compiled(fn, inputs, layouts);
                   }});
  paths.push_back({"compiled", [=] { return run_compiled(fn, inputs, layouts); }});
  const auto file = std::make_shared<SavedFile>(fn, layouts);
  for (const Loading& loading : loadings()) {
    paths.push_back({loading.name, [=] { return file->run(inputs, loading); }});
  }
  return paths;
}

void on_every_path(const Function& fn, const Tensors& inputs,
                   const std::function<void(const Tensors&)>& check, const Layouts& layouts) {
  for (const Path& path : paths_of(fn, inputs, layouts)) {
    SCOPED_TRACE(path.name);
    try {
      check(path.run());
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

void expect_near_on_every_path(const One& fn, const Tensors& inputs,
                               const std::vector<double>& wanted, double relative,
                               const Layouts& layouts) {
  on_every_path([fn](const Tensors& x) { return Tensors{fn(x)}; }, inputs,
                [&](const Tensors& got) { expect_values(got.at(0), wanted, relative); }, layouts);
}

void expect_on_every_path(const One& fn, const Tensors& inputs, const std::vector<double>& wanted,
                          const Layouts& layouts) {
  expect_near_on_every_path(fn, inputs, wanted, 0, layouts);
}

void expect_rows(const std::vector<Row>& rows, const Tensors& inputs, double relative) {
  const Function all = [&rows](const Tensors& x) {
    Tensors results;
    for (const Row& row : rows) results.push_back(row.fn(x));
    return results;
  };
  const auto check = [&](const Tensors& got, size_t length) {
    for (size_t i = 0; i < rows.size(); ++i) {
      SCOPED_TRACE(rows[i].name);
      std::vector<double> wanted;
      for (size_t k = 0; k < length; ++k) {
        wanted.push_back(rows[i].wanted.at(k % rows[i].wanted.size()));
      }
      expect_values(got.at(i), wanted, relative);
    }
  };
  const auto count = static_cast<size_t>(inputs[0].dims()[0]);
  Layouts layouts;
  for (const Tensor& input : inputs) layouts.emplace_back(input.dtype(), Shape{"n"});
  on_every_path(
      all, inputs, [&](const Tensors& got) { check(got, count); }, layouts);
  SavedFile file(all, layouts);
  for (const Loading& loading : loadings()) {
    for (const size_t length : {size_t{0}, size_t{1}, count, size_t{37}}) {
      SCOPED_TRACE(fmt::format("{}, n = {}", loading.name, length));
      check(file.run(repeated(inputs, static_cast<int64_t>(length)), loading), length);
    }
  }
}

void expect_refused(const std::function<void()>& work, const std::vector<std::string>& parts) {
  const std::string text = refusal(work);
  EXPECT_NE(text, "ran");
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin: " << text;
  }
}

void expect_refusal_on_every_path(const Function& fn, const Tensors& inputs,
                                  const std::vector<std::string>& parts, const Layouts& layouts) {
  for (const Path& path : paths_of(fn, inputs, layouts)) {
    SCOPED_TRACE(path.name);
    expect_refused([&] { path.run(); }, parts);
  }
}

namespace {

double element(const Literal& values, int64_t i) {
  if (is_float(values.dtype())) return values.get_double(i);
  const int64_t integer = values.get_int(i);
  return values.dtype() == u64 ? static_cast<double>(static_cast<uint64_t>(integer))
                               : static_cast<double>(integer);
}

bool agrees(double wanted, double got, bool is_float, double relative) {
  if (std::isnan(wanted)) return std::isnan(got);
  if (relative == 0 || !std::isfinite(wanted) || !std::isfinite(got)) {
    return wanted == got && (wanted != 0 || !is_float || std::signbit(wanted) == std::signbit(got));
  }
  return relative_error(got, wanted) <= relative;
}

}  // namespace

void expect_values(const Tensor& got, const std::vector<double>& wanted, double relative) {
  const Literal values = got.array().to_literal();
  ASSERT_EQ(values.count(), static_cast<int64_t>(wanted.size())) << got.str();
  std::string wrong;
  for (int64_t i = 0; i < values.count(); ++i) {
    const double want = wanted[static_cast<size_t>(i)];
    const double found = element(values, i);
    if (agrees(want, found, is_float(values.dtype()), relative)) continue;
    wrong += fmt::format(" [{}]: wanted {}, got {};", i, want, found);
    if (wrong.size() > 400) break;
  }
  EXPECT_EQ(wrong, "");
}

void expect_dims(const Tensor& got, const std::vector<int64_t>& dims) {
  EXPECT_EQ(got.dims(), dims);
}

std::string temporary(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / name).string();
}

Variable::Variable(const char* name, const std::string& value) : name_(name) {
  if (const char* before = std::getenv(name)) before_ = before;
  ::setenv(name, value.c_str(), 1);
}
Variable::~Variable() {
  if (before_) {
    ::setenv(name_, before_->c_str(), 1);
  } else {
    ::unsetenv(name_);
  }
}

}  // namespace tenon::anchors
