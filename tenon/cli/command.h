// One command of the `tenon` program: a file each, listed in main.cpp by task.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace tenon::cli {

// Each adds its subcommand, whose callback does the work and raises tenon::Error for refusals
// (exit 1). Wrong usage is CLI11's to report (exit 2).
void add_run(CLI::App& app);
void add_tokenize(CLI::App& app);  // tokenize and detokenize
void add_quantize(CLI::App& app);
void add_ir(CLI::App& app);
void add_inspect(CLI::App& app);
void add_doctor(CLI::App& app);

// A subcommand with its one example in --help.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& what,
                      const std::string& example);

}  // namespace tenon::cli
