module @jit_remat_inside attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0 = call @program(%cst) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %cst_0 = stablehlo.constant dense<[[-0.396339059, -0.980151057, -0.980151057, -0.447427541], [-0.837585866, 0.145064518, -0.528520882, 0.906950652], [-0.475221843, 0.62236762, -0.63670355, -0.0635772422], [-0.946976661, -0.714722454, -0.857796311, -0.988316595], [-0.173236653, -0.690137565, 0.409725338, -0.475221843], [0.984496414, -0.528520882, 0.267257035, -0.742029488], [-0.300260127, -0.999724745, -0.931391298, -0.553818583], [-0.879430056, 0.0383684561, -0.582573891, 0.778643906]]> : tensor<8x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0, %cst_0) {has_side_effect = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"data"}, {"model"}]>] out_shardings=[<@mesh, [{"data"}, {}]>] manual_axes={"data", "model"} (%arg1: tensor<2x2xf32>) {
      %4 = stablehlo.sine %arg1 : tensor<2x2xf32>
      %5 = stablehlo.sine %4 : tensor<2x2xf32>
      %6 = "stablehlo.all_reduce"(%5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %7 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %7 : tensor<f32>
      }) : (tensor<2x2xf32>) -> tensor<2x2xf32>
      sdy.return %6 : tensor<2x2xf32>
    } : (tensor<8x4xf32>) -> tensor<8x2xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8x2xf32>
    %3 = sdy.manual_computation(%2, %arg0) in_shardings=[<@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {"model"}]>] out_shardings=[<@mesh, [{"data"}, {"model"}]>] manual_axes={"data", "model"} (%arg1: tensor<2x2xf32>, %arg2: tensor<2x2xf32>) {
      %4:2 = stablehlo.optimization_barrier %arg2, %arg1 : tensor<2x2xf32>, tensor<2x2xf32>
      %5 = stablehlo.sine %4#0 : tensor<2x2xf32>
      %6 = stablehlo.cosine %4#0 : tensor<2x2xf32>
      %7 = stablehlo.cosine %5 : tensor<2x2xf32>
      %8 = stablehlo.multiply %4#1, %7 : tensor<2x2xf32>
      %9 = stablehlo.multiply %8, %6 : tensor<2x2xf32>
      sdy.return %9 : tensor<2x2xf32>
    } : (tensor<8x2xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %3 : tensor<8x4xf32>
  }
}
