// A dot product, a broadcast and an addition, checked exactly.
module @affine {
  func.func public @main() -> tensor<2x2xf32> {
    %x = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
    %w = stablehlo.constant dense<[[1.0, 0.0], [0.5, 1.0], [0.0, 2.0]]> : tensor<3x2xf32>
    %b = stablehlo.constant dense<[10.0, 20.0]> : tensor<2xf32>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x2xf32>
    %expected = stablehlo.constant dense<[[12.0, 28.0], [16.5, 37.0]]> : tensor<2x2xf32>
    stablehlo.custom_call @check.expect_eq(%2, %expected) {has_side_effect = true} : (tensor<2x2xf32>, tensor<2x2xf32>) -> ()
    return %2 : tensor<2x2xf32>
  }
}
