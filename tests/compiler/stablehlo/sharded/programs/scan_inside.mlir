module @jit_scan_inside attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0:2 = call @program(%cst) : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<3xf32>)
    %cst_0 = stablehlo.constant dense<[[7.000000e+00, 2.312500e+00, -8.125000e-01, 4.687500e+00], [6.375000e+00, 4.375000e-01, 2.500000e-01, 6.250000e+00], [4.875000e+00, -7.500000e-01, 2.062500e+00, 7.000000e+00], [2.875000e+00, -9.375000e-01, 4.125000e+00, 6.687500e+00], [9.375000e-01, -1.250000e-01, 5.875000e+00, 5.375000e+00], [-5.000000e-01, 1.500000e+00, 6.875000e+00, 3.500000e+00], [5.187500e+00, 6.000000e+00, 0.000000e+00, 7.500000e-01], [6.562500e+00, 4.312500e+00, -9.375000e-01, 2.687500e+00]]> : tensor<8x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0#0, %cst_0) {has_side_effect = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    %cst_1 = stablehlo.constant dense<[1.006250e+01, -1.018750e+01, -1.937500e+00]> : tensor<3xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0#1, %cst_1) {has_side_effect = true} : (tensor<3xf32>, tensor<3xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32> {jax.result_info = "result[0]"}, tensor<3xf32> {jax.result_info = "result[1]"}) {
    %0:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"data"}, {"model"}]>] out_shardings=[<@mesh, [{"data"}, {"model"}]>, <@mesh, [{}]>] manual_axes={"data", "model"} (%arg1: tensor<2x2xf32>) {
      %1 = stablehlo.iota dim = 0 : tensor<3xf32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %3:4 = stablehlo.while(%iterArg = %1, %iterArg_0 = %c, %iterArg_1 = %arg1, %iterArg_2 = %2) : tensor<3xf32>, tensor<i32>, tensor<2x2xf32>, tensor<3xf32>
      cond {
        %c_3 = stablehlo.constant dense<3> : tensor<i32>
        %4 = stablehlo.compare LT, %iterArg_0, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %4 : tensor<i1>
      } do {
        %4 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_0) : (tensor<3xf32>, tensor<i32>) -> tensor<f32>
        %5:2 = func.call @closed_call(%iterArg_1, %4) : (tensor<2x2xf32>, tensor<f32>) -> (tensor<2x2xf32>, tensor<f32>)
        %6 = func.call @dynamic_update_index_in_dim(%iterArg_2, %5#1, %iterArg_0) : (tensor<3xf32>, tensor<f32>, tensor<i32>) -> tensor<3xf32>
        %c_3 = stablehlo.constant dense<1> : tensor<i32>
        %7 = stablehlo.add %iterArg_0, %c_3 : tensor<i32>
        stablehlo.return %iterArg, %7, %5#0, %6 : tensor<3xf32>, tensor<i32>, tensor<2x2xf32>, tensor<3xf32>
      }
      sdy.return %3#2, %3#3 : tensor<2x2xf32>, tensor<3xf32>
    } : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<3xf32>)
    return %0#0, %0#1 : tensor<8x4xf32>, tensor<3xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<3xf32>, %arg1: tensor<i32>) -> tensor<f32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @closed_call(%arg0: tensor<2x2xf32>, %arg1: tensor<f32>) -> (tensor<2x2xf32>, tensor<f32>) {
    %0 = "stablehlo.collective_permute"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 2], [2, 4], [4, 6], [6, 0], [1, 3], [3, 5], [5, 7], [7, 1]]> : tensor<8x2xi64>}> : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x2xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<f32>
    return %2, %3 : tensor<2x2xf32>, tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<3xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<3xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 : (tensor<3xf32>, tensor<1xf32>, tensor<i32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
}
