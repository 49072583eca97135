// What the primitives and functions of named axes share.
#pragma once

#include "lax/families.h"
#include "lax/rules.h"

namespace capibara {

Family exchange_records();  // all_gather, reduce_scatter, all_to_all, ppermute

jax::lax::AxisNames axis_names(const Attrs& attrs, const char* key);
Effects uses(const jax::lax::AxisNames& names);
void refuse_groups(const BatchArgs& args);  // NotImplementedError where there are groups

namespace jax::lax {

Attr name_list(const AxisNames& names);
Attr groups_attr(const AxisGroups& groups);
int64_t group_size(const std::string& axis_name, const AxisGroups& groups);

}  // namespace jax::lax

}  // namespace capibara
