module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0 = call @program(%cst) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %cst_0 = stablehlo.constant dense<[[0.000000e+00, 0.000000e+00, -0.000000e+00, -0.000000e+00], [0.000000e+00, 0.000000e+00, -0.000000e+00, -0.000000e+00], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [3.750000e+00, -7.500000e+00, -1.875000e+00, 8.000000e+00], [-2.500000e-01, -7.875000e+00, 2.250000e+00, 7.375000e+00], [-6.187500e+00, -9.375000e+00, 8.625000e+00, 7.125000e+00], [-1.050000e+01, -4.500000e+00, 1.162500e+01, 1.500000e+00]]> : tensor<8x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0, %cst_0) {has_side_effect = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"data", ?}, {?}]>] out_shardings=[<@mesh, [{"data", ?}, {?}]>] manual_axes={"data"} (%arg1: tensor<2x4xf32>) {
      %1 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, []>] manual_axes={"model"} () {
        %c = stablehlo.constant dense<2> : tensor<ui32>
        %c_0 = stablehlo.constant dense<4> : tensor<ui32>
        %8 = stablehlo.partition_id : tensor<ui32>
        %9 = stablehlo.divide %8, %c : tensor<ui32>
        %10 = stablehlo.remainder %9, %c_0 : tensor<ui32>
        %11 = stablehlo.convert %10 : (tensor<ui32>) -> tensor<i32>
        sdy.return %11 : tensor<i32>
      } : () -> tensor<i32>
      %2 = stablehlo.convert %1 : (tensor<i32>) -> tensor<f32>
      %3 = sdy.sharding_constraint %2 <@mesh, []> : tensor<f32>
      %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %5 = sdy.sharding_constraint %4 <@mesh, [{?}, {?}]> : tensor<2x4xf32>
      %6 = stablehlo.multiply %arg1, %5 : tensor<2x4xf32>
      %7 = sdy.sharding_constraint %6 <@mesh, [{?}, {?}]> : tensor<2x4xf32>
      sdy.return %7 : tensor<2x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
