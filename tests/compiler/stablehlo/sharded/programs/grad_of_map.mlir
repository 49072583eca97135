module @jit_grad_of_map attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[-0.2265625, 0.1328125, 0.19140625, -0.18359375, -0.14453125, 0.22265625], [8.593750e-02, -0.2421875, -2.343750e-02, 2.500000e-01, -3.906250e-02, -0.23828125], [0.1015625, 0.21484375, -1.562500e-01, -1.718750e-01, 0.19921875, 0.12109375], [-0.23046875, -6.250000e-02, 2.500000e-01, -3.906250e-03, -0.24609375, 0.06640625]]> : tensor<4x6xf32>
    %cst_0 = stablehlo.constant dense<[[-0.2265625, 0.1328125, 0.19140625, -0.18359375], [-0.14453125, 0.22265625, 8.593750e-02, -0.2421875], [-2.343750e-02, 2.500000e-01, -3.906250e-02, -0.23828125], [0.1015625, 0.21484375, -1.562500e-01, -1.718750e-01], [0.19921875, 0.12109375, -0.23046875, -6.250000e-02], [2.500000e-01, -3.906250e-03, -0.24609375, 0.06640625]]> : tensor<6x4xf32>
    %cst_1 = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0:3 = call @program(%cst, %cst_0, %cst_1) : (tensor<4x6xf32>, tensor<6x4xf32>, tensor<8x4xf32>) -> (tensor<4x6xf32>, tensor<6x4xf32>, tensor<8x4xf32>)
    %cst_2 = stablehlo.constant dense<[[0.407031417, 0.900561928, -0.370527059, -8.007760e-01, -0.647675872, -1.38479388], [0.0190380886, -0.921274602, -0.878360152, -0.766712486, -0.79304254, -0.394315124], [-4.143980e-01, -0.669166088, 0.599156737, 1.00078678, 0.855952143, 1.4918133], [0.0880690291, 1.09520805, 0.727792084, 0.511288166, 0.575929105, 0.0112534761]]> : tensor<4x6xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0#0, %cst_2) {has_side_effect = true} : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
    %cst_3 = stablehlo.constant dense<[[8.374310e-01, -0.46267283, -0.724639058, 0.650231719], [0.398872912, 0.747324168, -0.591919899, -0.59762305], [-0.927394509, 0.331006765, 0.849120795, -0.550091922], [-0.0735209063, -0.841014385, 0.288791358, 0.769285619], [9.852030e-01, -0.181052238, -0.945795714, 0.424345493], [-0.209895432, 0.828526198, -7.64727592E-4, -0.830774366]]> : tensor<6x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0#1, %cst_3) {has_side_effect = true} : (tensor<6x4xf32>, tensor<6x4xf32>) -> ()
    %cst_4 = stablehlo.constant dense<[[0.13178955, 0.195459127, -0.193936393, -1.449200e-01], [0.202479661, 0.0937408656, -0.23926571, -0.0352846496], [2.385250e-01, -0.0443288311, -0.217438743, 0.0865464061], [2.105180e-01, -0.172091484, -0.148119435, 0.187652364], [0.11685776, -0.242544398, -0.0436197892, 0.241276741], [-0.013106348, -0.25020206, 0.0820469707, 0.224355534], [-1.256630e-01, -0.202771857, 0.18716231, 0.151445925], [-0.19902356, -0.105669104, 0.236523658, 0.0463711508]]> : tensor<8x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0#2, %cst_4) {has_side_effect = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<4x6xf32>, %arg1: tensor<6x4xf32>, %arg2: tensor<8x4xf32>) -> (tensor<4x6xf32> {jax.result_info = "result[0]"}, tensor<6x4xf32> {jax.result_info = "result[1]"}, tensor<8x4xf32> {jax.result_info = "result[2]"}) {
    %0:8 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{"data"}, {}]>] out_shardings=[<@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}]>, <@mesh, [{}]>, <@mesh, []>] manual_axes={"data", "model"} (%arg3: tensor<4x6xf32>, %arg4: tensor<6x4xf32>, %arg5: tensor<2x4xf32>) {
      %2 = stablehlo.dot_general %arg5, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
      %3 = stablehlo.tanh %2 : tensor<2x6xf32>
      %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x6xf32>
      %5 = stablehlo.subtract %4, %3 : tensor<2x6xf32>
      %6 = stablehlo.dot_general %3, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x6xf32>, tensor<6x4xf32>) -> tensor<2x4xf32>
      %7 = stablehlo.subtract %6, %arg5 : tensor<2x4xf32>
      %8 = stablehlo.multiply %7, %7 : tensor<2x4xf32>
      %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %9 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %10 = stablehlo.multiply %9, %7 : tensor<2x4xf32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %11 = stablehlo.reduce(%8 init: %cst_2) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<f32>
      %cst_3 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %12 = stablehlo.divide %11, %cst_3 : tensor<f32>
      %13 = "stablehlo.all_reduce"(%12) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %17 = stablehlo.add %arg6, %arg7 : tensor<f32>
        stablehlo.return %17 : tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      %cst_4 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %14 = stablehlo.divide %13, %cst_4 : tensor<f32>
      %15 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1xf32>
      %cst_5 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %16 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1xf32>
      sdy.return %arg3, %3, %5, %arg4, %10, %15, %16, %14 : tensor<4x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<6x4xf32>, tensor<2x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<f32>
    } : (tensor<4x6xf32>, tensor<6x4xf32>, tensor<8x4xf32>) -> (tensor<16x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<24x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<1xf32>, tensor<f32>)
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1:3 = sdy.manual_computation(%cst, %0#0, %arg2, %0#1, %0#2, %0#3, %0#4, %0#5, %0#6) in_shardings=[<@mesh, []>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{"data"}, {}]>] manual_axes={"data", "model"} (%arg3: tensor<f32>, %arg4: tensor<4x6xf32>, %arg5: tensor<2x4xf32>, %arg6: tensor<2x6xf32>, %arg7: tensor<2x6xf32>, %arg8: tensor<6x4xf32>, %arg9: tensor<2x4xf32>, %arg10: tensor<1xf32>, %arg11: tensor<1xf32>) {
      %2 = stablehlo.reshape %arg10 : (tensor<1xf32>) -> tensor<f32>
      %3 = stablehlo.reshape %arg11 : (tensor<1xf32>) -> tensor<f32>
      %4 = stablehlo.divide %arg3, %3 : tensor<f32>
      %5 = stablehlo.divide %4, %2 : tensor<f32>
      %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %7 = stablehlo.multiply %6, %arg9 : tensor<2x4xf32>
      %8 = stablehlo.negate %7 : tensor<2x4xf32>
      %9 = stablehlo.dot_general %7, %arg6, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
      %10 = stablehlo.transpose %9, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
      %11 = stablehlo.dot_general %7, %arg8, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<2x6xf32>
      %12 = "stablehlo.all_reduce"(%10) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg12: tensor<f32>, %arg13: tensor<f32>):
        %21 = stablehlo.add %arg12, %arg13 : tensor<f32>
        stablehlo.return %21 : tensor<f32>
      }) : (tensor<6x4xf32>) -> tensor<6x4xf32>
      %13 = stablehlo.multiply %11, %arg7 : tensor<2x6xf32>
      %14 = stablehlo.multiply %13, %arg6 : tensor<2x6xf32>
      %15 = stablehlo.add %13, %14 : tensor<2x6xf32>
      %16 = stablehlo.dot_general %15, %arg5, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x6xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
      %17 = stablehlo.transpose %16, dims = [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
      %18 = stablehlo.dot_general %15, %arg4, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x6xf32>, tensor<4x6xf32>) -> tensor<2x4xf32>
      %19 = stablehlo.add %8, %18 : tensor<2x4xf32>
      %20 = "stablehlo.all_reduce"(%17) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg12: tensor<f32>, %arg13: tensor<f32>):
        %21 = stablehlo.add %arg12, %arg13 : tensor<f32>
        stablehlo.return %21 : tensor<f32>
      }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
      sdy.return %20, %12, %19 : tensor<4x6xf32>, tensor<6x4xf32>, tensor<2x4xf32>
    } : (tensor<f32>, tensor<16x6xf32>, tensor<8x4xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<24x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<1xf32>) -> (tensor<4x6xf32>, tensor<6x4xf32>, tensor<8x4xf32>)
    return %1#0, %1#1, %1#2 : tensor<4x6xf32>, tensor<6x4xf32>, tensor<8x4xf32>
  }
}
