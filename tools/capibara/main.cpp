// The program `capibara` and its commands.
#include "command.h"

namespace capibara::command {

namespace {

std::vector<Command> all_commands() {
  std::vector<Command> table = {
      {"show",
       "FILE [--lowered] [--stablehlo | --loops | --ir] [--after PASS] | FILE --sharded [--mesh x=4,y=2 --in "
       "x,y;-,y] | FILE --write OTHER.mlir|OTHER.mlirbc|OTHER.exported, each with [--sizes b=8,n=4] | --passes",
       "Prints the program of a file, StableHLO as text or as bytecode or a function exported by jax, or what it is "
       "after a pass of the optimiser, or on one device of a mesh; --passes lists them, --write makes another file of "
       "it; --sizes chooses those that an exported function leaves open.",
       {"after", "mesh", "in", "write", "sizes"},
       {"lowered", "stablehlo", "passes", "loops", "ir", "sharded"},
       show},
      {"run",
       "FILE [INPUT.npy ...] [--output FOLDER] [--backend NAME]",
       "Runs a StableHLO file or an exported function and prints its results, or writes them as .npy files.",
       {"output", "backend"},
       {},
       run},
      {"check",
       "[FOLDER|FILE ...] [--backend NAME] [--jobs N] [--self-test]",
       "Runs StableHLO files that hold their own expected values; the folder is CAPIBARA_GOLDEN by default.",
       {"backend", "jobs"},
       {"self-test", "verbose"},
       check},
      {"compile",
       "FILE [--topology NAME] [--platform NAME] [--options NAME=VALUE,...] [--output FILE] | FILE --object FILE.o "
       "--header FILE.h [--target native|x86-64-v3|x86-64-v4|aarch64] [--name NAME] [--weights FILE.bin], each with "
       "[--sizes "
       "b=8,n=4]",
       "Compiles a StableHLO file by a plugin, for devices that need not be here (v5e:4x4, v4:2x2x4, 1x1x4), and "
       "prints the memory it needs; or to an object file with a C function, which needs libc and libm alone.",
       {"topology", "platform", "options", "output", "object", "header", "target", "name", "weights", "sizes"},
       {},
       compile},
      {"plan",
       "--tpu SLICE (--model NAME | --program FILE.mlir) [--batch N] [--seq N] [--mesh data=8,model=8] [--remat "
       "POLICY] [--precision int8] [--price N] "
       "[--flags TEXT] [--search] [--compile] [--cycles] [--html FILE] [--write FILE.mlir] [--limit SECONDS] [--json] "
       "| --maxtext base.yml model.yml [NAME=VALUE ...] [--tpu SLICE] | --tpu SLICE --model NAME --serve [--batch N] "
       "[--prompt N] [--output N] [--weights int8] [--cache int8] [--page N] [--mesh tensor=8] [--price N] | --models",
       "Models memory and time of a training step or a program on a TPU slice, compiles them where libtpu is "
       "installed; "
       "nothing runs on a TPU.",
       {"tpu", "model", "program", "batch", "seq", "mesh", "remat", "flags", "html", "write", "limit", "maxtext",
        "precision", "price", "prompt", "output", "weights", "cache", "page"},
       {"search", "compile", "cycles", "json", "models", "serve"},
       plan},
      {"coverage",
       "[--markdown] | --python [--results FILE.tsv]",
       "Prints which rules each primitive has and which backends run it, or which names of jax pass in Python.",
       {"results"},
       {"markdown", "python"},
       coverage},
      {"library",
       "[MODULE] [--markdown]",
       "Prints the functions of the library, or those of one module with their signatures.",
       {},
       {"markdown"},
       list_library},
      {"bench",
       "[--only NAME,...] [--repeat N] [--peers LIST] [--json FILE] [--build FOLDER] [--list | --report]",
       "Times capibara beside its peers, in a source tree; ./run bench installs the peers.",
       {"only", "repeat", "peers", "json", "build"},
       {"list", "report", "no-check"},
       bench},
      {"launch",
       "-n N [--devices D] [--hosts A,B] [--restarts K] [--timeout S] [--collective-timeout S] -- PROGRAM ARGUMENTS",
       "Starts N processes of a program over MPI (mpirun, mpiexec or srun), with D devices each; restarts them K times "
       "after failures.",
       {"n", "devices", "hosts", "restarts", "timeout", "collective-timeout"},
       {"member"},
       launch},
      {"checkpoint",
       "list FOLDER | show FOLDER [--step N] | verify FOLDER [--step N] | diff A B | convert FROM TO [--step N]",
       "Lists the steps of a checkpoint folder, shows or verifies them, compares two, or converts one of Orbax.",
       {"step"},
       {},
       checkpoint},
      {"serve",
       "[FOLDER] [--port N] [options]",
       "Answers completions and chats over HTTP, in the form of OpenAI's interface, with the model of a training run "
       "(build/demo by default), or a published one with its tokenizer.json.",
       {"port", "address", "hosts", "name", "slots", "queue", "capacity", "max-tokens", "timeout", "weights"},
       {},
       serve,
       {{"port", "N", "where the server listens; 0: a free port", "8000"},
        {"address", "ADDRESS", "of the network interface; 0.0.0.0: all", "127.0.0.1"},
        {"hosts", "NAMES", "by which clients may call the server besides its address, as a.example,b.example", ""},
        {"name", "NAME", "of the model, as requests give it", "the folder's"},
        {"slots", "N", "requests that are decoded together", "4"},
        {"queue", "N", "requests that wait for a slot; those beyond are refused", "64"},
        {"capacity", "N", "tokens of a request, prompt and answer together", "1024"},
        {"max-tokens", "N", "of an answer", "1024"},
        {"timeout", "SECONDS", "of an answer, which ends then", "300"},
        {"weights", "KIND", "how they are stored: float32, bfloat16, int8, int4 or vq", "float32"}}},
      {"top",
       "[PORT] [--once | --link | --capture]",
       "Shows the metrics of a process with a monitor on this port of the machine (9090), every second or once; --link "
       "prints the address of its page with the token that takes profiles, --capture takes one.",
       {},
       {"once", "link", "capture"},
       top},
      {"profile",
       "PROGRAM.mlir [INPUT.npy ...] [--calls N] [--backend NAME] | SCRIPT.py [ARGUMENT ...] | PROFILE.json, each with "
       "[--against OLD] [--json] [--out FILE] [--rows N] [--sizes b=8,n=4]",
       "Prints where the time of a program or a Python script goes, line by line, beside what the machine allows; "
       "keeps "
       "it in a file; says which line became slower.",
       {"against", "out", "rows", "calls", "backend", "sizes"},
       {"json"},
       profile_command},
      {"doctor",
       "[--jax]",
       "Prints which backends and plugins there are, and tries each; --jax: what the jax of python3 (CAPIBARA_PYTHON) "
       "makes of capibara's plugin, and whose devices are whose.",
       {},
       {"jax"},
       doctor},
      {"help", "[COMMAND]", "Prints this list, or what is said of one command.", {}, {}, help},
  };
  const std::vector<Command> training = training_commands();
  table.insert(table.end() - 2, training.begin(), training.end());
  return table;
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> table = all_commands();
  return table;
}

}  // namespace capibara::command

int main(int count, char** values) { return capibara::command::run_program(count, values); }
