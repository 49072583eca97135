// What begins when a program is compiled first: the monitor, where the environment asks for it. src/assembly names it.
#pragma once

namespace capibara {

using Begin = void();

extern Begin* const at_first_compilation;  // called by each compilation; begins once

}  // namespace capibara
