module @jit_megatron_map attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[-0.2265625, 0.1328125, 0.19140625, -0.18359375, -0.14453125, 0.22265625], [8.593750e-02, -0.2421875, -2.343750e-02, 2.500000e-01, -3.906250e-02, -0.23828125], [0.1015625, 0.21484375, -1.562500e-01, -1.718750e-01, 0.19921875, 0.12109375], [-0.23046875, -6.250000e-02, 2.500000e-01, -3.906250e-03, -0.24609375, 0.06640625]]> : tensor<4x6xf32>
    %cst_0 = stablehlo.constant dense<[[-0.2265625, 0.1328125, 0.19140625, -0.18359375], [-0.14453125, 0.22265625, 8.593750e-02, -0.2421875], [-2.343750e-02, 2.500000e-01, -3.906250e-02, -0.23828125], [0.1015625, 0.21484375, -1.562500e-01, -1.718750e-01], [0.19921875, 0.12109375, -0.23046875, -6.250000e-02], [2.500000e-01, -3.906250e-03, -0.24609375, 0.06640625]]> : tensor<6x4xf32>
    %cst_1 = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0:3 = call @program(%cst, %cst_0, %cst_1) : (tensor<4x6xf32>, tensor<6x4xf32>, tensor<8x4xf32>) -> (tensor<f32>, tensor<4x6xf32>, tensor<6x4xf32>)
    %cst_2 = stablehlo.constant dense<7.60146331> : tensor<f32>
    stablehlo.custom_call @check.expect_almost_eq(%0#0, %cst_2) {has_side_effect = true} : (tensor<f32>, tensor<f32>) -> ()
    %cst_3 = stablehlo.constant dense<[[-0.633593917, -0.767749428, 0.561933279, 0.617182254, 0.503144622, 1.60745013], [0.0668994114, 0.679087102, 0.854922652, 1.01671243, 0.753980041, 0.156033874], [0.515960515, 0.884009838, -0.755406737, -1.17266178, -0.656733394, -1.37071955], [-0.318537772, -1.15770805, -0.477792084, -0.515194416, -0.822022855, 0.0551527739]]> : tensor<4x6xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0#1, %cst_3) {has_side_effect = true} : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
    %cst_4 = stablehlo.constant dense<[[-1.06399345, 0.59548533, 0.916045308, -0.833825469], [-0.543404162, -0.524667919, 0.677857399, 0.35543555], [9.039570e-01, -0.0810067653, -0.888183295, 0.311810672], [0.175083414, 1.05585814, -0.445041358, -0.941160619], [-0.785984278, 3.021460e-01, 0.715326964, -0.486845493], [0.459895432, -0.832432448, -0.245329022, 0.897180616]]> : tensor<6x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0#2, %cst_4) {has_side_effect = true} : (tensor<6x4xf32>, tensor<6x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<4x6xf32>, %arg1: tensor<6x4xf32>, %arg2: tensor<8x4xf32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<4x6xf32> {jax.result_info = "result[1][0]"}, tensor<6x4xf32> {jax.result_info = "result[1][1]"}) {
    %0:8 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{}, {"model"}]>, <@mesh, [{"model"}, {}]>, <@mesh, [{"data"}, {}]>] out_shardings=[<@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}]>, <@mesh, [{}]>, <@mesh, []>] manual_axes={"data", "model"} (%arg3: tensor<4x3xf32>, %arg4: tensor<3x4xf32>, %arg5: tensor<2x4xf32>) {
      %4 = stablehlo.dot_general %arg5, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
      %5 = stablehlo.tanh %4 : tensor<2x3xf32>
      %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
      %7 = stablehlo.subtract %6, %5 : tensor<2x3xf32>
      %8 = stablehlo.dot_general %5, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
      %9 = "stablehlo.all_reduce"(%8) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %20 = stablehlo.add %arg6, %arg7 : tensor<f32>
        stablehlo.return %20 : tensor<f32>
      }) : (tensor<2x4xf32>) -> tensor<2x4xf32>
      %10 = stablehlo.subtract %9, %arg5 : tensor<2x4xf32>
      %11 = stablehlo.multiply %10, %10 : tensor<2x4xf32>
      %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %12 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %13 = stablehlo.multiply %12, %10 : tensor<2x4xf32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %14 = stablehlo.reduce(%11 init: %cst_2) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<f32>
      %cst_3 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %15 = stablehlo.divide %14, %cst_3 : tensor<f32>
      %16 = "stablehlo.all_reduce"(%15) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %20 = stablehlo.add %arg6, %arg7 : tensor<f32>
        stablehlo.return %20 : tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      %cst_4 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %17 = stablehlo.divide %16, %cst_4 : tensor<f32>
      %18 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1xf32>
      %cst_5 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %19 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1xf32>
      sdy.return %arg5, %5, %7, %arg4, %13, %18, %19, %17 : tensor<2x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<3x4xf32>, tensor<2x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<f32>
    } : (tensor<4x6xf32>, tensor<6x4xf32>, tensor<8x4xf32>) -> (tensor<16x4xf32>, tensor<16x3xf32>, tensor<16x3xf32>, tensor<24x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<1xf32>, tensor<f32>)
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1:2 = sdy.manual_computation(%cst, %0#0, %0#1, %0#2, %0#3, %0#4, %0#5, %0#6) in_shardings=[<@mesh, []>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data", "model"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{}, {"model"}]>, <@mesh, [{"model"}, {}]>] manual_axes={"data", "model"} (%arg3: tensor<f32>, %arg4: tensor<2x4xf32>, %arg5: tensor<2x3xf32>, %arg6: tensor<2x3xf32>, %arg7: tensor<3x4xf32>, %arg8: tensor<2x4xf32>, %arg9: tensor<1xf32>, %arg10: tensor<1xf32>) {
      %4 = stablehlo.reshape %arg9 : (tensor<1xf32>) -> tensor<f32>
      %5 = stablehlo.reshape %arg10 : (tensor<1xf32>) -> tensor<f32>
      %6 = stablehlo.divide %arg3, %5 : tensor<f32>
      %7 = stablehlo.divide %6, %4 : tensor<f32>
      %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %9 = stablehlo.multiply %8, %arg8 : tensor<2x4xf32>
      %10 = stablehlo.dot_general %9, %arg5, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      %11 = stablehlo.transpose %10, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
      %12 = stablehlo.dot_general %9, %arg7, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
      %13 = "stablehlo.all_reduce"(%11) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg11: tensor<f32>, %arg12: tensor<f32>):
        %20 = stablehlo.add %arg11, %arg12 : tensor<f32>
        stablehlo.return %20 : tensor<f32>
      }) : (tensor<3x4xf32>) -> tensor<3x4xf32>
      %14 = stablehlo.multiply %12, %arg6 : tensor<2x3xf32>
      %15 = stablehlo.multiply %14, %arg5 : tensor<2x3xf32>
      %16 = stablehlo.add %14, %15 : tensor<2x3xf32>
      %17 = stablehlo.dot_general %16, %arg4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
      %18 = stablehlo.transpose %17, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
      %19 = "stablehlo.all_reduce"(%18) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg11: tensor<f32>, %arg12: tensor<f32>):
        %20 = stablehlo.add %arg11, %arg12 : tensor<f32>
        stablehlo.return %20 : tensor<f32>
      }) : (tensor<4x3xf32>) -> tensor<4x3xf32>
      sdy.return %19, %13 : tensor<4x3xf32>, tensor<3x4xf32>
    } : (tensor<f32>, tensor<16x4xf32>, tensor<16x3xf32>, tensor<16x3xf32>, tensor<24x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<1xf32>) -> (tensor<4x6xf32>, tensor<6x4xf32>)
    %2 = stablehlo.subtract %arg0, %1#0 : tensor<4x6xf32>
    %3 = stablehlo.subtract %arg1, %1#1 : tensor<6x4xf32>
    return %0#7, %2, %3 : tensor<f32>, tensor<4x6xf32>, tensor<6x4xf32>
  }
}
