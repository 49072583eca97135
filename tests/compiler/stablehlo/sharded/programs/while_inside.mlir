module @jit_while_inside attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0 = call @program(%cst) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %cst_0 = stablehlo.constant dense<[[45.6982422, 54.953125, -13.390625, -4.84765625], [61.3603515, 35.7314453, -24.0693359, 17.2216797], [66.34375, 12.9501953, -22.6455078, 40.0029297], [59.2246094, -8.40722656, -10.5429688, 57.8007813], [42.1386719, -21.9335938, 10.1025391, 66.34375], [19.3574219, -24.0693359, 33.5957031, 62.7841796], [-2.71191406, -14.8144531, 53.5292969, 47.8339844], [-19.0859375, 3.6953125, 64.9199219, 26.4765625]]> : tensor<8x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0, %cst_0) {has_side_effect = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"data"}, {"model"}]>] out_shardings=[<@mesh, [{"data"}, {"model"}]>] manual_axes={"data", "model"} (%arg1: tensor<2x2xf32>) {
      %1 = stablehlo.while(%iterArg = %arg1) : tensor<2x2xf32>
      cond {
        %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        %2 = stablehlo.reduce(%iterArg init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<f32>
        %3 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
        ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
          %5 = stablehlo.add %arg2, %arg3 : tensor<f32>
          stablehlo.return %5 : tensor<f32>
        }) : (tensor<f32>) -> tensor<f32>
        %cst_0 = stablehlo.constant dense<5.000000e+02> : tensor<f32>
        %4 = stablehlo.compare LT, %3, %cst_0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %4 : tensor<i1>
      } do {
        %cst = stablehlo.constant dense<1.500000e+00> : tensor<f32>
        %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
        %3 = stablehlo.multiply %iterArg, %2 : tensor<2x2xf32>
        %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
        %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
        %5 = stablehlo.add %3, %4 : tensor<2x2xf32>
        stablehlo.return %5 : tensor<2x2xf32>
      }
      sdy.return %1 : tensor<2x2xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
