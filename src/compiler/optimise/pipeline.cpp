// The list of passes, and the loop that runs them until nothing changes.
#include "compiler/optimise/pipeline.h"

#include "compiler/optimise/rewrite.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace capibara {

namespace passes {

const std::vector<Pass>& list() {
  using Options = OptimiseOptions;
  static const std::vector<Pass> all = {
      {"strengthen", "drops weak types: promotion is over",
       [](const Program& program, const Options&) { return strengthen(program); }},
      {"inline_calls", "replaces calls by the equations of their functions",
       [](const Program& program, const Options&) { return inline_calls(program); }},
      {"expand", "replaces what a user defined by its lowering",
       [](const Program& program, const Options&) { return expand(program); }},
      {"compose", "replaces what the backend does not run by what its lower rule states",
       [](const Program& program, const Options& options) { return compose(program, options.keep, options.own_rule); }},
      {"name_reductions", "calls a reduction by a region of one known operation by its name",
       [](const Program& program, const Options&) { return name_reductions(program); }},
      {"lift_constants", "makes the constants of nested programs operands",
       [](const Program& program, const Options&) { return lift_constants(program); }},
      {"simplify", "replaces equations by what they equal",
       [](const Program& program, const Options&) { return simplify(program); }},
      {"fold", "computes what is known", [](const Program& program, const Options&) { return fold(program); }},
      {"cse", "merges equations that compute the same",
       [](const Program& program, const Options&) { return cse(program); }},
      {"hoist", "moves what a loop computes in every step alike before the loop",
       [](const Program& program, const Options&) { return hoist(program); }},
      {"dce", "removes equations whose results are not used",
       [](const Program& program, const Options&) { return dce(program); }},
      {"fuse", "replaces what the backend has a fused operation for",
       [](const Program& program, const Options& options) { return options.fuse ? options.fuse(program) : program; }},
  };
  return all;
}

}  // namespace passes

namespace {

// Constants too large for the passes to inspect: while the passes run they are the last inputs of the program.
class LargeConstants {
 public:
  Program open(const Program& program) {
    auto is_large = [](const Array& constant) { return byte_count(constant.type()) > passes::large_constant_bytes; };
    if (std::none_of(program.constants().begin(), program.constants().end(), is_large)) return program;
    Program::Body body = program.body();
    body.constvars.clear();
    body.constants.clear();
    for (std::size_t i = 0; i < program.constants().size(); ++i) {
      const Array& constant = program.constants()[i];
      if (is_large(constant)) {
        opened_.push_back(constant);
        body.invars.push_back(program.constvars()[i]);
      } else {
        body.constvars.push_back(program.constvars()[i]);
        body.constants.push_back(constant);
      }
    }
    return Program(std::move(body));
  }

  // Binds the constants that are still read.
  Program close(const Program& program) const {
    if (opened_.empty()) return program;
    std::vector<bool> read(static_cast<std::size_t>(program.var_count()), false);
    auto use = [&](Atom atom) {
      if (!atom.is_literal()) read[static_cast<std::size_t>(atom.code)] = true;
    };
    for (const Equation& equation : program.equations())
      std::for_each(equation.inputs.begin(), equation.inputs.end(), use);
    std::for_each(program.outputs().begin(), program.outputs().end(), use);
    Program::Body body = program.body();
    std::size_t inputs = body.invars.size() - opened_.size();
    for (std::size_t i = 0; i < opened_.size(); ++i) {
      Var var = body.invars[inputs + i];
      if (!read[static_cast<std::size_t>(var.id)]) continue;
      const Array& constant = opened_[i];
      body.constvars.push_back(var);
      body.constants.push_back(Array::from_buffer(program.type(var), constant.buffer(), constant.committed()));
    }
    body.invars.resize(inputs);
    return Program(std::move(body));
  }

 private:
  Arrays opened_;
};

// Writes the program after each pass: FOLDER/NUMBER-NAME/STEP-PASS.txt.
class Dump {
 public:
  Dump(const std::string& option, const std::string& name) {
    const char* variable = std::getenv("CAPIBARA_DUMP");
    std::string base = !option.empty() ? option : variable ? variable : "";
    if (base.empty()) return;
    static std::atomic<int> number{0};
    std::string plain;
    for (char c : name) plain += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
    folder_ = concat(base, "/", padded(number++), plain.empty() ? "" : "-", plain);
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) throw RuntimeError(concat("CAPIBARA_DUMP: cannot make the folder '", folder_, "': ", error.message()));
  }

  void write(const std::string& pass, const Program& program) {
    if (folder_.empty()) return;
    std::string path = concat(folder_, "/", padded(step_++), "-", pass, ".txt");
    std::ofstream file(path);
    file << program.to_string() << "\n";
    if (!file.flush()) throw RuntimeError(concat("CAPIBARA_DUMP: cannot write '", path, "'"));
  }

 private:
  static std::string padded(int value) {
    std::string digits = std::to_string(value);
    return digits.size() < 3 ? std::string(3 - digits.size(), '0') + digits : digits;
  }

  std::string folder_;
  int step_ = 0;
};

void require_pass(const std::string& name) {
  if (name.empty()) return;
  std::string names;
  for (const passes::Pass& pass : passes::list()) {
    if (name == pass.name) return;
    names += concat(names.empty() ? "" : ", ", pass.name);
  }
  throw ValueError(concat("optimise: there is no pass '", name, "' (argument 'after'); there are ", names));
}

}  // namespace

Program optimise(const Program& program, const OptimiseOptions& options) {
  require_pass(options.after);
  Dump dump(options.dump, program.name());
  LargeConstants large;
  dump.write("start", program);
  Program now = large.open(program);
  for (int round = 0; round < options.rounds; ++round) {
    Program before = now;
    for (const passes::Pass& pass : passes::list()) {
      now = large.open(pass.run(now, options));
      dump.write(pass.name, now);
      if (options.after == pass.name) return large.close(now);
    }
    if (now.identity() == before.identity()) break;
  }
  return large.close(now);
}

}  // namespace capibara
