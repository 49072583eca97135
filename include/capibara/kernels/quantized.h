// Matrices stored as codes of 8, 4 or fewer bits, and matmuls that read the codes without widening the whole matrix.
#pragma once

#include <capibara/tree.h>

#include <optional>
#include <string>

namespace capibara::kernels {

// A matrix [inputs, outputs] as codes. The coefficients of one output are contiguous. The arrays determine the format:
// - int8: codes int8 [outputs, inputs], scale float32 [outputs, blocks] for blocks of inputs / blocks elements each;
//   an element is code * scale;
// - int4: codes uint8 [outputs, 16 * blocks], scale bfloat16 [outputs, blocks] for blocks of 32 elements, the last of
//   which may have fewer; byte i of a block has element i in its low half and i + 16 in its high half; an element is
//   (code - 8) * scale;
// - vectors: codes uint8 or uint16 [outputs, vectors, stages], codebook float32 [stages, groups, entries, dim], scale
//   float32 [outputs, 1]; dim neighbouring inputs are the sum over the stages of the entry that the code names, times
//   the scale; vector v is coded by the group v * groups / vectors.
// Of int8 with one block, `input_scale` makes matmuls round x to int8 too and sum integers: float32 [1] is the scale of
// all elements of x, float32 [0] stands for a scale for each row of x, its maximum magnitude / 127.
struct QuantizedMatrix {
  Array codes, scale;
  std::optional<Array> codebook = {};
  int64_t inputs = 0;
  std::optional<Array> input_scale = {};

  int64_t outputs() const { return codes.shape(0); }
  // Of codes, scales and codebook.
  int64_t bytes() const;
};
CAPIBARA_TREE(QuantizedMatrix, codes, scale, codebook, inputs, input_scale)
// TypeError that names the array if shapes or dtypes are inconsistent.
void require_fit(const QuantizedMatrix& matrix);

struct QuantizeOptions {
  std::string format = "int8";  // or "int4"
  int64_t block = 0;            // of int8: elements that share a scale; 0: all of an output. int4 has blocks of 32
  int64_t axis = 0;             // of the matrix, over which matmuls sum
};
// A floating matrix as the nearest codes. ValueError for values that are not finite and for sizes that do not fit.
QuantizedMatrix quantize(const Array& matrix, const QuantizeOptions& options = {});

struct QuantizeVectorsOptions {
  int64_t dim = 4;          // elements of a vector
  int64_t entries = 256;    // of each codebook; beyond 256 codes take two bytes
  int64_t stages = 1;       // each codes the residual of the previous ones
  int64_t groups = 1;       // codebooks for parts of the inputs, as in product quantization
  int64_t axis = 0;         // of the matrix, over which matmuls sum
  int64_t iterations = 10;  // of k-means
  uint64_t seed = 0;
};
// A floating matrix as indices of vectors that k-means finds in it, each output divided by its root mean square first.
// ValueError as for `quantize`.
QuantizedMatrix quantize_vectors(const Array& matrix, const QuantizeVectorsOptions& options = {});

// The matrix [inputs, outputs] that the codes represent.
Array dequantize(const QuantizedMatrix& matrix, DType dtype = DType::float32);
struct QuantizedMatmulOptions {
  bool transposed = false;
};
// x [..., inputs] times the matrix: [..., outputs] in the dtype of x, summed in at least float32. `transposed`: x
// [..., outputs] times its transpose. x, scales and codebooks have derivatives: that of x reads the codes again, the
// others use the definition, which widens the matrix, as does vmap over matrices; codes are integers and have none.
// With `input_scale` the result is the same matmul of x rounded to 127 steps of its scale on either side of zero, and
// NaN in rows that are not finite; derivatives are those of the matmul with x as it is (straight-through), and so is
// `transposed`.
Array quantized_matmul(const Array& x, const QuantizedMatrix& matrix, const QuantizedMatmulOptions& options = {});
// Rows of the transpose, [..., inputs], for these outputs: an embedding lookup. Indices are clamped.
Array quantized_rows(const QuantizedMatrix& matrix, const Array& outputs, DType dtype = DType::float32);

}  // namespace capibara::kernels
