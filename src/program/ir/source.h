// Sources: the origin of an equation, as interned name scopes and call addresses.
#pragma once

#include <capibara/program.h>

#include <functional>
#include <string>

namespace capibara {

struct SourceInfo {
  std::string name_scope;  // "layer1/attention"
  std::string file;        // user's file where known
  int line = 0;
  const void* address = nullptr;  // C++ call site, resolved only when printed
};

Source intern(const SourceInfo& info);
SourceInfo source_info(Source source);
std::string to_string(Source source);  // "layer1/attention" or "file:line (scope)"

// The source given to equations that are now staged on this thread.
Source current_source();
// The same without the running line: names of scopes alone.
Source current_scope();
// A name inside of scopes. A scope that ends with () is a transformation, which holds the next name: vmap(layer)/bias.
std::string joined_scope(const std::string& scope, const std::string& name);

// Finds the line of the host language that is running, added to a source that has none. Set once.
using SourceFinder = std::function<Source(Source scope)>;
void set_source_finder(SourceFinder finder);

// Gives the equations staged in this scope the source of another equation.
class SourceScope {
 public:
  explicit SourceScope(Source source);
  ~SourceScope();
  SourceScope(const SourceScope&) = delete;
  SourceScope& operator=(const SourceScope&) = delete;

 private:
  Source previous_;
};

}  // namespace capibara
