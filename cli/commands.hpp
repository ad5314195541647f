// SPDX-License-Identifier: Apache-2.0
// The subcommands: each file adds one to the command line. A command does its work in its callback and stores what the
// process exits with: 0 well, 1 a gate failed or runs diverge, 2 bad input or interrupted, 3 not comparable or undecided.
// One thread: main's.
#pragma once

namespace CLI {
class App;
}
namespace plumb {
struct AnswerInfo;
}

void add_decode(CLI::App& root, int& exit_code);
void add_run(CLI::App& root, int& exit_code);
void add_answer(CLI::App& root, const plumb::AnswerInfo& info, int& exit_code);
void add_page(CLI::App& root, int& exit_code);
void add_trace(CLI::App& root, int& exit_code);
void add_export(CLI::App& root, int& exit_code);
void add_top(CLI::App& root, int& exit_code);
void add_sql(CLI::App& root, int& exit_code);
void add_recover(CLI::App& root, int& exit_code);
void add_import(CLI::App& root, int& exit_code);
void add_model(CLI::App& root, int& exit_code);
void add_selftest(CLI::App& root, int& exit_code);
void add_completion(CLI::App& root, int& exit_code);
void add_help(CLI::App& root, int& exit_code);
