// Building blocks shared by the rules of many primitives.
#pragma once

#include <capibara/lax.h>
#include <capibara/primitive.h>

#include <initializer_list>

#include "program/derive/values.h"

namespace capibara {

inline const std::vector<DType> float_dtypes = {DType::bfloat16, DType::float16, DType::float32, DType::float64};

// ---- values -----------------------------------------------------------------------------------------------------

// A rank-0 constant of the dtype of `like`; weakly typed if `like` is a weakly typed scalar.
Array scalar_like(const Array& like, double value);
Array scalar_of(DType dtype, double value, bool weak_type = false);

// ---- batching ---------------------------------------------------------------------------------------------------

// The position of an unbatched dimension after a batch dimension was inserted at `batch_dim`.
inline int64_t shifted(int64_t dim, int64_t batch_dim) { return dim >= batch_dim ? dim + 1 : dim; }
Ints shifted(const Ints& dims, int64_t batch_dim);

// For elementwise operations: aligns the mapped axes and binds once.
BatchResult batch_elementwise(const BatchArgs& args);
// For operations on trailing dimensions that take any number of leading batch dimensions.
BatchResult batch_leading(const BatchArgs& args);

// ---- derivatives ------------------------------------------------------------------------------------------------

// The jvp of an operation linear in all its inputs: the operation on the tangents (zeros instantiated).
JvpRule linear_jvp();
// The jvp of a product: linear in each of its two inputs with the other held fixed.
JvpResult bilinear_jvp(const JvpArgs& args);
// jvp of an elementwise operation from the derivative in each input: df[i](g, primal output, inputs, attrs).
using Derivative =
    std::function<Array(const Array& tangent, const Array& output, std::span<const Array> inputs, const Attrs& attrs)>;
JvpRule elementwise_jvp(std::vector<Derivative> derivatives);  // an empty function: no dependence (zero)
// jvp of functions whose outputs have no tangent (integer-valued functions).
JvpRule zero_jvp();
// Sums a cotangent over the dimensions along which an elementwise input was broadcast.
Array unbroadcast(const Array& cotangent, const ArrayType& to);

// ---- types ------------------------------------------------------------------------------------------------------

// Shape of an elementwise operation: rank 0 and size-1 dimensions stretch; raises TypeError naming the operation.
Shape broadcast_operand_shapes(const std::string& op, std::span<const ArrayType> types);
void require_same_dtypes(const std::string& op, std::span<const ArrayType> types);
void require_rank(const std::string& op, const std::string& argument, const ArrayType& type, int64_t rank);
void require_count(const std::string& op, std::span<const ArrayType> types, std::size_t count);
// Normalises and checks an axis; raises ValueError `op: axis 3 is out of range for float32[2,4] (argument 'axis')`.
int64_t checked_axis(const std::string& op, int64_t axis, const ArrayType& type, const char* argument = "axis");

}  // namespace capibara
