// The `tenon` program. Exit status: 0 right, 1 a refusal (the error on stderr), 2 wrong usage.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "tenon/base/error.h"
#include "tenon/cli/command.h"

namespace tenon::cli {

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& what,
                      const std::string& example) {
  CLI::App* command = app.add_subcommand(name, what);
  command->footer("example:\n  " + example);
  return command;
}

namespace {

constexpr const char* kTasks = R"(tenon: functions over tensors into programs

  generate text
    tenon run llama --model-path F.gguf --prompt "…"   text from a model
    tenon tokenize --model-path F.gguf                 JSON strings, one a line, to arrays of ids
    tenon detokenize --model-path F.gguf               arrays of ids to JSON strings

  make smaller
    tenon quantize IN.gguf OUT.gguf --type Q4_K        weights in another block format

  look inside
    tenon inspect FILE                                 an artifact or GGUF file: what it holds
    tenon ir FILE [--after PASS]                       a graph after any pass, kernels after `lower`

  this machine
    tenon doctor                                       CPU, caches, huge pages, cache folder

`tenon COMMAND --help` explains a command.
)";

int run(int argc, char** argv) {
  CLI::App app{"Functions over tensors into programs", "tenon"};
  app.set_version_flag("--version", "tenon " TENON_VERSION);
  app.require_subcommand(0, 1);
  add_run(app);
  add_tokenize(app);
  add_quantize(app);
  add_inspect(app);
  add_ir(app);
  add_doctor(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (app.get_subcommands().empty()) fmt::print("{}", kTasks);
  return 0;
}

}  // namespace
}  // namespace tenon::cli

int main(int argc, char** argv) {
  try {
    return tenon::cli::run(argc, argv);
  } catch (const tenon::Error& error) {
    fmt::print(stderr, "tenon::{}: {}\n", tenon::error_kind_name(error.kind()), error.what());
  } catch (const std::exception& error) {
    fmt::print(stderr, "tenon: {}\n", error.what());
  }
  return 1;
}
