// Building blocks for the records of scatter and its combining forms: dimension numbers and derivatives.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

const ScatterDimensionNumbers& scatter_dims(const Attrs& attrs);

JvpResult scatter_jvp(const JvpArgs& args);
Arrays scatter_transpose(const TransposeArgs& args);
// scatter-add and scatter-sub are jointly linear in operand and updates.
JvpResult linear_scatter_jvp(const JvpArgs& args);
Arrays linear_scatter_transpose(const TransposeArgs& args);
JvpResult scatter_mul_jvp(const JvpArgs& args);
Arrays scatter_mul_transpose(const TransposeArgs& args);
// If several values contend for one element, its tangent is the mean of the winners' tangents.
JvpResult extremal_jvp(const JvpArgs& args);

}  // namespace capibara
