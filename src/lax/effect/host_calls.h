// Shared by calls of the host.
#pragma once

#include <functional>
#include <vector>

#include "lax/rules.h"

namespace capibara {

// These types with one more leading dimension.
Attr with_leading(const Types& types, int64_t size);
// Batches a call by its attribute vmap_method: one call per lane, or one of all lanes with the attributes that
// `widened` makes for operands, where the mask is set, and results with a leading dimension. `called` is the name in
// errors.
BatchResult batch_by_method(const BatchArgs& args, const char* called,
                            const std::function<Attrs(const std::vector<bool>& longer)>& widened);

}  // namespace capibara
