// What the records of scatter and its kin are made of: dimension numbers and derivatives.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

const ScatterDimensionNumbers& scatter_dims(const Attrs& attrs);

JvpResult scatter_jvp(const JvpArgs& args);
Arrays scatter_transpose(const TransposeArgs& args);
// scatter-add and scatter-sub are linear in operand and updates together.
JvpResult linear_scatter_jvp(const JvpArgs& args);
Arrays linear_scatter_transpose(const TransposeArgs& args);
JvpResult scatter_mul_jvp(const JvpArgs& args);
Arrays scatter_mul_transpose(const TransposeArgs& args);
// Where several values contend for one place, the tangent there is the mean of the tangents of the winners.
JvpResult extremal_jvp(const JvpArgs& args);

}  // namespace capibara
