// What begins with the first operation: a profile, where the environment asks for one. src/assembly names it.
#pragma once

namespace capibara {

using Begin = void();

extern Begin* const at_first_operation;  // called now and then; begins once

}  // namespace capibara
