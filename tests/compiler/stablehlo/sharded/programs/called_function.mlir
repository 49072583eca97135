module @jit_called_function attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0 = call @program(%cst) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %cst_0 = stablehlo.constant dense<[[1.375000e+00, 8.281250e+00, -3.562500e+00, -7.406250e+00], [5.468750e+00, 5.968750e+00, -7.031250e+00, -4.187500e+00], [5.000000e+00, 9.062500e-01, -5.187500e+00, 4.687500e-01], [5.093750e+00, -1.781250e+00, -4.656250e+00, 2.937500e+00], [7.500000e-01, -5.218750e+00, 5.625000e-01, 5.093750e+00], [-1.906250e+00, -4.531250e+00, 3.093750e+00, 3.812500e+00], [-7.125000e+00, -3.968750e+00, 8.187500e+00, 1.843750e+00], [-8.656250e+00, 3.437500e-01, 8.593750e+00, -2.562500e+00]]> : tensor<8x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0, %cst_0) {has_side_effect = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"data"}, {"model"}]>] out_shardings=[<@mesh, [{"data"}, {"model"}]>] manual_axes={"data", "model"} (%arg1: tensor<2x2xf32>) {
      %1 = func.call @"<lambda>"(%arg1) : (tensor<2x2xf32>) -> tensor<2x2xf32>
      %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
      %3 = stablehlo.multiply %1, %2 : tensor<2x2xf32>
      %4 = func.call @"<lambda>"(%3) : (tensor<2x2xf32>) -> tensor<2x2xf32>
      sdy.return %4 : tensor<2x2xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
  func.func private @"<lambda>"(%arg0: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %4 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %4 : tensor<f32>
    }) : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %cst = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %2 = stablehlo.divide %0, %1 : tensor<2x2xf32>
    %3 = stablehlo.subtract %arg0, %2 : tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
}
