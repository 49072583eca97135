module @jit_second_derivative_of_map attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0 = call @program(%cst) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %cst_0 = stablehlo.constant dense<[[2.64328694, 13.5974407, -13.5974407, -3.82081461], [2.70733666, -1.97419882, 9.81168365, -2.18583393], [-11.5970154, -2.58691549, 5.79931402, -3.04166746], [8.19049454, -9.8283863, -12.5210934, 10.9297638], [-1.87437367, 3.66497803, -1.16468179, -11.5970154], [-0.979284405, 9.81168365, -0.423688412, -1.5065732], [-0.50958246, -12.7524967, 13.4874716, 6.28096485], [-4.6818614, 2.99024606, -7.86371421, 2.78302765]]> : tensor<8x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0, %cst_0) {has_side_effect = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32> {jax.result_info = "result"}) {
    %0:5 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"data"}, {"model"}]>] out_shardings=[<@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, []>] manual_axes={"data", "model"} (%arg1: tensor<2x2xf32>) {
      %11 = stablehlo.sine %arg1 : tensor<2x2xf32>
      %12 = stablehlo.cosine %arg1 : tensor<2x2xf32>
      %13 = stablehlo.cosine %arg1 : tensor<2x2xf32>
      %14 = stablehlo.sine %arg1 : tensor<2x2xf32>
      %15 = stablehlo.multiply %11, %arg1 : tensor<2x2xf32>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %16 = stablehlo.reduce(%15 init: %cst_3) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<f32>
      %17 = "stablehlo.all_reduce"(%16) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %18 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %18 : tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      sdy.return %12, %14, %13, %11, %17 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<f32>
    } : (tensor<8x4xf32>) -> (tensor<16x2xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<f32>)
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1:3 = sdy.manual_computation(%cst, %0#2, %arg0, %0#3) in_shardings=[<@mesh, []>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data"}, {"model"}]>, <@mesh, [{"data", "model"}, {}]>] out_shardings=[<@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data"}, {"model"}]>] manual_axes={"data", "model"} (%arg1: tensor<f32>, %arg2: tensor<2x2xf32>, %arg3: tensor<2x2xf32>, %arg4: tensor<2x2xf32>) {
      %11 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
      %12 = stablehlo.multiply %arg4, %11 : tensor<2x2xf32>
      %13 = stablehlo.multiply %11, %arg3 : tensor<2x2xf32>
      %14 = stablehlo.multiply %13, %arg2 : tensor<2x2xf32>
      %15 = stablehlo.add %12, %14 : tensor<2x2xf32>
      sdy.return %11, %13, %15 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
    } : (tensor<f32>, tensor<16x2xf32>, tensor<8x4xf32>, tensor<16x2xf32>) -> (tensor<16x2xf32>, tensor<16x2xf32>, tensor<8x4xf32>)
    %2 = stablehlo.multiply %1#2, %1#2 : tensor<8x4xf32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %4 = stablehlo.multiply %3, %1#2 : tensor<8x4xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%2 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %7 = stablehlo.multiply %6, %4 : tensor<8x4xf32>
    %8:3 = sdy.manual_computation(%7, %1#0, %0#2, %1#1) in_shardings=[<@mesh, [{"data"}, {"model"}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>] out_shardings=[<@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data"}, {"model"}]>, <@mesh, [{"data", "model"}, {}]>] manual_axes={"data", "model"} (%arg1: tensor<2x2xf32>, %arg2: tensor<2x2xf32>, %arg3: tensor<2x2xf32>, %arg4: tensor<2x2xf32>) {
      %11 = stablehlo.multiply %arg4, %arg1 : tensor<2x2xf32>
      %12 = stablehlo.multiply %arg1, %arg3 : tensor<2x2xf32>
      %13 = stablehlo.multiply %arg2, %12 : tensor<2x2xf32>
      %14 = stablehlo.multiply %arg1, %arg2 : tensor<2x2xf32>
      sdy.return %11, %13, %14 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
    } : (tensor<8x4xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<16x2xf32>) -> (tensor<16x2xf32>, tensor<8x4xf32>, tensor<16x2xf32>)
    %9 = sdy.manual_computation(%8#0, %8#2, %0#0, %0#1) in_shardings=[<@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>] out_shardings=[<@mesh, [{"data"}, {"model"}]>] manual_axes={"data", "model"} (%arg1: tensor<2x2xf32>, %arg2: tensor<2x2xf32>, %arg3: tensor<2x2xf32>, %arg4: tensor<2x2xf32>) {
      %11 = stablehlo.negate %arg1 : tensor<2x2xf32>
      %12 = stablehlo.multiply %11, %arg4 : tensor<2x2xf32>
      %13 = stablehlo.multiply %arg2, %arg3 : tensor<2x2xf32>
      %14 = stablehlo.add %12, %13 : tensor<2x2xf32>
      sdy.return %14 : tensor<2x2xf32>
    } : (tensor<16x2xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<8x4xf32>
    %10 = stablehlo.add %8#1, %9 : tensor<8x4xf32>
    return %10 : tensor<8x4xf32>
  }
}
