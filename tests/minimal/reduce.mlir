// A sort along one dimension and a sum over the other, with a function of its own.
module @reduce {
  func.func public @main() -> tensor<3xf32> {
    %x = stablehlo.constant dense<[[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]]> : tensor<2x3xf32>
    %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%left: tensor<f32>, %right: tensor<f32>):
      %2 = stablehlo.compare LT, %left, %right, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = call @column_sums(%0) : (tensor<2x3xf32>) -> tensor<3xf32>
    %expected = stablehlo.constant dense<[5.0, 7.0, 9.0]> : tensor<3xf32>
    stablehlo.custom_call @check.expect_eq(%1, %expected) {has_side_effect = true} : (tensor<3xf32>, tensor<3xf32>) -> ()
    return %1 : tensor<3xf32>
  }
  func.func private @column_sums(%x: tensor<2x3xf32>) -> tensor<3xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
