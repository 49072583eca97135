// The linear algebra family: decompositions and triangular solves.
#include "primitives/families.h"

namespace capibara {

Family linalg_family() { return {}; }

}  // namespace capibara
