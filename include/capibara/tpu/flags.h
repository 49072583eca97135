// Flags of the TPU compiler: the names and values that libtpu accepts. An unknown one in LIBTPU_INIT_ARGS ends the
// process, so they are checked first.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace capibara::tpu {

enum class FlagKind { boolean, tristate, integer, number, text };
enum class FlagPlace { init_args, compile_option };  // LIBTPU_INIT_ARGS, or options of one compilation

struct Flag {
  const char* name;
  const char* default_value;  // in libtpu 0.0.51

  FlagKind kind() const;
};

// All flags that libtpu 0.0.51 lists, sorted by name.
const std::vector<Flag>& flags();
// The flag of this name; absent if libtpu does not list it.
const Flag* find_flag(std::string_view name);

// The verdict on a flag and a value; an empty value checks only the name.
struct FlagVerdict {
  bool accepted = false;
  bool is_default = false;  // the value is the compiler's default
  std::string default_value;
  std::string message;  // why it is rejected, with the nearest existing name; or a remark
};
// True if libtpu accepts the flag there.
FlagVerdict check_flag(std::string_view name, std::string_view value, FlagPlace place = FlagPlace::init_args);

using FlagValues = std::map<std::string, std::string>;
// The text of LIBTPU_INIT_ARGS with these flags set and the others of `before` kept. Raises ValueError for the first
// flag that libtpu rejects.
std::string merge_init_args(std::string_view before, const FlagValues& values);
// The flags of a LIBTPU_INIT_ARGS text.
FlagValues read_init_args(std::string_view text);

struct FlagChoice {
  int level = 3;
  bool fusion = true, async_collective = true, megacore = true, latency_hiding = true;
};
// Flags for an optimisation level from 0 to 3. Raises ValueError for other levels.
FlagValues chosen_flags(const FlagChoice& choice);

}  // namespace capibara::tpu
