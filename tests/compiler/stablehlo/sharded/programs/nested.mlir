module @jit_nested attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0 = call @program(%cst) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %cst_0 = stablehlo.constant dense<[[4.375000e+00, 6.000000e+00, -6.000000e+00, -4.500000e+00], [7.125000e+00, 2.625000e+00, -7.875000e+00, -6.250000e-01], [8.375000e+00, 6.250000e-01, -7.250000e+00, 5.375000e+00], [8.000000e+00, -3.750000e+00, -4.250000e+00, 7.875000e+00], [7.500000e+00, -6.500000e+00, 1.875000e+00, 9.000000e+00], [3.750000e+00, -8.875000e+00, 6.250000e+00, 6.375000e+00], [7.500000e-01, -1.075000e+01, 1.062500e+01, 2.500000e-01], [-4.750000e+00, -9.000000e+00, 1.000000e+01, -5.000000e+00]]> : tensor<8x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0, %cst_0) {has_side_effect = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"data", ?}, {?}]>] out_shardings=[<@mesh, [{"data", ?}, {?}]>] manual_axes={"data"} (%arg1: tensor<2x4xf32>) {
      %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %2 = sdy.sharding_constraint %1 <@mesh, [{?}, {?}]> : tensor<2x4xf32>
      %3 = stablehlo.multiply %arg1, %2 : tensor<2x4xf32>
      %4 = sdy.sharding_constraint %3 <@mesh, [{?}, {?}]> : tensor<2x4xf32>
      %5 = sdy.manual_computation(%4) in_shardings=[<@mesh, [{?}, {"model", ?}]>] out_shardings=[<@mesh, [{?}, {"model", ?}]>] manual_axes={"model"} (%arg2: tensor<2x2xf32>) {
        %6 = "stablehlo.all_reduce"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
          %15 = stablehlo.add %arg3, %arg4 : tensor<f32>
          stablehlo.return %15 : tensor<f32>
        }) : (tensor<2x2xf32>) -> tensor<2x2xf32>
        %c = stablehlo.constant dense<2> : tensor<ui32>
        %c_0 = stablehlo.constant dense<4> : tensor<ui32>
        %7 = stablehlo.partition_id : tensor<ui32>
        %8 = stablehlo.divide %7, %c : tensor<ui32>
        %9 = stablehlo.remainder %8, %c_0 : tensor<ui32>
        %10 = stablehlo.convert %9 : (tensor<ui32>) -> tensor<i32>
        %11 = stablehlo.convert %10 : (tensor<i32>) -> tensor<f32>
        %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
        %13 = stablehlo.multiply %6, %12 : tensor<2x2xf32>
        %14 = stablehlo.add %arg2, %13 : tensor<2x2xf32>
        sdy.return %14 : tensor<2x2xf32>
      } : (tensor<2x4xf32>) -> tensor<2x4xf32>
      sdy.return %5 : tensor<2x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
